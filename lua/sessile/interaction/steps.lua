-- steps.lua: a transcript in a session that is written step by step: each message is on disk before
-- the next step begins, so that a loop that died can be continued.
--
-- It also writes the facts (custom entries) that record how far each call got. The log has one
-- order for all writers, and that order decides which loop runs a call.

local answers = require "sessile.answers"
local facts = require "sessile.facts"
local transcript = require "sessile.interaction.transcript"

local steps = {}
steps.__index = steps

--- A transcript that writes each message immediately. writing: the options of its
--- turns: policy, policy_model, model_name, metadata, on_conflict, window, reserve,
--- timeout_ms.
function steps.new(session, writing)
  return setmetatable({ session = session, writing = writing, rewritten = 0 }, steps)
end

function steps:context()
  local list, info, code, retry_ms, rule = self.session:context()
  if not list then
    return nil, info, code, retry_ms, rule
  end
  self.base = info.head
  return list, info
end

function steps:input(messages)
  if #messages == 1 then
    local id, message, code, retry_ms, rule = self.session:append(messages[1])
    return id and { id }, message, code, retry_ms, rule
  end
  local outcome, message, code, retry_ms, rule = self.session:turn(messages, { policy = false })
  return outcome and outcome.ids, message, code, retry_ms, rule
end

function steps:answer(message, about)
  return transcript.write_turn(self, { message }, about.usage, about)
end

-- A message that came from elsewhere, such as the answer to a pause.
function steps:unended()
  local id, message, code, retry_ms, rule = self.session:head()
  while type(id) == "string" do
    local entry
    entry, message, code, retry_ms, rule = self.session:entry(id)
    if not entry then
      break
    elseif entry.type ~= "compaction" then
      return entry.type == "message"
    end
    id = entry.parent_id
  end
  return nil, message, code, retry_ms, rule
end

function steps:close(about)
  return transcript.write_turn(self, {}, nil, about)
end

function steps:result(message)
  return self.session:append(message)
end

function steps:pause()
  return self.session:suspended()
end

steps.rest = transcript.suspend

function steps.leave()
  return nil
end

function steps:compact(given)
  local done, message, code, retry_ms, rule = self.session:compact(given)
  if done then
    self.rewritten = self.rewritten + 1
  end
  return done, message, code, retry_ms, rule
end

-- ---------------------------------------------------------------- what was under way

local function id_of(number)
  return ("%08x"):format(number)
end

-- Reads the entries behind open.seen, in the order of the log, into open.state: for each call
-- that is open {starts=, result=, pause=, ended=}. Entries of other writers count as well. ended:
-- the session was paused for it, and the pause ended without an answer. A result counts if only
-- results are between it and the message of the call.
local function look(self, open, upto)
  local number = tonumber(open.seen, 16) + 1
  while not upto or number < upto do
    local entry, message, code, retry_ms, rule = self.session:entry(id_of(number))
    if not entry then
      if code == "ENOTFOUND" then
        break
      end
      return nil, message, code, retry_ms, rule
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
    elseif entry.type == "suspend" and data.off then
      for _, state in pairs(open.state) do
        state.ended, state.pause = state.ended or state.pause ~= nil, nil
      end
    elseif open.under[entry.parent_id] and entry.type ~= "head" then
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

--- The open calls at the head, with what is in the log about them.
function steps:open()
  local last = 16
  local list, message, code, retry_ms, rule, calls, at
  repeat
    list, message, code, retry_ms, rule = self.session:messages { last = last }
    if not list then
      return nil, message, code, retry_ms, rule
    end
    calls, at = transcript.waiting(list)
    local all = #list < last
    last = last * 8
  until at > 0 or all
  if not calls then
    return nil
  end
  local id = facts.of(list[at]).id
  local open = opened(id, id, calls)
  local ok
  ok, message, code, retry_ms, rule = look(self, open)
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  return open
end

-- If two loops start the same call, the one whose fact is first in the log runs it.
function steps:started(open, call)
  local state = open.state[call.id]
  local before = state.starts
  local id, message, code, retry_ms, rule = self.session:custom({
    kind = "tool_start", call = call.id, message = open.message, tool = call.name,
    attempt = before + 1,
  }, "agent")
  if not id then
    return nil, message, code, retry_ms, rule
  end
  local ok
  ok, message, code, retry_ms, rule = look(self, open, tonumber(id, 16))
  if not ok then
    return nil, message, code, retry_ms, rule
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

return steps
