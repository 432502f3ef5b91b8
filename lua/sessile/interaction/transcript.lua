-- transcript.lua: where the messages of a loop are: in a session, each on disk before the
-- next step begins; in a session, but written as one turn at the end; or in memory alone.
--
-- Owns what is written when, and the facts from which an interrupted loop goes on. Never asks
-- a model and never runs a tool. The three answer the same methods:
--   context()               the messages a model would get, {head=}; new tables
--   input(messages)         what is said to the model -> ids
--   answer(message, about)  what it said -> the turn's outcome, or true when there is none
--   result(message)         a tool's answer -> id, or true
--   open()                  {message=, calls=, state=}: calls at the end that wait, or nil
--   opened(written, calls)  the same, of the answer that was just written
--   started(open, call)     a tool is about to run -> true; false: somebody else runs it
--   finished(open, call, message), paused(open, call, pause)
--   compact(given)          -> outcome
-- and fail with nil, message, code. `rewritten` counts how often the context was made anew.

local answers = require "sessile.answers"

local transcript = {}

-- The calls at the end of a list that nothing answers, and the index of their message.
local function waiting(list)
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

--- Messages in memory; `before` come first and are not among `list`, which holds what is new.
function transcript.memory(before)
  return setmetatable({ before = before or {}, list = {}, rewritten = 0 }, memory)
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

memory.result = memory.answer

function memory:open()
  local calls = waiting((self:context()))
  return calls and { calls = calls, state = {} }
end

function memory.opened(_, _, calls)
  return { calls = calls, state = {} }
end

function memory.started()
  return true
end

memory.finished, memory.paused = memory.started, memory.started

function memory.compact()
  return nil, "without a session there is nothing to compact", "EUNSUPPORTED"
end

-- ---------------------------------------------------------------- one turn at the end

local whole = setmetatable({}, { __index = memory })
whole.__index = whole

--- Messages that become one turn of the session when the last is there.
function transcript.whole(session, writing)
  local self = transcript.memory()
  self.session, self.writing = session, writing
  return setmetatable(self, whole)
end

function whole:context()
  if not self.base then
    local before, info, code = self.session:context()
    if not before then
      return nil, info, code
    end
    self.before, self.base = before, info.head
  end
  return memory.context(self), { head = self.base }
end

-- The turn's usage is the last request's, for the size of the context; its total is for the
-- bill. Both are what the provider reported.
function whole:answer(message, about)
  memory.answer(self, message)
  if not about.final then
    return true
  end
  local usage = about.usage and { total = about.total }
  for name, value in pairs(about.usage or {}) do
    usage[name] = value
  end
  return transcript.write_turn(self, self.list, usage, about)
end

function whole:compact(given)
  local done, message, code = self.session:compact(given)
  if done then
    self.base, self.rewritten = nil, self.rewritten + 1
  end
  return done, message, code
end

--- Writes messages as a turn on the transcript's base; what cannot be written is kept in
--- `unsaved`, to be written again.
function transcript.write_turn(self, messages, usage, about)
  local writing = self.writing
  local metadata = writing.metadata
  if about.state ~= nil then
    metadata = { state = about.state }
    for name, value in pairs(writing.metadata or {}) do
      metadata[name] = value
    end
  end
  local given = {
    usage = usage, model = writing.policy_model, model_name = writing.model_name,
    metadata = metadata, base = self.base, on_conflict = writing.on_conflict,
    policy = writing.policy, window = writing.window, reserve = writing.reserve,
    timeout_ms = writing.timeout_ms,
  }
  if not about.final then
    given.policy = false -- the rest of the turn is still to come
  end
  local outcome, message, code = self.session:turn(messages, given)
  if not outcome then
    given.base = nil
    -- a turn that only the host's store lacks is in the session: save() sends it there
    local written = code == "EIO" and self.session.unsaved > 0
    self.unsaved = { messages = messages, options = given, written = written }
    return nil, message, code
  end
  return outcome
end

-- ---------------------------------------------------------------- step by step

local steps = {}
steps.__index = steps

--- Messages that are in the session as soon as they are said. writing: the options of its
--- turns: policy, policy_model, model_name, metadata, on_conflict, window, reserve,
--- timeout_ms.
function transcript.steps(session, writing)
  return setmetatable({ session = session, writing = writing, rewritten = 0 }, steps)
end

function steps:context()
  local list, info, code = self.session:context()
  if not list then
    return nil, info, code
  end
  self.base = info.head
  return list, info
end

function steps:input(messages)
  if #messages == 1 then
    local id, message, code = self.session:append(messages[1])
    return id and { id }, message, code
  end
  local outcome, message, code = self.session:turn(messages, { policy = false })
  return outcome and outcome.ids, message, code
end

function steps:answer(message, about)
  return transcript.write_turn(self, { message }, about.usage, about)
end

function steps:result(message)
  return self.session:append(message)
end

function steps:compact(given)
  local done, message, code = self.session:compact(given)
  if done then
    self.rewritten = self.rewritten + 1
  end
  return done, message, code
end

-- ---------------------------------------------------------------- what was under way

local function id_of(number)
  return ("%08x"):format(number)
end

-- Reads the entries behind open.seen, in the order of the log, into open.state: for each call
-- that waits {starts=, first=, result=, pause=}. What others write about these calls is there
-- too. A result counts when it follows the message of the call and nothing but such results.
local function look(self, open, upto)
  local number = tonumber(open.seen, 16) + 1
  while not upto or number < upto do
    local entry, message, code = self.session:entry(id_of(number))
    if not entry then
      if code == "ENOTFOUND" then
        break
      end
      return nil, message, code
    end
    local data = entry.data
    if entry.type == "custom" and data.message == open.message then
      local state = open.state[data.call]
      if state and data.kind == "tool_start" then
        state.starts = state.starts + 1
      elseif state and data.kind == "tool_done" then
        state.result = data.result
      elseif state and data.kind == "tool_pause" then
        state.pause = { reason = data.reason, state = data.state }
      end
    elseif open.under[entry.parentId] and entry.type ~= "head" then
      local ids = entry.type == "message" and answers.answered(data)
      if entry.type ~= "message" or ids then
        open.under[entry.id] = true
      end
      for _, id in pairs(ids or {}) do
        if open.state[id] and data.role then
          open.state[id].result = data
        end
      end
    end
    open.seen = entry.id
    number = number + 1
  end
  return true
end

local function opened(id, seen, calls)
  local open = { message = id, calls = calls, state = {}, seen = seen, under = { [id] = true } }
  for _, call in ipairs(calls) do
    open.state[call.id] = { starts = 0 }
  end
  return open
end

function steps.opened(_, written, calls)
  return opened(written.ids[#written.ids], written.turn, calls)
end

--- The calls that wait at the head, and what the log knows of them.
function steps:open()
  local last = 16
  local list, message, code, calls, at
  repeat
    list, message, code = self.session:messages { last = last }
    if not list then
      return nil, message, code
    end
    calls, at = waiting(list)
    local all = #list < last
    last = last * 8
  until at > 0 or all
  if not calls then
    return nil
  end
  local open = opened(list[at].id, list[at].id, calls)
  local ok
  ok, message, code = look(self, open)
  if not ok then
    return nil, message, code
  end
  return open
end

-- Of two that start the same call, the one whose fact stands first in the log has it.
function steps:started(open, call)
  local state = open.state[call.id]
  local before = state.starts
  local id, message, code = self.session:custom({
    kind = "tool_start", call = call.id, message = open.message, tool = call.name,
    attempt = before + 1,
  }, "agent")
  if not id then
    return nil, message, code
  end
  local ok
  ok, message, code = look(self, open, tonumber(id, 16))
  if not ok then
    return nil, message, code
  end
  local first = state.starts == before
  state.starts, open.seen = state.starts + 1, id
  return first
end

function steps:finished(open, call, result)
  return self.session:custom({
    kind = "tool_done", call = call.id, message = open.message, result = result,
  }, "tool")
end

function steps:paused(open, call, pause)
  return self.session:custom({
    kind = "tool_pause", call = call.id, message = open.message, reason = pause.reason,
    state = pause.state,
  }, "tool")
end

return transcript
