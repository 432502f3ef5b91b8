-- server.lua: a server of the Model Context Protocol over lines.
--
-- Requests are answered one after the other, in their order. Nothing that a request said is
-- remembered: the store that is open and what was found to redact are all that is kept.

local clean = require "sessile.mcp.clean"
local eras = require "sessile.mcp.eras"
local messages = require "sessile.mcp.messages"
local methods = require "sessile.mcp.methods"
local place = require "sessile.mcp.place"

local Server = {}
Server.__index = Server

local server = {}

--- Bytes of a line, without its newline.
server.LINE = 4 * 1024 * 1024

--- A server. store(create): the store; false: there is none yet; nil, message, code. agent, user:
--- all that may be seen; writes: whether there are tools that write; version: of this program;
--- tell(text): called with what a defect was.
---@param given table
---@return table
function server.new(given)
  return setmetatable({
    scope = place.scope(given.agent, given.user), writes = given.writes or false,
    redactions = clean.sessions(), open_store = given.store, tell = given.tell,
    info = { name = "sessile", title = "sessile", version = given.version },
  }, Server)
end

--- The store; nil: there is none yet. Raises "ECODE: sentence" if it cannot be opened.
---@param create boolean?  make it if there is none
---@return table?
function Server:store(create)
  local store, message, code = self.open_store(create)
  if not store and code then
    error(("%s: %s"):format(code, message), 0)
  end
  return store or nil
end

--- Opens the session that a model named; closed by the caller. nil, message, code, step.
---@param name string
---@return sessile.Session?
---@return string? message
---@return string? code
---@return string? step
function Server:session(name)
  local store = self:store()
  if not store then
    return nil, "there is no session yet", "ENOTFOUND", false
  end
  return self.scope:open(store, name)
end

-- The answer to a request.
local function answer(self, request)
  local era, code, message, data = eras.of(request.method, request.params)
  if not era then
    return messages.error(request.id, code, message, data)
  end
  local done, result, more, sentence, about =
    xpcall(methods.call, debug.traceback, self, era, request.method, request.params)
  if not done then
    self.tell(result)
    return messages.error(request.id, messages.INTERNAL, "a defect of this server: its standard "
      .. "error says more")
  elseif not result then
    return messages.error(request.id, more, sentence, about)
  end
  return messages.result(request.id, eras.shaped(era, result, self.info, more))
end

--- The line that answers a line; nil: nothing does.
---@param line string
---@return string?
function Server:answer(line)
  local request, wrong = messages.read(line)
  if not request then
    return wrong
  elseif request.id then
    return answer(self, request)
  end
end

-- What waits to be written, beyond which nothing is read.
local UNREAD = 1024 * 1024

-- The line that answers a line; false: one that was too long. nil: nothing does.
local function reply(self, line)
  if not line then
    return messages.error(nil, messages.REQUEST,
      ("a line has more than %d bytes"):format(server.LINE))
  elseif line:find "%S" then
    return self:answer(line)
  end
end

--- Answers lines until the input ends, or nobody reads the answers.
---@param io userdata  of sessile.stdio
function Server:run(io)
  local line, ended
  repeat
    line, ended = io:line()
    local text = line ~= nil and reply(self, line)
    if text then
      io:send(text)
      io:poll(0, false)
    end
    local waiting = io:queued()
    if waiting > UNREAD or (ended and waiting > 0) or (line == nil and not ended) then
      io:poll(-1, waiting <= UNREAD)
    end
  until io:broken() or (ended and io:queued() == 0)
end

return server
