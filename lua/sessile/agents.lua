-- agents.lua: the settings that a store has for single agents: policy, triggers, window and so on.
--
-- They override those of the store and are overridden by those of a session. The policies of an
-- agent are loaded once, for the first session of that agent.

local inherited = require "sessile.inherited"
local memory_runs = require "sessile.memory_runs"
local memory_settings = require "sessile.memory_settings"
local options = require "sessile.options"
local triggers = require "sessile.triggers"

local agents = {}

local kinds = options.shape("sessile.open: agents", inherited.kinds,
  { model = "callable", ttl = "span|no", enabled = "boolean", memory = "table" })

local NOTHING = {}

--- Checks the option `agents` of sessile.open, {name = {…}}, and returns a checked copy.
function agents.check(who, given)
  local checked = {}
  for name, one in pairs(given or {}) do
    if type(name) ~= "string" then
      options.misuse(who .. ": option 'agents': names expected, as in agents = { coder = {…} }")
    end
    local label = ("%s: agent '%s'"):format(who, name)
    local copy = options.check(label, one, kinds)
    triggers.resolve(label, copy.triggers) -- raises before anything opens
    triggers.checkpoints(label, copy.checkpoint)
    copy.memory = memory_settings.check(label, copy.memory, true)
    checked[name] = copy
  end
  return checked
end

--- true, or nil, message, code if the store says that this agent is disabled: then nothing may be
--- added to its sessions.
function agents.check_enabled(store, name)
  local own = store._agents[name]
  if own and own.enabled == false then
    return nil, ("agent '%s' is disabled (agents.%s.enabled = false): enable it, or name another")
      :format(name, name), "EDENIED"
  end
  return true
end

local function settings_of(store, who, name)
  local own = store._agents[name]
  if not own then
    return NOTHING
  elseif not own.ready then
    local function named(message)
      return ("agent '%s': %s"):format(name, message)
    end
    local tell = store._on_policy_error
    local told = tell and function(why, kind, key)
      tell(named(why), kind, ("agents.%s.%s"):format(name, key))
    end
    local ready, message, code, retry_ms, rule = inherited.resolve(who,
      (store._host or store)._core, own, told)
    if ready and own.memory and own.memory.policy then
      local loads
      loads, message, code, retry_ms, rule = memory_runs.check(who, store, name, told)
      ready = loads and ready
    end
    if not ready then
      return nil, named(message), code, retry_ms, rule
    end
    ready.ttl = own.ttl
    own.ready = ready
  end
  return own.ready
end

--- The settings of one agent as inherited.resolve() gives them, with its ttl; an empty table for
--- other agents. nil, message, code if a policy cannot be loaded.
agents.settings = settings_of

--- Checked options as inherited.resolve() gives them, and the settings of the agent `name` (nil:
--- none are wanted). nil, nil, message, code if a policy cannot be loaded.
function agents.resolve(store, who, name, opts)
  local theirs, message, code, retry_ms, rule = NOTHING, nil, nil
  if name then
    theirs, message, code, retry_ms, rule = settings_of(store, who, name)
  end
  local own
  if theirs then
    own, message, code, retry_ms, rule = inherited.resolve(who, store._loader or store._core, opts)
  end
  if not own then
    return nil, nil, message, code, retry_ms, rule
  end
  return own, theirs
end

return agents
