-- send.lua: session:send, session:state, session:save and sessile.send: one message in, the whole
-- cycle, one outcome.
--
-- It checks the options of a call, which override those of the session; these override those of the
-- store. The methods are added to those of sessions; session.lua does not require this file.

local agents = require "sessile.agents"
local calls = require "sessile.interaction.calls"
local inherited = require "sessile.inherited"
local loop = require "sessile.interaction.loop"
local memory_settings = require "sessile.memory_settings"
local options = require "sessile.options"
local session = require "sessile.session"
local settings = require "sessile.interaction.settings"
local steps = require "sessile.interaction.steps"
local transcript = require "sessile.interaction.transcript"
local triggers = require "sessile.triggers"
local whole = require "sessile.interaction.whole"

local send = {}

send.kinds = options.shape("session:send", inherited.kinds, settings.kinds, {
  model = "callable", model_name = "string", metadata = "table",
  on_conflict = { "fail", "append" }, event = "string",
})

--- The options of a send that its turns are given.
send.of_turns = inherited.names { "model_name", "metadata", "on_conflict", "event" }

-- The input as a list: a text, a message or a list of messages; nil: none.
local function input_of(who, given)
  if given == nil then
    return nil
  elseif type(given) == "string" then
    return { { role = "user", content = given } }
  elseif type(given) ~= "table" then
    options.misuse(("%s: a message expected, got %s"):format(who, type(given)))
  elseif given.role ~= nil or given.json ~= nil then
    return { given }
  elseif #given == 0 then
    options.misuse(who .. ": a message or a list of messages expected, got an empty table")
  end
  options.messages(who, given)
  return given
end

-- ---------------------------------------------------------------- state

-- For each session: the last state of its reducer, and the entry of the path that has it.
local states = setmetatable({}, { __mode = "k" })
-- The number of loops that run on each handle.
local running = setmetatable({}, { __mode = "k" })
-- For each session: the events that no reducer has seen, of a loop that is paused or failed, and
-- the head that the last loop left: {events=, head=}.
local unreduced = setmetatable({}, { __mode = "k" })
-- For each session: what a loop could not write: {messages=, options=}.
local pending = setmetatable({}, { __mode = "k" })

-- The state stored in the newest turn on the path that has one. nil: none; nil, message, code.
local function state_of(self)
  local id, message, code, retry_ms, rule = self:head()
  if not id then
    return nil, message, code, retry_ms, rule
  end
  local known = states[self]
  local from = id
  while true do
    if known and known.at == id then
      states[self] = { at = from, value = known.value }
      return known.value
    end
    local entry
    entry, message, code, retry_ms, rule = self:entry(id)
    if not entry then
      return nil, message, code, retry_ms, rule
    end
    local metadata = entry.type == "turn" and entry.data.metadata
    if type(metadata) == "table" and metadata.state ~= nil then
      states[self] = { at = from, value = metadata.state }
      return metadata.state
    elseif type(entry.parent_id) ~= "string" then
      states[self] = { at = from, value = nil }
      return nil
    end
    id = entry.parent_id
  end
end

-- The messages of the path after the newest turn that has a state, and after `head`, as events.
local function said_since(self, head)
  local found, events, id = {}, {}, self:head()
  while type(id) == "string" and (not head or tonumber(id, 16) > tonumber(head, 16)) do
    local entry = self:entry(id)
    local metadata = entry and entry.type == "turn" and entry.data.metadata
    if not entry or type(metadata) == "table" and metadata.state ~= nil then
      break
    elseif entry.type == "message" then
      found[#found + 1] = { type = "message", message = entry.data, id = id, step = 0 }
    end
    id = entry.parent_id
  end
  for i = #found, 1, -1 do
    events[#events + 1] = found[i]
  end
  return events
end

-- What the reducer has to see first: the events of a loop that did not end, and what was said
-- since.
local function carried(self)
  local left = unreduced[self] or { events = {} }
  local events = table.move(left.events, 1, #left.events, 1, {})
  local said = said_since(self, left.head)
  return table.move(said, 1, #said, #events + 1, events)
end

--- The state after the last send: {messages=, head=, tokens=, value=}: the context, its last entry,
--- its size, and the reducer's state.
function session.methods:state()
  local list, info, code, retry_ms, rule = self:context()
  if not list then
    return nil, info, code, retry_ms, rule
  end
  local value, message
  value, message, code, retry_ms, rule = state_of(self)
  if value == nil and message then
    return nil, message, code, retry_ms, rule
  end
  return { messages = list, head = info.head, tokens = info.tokens, value = value }
end

local save_options = options.shape("session:save", { on_conflict = send.kinds.on_conflict })

--- Writes what a send could not write, and what the host's store did not accept. Returns true, nil
--- if there was nothing, or nil, message, code. given: on_conflict.
function session.methods:save(given)
  local opts = options.check("session:save", given, save_options)
  local waits = pending[self]
  if self.unsaved > 0 then
    local ok, message, code, retry_ms, rule = self._core:save()
    if not ok then
      return nil, message, code, retry_ms, rule
    elseif not waits or waits.written then
      pending[self] = nil
      return self.unsaved == 0 or nil
    end
  end
  if not waits or waits.written then
    return nil
  end
  waits.options.on_conflict = opts.on_conflict or waits.options.on_conflict
  local outcome, message, code, retry_ms, rule = self:turn(waits.messages, waits.options)
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  pending[self] = nil
  return true
end

-- ---------------------------------------------------------------- sending

-- Runs a loop on a session.
local function on_session(who, self, input, opts, chosen)
  local model = opts.model or self._model
  if not model then
    return nil, who .. ": no model is configured: give model= to the call, the session or the "
      .. "store", "EINVALID"
  end
  -- wrong before anything is said, not after
  local when = triggers.resolve(who, opts.triggers) or self._triggers
  triggers.checkpoints(who, opts.checkpoint)
  local ctx = { session = self, reason = "policy" }
  local writing = { policy_model = function(request) return model(request, ctx) end }
  for _, name in ipairs(send.of_turns) do
    writing[name] = opts[name]
  end
  -- A turn that is under way is in the log already, so it is continued step by step.
  local kind = chosen.commit == "turn" and input and whole or steps
  local spec = {
    session = self, transcript = kind.new(self, writing), model = model, input = input,
    policy = opts.policy, fallback = opts.fallback, policy_model = writing.policy_model,
    stopped = opts.stopped, compacts = not triggers.off(when),
    state = function() return state_of(self) end,
  }
  if memory_settings.recalls(self._store, self.agent) then
    spec.recall = function(question) return self:recall { question = question } end
  end
  options.add(spec, chosen)
  spec.events = spec.reducer and carried(self) or nil
  if input == nil and running[self] then
    return nil, who .. ": a loop runs on this session: it has to end before another can continue "
      .. "with it", "EBUSY"
  end
  spec.beside = running[self] ~= nil
  running[self] = (running[self] or 0) + 1
  local ok, outcome, message, code, retry_ms, rule = pcall(function()
    return loop.new(spec):run()
  end)
  running[self] = running[self] > 1 and running[self] - 1 or nil
  if not ok then
    error(outcome, 0)
  end
  if spec.reducer and outcome then
    unreduced[self] = { head = self:head(),
      events = outcome.status ~= "completed" and spec.events or {} }
  end
  if spec.transcript.unsaved then
    pending[self] = spec.transcript.unsaved
  end
  return outcome, message, code, retry_ms, rule
end

-- Runs a loop without a session: only the outcome has the messages.
local function on_nothing(who, before, input, opts, chosen)
  if not opts.model then
    return nil, who .. ": no model is configured: give model=", "EINVALID"
  end
  local spec = {
    transcript = transcript.memory(before), model = opts.model, input = input,
    stopped = opts.stopped, state = function() return nil end,
  }
  options.add(spec, chosen)
  return loop.new(spec):run()
end

--- Runs a send with checked options. self: a session, or nil; opts: the options of a turn, and
--- stopped; chosen: settings; before: the earlier messages, without a session.
function send.run(who, self, input, opts, chosen, before)
  if self then
    local enabled, why, denied = agents.check_enabled(self._store, self.agent)
    if not enabled then
      return nil, why, denied
    end
    return on_session(who, self, input, opts, settings.over(self._settings or {}, chosen))
  end
  return on_nothing(who, before, input, opts, chosen)
end

--- Sends a message: hooks, model and tools until the model calls nothing, hooks, a turn with
--- policy. Returns the outcome. Without a message it continues an interrupted send.
function session.methods:send(message, given)
  local opts = options.check("session:send", given, send.kinds)
  local input = input_of("session:send", message)
  return send.run("session:send", self, input, opts, settings.take("session:send", opts))
end

local stateless = options.shape("sessile.send", send.kinds,
  { messages = "table", message = "string|table", session = "table" })

--- The same without a session. given: messages (the last one is new), model, tools and other
--- options; with `session` it is session:send.
function send.send(given)
  options.expect("table", given, "sessile.send: a table of options")
  local opts = options.check("sessile.send", given, stateless)
  local chosen = settings.take("sessile.send", opts)
  local input = input_of("sessile.send", opts.message)
  if opts.session then
    if not session.is(opts.session) then
      options.misuse("sessile.send: option 'session': a session expected")
    end
    input = input or input_of("sessile.send", opts.messages)
    return send.run("sessile.send", opts.session, input, opts, chosen)
  end
  local before = opts.messages or {}
  options.messages("sessile.send", before)
  if not input and #before == 0 then
    options.misuse("sessile.send: messages expected")
  end
  return send.run("sessile.send", nil, input, opts, chosen, before)
end

send.input_of = input_of
local pause_options = options.shape("sessile.pause", { reason = "string", state = "any" })

send.pause = function(given)
  return calls.pause(options.check("sessile.pause", given, pause_options))
end

return send
