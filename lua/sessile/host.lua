-- host.lua: the loop of a run: step, answer what the engine asks for, step again.
--
-- The engine asks and never calls; this loop calls. It is plain Lua, so a model function or a hook
-- that yields suspends the turn and nothing else. Outside a coroutine nothing yields.
--
-- The messages of a turn are written before the first of the host's functions runs. If one of
-- them raises an error, returns nil or a number, or closes its coroutine, the answer fails or the
-- run is dropped, but the turn does not fail.

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"
local object = require "sessile.object"
local options = require "sessile.options"
local outcome = require "sessile.outcome"
local policy = require "sessile.policy"

local host = {}

local methods = {}
host.methods = methods

--- An error value as a text, also if its __tostring fails.
function host.say(value)
  local ok, text = pcall(tostring, value)
  return ok and text or ("an error of type " .. type(value))
end

--- A model function returns this if the answer comes later.
host.later = setmetatable({}, {
  __name = "sessile.later",
  __tostring = function() return "sessile.later" end,
})

--- Asks the host's model. Returns its text (of a message, the text in it) or host.later; nil and
--- the reason.
function host.ask(model, request, session)
  if not model then
    return nil, "no model is configured: give model= to the call, the session or the store"
  end
  local ok, text, reason = pcall(model, request, { session = session, reason = "policy" })
  if not ok then
    return nil, "the model raised: " .. host.say(text)
  end
  if not text then
    return nil, reason ~= nil and host.say(reason) or "the model gave no answer"
  end
  if type(text) == "table" and text.content ~= nil then
    text = answers.text(text)
  end
  if text ~= host.later and type(text) ~= "string" then
    return nil, ("the model answered with a %s, not a text"):format(type(text))
  end
  return text
end

--- ctx.session: read-only fields that are read on use.
function host.about_session(session)
  local readers = {
    id = function() return session.id end,
    agent = function() return session.agent end,
    user = function() return session.user end,
    title = function() return session.title end,
    metadata = function()
      local header = session:entry "00000000"
      return header and header.data.metadata or {}
    end,
  }
  return setmetatable({}, {
    __name = "sessile.ctx.session",
    __index = function(_, key)
      return readers[key] and readers[key]() or nil
    end,
    __newindex = function()
      options.misuse "ctx.session is read-only"
    end,
  })
end

local function context_of(self, need)
  local contexts = need.fallback and self._fallback_contexts or self._contexts
  local ctx = contexts[need.policy]
  if not ctx then
    ctx = policy.context(need.policy, {
      session = host.about_session(self._session),
      model = function(request)
        local text, reason = host.ask(self._model, request, self._session)
        if text == host.later then
          return nil, "only a policy file can wait for an answer from elsewhere"
        end
        return text, reason
      end,
      log = function(text) self._log[#self._log + 1] = text end,
    }, need.now)
    contexts[need.policy] = ctx
  end
  return ctx
end

-- step: true when the run is done, a need, or nil, message, code.
-- defer: stores the run as a pending run, to be answered later, and ends it.
object.forward(methods, "step defer")

--- Answers a need with the model's text, or with what the hook returned.
function methods:reply(value)
  return self._core:reply(value)
end

--- Answers a need with a failure.
function methods:fail(reason)
  return self._core:fail(host.say(reason))
end

-- Answers the question for a checkpoint's state, with the configured function if there is one.
local function answer_state(self)
  if not self._state then
    return self:fail "no state"
  end
  local ok, value = pcall(self._state, self._session)
  if not ok then
    return self:fail(value)
  elseif value == nil then
    return self:fail "no state"
  end
  local done, message, code, retry_ms, rule = self:reply(value)
  if not done and code == "EINVALID" then
    return self:fail(message) -- a state must be JSON
  end
  return done, message, code, retry_ms, rule
end

--- Answers a need with the configured model and hooks, as turn, compact and plan do.
function methods:answer(need)
  options.expect("table", need, "run:answer: a need")
  if need.kind == "model" then
    local text, reason = host.ask(self._model, need.request, self._session)
    if not text then
      return self:fail(reason)
    elseif text == host.later then
      return self:defer()
    end
    return self:reply(text)
  end
  if need.kind == "state" then
    return answer_state(self)
  end
  local chosen = need.fallback and self._policy.fallback or self._policy
  local spec = chosen.hosts and chosen.hosts[need.policy]
  if not spec then
    return self:fail(("this run has no policy '%s'"):format(need.policy))
  end
  local ok, value = policy.call(spec, need, context_of(self, need))
  if not ok then
    return self:fail(value)
  end
  return self:reply(value)
end

--- The outcome, after step has returned true.
function methods:outcome()
  local raw, message, code, retry_ms, rule = self._core:outcome()
  if not raw then
    return nil, message, code, retry_ms, rule
  end
  return outcome.make(raw, self._session, self._kind, self._log)
end

local meta = object.class {
  name = "sessile.Run",
  methods = methods,
  text = function(self) return self._kind end,
}

--- Wraps a core run. chosen: the result of policy.resolve, with that of the fallback in its field
--- `fallback`; model: a function, or false.
function host.wrap(run, session, kind, chosen, model, state)
  if model and not options.callable(model) then
    options.misuse "the model is not a function"
  end
  return setmetatable({
    _core = run,
    _session = session,
    _kind = kind,
    _policy = chosen,
    _model = model,
    _state = state or false,
    _contexts = {},
    _fallback_contexts = {},
    _log = {},
  }, meta)
end

local function to_its_end(run, finish)
  while true do
    local need, message, code, retry_ms, rule = run:step()
    if not need then
      return nil, message, code, retry_ms, rule
    end
    if need == true then
      break
    end
    local ok
    ok, message, code, retry_ms, rule = run:answer(need)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
    local deferred = run:outcome()
    if deferred and deferred.status == "paused" then
      return deferred
    end
  end
  if finish then
    local ok, message, code, retry_ms, rule = finish(run._core)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  return run:outcome()
end

--- Runs to the end and returns the outcome. finish, when given, is called with the core run
--- before it is closed: true, or false, message, code.
function host.drive(run, finish)
  return dialect.closing(run, to_its_end, finish)
end

return host
