-- rpc.lua: a client of `sessile rpc` for specs: the process, its lines, answers to its questions.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local sessile = require "sessile"
local shell = require "spec.support.shell"

local rpc = {}
rpc.__index = rpc

local number = 0

--- Starts a server in the home of the spec (spec.support.cli). words: after "rpc" and before it.
function rpc.start(words, before)
  number = number + 1
  local self = setmetatable({ id = 0, notes = {}, answers = {}, asks = {} }, rpc)
  self.base = ("%s/rpc%d"):format(cli.home(), number)
  local base = cli.quote(self.base)
  assert(os.execute(("mkfifo %s.in %s.out"):format(base, base)))
  assert(os.execute(("(%s %s %s rpc %s <%s.in >%s.out 2>%s.err; echo $? >%s.code) & "
    .. "echo $! >%s.pid"):format(cli.env(), before or "", cli.quote(built.binary), words or "",
    base, base, base, base, base)))
  self.out = assert(io.open(self.base .. ".in", "w"))
  self.out:setvbuf "full"
  self.lines = assert(io.open(self.base .. ".out", "r"))
  return self
end

--- The id of the server's process.
function rpc:pid()
  return shell.line(("pgrep -P %s -f ' rpc' | tail -n 1"):format(
    cli.read(self.base .. ".pid"):match "%d+"))
end

--- Sends a line as it is.
function rpc:raw(line)
  self.out:write(line, "\n")
  self.out:flush()
end

--- Sends a request; returns its id. params: a table, or its JSON text.
function rpc:send(method, params, id)
  self.id = self.id + 1
  id = id or self.id
  local text = type(params) == "string" and params or params and assert(sessile.encode(params))
  self:raw(('{"jsonrpc":"2.0","id":%s,"method":"%s"%s}'):format(
    type(id) == "string" and ("%q"):format(id) or id, method, text and ',"params":' .. text or ""))
  return id
end

--- The next line of the server, as a table; nil: it ended.
function rpc:line()
  local line = self.lines:read "l"
  return line and assert(sessile.decode(line)), line
end

-- Takes a line: answers a question, or keeps it.
local function take(self, message, line)
  if message.method and message.id then
    local answer = self.asks[message.method]
    table.insert(self.asked or {}, message)
    if answer == nil then
      error("the server asks " .. line)
    end
    local result = answer
    if type(answer) == "function" then
      result = answer(message.params, message, self)
    end
    if result ~= nil then
      self:raw(assert(sessile.encode { jsonrpc = "2.0", id = message.id, result = result }))
    end
  elseif message.method then
    table.insert(self.notes, message)
  else
    self.answers[message.id] = { message, line }
  end
end

--- The answer to a request: its result; nil and the error. The third is its line.
function rpc:wait(id)
  while not self.answers[id] do
    local message, line = self:line()
    assert(message, "the server ended: " .. cli.read(self.base .. ".err"))
    take(self, message, line)
  end
  local message, line = table.unpack(self.answers[id])
  self.answers[id] = nil
  return message.result, message.error, line
end

--- Calls a method and waits.
function rpc:try(method, params)
  return self:wait(self:send(method, params))
end

--- The same, when it has to succeed; and the line of its answer.
function rpc:call(method, params)
  local result, failure, line = self:try(method, params)
  if failure then
    error(("%s: %s"):format(method, sessile.encode(failure)), 2)
  end
  return result, line
end

--- The next note of the server.
function rpc:note()
  while #self.notes == 0 do
    local message, line = self:line()
    assert(message, "the server ended")
    take(self, message, line)
  end
  return table.remove(self.notes, 1)
end

--- Ends it, if it has not ended.
function rpc:stop()
  if not self.has_ended then
    self:finish()
  end
end

-- Its exit code, when it has ended.
local function code_of(self)
  for _ = 1, 3000 do
    local code = cli.exists(self.base .. ".code") and cli.read(self.base .. ".code"):match "%d+"
    if code then
      return tonumber(code)
    end
    os.execute "sleep 0.02"
  end
end

--- Reads no more, and sends a request whose answer cannot be written: the exit code.
function rpc:leave(method)
  self.has_ended = true
  self.lines:close()
  self:send(method)
  local code = code_of(self)
  self.out:close()
  return code
end

--- Ends its input; returns its exit code, what was still written, and what it said.
function rpc:finish()
  self.has_ended = true
  self.out:close()
  local rest = self.lines:read "a"
  self.lines:close()
  return code_of(self), rest, cli.read(self.base .. ".err")
end

return rpc
