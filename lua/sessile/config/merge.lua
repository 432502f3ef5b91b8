-- merge.lua: merges several files into one configuration, remembers the origin of each value, and
-- converts the result to options of sessile.open.
--
-- It also computes the options of one agent. It opens no store except one in memory.

local paths = require "sessile.paths"
local places = require "sessile.config.places"
local schema = require "sessile.config.schema"

local merge = {}

---@class sessile.config.origin
---@field from "default"|"profile"|"file"|"env"|"flag"
---@field file string?
---@field line integer?
---@field name string?  of the variable, the option or the profile

local methods = {}

-- ---------------------------------------------------------------- values

-- Sets one value with its origin. The entries of `agents` and `models` are set one by one.
local function put(self, name, value, origin)
  local values, origins = self.values, self.origins
  if name == "agents" then
    values.agents = values.agents or {}
    for agent, settings in pairs(value) do
      local kept = values.agents[agent] or {}
      values.agents[agent] = kept
      for key, one in pairs(settings) do
        kept[key] = one
        origins[("agents.%s.%s"):format(agent, key)] = origin(("agents.%s.%s"):format(agent, key))
      end
    end
  elseif name == "models" then
    values.models = values.models or {}
    for model, one in pairs(value) do
      values.models[model] = one
      origins["models." .. model] = origin("models." .. model)
    end
  else
    values[name] = value
    origins[name] = origin(name)
  end
end

local function take_file(self, one)
  for _, row in ipairs(schema.keys) do
    local value = one.made[row.name]
    if value ~= nil then
      put(self, row.name, value, function(name)
        return { from = "file", file = one.path, line = places.line(one.lines, name) }
      end)
    end
  end
end

local function variable(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

-- $SESSILE_STORE and $SESSILE_KEY override all files. The engine reads the key.
local function take_environment(self)
  local function origin(name)
    return function() return { from = "env", name = name } end
  end
  local store = variable "SESSILE_STORE"
  if store then
    put(self, "store", store, origin "SESSILE_STORE")
  end
  if variable "SESSILE_KEY" then
    self.values.key = nil
    self.origins.key = { from = "env", name = "SESSILE_KEY" }
  end
end

--- The origin of a key's value.
---@param name string  as "limits.message" or "agents.coder.policy"
---@return sessile.config.origin
function methods:origin(name)
  return self.origins[name] or { from = "default" }
end

--- The value of a key as it was read; nil: the default.
---@param name string
function methods:value(name)
  local agent, key = schema.split_agent(name)
  if agent then
    local settings = (self.values.agents or {})[agent]
    return settings and settings[key]
  end
  local model = name:match "^models%.(.*)$"
  if model then
    return (self.values.models or {})[model]
  end
  return self.values[name]
end

-- ---------------------------------------------------------------- what an agent gets

-- Whether a policy has the option preserve_recent. To find out, it is loaded.
local function has_recent(self, name, recent)
  local known = self.has_recent[name]
  if known == nil then
    local store = require "sessile".open("ram:", { key = false,
      policy = { name, preserve_recent = recent } })
    known = store ~= nil
    if store then
      store:close()
    end
    self.has_recent[name] = known
  end
  return known
end

-- Sets preserve_recent as an option of each policy that has it, unless the policy sets it itself.
local function with_recent(self, policy, recent)
  if not recent or not policy then
    return policy
  end
  local function step(one)
    local name = type(one) == "string" and one or type(one) == "table" and one[1]
    if type(name) ~= "string" or type(one) == "table" and one.preserve_recent ~= nil then
      return one
    end
    local copy = { name }
    for key, value in pairs(type(one) == "table" and one or {}) do
      copy[key] = value
    end
    copy.preserve_recent = recent
    return has_recent(self, name, recent) and copy or one
  end
  if type(policy) == "table" and (type(policy[1]) == "table" or #policy >= 2) then
    local chain = {}
    for i, one in ipairs(policy) do
      chain[i] = step(one)
    end
    return chain
  end
  return step(policy)
end

-- The model with a name, and the last name in a chain of names; nil: there is none.
local function model_of(self, model)
  local seen, called = {}, nil
  while type(model) == "string" and not seen[model] do
    seen[model], called = true, model
    model = (self.values.models or {})[model]
  end
  return type(model) ~= "string" and model or nil, called
end

-- A function that asks a model. The model is made on the first call, so that a missing program or
-- key fails only then.
local function asking(model)
  if model == nil or type(model) == "function" then
    return model
  end
  local ask, message, code
  return function(...)
    if not ask then
      ask, message, code = require "sessile.model".make(model)
    end
    if not ask then
      return nil, message, code
    end
    return ask(...)
  end
end

--- The options of one agent's sessions: policy, fallback, triggers, checkpoint, window, reserve,
--- keep_min and ttl as sessile.open takes them, but with times in ms; model as sessile.model takes
--- it; model_name; memory, its keys without "memory.". nil: those of any other agent.
---@param agent string?
---@return sessile.AgentConfig
function methods:for_agent(agent)
  if agent and not (self.values.agents or {})[agent] then
    agent = nil
  end
  local known = self.known[agent or false]
  if known then
    return known
  end
  local own = agent and (self.values.agents or {})[agent] or {}
  local function of(name)
    if own[name] ~= nil then
      return own[name]
    end
    return self.values[name]
  end
  local model, called = model_of(self, of "model")
  local about = type(model) == "table" and model or {}
  local found = {
    policy = with_recent(self, of "policy", of "preserve_recent"),
    fallback = of "fallback",
    triggers = of "triggers",
    checkpoint = of "checkpoint",
    window = of "window" or about.window,
    reserve = of "reserve",
    keep_min = of "keep_min",
    ttl = of "ttl",
    model = model,
    model_name = about.name or called,
  }
  -- name and dims are those of the `embed` that they stand beside
  local embeds = own["memory.embed"] ~= nil
  for member in pairs(schema.groups.memory) do
    local value = of("memory." .. member)
    if embeds and (member == "name" or member == "dims") then
      value = own["memory." .. member]
    end
    if value ~= nil then
      found.memory = found.memory or {}
      found.memory[member] = value
    end
  end
  self.known[agent or false] = found
  return found
end

-- ---------------------------------------------------------------- options

local SAME = { "store", "key", "suite", "agent", "user", "durability", "timeout_ms", "network",
  "isolation", "worker", "policy_path", "encoding", "encoding_path" }

local DIFFERS = { "policy", "fallback", "triggers", "checkpoint", "window", "reserve", "keep_min",
  "ttl" }

-- The settings of memories as sessile.open takes them; nil: there are none.
local function memory_options(self, found)
  local copy
  for name, value in pairs(found or {}) do
    copy = copy or {}
    copy[name] = name == "ttl" and value and value .. "ms" or value
  end
  if copy and type(copy.embed) == "string" then
    local called
    copy.embed, called = model_of(self, copy.embed)
    copy.name = copy.name or called
  end
  return copy
end

-- Sets the options of sessile.open as fields of the configuration.
local function fill(self, options)
  local values, all = self.values, self:for_agent(nil)
  for _, name in ipairs(SAME) do
    options[name] = values[name]
  end
  for _, name in ipairs(DIFFERS) do
    options[name] = all[name]
  end
  options.ttl = values.ttl and values.ttl .. "ms" or nil
  options.model, options.model_name = asking(all.model), all.model_name
  options.memory = memory_options(self, all.memory)
  for name in pairs(schema.groups.limits) do
    if values["limits." .. name] then
      options.limits = options.limits or {}
      options.limits[name] = values["limits." .. name]
    end
  end
  for name in pairs(schema.groups.guard) do
    if values["guard." .. name] ~= nil then
      options.guard = options.guard or {}
      options.guard[name] = values["guard." .. name]
    end
  end
  for agent in pairs(values.agents or {}) do
    local own, different = self:for_agent(agent), {}
    for _, name in ipairs(DIFFERS) do
      different[name] = own[name]
    end
    different.ttl = own.ttl and own.ttl .. "ms" or own.ttl
    different.model = asking(own.model)
    different.memory = memory_options(self, own.memory)
    if different.memory then
      different.memory.open = nil -- the store's alone
    end
    different.enabled = values.agents[agent].enabled
    options.agents = options.agents or {}
    options.agents[agent] = different
  end
end

-- An error with the place of the key that it is about.
local function placed(self, at, why)
  local origin = self:origin(at)
  return ("%s%s: %s"):format(origin.file or "the configuration", origin.line
    and ":" .. origin.line or "", why)
end

-- The error of an unknown name of a model.
local function missing_model(self)
  local function look(at, model)
    if type(model) == "string" and not model_of(self, model) then
      return ("'%s': there is no model '%s' in `models`"):format(at, model), at
    end
  end
  local why, at = look("model", self.values.model)
  for agent, settings in pairs(self.values.agents or {}) do
    if not why then
      why, at = look(("agents.%s.model"):format(agent), settings.model)
    end
  end
  if not why then
    why, at = look("memory.embed", self.values["memory.embed"])
  end
  for agent, settings in pairs(self.values.agents or {}) do
    if not why then
      why, at = look(("agents.%s.memory.embed"):format(agent), settings["memory.embed"])
    end
  end
  for name, model in pairs(self.values.models or {}) do
    if not why then
      why, at = look("models." .. name, model)
    end
  end
  return why and placed(self, at, why)
end

-- The error of a reserve that leaves nothing of a window, for any agent.
local function too_much_reserve(self)
  local agents = { false }
  for agent in pairs(self.values.agents or {}) do
    agents[#agents + 1] = agent
  end
  for _, agent in ipairs(agents) do
    local own = self:for_agent(agent or nil)
    local window, reserve = own.window, own.reserve
    if window and window > 0 and reserve and reserve >= window then
      local at = agent and self.origins[("agents.%s.reserve"):format(agent)]
        and ("agents.%s.reserve"):format(agent) or "reserve"
      return placed(self, at, ("'%s': %d tokens of the window of %d%s: nothing is left of it")
        :format(at, reserve, window, agent and " of the agent " .. agent or ""))
    end
  end
end

--- Merges files; later ones override earlier ones. nil, message, code.
---@param files sessile.config.file[]
function merge.of(files)
  local inner = { values = {}, origins = {}, files = files, known = {},
    has_recent = {} }
  for name, method in pairs(methods) do
    inner[name] = method
  end
  for _, one in ipairs(files) do
    take_file(inner, one)
  end
  take_environment(inner)
  local wrong = missing_model(inner) or too_much_reserve(inner)
  if wrong then
    return nil, wrong, "EINVALID"
  end
  local options = {}
  fill(inner, options)
  inner.place = inner.values.store or paths.default_store()
  inner.retention = inner.values.retention
  inner.serve = {}
  for name in pairs(schema.groups.serve) do
    inner.serve[name] = inner.values["serve." .. name]
  end
  inner.models = inner.values.models or {}
  -- The options are the table's own, for pairs() and sessile.open; all else is behind them.
  return setmetatable(options, { __name = "sessile.Config", __index = function(_, name)
    local value = inner[name]
    if type(value) == "function" and methods[name] then
      return function(_, ...) return value(inner, ...) end
    end
    return value
  end })
end

return merge
