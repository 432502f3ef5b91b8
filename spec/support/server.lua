-- server.lua: `sessile serve` as a process of a spec, and calls to it by gRPC's own library.

local assert = require "luassert"
local built = require "spec.support.built"
local cli = require "spec.support.cli"
local shell = require "spec.support.shell"

local server = {}

local PYTHON = "/usr/bin/python3"

local started = 0 -- each has a log of its own

--- Waits until look() gives something, and returns it; what: what the server did not do by then.
function server.wait_for(look, what)
  for _ = 1, 600 do
    local found = look()
    if found then
      return found
    end
    os.execute "sleep 0.05"
  end
  error("the server " .. what)
end

--- Starts it in the home of the spec; words: more of its command line. Returns a table with
--- `address`, and methods.
function server.start(words, before)
  started = started + 1
  local log = ("%s/serve-%d.log"):format(cli.home(), started)
  local command = ("%s %s %s serve --listen 127.0.0.1:0 %s >%s 2>&1 </dev/null & echo $!"):format(
    cli.env(), before or "", cli.quote(cli.binary), words or "", cli.quote(log))
  local one = setmetatable({ pid = shell.line(command), log = log }, { __index = server })
  one.address = server.wait_for(function()
    local said = cli.read(log)
    assert(one:runs(), said)
    one.metrics = said:match "(http://[%d.]+:%d+/metrics)"
    return said:match " at ([%d.]+:%d+),"
  end, "did not begin to serve")
  return one
end

--- Whether the process is there.
function server:runs()
  return os.execute(("kill -0 %s 2>/dev/null"):format(self.pid)) == true
end

--- Sends it a signal, as "TERM".
function server:signal(name)
  assert(os.execute(("kill -%s %s"):format(name, self.pid)))
end

--- Tells it to end, waits for that, and returns what it said.
function server:stop()
  if self:runs() then
    self:signal "TERM"
    server.wait_for(function()
      return not self:runs()
    end, "did not end")
  end
  return cli.read(self.log)
end

--- Calls a method with a request, a table or JSON text; words: options of call.py. Returns the
--- code of gRPC and the first reply; or the code, the message and the trailers.
function server:call(method, request, words)
  local encode = require("sessile").encode
  local text = type(request) == "table" and encode(request) or request or "{}"
  -- with an end, so that a call that hangs is named by its failure
  local call = "timeout -k 1 120 %s %s/tests/service/call.py %s %s %s %s %s"
  local line = shell.line(call:format(PYTHON, cli.quote(built.root),
    cli.quote(built.folder .. "/proto/service"), self.address, method, cli.quote(text),
    words or ""))
  local answer = cli.decoded(assert(line ~= "" and line, "call.py did not answer: " .. method))
  if answer.code == "OK" then
    return answer.code, answer.replies[1], answer.replies
  end
  return answer.code, answer.message, answer.trailers
end

return server
