-- transcript.lua: conversations for specs of policies: the bundled one, and made ones of any
-- size; a scripted model; and what must hold of every context, whatever made it.

local jsonl = require "sessile.import.jsonl"
local parts = require "sessile.import.parts"
local sessile = require "sessile"

local transcript = {
  demo = "examples/demo-session.jsonl",
}

--- The turns of a file of messages: lists that session:turn takes, each message verbatim, but
--- for its usage: that tells how large the recorded context was, and a policy makes another.
--- whole: with it.
function transcript.turns(path, whole)
  local turns = {}
  local lines = io.lines(path or transcript.demo)
  for record in jsonl.records(function() return lines() end) do
    if record.kind == "turn" then
      local turn = {}
      for i, text in ipairs(record.messages) do
        turn[i] = sessile.json(whole and text or parts.without(text, "usage"))
      end
      turns[#turns + 1] = turn
    end
  end
  return turns
end

--- A session in a volatile store, with the policies of this tree; options as sessile.open.
function transcript.session(options)
  local given = { policy_path = "policies" }
  for name, value in pairs(options or {}) do
    given[name] = value
  end
  local store, message, code = sessile.open("ram:", given)
  if not store then
    return nil, message, code
  end
  return store:create {}
end

--- Lays turns on a session and returns the outcomes.
function transcript.play(session, turns, options)
  local outcomes = {}
  for i, turn in ipairs(turns) do
    outcomes[i] = assert(session:turn(turn, options))
  end
  return outcomes
end

--- Plays turns on a session of its own: options as transcript.session, and `more` of them.
--- Returns the session and the outcomes.
function transcript.under(options, turns, more)
  local given = {}
  for _, list in ipairs { options, more or {} } do
    for name, value in pairs(list) do
      given[name] = value
    end
  end
  local session = assert(transcript.session(given))
  return session, transcript.play(session, turns)
end

--- Every entry of a session's log, less what the clock says, as one text.
function transcript.log(session)
  local lines = {}
  for entry in session:entries() do
    lines[#lines + 1] = entry.json:gsub('"timestamp":"[^"]*"', ""):gsub('"created":"[^"]*"', "")
      :gsub('"nonce":"[^"]*"', ""):gsub('"duration_ms":%d+', "")
  end
  return table.concat(lines, "\n")
end

--- A text of about `tokens` tokens that begins with what it is about.
function transcript.text(about, tokens)
  return about .. (" word"):rep(math.max(0, tokens - 2))
end

--- `count` turns of a question and an answer; the first begins with a system message.
function transcript.chat(count, tokens)
  local turns = {}
  for i = 1, count do
    turns[i] = {
      { role = "user", content = transcript.text("question " .. i, tokens or 10) },
      { role = "assistant", content = transcript.text("answer " .. i, tokens or 10) },
    }
  end
  table.insert(turns[1], 1, { role = "system", content = "You are a test." })
  return turns
end

--- `count` turns in which a tool is called twice at once; the outputs have `tokens` tokens.
function transcript.work(count, tokens)
  local turns = {}
  for i = 1, count do
    local a, b = "a" .. i, "b" .. i
    turns[i] = {
      { role = "user", content = "question " .. i },
      { role = "assistant", content = "", tool_calls = {
        { id = a, name = "read", arguments = '{"path":"file' .. i .. '"}' },
        { id = b, name = "run", arguments = '{"command":"make"}' },
      } },
      { role = "tool", tool_call_id = a, content = transcript.text("file " .. i, tokens) },
      { role = "tool", tool_call_id = b, content = transcript.text("built " .. i, tokens) },
      { role = "assistant", content = "answer " .. i },
    }
  end
  table.insert(turns[1], 1, { role = "system", content = "You are a test." })
  return turns
end

--- Turns that end in the middle of work: of the last message's many calls one still waits, and
--- the results there are reach further back than any policy leaves alone.
function transcript.open_work(tokens)
  local turns = transcript.work(8, tokens)
  local calls, turn = {}, { { role = "user", content = "all of them" } }
  for i = 1, 16 do
    calls[i] = { id = "open" .. i, name = "read", arguments = "{}" }
  end
  turn[2] = { role = "assistant", content = "", tool_calls = calls }
  for i = 1, 15 do
    turn[#turn + 1] = { role = "tool", tool_call_id = "open" .. i,
      content = transcript.text("open " .. i, tokens) }
  end
  turns[#turns + 1] = turn
  return turns
end

--- A model that gives these answers in turn (the last one for ever) and remembers what it
--- was asked. An answer may be a function of the request; false: the model fails.
function transcript.model(...)
  local answers = table.pack(...)
  local model = { requests = {} }
  return setmetatable(model, { __call = function(_, request)
    model.requests[#model.requests + 1] = request
    local answer = answers[math.min(#model.requests, answers.n)]
    if type(answer) == "function" then
      return answer(request)
    end
    return answer or nil, "the line is dead"
  end })
end

--- The first message of a list whose text contains `part` (plain), and its place.
function transcript.find(list, part)
  for i, message in ipairs(list) do
    if type(message.content) == "string" and message.content:find(part, 1, true) then
      return message, i
    end
  end
  return nil
end

--- What is wrong with the pairs of a context, or nil: every call is followed by its results,
--- with nothing but results in between, and there is no other result.
function transcript.broken_pair(list)
  local waiting, count = {}, 0
  for i, message in ipairs(list) do
    if message.role == "tool" then
      if not waiting[message.tool_call_id] then
        return ("message %d answers %s, which nobody called"):format(i, message.tool_call_id)
      end
      waiting[message.tool_call_id], count = nil, count - 1
    elseif count > 0 then
      return ("message %d stands between a call and its result"):format(i)
    end
    for _, call in ipairs(message.tool_calls or {}) do
      waiting[call.id], count = true, count + 1
    end
  end
  return count > 0 and ("%d calls have no result"):format(count) or nil
end

--- The compaction entries of a session.
function transcript.compactions(session)
  local list = {}
  for entry in session:entries { types = { "compaction" } } do
    list[#list + 1] = entry
  end
  return list
end

--- The sum of the tokens of a list.
function transcript.tokens(list)
  local sum = 0
  for _, message in ipairs(list) do
    sum = sum + message.tokens
  end
  return sum
end

return transcript
