--- policies: policies and rules in parameters, as the module takes them.

local hooks = require "sessile.rpc.hooks"
local nearest = require "sessile.nearest"

local policies = {}

local spec_of

-- A mistake of the client, which dispatch.lua catches.
local function refuse(what, ...)
  error({ said = what:format(...) }, 0)
end

-- A policy whose hooks the client has.
local function of_client(server, step)
  local name = step.name or "client"
  local spec = { name = name, options = step.options }
  for _, hook in ipairs(step.hooks) do
    local make = hooks.makers[hook]
    if not make then
      local near = nearest(hook, hooks.makers)
      refuse("policy '%s': there is no hook '%s'%s", name, hook,
        near and (", did you mean '%s'?"):format(near) or "")
    end
    spec[hook] = make(server, name)
  end
  return spec
end

local function of_step(server, step)
  if step.hooks then
    return of_client(server, step)
  elseif not step.name then
    refuse "policy: a name, or hooks, expected"
  end
  local spec = { step.name }
  for name, value in pairs(step.options or {}) do
    spec[name] = value
  end
  return spec
end

function spec_of(server, value)
  if value == true then
    refuse "policy: a policy or false expected, got true"
  elseif type(value) ~= "table" then
    return value
  elseif #value == 0 then
    return of_step(server, value)
  end
  local chain = {}
  for i, step in ipairs(value) do
    chain[i] = of_step(server, step)
  end
  return chain
end

-- The state of a checkpoint is asked of a client that offered it.
local function with_state(server, rules)
  if type(rules) == "table" and server.offers.state then
    rules.state = server.ask_state
  end
  return rules
end

-- true in place of rules is a mistake of the client.
local function not_true(name, value)
  if value == true then
    refuse("%s: conditions or false expected, got true", name)
  end
end

--- Converts what a request gives of policies, triggers and checkpoints.
function policies.prepare(server, _, params)
  for _, name in ipairs { "policy", "fallback" } do
    if params[name] ~= nil then
      params[name] = spec_of(server, params[name])
    end
  end
  not_true("triggers", params.triggers)
  not_true("checkpoint", params.checkpoint)
  params.checkpoint = with_state(server, params.checkpoint)
end

return policies
