-- agent.lua: sessile.agent: a model, its tools and hooks, which can run on any session.
--
-- An agent holds the defaults of its runs and cancels them. The conversation is in the session;
-- without a session nothing is kept.

local agents = require "sessile.agents"
local object = require "sessile.object"
local options = require "sessile.options"
local send = require "sessile.interaction.send"
local session = require "sessile.session"
local settings = require "sessile.interaction.settings"

local agent = {}

local methods = {}
agent.methods = methods

local agent_kinds = options.shape("sessile.agent", send.kinds,
  { session = "any", store = "table", name = "string" })
local run_kinds = options.shape("agent:run", send.kinds,
  { session = "any", store = "table", messages = "table" })

-- The session of a run: a session, or an id in the store, which is created if missing. nil: none
-- was given; nil, message, code.
local function session_of(who, given, store)
  if given == nil or given == false then
    return nil
  elseif session.is(given) then
    return given
  elseif type(given) ~= "string" and type(given) ~= "table" then
    options.misuse(("%s: option 'session': a session or its id expected, got %s")
      :format(who, type(given)))
  elseif not store then
    options.misuse(who .. ": option 'session': an id needs store=")
  end
  return store:session(given)
end

--- Runs with a text, a message or a list of messages; nil continues an interrupted run. given:
--- options that override the agent's. Returns the outcome.
function methods:run(message, given)
  local who = "agent:run"
  local opts = options.check(who, given, run_kinds)
  local chosen = settings.over(self._settings, settings.take(who, opts))
  local input = send.input_of(who, message)
  opts.model = opts.model or self._options.model
  for _, name in ipairs(send.of_turns) do
    if opts[name] == nil then
      opts[name] = self._options[name]
    end
  end
  local named = opts.session
  if named == nil then
    named = self._options.session
  end
  local store = opts.store or self._options.store
  local enabled, why, code, retry_ms, rule = true, nil, nil, nil, nil
  if store and self._options.name then
    enabled, why, code = agents.check_enabled(store, self._options.name)
  end
  local on
  if enabled then
    on, why, code, retry_ms, rule = session_of(who, named, store)
  end
  if not on and why then
    return nil, why, code, retry_ms, rule
  end
  options.messages(who, opts.messages or {})
  if on and opts.messages then
    options.misuse("agent:run: option 'messages': the session holds what was said before")
  elseif not on and not input and not opts.messages then
    options.misuse("agent:run: without a session a message is expected")
  end
  local round = self._round
  opts.stopped = function() return self._round ~= round end
  return send.run(who, on, input, opts, chosen, opts.messages)
end

--- Ends its runs: no further request is sent and no further tool started.
function methods:cancel()
  rawset(self, "_round", self._round + 1)
  return true
end

local meta = object.class {
  name = "sessile.Agent",
  methods = methods,
  readers = {
    name = function(self) return self._options.name end,
    session = function(self) return self._options.session end,
    store = function(self) return self._options.store end,
  },
  text = function(self) return self._options.name or "agent" end,
  close = function() return true end, -- the session and the store are the caller's
}

--- Makes an agent.
function agent.make(given)
  options.expect("table", given, "sessile.agent: a table of options")
  local opts = options.check("sessile.agent", given, agent_kinds)
  return setmetatable({
    _options = opts,
    _settings = settings.take("sessile.agent", opts),
    _round = 0,
  }, meta)
end

return agent
