--- dispatch: a request to a method of the registry: checks, the call, the result.
--
-- Must never let a wrong request end the server: what the module says of a wrong value is the
-- request's failure.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local errors = require "sessile.rpc.errors"
local nearest = require "sessile.nearest"
local policies = require "sessile.rpc.policies"
local registry = require "sessile.rpc.registry"
local results = require "sessile.rpc.results"

local dispatch = {}


-- The options of a call: all parameters but those that name the object and the arguments.
local function options_of(method, params)
  local options, any = {}, false
  for name, value in pairs(params) do
    if method.own[name] then
      options[name], any = value, true
    end
  end
  for _, name in ipairs(method.args) do
    options[name] = nil
  end
  return (any and next(options)) and options or nil
end

-- Calls the method of the module that has this name.
local function call(method, object, params)
  local arguments = {}
  for i, name in ipairs(method.args) do
    arguments[i] = params[name]
  end
  local n = #method.args
  local options = options_of(method, params)
  if options then
    n = n + 1
    arguments[n] = options
  end
  return object[method.call](object, table.unpack(arguments, 1, n))
end

-- What is raised for a wrong value: {said =} here; "FILE:LINE: FUNCTION: what" in the module. nil:
-- it is a defect.
local function misuse(raised)
  if type(raised) == "table" then
    return raised.said
  end
  local text = tostring(raised):match "^[^\n]-%.lua:%d+: (.*)$" or tostring(raised)
  for _, form in ipairs { "^[%l_]+[.:][%l_]+: ", "^option '", "^bad argument #" } do
    if text:find(form) then
      return text
    end
  end
end

local function caught(raised)
  local said = misuse(raised)
  return said and { said = said } or { defect = debug.traceback(tostring(raised), 2) }
end

-- The object of a method, and its record if it is a session.
local function object_of(server, request, method, params)
  if method.of == "server" or method.is_notification then
    return server
  end
  local store, message, code, retry_ms, rule = server:store(params.store)
  if not store then
    return nil, message, code, retry_ms, rule
  elseif method.of == "store" then
    return store.handle
  elseif method.of == "memory" then
    return store.sessions:memory(params)
  end
  local one
  one, message, code, retry_ms, rule = store.sessions:find(params.session)
  if not one then
    return nil, message, code, retry_ms, rule
  end
  request.record = one
  one.uses = one.uses + 1
  return one.session
end

-- A turn to a session where a run waits is written at once; its policies are left for the next.
local function hold(request, params)
  request.held = true
  params.policy, params.fallback, params.triggers = false, nil, false
end

local function perform(server, request, method, params)
  local object, message, code, retry_ms, rule = object_of(server, request, method, params)
  if object == nil then
    return nil, message, code, retry_ms, rule
  end
  local one = request.record
  if one and method.turns and one.runs > 0 then
    hold(request, params)
  end
  policies.prepare(server, request, params)
  local is_run = one and #method.asks > 0 and not request.held
  if is_run then
    one.runs = one.runs + 1
    request.is_run = true
  end
  if method.run then
    return method.run(request, params, object)
  end
  return call(method, object, params)
end

local function released(request)
  local one = request.record
  if one then
    one.uses = one.uses - 1
    one.runs = one.runs - (request.is_run and 1 or 0)
    request.record = nil
  end
end

-- The result's text; nil and a failure.
local function finished(request, method, ok, value, message, code, retry_ms, rule)
  if not ok then
    if value.said then
      local said = value.said:find(":", 1, true) and value.said or method.name .. ": " .. value.said
      return nil, errors.protocol(errors.PARAMS, said)
    end
    error(value.defect, 0)
  elseif value == nil and code then
    return nil, errors.of(message, code, retry_ms, rule)
  end
  if request.held and type(value) == "table" then
    value.held = true
  end
  local text, why = results.text(method.result, value)
  if not text then
    return nil, errors.protocol(errors.INTERNAL, why)
  end
  return text
end

local function unknown(name)
  local near = nearest(name, registry.methods)
  return errors.protocol(errors.METHOD, ("there is no method '%s'%s"):format(name:sub(1, 60),
    near and (", did you mean '%s'?"):format(near) or ""), "rpc/discover has the methods")
end

--- Runs a request; the body of its coroutine. Returns the result's text; nil and a failure.
function dispatch.run(server, request)
  local method = registry.methods[request.method]
  if not method then
    return nil, unknown(request.method)
  end
  local params, why = check.params(method, request.text)
  request.text = nil
  if not params then
    return nil, errors.protocol(errors.PARAMS, why)
  end
  local returned = table.pack(xpcall(perform, caught, server, request, method, params))
  released(request)
  return finished(request, method, table.unpack(returned, 1, returned.n))
end

--- The id, as JSON text, that a notification rpc/cancel names; nil: none.
function dispatch.cancels(text)
  local params = text and core.span.kind(text) == "object"
    and core.decode(text, { id = true }, check.DEPTH)
  return params and params.id and params.id.json
end


return dispatch
