-- calls.lua: runs the tool calls of one message.
--
-- It guarantees that a tool that is not declared repeatable never runs twice for one call, whatever
-- process is killed at whatever time. The loop decides what happens after the calls.
--
-- The start of a tool is on disk before the tool runs. Results are written in the order of the
-- calls; a result that is ready earlier is stored as a fact until its turn. So after a crash a call
-- is in one of four states: never started (it runs), finished (its result is used), paused, or
-- started and not finished (it runs again if the tool is repeatable; otherwise the model is told
-- that the result is unknown).

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"

local table, coroutine = dialect.table, dialect.coroutine

local calls = {}

local interrupted = "interrupted: this call was started and its end was not recorded. It may "
  .. "or may not have taken effect, and it was not run again."
local cancelled = "cancelled before it was run"
local cut_short = "cancelled while it ran; it may or may not have taken effect"
local unanswered = "cancelled: it was paused, and the pause ended without an answer"
local moved_on = "not run: the conversation continued before it could be"

local pause = { __name = "sessile.Pause" }

--- A tool or a hook returns this to pause the loop until somebody answers.
function calls.pause(given)
  return setmetatable(given, pause)
end

function calls.is_pause(value)
  return getmetatable(value) == pause
end

-- An error value as a text, also if its __tostring fails.
local function say(value)
  local ok, text = pcall(tostring, value)
  return ok and text or ("an error of type " .. type(value))
end

calls.say = say

-- ---------------------------------------------------------------- one call

local function no_such_tool(loop, call)
  local names = {}
  for name in pairs(loop.tools) do
    names[#names + 1] = name
  end
  table.sort(names)
  return answers.result(call, ("there is no tool called '%s'; there are: %s")
    :format(tostring(call.name), #names > 0 and table.concat(names, ", ") or "none"), true)
end

-- The arguments of a call as a table; nil and an error message.
local function arguments_of(call)
  if type(call.arguments) == "table" then
    return call.arguments
  end
  local text = call.arguments
  if text == nil or type(text) == "string" and text:find "^%s*$" then
    return {}
  end
  local value, why = answers.decode(text)
  if type(value) ~= "table" then
    return nil, answers.result(call, ("the arguments are %s; a JSON object is wanted")
      :format(why or "not a JSON object"), true)
  end
  return value
end

-- Runs the tool. Returns the message that answers the call, or a pause.
local function run(loop, tool, call, args, state)
  local ctx = loop:about { call = call.id, tool = call.name,
    attempt = state and state.starts or 1 }
  local ok, value, reason = pcall(tool.run, args, ctx)
  if not ok then
    return answers.result(call, "the tool failed: " .. say(value), true)
  end
  if calls.is_pause(value) then
    return nil, value
  end
  return answers.of_tool(call, value, reason)
end

-- Runs one call from start to result. Returns {message=, known=}, {pause=}, or nil, message, code
-- if the log cannot be written.
local function perform(loop, open, call)
  local state = open.state[call.id]
  if state and state.result then
    return { message = state.result, known = true }
  elseif state and state.pause then
    return { pause = state.pause, known = true }
  elseif state and state.ended then
    return { message = answers.result(call, unanswered, true) }
  end
  local tool = loop.tools[call.name]
  if state and state.starts > 0 then
    local again = tool ~= nil and tool.repeatable == true
    loop:emit { type = "interrupted", call = call, repeatable = again }
    if not again then
      return { message = answers.result(call, interrupted, true) }
    end
  end
  if loop:cancelled() then
    return { message = answers.result(call, cancelled, true) }
  end
  local args, wrong
  if tool then
    args, wrong = arguments_of(call)
  else
    wrong = no_such_tool(loop, call)
  end
  if wrong then
    loop:emit { type = "tool_start", call = call }
    return { message = wrong }
  end
  local first, message, code, retry_ms, rule = loop.transcript:started(open, call)
  if first == nil then
    return nil, message, code, retry_ms, rule
  elseif first == false then
    return nil, ("the call %s of '%s' is being run by somebody else: only one loop at a time "
      .. "can continue a session"):format(call.id, call.name), "ECONFLICT"
  end
  loop:emit { type = "tool_start", call = call, args = args }
  local result, asked = run(loop, tool, call, args, state)
  return { message = result, pause = asked }
end

-- ---------------------------------------------------------------- results

-- Writes one result. If the log refuses it (too long), writes an error result instead.
local function write(loop, call, done)
  local id, message, code, retry_ms, rule = loop.transcript:result(done.message)
  if not id and (code == "EINVALID" or code == "ELIMIT") then
    done.message = answers.result(call, "the tool's result cannot be kept: " .. message, true)
    id, message, code, retry_ms, rule = loop.transcript:result(done.message)
  end
  if not id then
    return nil, message, code, retry_ms, rule
  end
  if id ~= true then
    loop.ids[#loop.ids + 1] = id
  end
  loop:emit { type = "tool_end", call = call, message = done.message, id = id ~= true and id
    or nil, failed = (done.message.metadata or {}).error == true, known = done.known }
  return true
end

-- Writes the results whose turn has come, in the order of the calls; stores the result of call `i`
-- as a fact if its turn has not come.
local function settle(loop, open, batch, i)
  local list = open.calls
  local this = i and batch[i]
  if this and this.pause and not this.known then
    batch.pause = batch.pause or this.pause
    return loop.transcript:paused(open, list[i], this.pause)
  elseif this and this.pause then
    batch.pause = batch.pause or this.pause
    return true
  end
  local ok, message, code, retry_ms, rule = true, nil, nil
  if not batch.writing then -- else another thread of the host's is at it
    batch.writing = true
    while ok and batch[batch.next] and batch[batch.next].message do
      ok, message, code, retry_ms, rule = write(loop, list[batch.next], batch[batch.next])
      batch.next = batch.next + 1
    end
    batch.writing = false
  end
  if ok and this and i >= batch.next and not this.known then
    ok, message, code, retry_ms, rule = loop.transcript:finished(open, list[i], this.message)
    if not ok and (code == "EINVALID" or code == "ELIMIT") then
      return true -- it will be judged when it is written
    end
  end
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  return true
end

-- ---------------------------------------------------------------- several at once

-- Runs each call in a coroutine of its own. All start before any is waited for. What a call yields
-- is yielded to the host's scheduler, whose answer goes to that call. The calls take turns in
-- order.
local function interleave(loop, count, body, stopped)
  local threads, values = {}, {}
  local function resume(i, ...)
    values[i] = table.pack(coroutine.resume(threads[i], ...))
    if not values[i][1] then
      error(values[i][2], 0) -- tools are called in pcall: this is a defect of ours
    end
    if coroutine.status(threads[i]) == "dead" then
      threads[i] = nil
    end
  end
  for i = 1, count do
    threads[i] = coroutine.create(body)
    resume(i, i)
  end
  while next(threads) do
    for i = 1, count do
      if threads[i] then
        local back = table.pack(coroutine.yield(table.unpack(values[i], 2, values[i].n)))
        if loop:cancelled() then
          for j, thread in pairs(threads) do
            coroutine.close(thread)
            stopped(j)
          end
          return
        end
        resume(i, table.unpack(back, 1, back.n))
      end
    end
  end
end

-- The function that runs the calls: function(count, body, stopped).
local function driver(loop, count)
  local parallel = loop.parallel
  if count > 1 and parallel and type(parallel) ~= "boolean" then
    return function(_, _, body)
      local tasks = {}
      for i = 1, count do
        tasks[i] = function() body(i) end
      end
      parallel(tasks)
    end
  elseif count > 1 and parallel ~= false and coroutine.isyieldable() then
    return interleave
  end
  return function(_, _, body)
    for i = 1, count do
      body(i)
    end
  end
end

--- Runs the open calls. Returns {pause=}, where pause is nil if all are answered; or nil, message,
--- code if something could not be written.
function calls.run(loop, open)
  local count = #open.calls
  local batch = { next = 1 }
  local failure
  local function finish(i, done, message, code, retry_ms, rule)
    batch[i] = done or {}
    local ok = done ~= nil
    if ok then
      ok, message, code, retry_ms, rule = settle(loop, open, batch, i)
    end
    if not ok then
      failure = failure or { message, code, retry_ms, rule }
    end
  end
  local function body(i)
    if not failure then
      finish(i, perform(loop, open, open.calls[i]))
    end
  end
  local function stopped(i)
    finish(i, { message = answers.result(open.calls[i], cut_short, true) })
  end
  driver(loop, count)(loop, count, body, stopped)
  for i = 1, count do
    if not failure and not batch[i] then
      failure = { "the host's parallel() came back before every tool had ended", "EINVALID" }
    end
  end
  if failure then
    return nil, table.unpack(failure, 1, 4)
  end
  return { pause = batch.pause }
end

--- Answers the open calls without running them, because there is a new message: with the recorded
--- result, or with what is known of them. true; nil, message, code.
function calls.close(loop, open)
  local batch = { next = 1 }
  for i, call in ipairs(open.calls) do
    local state = open.state[call.id] or { starts = 0 }
    if state.pause and not state.result then
      return nil, ("the call %s of '%s' is paused (%s): answer it first")
        :format(call.id, tostring(call.name), tostring(state.pause.reason)), "ESUSPENDED"
    end
    local known = state.ended and unanswered or state.starts > 0 and interrupted or moved_on
    if not state.result and known == interrupted then
      loop:emit { type = "interrupted", call = call, repeatable = false }
    end
    batch[i] = { message = state.result or answers.result(call, known, true), known = true }
  end
  return settle(loop, open, batch)
end

return calls
