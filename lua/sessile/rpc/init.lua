--- init: `sessile rpc`: the engine for programs in other languages, over standard input and output.
--
-- Owns: the stores of the server and what the client offered. One process serves one client.

local asks = require "sessile.rpc.asks"
local loop = require "sessile.rpc.loop"
local sessions = require "sessile.rpc.sessions"
local watches = require "sessile.rpc.watches"

local rpc = {}

-- Adds a store to the server under a name; false is that of the command line.
local function add(self, name, handle)
  local store = { handle = handle, sessions = sessions.new(handle), name = name }
  self.stores[name] = store
  return store
end

local function copy(fields)
  local made = {}
  for name, value in pairs(fields or {}) do
    made[name] = value
  end
  return made
end

-- What a store of this server is opened with: who is asked for models and embeddings, whatever an
-- agent of the configuration has.
local function options(self)
  local embeds = self.offers.embeds
  local function with_embeds(memory)
    memory = copy(memory)
    memory.embed, memory.name, memory.dims = asks.embed(self), embeds.name, embeds.dims
    return memory
  end
  local given = { model = asks.model(self) }
  given.memory = embeds and with_embeds(self.config.memory) or nil
  for name, own in pairs(self.config.agents or {}) do
    given.agents = given.agents or {}
    local agent = copy(own)
    agent.model = nil
    if embeds and agent.memory then
      agent.memory = with_embeds(agent.memory)
    end
    given.agents[name] = agent
  end
  return given
end

-- The store with that name; nil: that of the command line, which is opened now, if it is not yet.
local function store(self, name)
  local found = self.stores[name or false]
  if found then
    return found
  elseif name then
    return nil, ("there is no store '%s': open it with store/open"):format(name), "ENOTFOUND"
  end
  local handle, message, code, _, _, rule = self.app:store(true, options(self))
  if not handle then
    return nil, message, code, nil, rule
  end
  return add(self, false, handle)
end

--- Opens another store under a name.
local function open_store(self, name, url)
  if self.stores[name] then
    return nil, ("a store is open as '%s'"):format(name), "EEXISTS"
  end
  local app = self.app
  local place, message, code = require "sessile.cli.stores".as_place(app, url)
  if not place then
    return nil, message, code
  end
  local given = options(self)
  given.key, given.timeout_ms, given.network = place.key, place.timeout_ms, place.network
  local handle, retry_ms, rule
  handle, message, code, retry_ms, rule = require "sessile".open(url, given)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return add(self, name, handle)
end

-- Closes what is open; the store of the command line is the application's.
local function close(self)
  for name, one in pairs(self.stores) do
    one.sessions:close_all()
    if name then
      one.handle:close()
    end
  end
end

--- Serves until standard input ends.
---@param app sessile.cli.app
---@param io userdata  of sessile.stdio
---@param most integer  bytes of a line
function rpc.serve(app, io, most)
  local self = loop.new(io, most)
  self.app, self.stores, self.models = app, {}, {}
  self.store, self.open_store = store, open_store
  self.ask_state = asks.state(self)
  self.watches = watches.new(self)
  local message, code, step
  self.config, message, code, step = app:config()
  if not self.config then
    return nil, message, code, step
  end
  self:serve()
  close(self)
  return 0
end

return rpc
