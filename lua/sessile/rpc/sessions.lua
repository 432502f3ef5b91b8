--- sessions: the sessions and memories that requests name, opened when they are named.
--
-- Nothing is a handle: a client that dies leaves nothing, and a server that dies is started again
-- and asked the same. The 64 sessions used last stay open; one that a request uses is not closed.

local core = require "sessile.core"

local sessions = {}
sessions.__index = sessions

local MOST = 64

--- The sessions of a store.
---@param store table
function sessions.new(store)
  return setmetatable({ store = store, open = {}, alias = {}, given = {}, memories = {},
    clock = 0 }, sessions)
end

-- Text, or {b64} of bytes that are none.
local function bytes(value)
  if type(value) == "table" then
    return core.base64_bytes(value.b64) or ""
  end
  return value
end

--- What a Name means: id, agent, user.
---@param name string|table
---@return table
function sessions.names(name)
  if type(name) == "string" then
    return { id = name }
  elseif name.b64 then
    return { id = bytes(name) }
  end
  return { id = bytes(name.id), agent = bytes(name.agent), user = bytes(name.user) }
end

local function key_of(names)
  return ("%q%q%q"):format(names.id, names.agent or "", names.user or "")
end

-- By all its names, which tells an agent "" from none.
local function full_key(session)
  return ("%q%q%q."):format(session.id, session.agent, session.user)
end

local function in_use(id)
  return ('session "%s" is in use: by a request, or it is watched'):format(id)
end

local function close_one(self, key)
  local one = self.open[key]
  self.open[key] = nil
  for name, of in pairs(self.alias) do
    if of == key then
      self.alias[name] = nil
    end
  end
  one.session:close()
end

-- Closes those that were used longest ago, until there are as many as may be.
local function make_room(self)
  while true do
    local count, oldest = 0, nil
    for key, one in pairs(self.open) do
      count = count + 1
      if one.uses == 0 and (not oldest or one.used < self.open[oldest].used) then
        oldest = key
      end
    end
    if count <= MOST or not oldest then
      return
    end
    close_one(self, oldest)
  end
end

--- Keeps an open session; returns its record {session, uses, runs}.
function sessions:keep(session, names)
  local key = full_key(session)
  local one = self.open[key]
  if one and one.session ~= session then
    session:close()
  elseif not one then
    one = { session = session, key = key, uses = 0, runs = 0 }
    self.open[key] = one
  end
  if names then
    self.alias[key_of(names)] = key
  end
  self.clock = self.clock + 1
  one.used = self.clock
  one.uses = one.uses + 1 -- so that it is not closed now
  make_room(self)
  one.uses = one.uses - 1
  return one
end

--- The record of the session that a name means; nil, message, code.
---@param name string|table
function sessions:find(name)
  local names = sessions.names(name)
  local one = self.open[self.alias[key_of(names)]]
  if one then
    self.clock = self.clock + 1
    one.used = self.clock
    return one
  end
  local session, message, code, retry_ms, rule = self.store:resume(names)
  if not session then
    return nil, message, code, retry_ms, rule
  end
  local given = self.given[full_key(session)]
  if given then -- session/open said so
    session:close()
    session, message, code, retry_ms, rule = self.store:resume(given)
    if not session then
      return nil, message, code, retry_ms, rule
    end
  end
  return self:keep(session, names)
end

--- Opens a session with settings of its own, which hold until the server ends. how: "resume",
--- "session" or "create" of a store.
function sessions:open_with(how, options)
  local session, message, code, retry_ms, rule = self.store[how](self.store, options)
  if not session then
    return nil, message, code, retry_ms, rule
  end
  local key = full_key(session)
  local one = self.open[key]
  if one and one.uses > 0 then
    session:close()
    return nil, in_use(session.id), "EBUSY"
  elseif one then
    close_one(self, key)
  end
  for alias in pairs(self.alias) do
    if alias:find(("%q"):format(session.id), 1, true) == 1 then
      self.alias[alias] = nil -- a name may mean another one now
    end
  end
  local again = { id = session.id, agent = session.agent, user = session.user }
  local settings = false
  for _, name in ipairs { "policy", "fallback", "triggers", "checkpoint", "window", "reserve",
    "keep_min", "timeout_ms", "isolation" } do
    again[name] = options[name]
    settings = settings or options[name] ~= nil
  end
  self.given[key] = settings and again or nil
  return self:keep(session)
end

--- Closes a session that is to be removed, or was told to be closed. EBUSY: a request uses it.
function sessions:close(name)
  local names = sessions.names(name)
  local key = self.alias[key_of(names)]
  for open, one in pairs(self.open) do
    local s = one.session
    if s.id == names.id and (not names.agent or s.agent == names.agent)
      and (not names.user or s.user == names.user) then
      key = key or open
    end
  end
  local one = self.open[key]
  if not one then
    return true
  elseif one.uses > 0 then
    return nil, in_use(names.id), "EBUSY"
  end
  self.given[key] = nil
  close_one(self, key)
  return true
end

--- The memory of an agent and a user. It stays open.
function sessions:memory(params)
  local key = ("%q%q"):format(params.agent or "", params.user or "")
  local memory = self.memories[key]
  if memory then
    return memory
  end
  local message, code, retry_ms, rule
  memory, message, code, retry_ms, rule =
    self.store:memory { agent = params.agent, user = params.user }
  if memory then
    if self.memory_count == MOST then -- all are opened again when they are named
      self:close_memories()
    end
    self.memory_count = (self.memory_count or 0) + 1
    self.memories[key] = memory
  end
  return memory, message, code, retry_ms, rule
end

--- Closes the memories.
function sessions:close_memories()
  for key, memory in pairs(self.memories) do
    memory:close()
    self.memories[key] = nil
  end
  self.memory_count = 0
end

--- Closes everything that is open here.
function sessions:close_all()
  for key in pairs(self.open) do
    close_one(self, key)
  end
  self:close_memories()
end

return sessions
