-- inherited.lua: what a store, an agent, a session and a call can all configure.
--
-- A key is the call's if the call gives it, else the session's, else the agent's, else the store's.
-- Two values are never mixed, and false means none.

local options = require "sessile.options"
local policy = require "sessile.policy"
local triggers = require "sessile.triggers"

local inherited = {}

local kinds = {
  policy = "any", fallback = "any", triggers = "table|no", checkpoint = "table|no",
  window = "count", reserve = "count", keep_min = "count", timeout_ms = "timeout",
  isolation = { "none", "worker" },
}

--- The shape of these options, for options.shape.
inherited.kinds = kinds

--- The names of these options and `more`, as a list.
function inherited.names(more)
  local list = options.add({}, more)
  for name in pairs(kinds) do
    list[#list + 1] = name
  end
  return list
end

--- Checked options with policies loaded and triggers resolved. nil, message, code if a policy
--- cannot be loaded, unless there is an on_error, as for policy.load; raises if triggers are wrong.
function inherited.resolve(who, store, opts, on_error)
  local when = triggers.resolve(who, opts.triggers)
  local checkpoint = triggers.checkpoints(who, opts.checkpoint)
  local own, message, code, retry_ms, rule = policy.load(who, store, opts, on_error)
  if not own then
    return nil, message, code, retry_ms, rule
  end
  own.triggers, own.checkpoint, own.model = when, checkpoint, opts.model
  inherited.fill(own, opts)
  return own
end

--- Gives opts, options of the engine, what they lack and an agent has.
function inherited.fill(opts, agent)
  for _, key in ipairs { "window", "reserve", "keep_min", "timeout_ms", "isolation" } do
    if opts[key] == nil then
      opts[key] = agent[key]
    end
  end
end

--- What a session keeps for its calls: of each key its own value, else the agent's, else that of
--- `from`, a store or a session.
function inherited.merge(own, agent, from)
  local merged = {}
  for _, key in ipairs { "policy", "fallback", "triggers", "checkpoint", "model" } do
    merged[key] = own[key] or agent[key] or from["_" .. key]
  end
  return merged
end

return inherited
