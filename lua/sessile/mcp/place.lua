-- place.lua: how a session is named to a model, and which session a name means.
--
-- The name is AGENT/ID, or AGENT/ID?user=USER for a session of a user; `sessile://` before it makes
-- the URI of a resource. A name whose parts would be redacted, or could not be typed again, is
-- AGENT/~HASH instead, so that it works and says nothing. Whatever is outside of --agent and --user
-- is DENIED here, and nowhere else.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"

local place = {}

place.SCHEME = "sessile://"

local HASH = 16 -- hexadecimal digits

local function encode(text)
  return (text:gsub("[^%w._@:+~-]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end

local function decode(text)
  return (text:gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

local function hash(agent, user, id)
  return core.sha256(("%s\0%s\0%s"):format(agent, user, id)):sub(1, HASH)
end

local function is_plain(text)
  return not text:find "^~" and clean.is_plain(text)
end

--- The name of a session: of a row, a hit, or an open session.
---@param row {id: string?, session: string?, agent: string, user: string?}
---@return string
function place.name(row)
  local id, agent, user = row.session or row.id, row.agent, row.user or ""
  local agent_part = is_plain(agent) and encode(agent) or "~"
  if not is_plain(id) or user ~= "" and not is_plain(user) or agent_part == "~" then
    return ("%s/~%s"):format(agent_part, hash(agent, user, id))
  end
  return ("%s/%s%s"):format(agent_part, encode(id),
    user ~= "" and "?user=" .. encode(user) or "")
end

--- What stands behind the agent in that name, for a client that encodes it: an id, or ~HASH.
---@param row table  as for place.name
---@return string
function place.id(row)
  local id, user = row.session or row.id, row.user or ""
  return user == "" and is_plain(id) and is_plain(row.agent) and id
    or "~" .. hash(row.agent, user, id)
end

--- The URI of a session.
---@param row table  as for place.name
---@return string
function place.uri(row)
  return place.SCHEME .. place.name(row)
end

-- What a name says: {id =, agent =, user =}, or {hash =}.
local function parse(name)
  name = name:gsub("^sessile://", "")
  local rest, user = name:match "^(.*)%?user=([^?]*)$"
  rest = rest or name
  local agent, id = rest:match "^([^/]*)/([^/]+)$"
  if not agent then
    return { id = decode(rest), user = user and decode(user) or nil }
  elseif id:find("^~%x+$") and #id == HASH + 1 then
    return { hash = id:sub(2) }
  end
  return { id = decode(id), agent = decode(agent), user = user and decode(user) or nil }
end

local Scope = {}
Scope.__index = Scope

--- What may be seen. agent, user: nil for all of them.
---@param agent string?
---@param user string?
---@return table
function place.scope(agent, user)
  return setmetatable({ agent = agent, user = user }, Scope)
end

local function outside(self)
  local words = {}
  for _, name in ipairs { "agent", "user" } do
    words[#words + 1] = self[name] and ("--%s %s"):format(name, clean.line(self[name])) or nil
  end
  return nil, ("this server was started with %s, and shows nothing else"):format(
    table.concat(words, " and ")), "EDENIED", "session_list shows what can be read here."
end

--- The agent that is meant: the one of the scope, or the one that is named. nil: any. false,
--- message, code, step: it is outside.
---@param agent string?
---@return string|false|nil
function Scope:of_agent(agent)
  if agent and self.agent and agent ~= self.agent then
    return false, select(2, outside(self))
  end
  return agent or self.agent
end

--- Whether a session is outside. nil, message, code, step: it is.
---@param row {agent: string, user: string?}
---@return boolean?
function Scope:contains(row)
  if self.agent and row.agent ~= self.agent or self.user and (row.user or "") ~= self.user then
    return outside(self)
  end
  return true
end

local function by_hash(self, store, wanted)
  local rows, message, code = store:list { agent = self.agent, user = self.user }
  if not rows then
    return nil, message, code
  end
  for _, row in ipairs(rows) do
    if row.id and hash(row.agent, row.user or "", row.id) == wanted then
      return { id = row.id, agent = row.agent, user = row.user or "" }
    end
  end
  return nil, "there is no session of this name", "ENOTFOUND"
end

--- Opens the session that a name means: AGENT/ID, its URI, or an id. nil, message, code, step.
---@param store table
---@param name string
---@return sessile.Session?
---@return string? message
---@return string? code
---@return string? step
function Scope:open(store, name)
  local which = parse(name)
  if which.hash then
    local found, message, code = by_hash(self, store, which.hash)
    if not found then
      return nil, message, code
    end
    which = found
  end
  if which.id == "" then
    return nil, "a session is named as AGENT/ID", "EINVALID"
  end
  if which.agent and self.agent and which.agent ~= self.agent
    or which.user and self.user and which.user ~= self.user then
    return outside(self)
  end
  local session, message, code = store:resume { id = which.id, agent = which.agent or self.agent,
    user = which.user or self.user }
  if not session then
    return nil, message, code
  end
  local inside, why, denied, step = self:contains(session)
  if not inside then
    session:close()
    return nil, why, denied, step
  end
  return session
end

return place
