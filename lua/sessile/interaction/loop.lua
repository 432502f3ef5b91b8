-- loop.lua: asks the model, runs its calls, and asks again, until the model calls nothing.
--
-- Messages are written before the next step begins (steps.lua), so that a loop that died can be
-- continued from the log. The loop is plain Lua: a model, a tool or a hook that yields suspends
-- this loop and nothing else, and outside a coroutine nothing yields. An error in a host's function
-- never leaves the loop.
--
-- Events, in this order; each is {type=, step=, …}:
--   start                         the loop begins
--   interrupted, tool_end         calls that an earlier loop left open when it died
--   message                       a message to the model is written, one event for each
--   recall                        what memories have about it was quoted behind it
--   then for each step
--     context                     the messages were read
--     model                       the request is sent
--     reasoning, text             a piece of the answer, from a model that streams
--     overflow, compact, context, model   once, if the request was too long
--     message                     the model's message is written
--     tool_start, tool_end        for each call, in order
--   turn                          the last message is written and policies have run
--
-- A turn that follows a tool has the event "tool", unless the host gives it another one.
--
--   done | paused | error         the end, always exactly one

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"
local calls = require "sessile.interaction.calls"
local core = require "sessile.core"
local facts = require "sessile.facts"
local host = require "sessile.host"
local outcome = require "sessile.outcome"
local reports = require "sessile.usage"

local math = dialect.math

local loop = {}

local Loop = {}
Loop.__index = Loop

local default_steps = 50

--- A loop that is ready to run. spec: session (or nil), transcript, model, tools, before,
--- after, reducer, max_steps, parallel, on_event, input (a list, or nil), stopped (function),
--- state (function: the reducer's state until now), events (that the reducer has not seen yet),
--- policy, fallback, policy_model, compacts (false: not even on overflow), recall (function: quotes
--- what memories have about a question, or about the newest message), beside (another loop
--- runs on the same handle, and its open calls are not answered here).
function loop.new(spec)
  local self = setmetatable(spec, Loop)
  self.tools = self.tools or {}
  self.max_steps = self.max_steps or default_steps
  self.step, self.ids, self.log, self.events = 0, {}, {}, self.events or {}
  self.usage = {}
  return self
end

--- The context argument of a host's function. more: additional fields, or nil.
function Loop:about(more)
  local ctx = more or {}
  ctx.session, ctx.step = self.session, self.step
  ctx.reason = self.input and "send" or "resume"
  ctx.cancelled = function() return self:cancelled() end
  return ctx
end

function Loop:cancelled()
  return self.stopped ~= nil and self.stopped()
end

-- Calls the host's on_event. An error in it is added to the log of the outcome, nothing else.
local function tell(self, event)
  event.step = self.step
  if self.on_event then
    local ok, why = pcall(self.on_event, event)
    if not ok then
      self.log[#self.log + 1] = "on_event raised: " .. calls.say(why)
    end
  end
end

--- Reports an event to the host and to the reducer.
function Loop:emit(event)
  if self.reducer then
    self.events[#self.events + 1] = event
  end
  tell(self, event)
end

-- ---------------------------------------------------------------- how it ends

local function finish(self, given)
  given.kind = "send"
  given.ids, given.log, given.steps = self.ids, self.log, self.step
  given.usage, given.recalled = next(self.usage) and self.usage or nil, self.recalled
  if not self.session then
    given.messages = self.transcript.list
    given.context = self.transcript:context()
  end
  return outcome.of(self.session, given)
end

local function failed(self, message, code, retry_ms, rule)
  self.transcript:leave()
  self:emit { type = "error", message = message, code = code }
  return finish(self, {
    status = "failed", error = message, code = code, retry_ms = retry_ms, rule = rule,
    unsaved = self.transcript.unsaved and self.transcript.unsaved.messages,
  })
end

-- at: the entry of the pause, if the session is paused already.
local function paused(self, pause, at)
  local message, code, retry_ms, rule
  if not at then
    at, message, code, retry_ms, rule = self.transcript:rest(pause)
  end
  if not at then
    return failed(self, message, code, retry_ms, rule)
  end
  table.move(self.transcript.wrote or {}, 1, #(self.transcript.wrote or {}), #self.ids + 1,
    self.ids)
  self:emit { type = "paused", reason = pause.reason, state = pause.state }
  return finish(self, { status = "paused", reason = pause.reason, state = pause.state,
    suspension = at ~= true and at or nil })
end

local function completed(self, reply, written)
  local result = written
  if type(written) == "table" then
    self:emit { type = "turn", outcome = written }
    for name, value in pairs(finish(self, {})) do
      if name ~= "log" and name ~= "_session" then
        rawset(result, name, value)
      end
    end
    table.move(self.log, 1, #self.log, #result.log + 1, result.log)
  else
    result = finish(self, { status = "completed" })
  end
  result.reply, result.text = reply, answers.text(reply)
  self:emit { type = "done", outcome = result }
  return result
end

-- ---------------------------------------------------------------- asking the model

-- Passes a value through hooks: the result of each replaces the value. Returns the value; or nil,
-- pause; or nil, nil, reason.
local function through(hooks, name, value, ctx)
  for _, hook in ipairs(hooks or {}) do
    local ok, given, reason = pcall(hook, value, ctx)
    if not ok then
      return nil, nil, ("a hook %s generation raised: %s"):format(name, calls.say(given))
    elseif calls.is_pause(given) then
      return nil, given
    elseif given == nil and reason ~= nil then
      return nil, nil, ("a hook %s generation refused: %s"):format(name, calls.say(reason))
    elseif given ~= nil then
      value = given
    end
  end
  return value
end

-- The tools as they are described to a model, sorted by name.
local function described(tools)
  local list = {}
  for name, tool in pairs(tools) do
    list[#list + 1] = {
      name = name, description = tool.description, parameters = tool.parameters,
    }
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return #list > 0 and list or nil
end

-- What a request knows a message by: its key, or its place if it has none.
local function name_of(message, i)
  local own = facts.of(message)
  return own and own.key or i
end

-- The request of this step. Hooks see the first request, and the first one after the context was
-- rebuilt. The requests that follow begin with what the hooks returned. Same returns as through().
local function request_of(self)
  local list, info, code = self.transcript:context()
  if not list then
    return nil, nil, info, code
  end
  self.head = info.head
  self:emit { type = "context", messages = #list, tokens = info.tokens, head = info.head }
  local opening = self.opening
  if opening and opening.rewritten == self.transcript.rewritten then
    local messages = table.move(opening.messages, 1, #opening.messages, 1, {})
    for i, message in ipairs(list) do
      if not opening.known[name_of(message, i)] then
        messages[#messages + 1] = message
      end
    end
    return { messages = messages, tools = opening.tools, step = self.step }
  end
  opening = { rewritten = self.transcript.rewritten, known = {} }
  for i, message in ipairs(list) do
    opening.known[name_of(message, i)] = true
  end
  local request, pause, reason = through(self.before, "before", {
    messages = list, tools = described(self.tools), step = self.step,
  }, self:about())
  if not request then
    return nil, pause, reason
  end
  if type(request) ~= "table" or type(request.messages) ~= "table" then
    return nil, nil, "a hook before generation returned no request: {messages=, tools=} is wanted"
  end
  opening.messages = table.move(request.messages, 1, #request.messages, 1, {})
  opening.tools = request.tools
  self.opening = opening
  return request
end

-- Asks the model once. Returns the message, or host.later; or nil, reason, code.
local function ask(self, request)
  self:emit { type = "model", messages = #request.messages }
  -- A piece of an answer is no event for the reducer, which gets the whole message.
  local ctx = self:about {
    on_text = function(text) tell(self, { type = "text", text = text }) end,
    on_reasoning = function(text) tell(self, { type = "reasoning", text = text }) end,
  }
  local ok, answer, reason, code = pcall(self.model, request, ctx)
  if not ok then
    return nil, "the model raised: " .. calls.say(answer)
  elseif not answer then
    return nil, reason ~= nil and calls.say(reason) or "the model gave no answer",
      type(code) == "string" and code or nil
  elseif answer == host.later then
    return answer
  end
  return answers.message(answer, "call_" .. (self.head or #request.messages))
end

-- Like ask(), but if the request was too long, compacts the context and asks a second time. Returns
-- the message; nil, pause; nil, nil, reason, code.
local function think(self)
  local request, pause, reason, code = request_of(self)
  if not request then
    return nil, pause, reason, code
  end
  local message
  message, reason, code = ask(self, request)
  if message or not answers.overflow(reason, code) then
    return message, nil, reason, code
  end
  self:emit { type = "overflow", message = reason, code = code }
  if self.compacts == false then
    return nil, nil, reason .. " (and the context was not compacted, because triggers = false: "
      .. "compact it with session:compact(), then continue with session:send())",
      code or "EOVERFLOW"
  end
  local done, why = self.transcript:compact {
    reason = "overflow", model = self.policy_model, policy = self.policy or nil,
    fallback = self.fallback,
  }
  if not done or not done.compaction then
    return nil, nil, ("%s (and the context could not be made shorter: %s)"):format(reason,
      why or done.policy and (done.policy.refused or done.policy.verdict) or "unchanged"),
      code or "EOVERFLOW"
  end
  self:emit { type = "compact", outcome = done }
  request, pause, reason, code = request_of(self)
  if not request then
    return nil, pause, reason, code
  end
  message, reason, code = ask(self, request)
  return message, nil, reason, code or (not message and answers.overflow(reason)
    and "EOVERFLOW" or nil)
end

-- ---------------------------------------------------------------- writing what it said

local MOST_USAGE = 2 ^ 53 -- of one report: no sum of them is another number than it

-- If the provider's report cannot be stored, the answer still is.
local function count_usage(self, usage)
  if type(usage) ~= "table" then
    return nil
  end
  local text, why = core.text(usage)
  if not text or text:sub(1, 1) ~= "{" then
    self.log[#self.log + 1] = "the usage that was reported cannot be kept: "
      .. (why or "names and numbers expected")
    return nil
  end
  for name, value in pairs(usage) do
    local count = type(value) == "number" and math.tointeger(value)
    if count and count >= 0 and count <= MOST_USAGE then
      self.usage[name] = (self.usage[name] or 0) + count
    end
  end
  return reports.sound(usage)
end

-- The reducer's next state, from all events since it was called last. If it fails, nil, and a line
-- is added to the log.
local function reduce(self)
  if not self.reducer then
    return nil
  end
  local before, message = self.state()
  if before == nil and message then
    self.log[#self.log + 1] = "the state could not be read: " .. message
    return nil
  end
  local events = self.events
  self.events = {}
  local ok, after = pcall(self.reducer, before, events)
  if not ok then
    self.log[#self.log + 1] = "the reducer raised: " .. calls.say(after)
    return nil
  end
  local text, why = core.text(after)
  if after ~= nil and not text then
    self.log[#self.log + 1] = "the reducer's state cannot be kept: " .. why
    return nil
  end
  return after
end

-- Writes the model's message. Returns the result of transcript:answer.
local function write(self, message, final)
  local usage = count_usage(self, message.usage)
  if not usage and type(message.usage) == "table" then
    message.usage = nil
  end
  local event, state = { type = "message", message = message, step = self.step }, nil
  if final then
    self.events[#self.events + 1] = event -- the reducer sees the reply, which has no id yet
    state = reduce(self)
  end
  local written, why, code, retry_ms, rule = self.transcript:answer(message, {
    final = final, usage = usage, total = self.usage, state = state,
    event = self.ran_tools and "tool" or nil,
  })
  if not written then
    return nil, why, code, retry_ms, rule
  end
  if type(written) == "table" then
    table.move(written.ids, 1, #written.ids, #self.ids + 1, self.ids)
    self.ran_tools = false
  end
  event.id = self.ids[#self.ids]
  if final then
    tell(self, event)
  else
    self:emit(event)
  end
  return written
end

-- ---------------------------------------------------------------- the loop

-- The last message, if it is an answer of the model without calls: the loop has nothing to do.
local function last_word(self)
  local list = self.transcript:context()
  local last = list and list[#list]
  return last and (last.role == "assistant" or last.role == "model") and last or nil
end

-- What the user says in the input, as a text; nil: nothing.
local function asked(input)
  local said
  for _, message in ipairs(input) do
    if message.role == "user" then
      said = answers.text(message)
    end
  end
  return said
end

-- Quotes what memories have, if the user says something. If that fails, only a line is added to the
-- log. question: nil, if the input is written already.
local function remind(self, question)
  if not self.recall or not asked(self.input) then
    return
  end
  local done, message = self.recall(question)
  if not done then
    self.log[#self.log + 1] = "nothing was recalled: " .. message
  elseif done.id then
    self.recalled = done
    self:emit { type = "recall", outcome = done, id = done.id }
  end
end

-- Writes the input, or finds out where an interrupted loop stopped. Returns {pause=}: the session
-- waits for an answer; {open=}: open calls; {reply=}: the model has answered; else {}; nil,
-- message, code.
local function begin(self)
  local pause, message, code, retry_ms, rule = self.transcript:pause()
  if not pause and message then
    return nil, message, code, retry_ms, rule
  elseif pause and not self.input then
    return { pause = pause }
  elseif pause then
    return nil, ("the session is suspended (%s): answer with resume_with, or cancel")
      :format(pause.reason or "no reason given"), "ESUSPENDED"
  end
  local open
  open, message, code, retry_ms, rule = self.transcript:open()
  if not open and message then
    return nil, message, code, retry_ms, rule
  end
  if not self.input then
    if open then
      return { open = open }
    end
    local reply = last_word(self)
    return { reply = reply }
  end
  if open and not self.beside then
    local ok
    ok, message, code, retry_ms, rule = calls.close(self, open)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  if self.transcript.writes_at_end then
    remind(self, asked(self.input))
  end
  local ids
  ids, message, code, retry_ms, rule = self.transcript:input(self.input)
  if not ids then
    return nil, message, code, retry_ms, rule
  end
  table.move(ids, 1, #ids, #self.ids + 1, self.ids)
  for i, said in ipairs(self.input) do
    self:emit { type = "message", message = said, id = ids[i] }
  end
  if not self.transcript.writes_at_end then
    remind(self)
  end
  return {}
end

-- Runs the calls. Returns nil if the loop continues, else its outcome.
local function act(self, open)
  local ran, message, code, retry_ms, rule = calls.run(self, open)
  if not ran then
    return failed(self, message, code, retry_ms, rule)
  end
  self.ran_tools = true
  return ran.pause and paused(self, ran.pause) or nil
end

-- The model has answered already. If its answer is in no turn yet (it came to a paused session),
-- the turn is ended: with the reducer's state, and policies.
local function accept(self, reply)
  local unended, message, code, retry_ms, rule = self.transcript:unended()
  local written
  if unended then
    written, message, code, retry_ms, rule =
      self.transcript:close { final = true, state = reduce(self) }
  end
  if message then
    return failed(self, message, code, retry_ms, rule)
  end
  return completed(self, reply, written)
end

-- The end of the loop: hooks, the turn, the outcome.
local function conclude(self, message)
  local reply, pause, reason = through(self.after, "after", message, self:about())
  if reply then
    reply, reason = answers.message(reply, "call_" .. (self.head or 0))
  end
  if not reply and not pause then
    return failed(self, reason)
  end
  local written, why, code, retry_ms, rule = write(self, reply or message, true)
  if not written then
    return failed(self, why, code, retry_ms, rule)
  end
  if pause then
    return paused(self, pause)
  end
  return completed(self, reply, written)
end

--- Runs to the end and returns the outcome; nil, message, code if the loop could not start.
function Loop:run()
  self:emit { type = "start", session = self.session }
  local begun, message, code, retry_ms, rule = begin(self)
  if not begun then
    self:emit { type = "error", message = message, code = code }
    return nil, message, code, retry_ms, rule
  elseif begun.pause then
    return paused(self, begun.pause, begun.pause.id)
  elseif begun.reply then
    return accept(self, begun.reply)
  end
  local ended = begun.open and act(self, begun.open)
  if ended then
    return ended
  end
  while not self:cancelled() do
    if self.step >= self.max_steps then
      return failed(self, ("stopped after %d steps: raise max_steps, or send without a message to "
        .. "continue"):format(self.step), "ELIMIT")
    end
    self.step = self.step + 1
    local answer, pause, reason, why = think(self)
    if pause then
      return paused(self, pause)
    elseif not answer then
      return failed(self, reason, why)
    end
    if answer == host.later then
      return paused(self, { reason = "the model's answer" })
    end
    local called = answers.calls(answer)
    if #called == 0 then
      return conclude(self, answer)
    end
    local written
    written, message, code, retry_ms, rule = write(self, answer, false)
    if not written then
      return failed(self, message, code, retry_ms, rule)
    end
    ended = act(self, self.transcript:opened(written, called))
    if ended then
      return ended
    end
  end
  return failed(self, "cancelled", "ECANCELLED")
end

return loop
