-- agents.lua: the settings that a store has for single agents: policy, trigger, window and so on.
--
-- They override those of the store and are overridden by those of a session. The policies of an
-- agent are loaded once, for the first session of that agent.

local life = require "sessile.life"
local options = require "sessile.options"
local policy = require "sessile.policy"
local trigger = require "sessile.trigger"

local agents = {}

local kinds = {
  policy = "any", fallback = "any", trigger = "any", checkpoint = "any", window = "number",
  reserve = "number", model = "callable", ttl = "any",
}

local NOTHING = {}

--- Checks what sessile.open was given as `agents`; {name = {…}}. Raises.
function agents.check(who, given)
  local checked = {}
  for name, one in pairs(given or {}) do
    if type(name) ~= "string" then
      options.misuse(who .. ": option 'agents': names expected, as in agents = { coder = {…} }")
    end
    local label = ("%s: agent '%s'"):format(who, name)
    local copy = options.check(label, one, kinds)
    copy.trigger = trigger.resolve(label, copy.trigger)
    copy.checkpoint = trigger.checkpoints(label, copy.checkpoint)
    if copy.ttl then
      life.check_default(label .. ": option 'ttl'", copy.ttl)
    end
    checked[name] = copy
  end
  return checked
end

--- What a store has for an agent: {policy, fallback, trigger, checkpoint, window, reserve, model,
--- ttl}, policies loaded; nothing in it when the agent was not named. Nil, message, code when a
--- policy cannot be loaded.
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
      policy = loaded.policy, fallback = loaded.fallback, trigger = own.trigger,
      checkpoint = own.checkpoint, window = own.window, reserve = own.reserve,
      model = own.model, ttl = own.ttl,
    }
  end
  return own.ready
end

return agents
