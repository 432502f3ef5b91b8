-- agents.lua: the settings that a store has for single agents: policy, triggers, window and so on.
--
-- They override those of the store and are overridden by those of a session. The policies of an
-- agent are loaded once, for the first session of that agent.

local life = require "sessile.life"
local options = require "sessile.options"
local policy = require "sessile.policy"
local triggers = require "sessile.triggers"

local agents = {}

local kinds = {
  policy = "any", fallback = "any", triggers = "any", checkpoint = "any", window = "number",
  reserve = "number", model = "callable", ttl = "any",
}

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
    copy.triggers = triggers.resolve(label, copy.triggers)
    copy.checkpoint = triggers.checkpoints(label, copy.checkpoint)
    if copy.ttl then
      life.check_default(label .. ": option 'ttl'", copy.ttl)
    end
    checked[name] = copy
  end
  return checked
end

--- The settings of one agent with its policies loaded: {policy, fallback, triggers, checkpoint,
--- window, reserve, model, ttl}; an empty table for other agents. nil, message, code if a policy
--- cannot be loaded.
function agents.of(store, who, name)
  local own = store._agents[name]
  if not own then
    return NOTHING
  elseif not own.ready then
    local loaded, message, code = policy.load(who, store._core, own)
    if not loaded then
      return nil, ("agent '%s': %s"):format(name, message), code
    end
    own.ready = {
      policy = loaded.policy, fallback = loaded.fallback, triggers = own.triggers,
      checkpoint = own.checkpoint, window = own.window, reserve = own.reserve,
      model = own.model, ttl = own.ttl,
    }
  end
  return own.ready
end

return agents
