-- transcript.lua: the messages of a loop, in one of three places: in memory (here), in a session
-- step by step (steps.lua), or in a session as one turn at the end (whole.lua).
--
-- A transcript asks no model and runs no tool. Each of the three has these methods:
--   context()               the messages for the model, {head=}; new tables
--   input(messages)         writes messages to the model -> ids
--   answer(message, about)  writes its answer -> the turn's outcome, or true if there is none
--   unended()               the last messages are in no turn yet
--   close(about)            writes the turn that they lack -> its outcome
--   result(message)         writes a tool's result -> id, or true
--   open()                  {message=, calls=, state=}: open calls at the end, or nil
--   opened(written, calls)  the same, for the answer that was just written
--   started(open, call)     a tool is about to run -> true; false: another loop runs it
--   finished(open, call, message)  stores a result whose turn to be written has not come
--   paused(open, call, pause)
--   pause()                 {reason=, state=}: the session is paused, or nil
--   rest(pause)             the loop ends to wait for an answer -> entry of the pause, or true
--   leave()                 the loop failed: what is not written goes to `unsaved`
--   compact(given)          -> outcome
-- writes_at_end: the input is not in the session before the end of the loop.
-- They fail with nil, message, code. `rewritten` counts how often the context was rebuilt.

local answers = require "sessile.answers"
local options = require "sessile.options"

local transcript = {}

--- The unanswered calls at the end of a list, and the index of their message.
function transcript.waiting(list)
  local answered = {}
  for i = #list, 1, -1 do
    local ids = answers.answered(list[i])
    if not ids then
      local calls = {}
      for _, call in ipairs(answers.calls(list[i])) do
        if not answered[call.id] then
          calls[#calls + 1] = call
        end
      end
      return #calls > 0 and calls or nil, i
    end
    for _, id in pairs(ids) do
      answered[id] = true
    end
  end
  return nil, 0
end

-- ---------------------------------------------------------------- in memory

local memory = {}
memory.__index = memory
transcript.in_memory = memory

--- A transcript in memory. `before` are earlier messages; `list` has only the new ones.
function transcript.memory(before)
  return setmetatable({ before = before or {}, list = {}, early = {}, rewritten = 0 }, memory)
end

function memory:context()
  local all = table.move(self.before, 1, #self.before, 1, {})
  return table.move(self.list, 1, #self.list, #all + 1, all), {}
end

function memory:input(messages)
  table.move(messages, 1, #messages, #self.list + 1, self.list)
  return {}
end

function memory:answer(message)
  self.list[#self.list + 1] = message
  return true
end

function memory.unended()
  return false
end

function memory:result(message)
  self.early[message.tool_call_id] = nil
  return memory.answer(self, message)
end

function memory:finished(_, call, message)
  self.early[call.id] = message
  return true
end

-- Results that cannot be written yet because an earlier call is open.
function memory:rest()
  local ids = {}
  for id in pairs(self.early) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    memory.result(self, self.early[id])
  end
  return true
end

function memory:open()
  local calls = transcript.waiting((self:context()))
  return calls and { calls = calls, state = {} }
end

function memory.opened(_, _, calls)
  return { calls = calls, state = {} }
end

function memory.started()
  return true
end

memory.paused = memory.started

function memory.pause()
  return nil
end

memory.leave = memory.pause

function memory.compact()
  return nil, "without a session there is nothing to compact", "EUNSUPPORTED"
end

-- ---------------------------------------------------------------- in a session

--- Pauses the session. Returns the entry of the pause.
function transcript.suspend(self, pause)
  local outcome, message, code, retry_ms, rule = self.session:suspend { reason = pause.reason,
    state = pause.state }
  return outcome and outcome.suspension, message, code, retry_ms, rule
end

--- The options of a turn. about: state, final, event (what happened before it).
function transcript.turn_options(self, about)
  local writing = self.writing
  local metadata = writing.metadata
  if about.state ~= nil then
    metadata = options.add({ state = about.state }, writing.metadata)
  end
  local given = options.add({}, writing)
  given.policy_model, given.model, given.metadata = nil, writing.policy_model, metadata
  if not about.final then
    given.policy, given.event = false, nil -- the rest of the turn is still to come
  end
  given.event = given.event or about.event
  return given
end

--- Writes messages as a turn on the transcript's base. Messages that cannot be written are kept in
--- `unsaved`.
function transcript.write_turn(self, messages, usage, about)
  local given = transcript.turn_options(self, about)
  given.usage, given.base = usage, self.base
  local outcome, message, code, retry_ms, rule = self.session:turn(messages, given)
  if not outcome then
    given.base = nil
    -- a turn that only the host's store lacks is in the session: save() sends it there
    local written = code == "EIO" and self.session.unsaved > 0
    self.unsaved = { messages = messages, options = given, written = written }
    return nil, message, code, retry_ms, rule
  end
  return outcome
end

return transcript
