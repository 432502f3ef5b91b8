-- memory_pool.lua: the memories that a store has open for its sessions.
--
-- Sessions share them, so that a memory is folded once, however many sessions read it. At most
-- `memory.open` of a store are open; beyond that the least recently used one is closed. A handle is
-- the pool's: whoever gets it uses it before anything else is opened, and never closes it.

local memory = require "sessile.memory"

local pool = {}

local MOST = 64

--- A pool of a store. most: memories that it keeps open, at least 2; nil: 64.
function pool.new(most)
  return { most = most or MOST, open = {}, count = 0, clock = 0 }
end

local function remove(self, name)
  local one = self.open[name]
  self.open[name], self.count = nil, self.count - 1
  one.handle:close()
end

-- Closes the least recently used one.
local function make_room(self)
  local oldest
  for name, one in pairs(self.open) do
    if not oldest or one.used < self.open[oldest].used then
      oldest = name
    end
  end
  remove(self, oldest)
end

-- Writes the consent of an open memory's user, unless it is in force.
local function consent(handle, text)
  local stats, message, code, retry_ms, rule = handle:stats()
  if stats and not stats.consented then
    stats, message, code, retry_ms, rule = handle:consent(true, { text = text })
  end
  return stats and handle, message, code, retry_ms, rule
end

--- The memory that options of store:memory name, with agent and user. nil, message, code.
function pool.get(store, given)
  local self = store._pool
  local name = ("%s\0%s\0%s"):format(given.agent, given.user, given.timeout_ms or "")
  local one = self.open[name]
  self.clock = self.clock + 1
  if one then
    one.used = self.clock
    if given.consent then
      return consent(one.handle, given.consent)
    end
    return one.handle
  end
  local handle, message, code, retry_ms, rule = memory.open(store, given)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  while self.count >= self.most do
    make_room(self)
  end
  self.open[name], self.count = { handle = handle, user = given.user, used = self.clock },
    self.count + 1
  return handle
end

--- Closes the memories of a user; nil: all.
function pool.close(store, user)
  local names = {}
  for name, one in pairs(store._pool.open) do
    names[#names + 1] = (user == nil or one.user == user) and name or nil
  end
  for _, name in ipairs(names) do
    remove(store._pool, name)
  end
end

return pool
