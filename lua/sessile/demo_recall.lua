--- demo_recall: a recorded conversation once more, in a session that recalls.
--
-- What the recording says is noted by a scripted model and written to the agent's memory. Then the
-- questions of the recording are asked in a new session: each answer and each tool's result is the
-- recorded one. What is recalled is appended, so each request begins with the one before, and a
-- provider's prompt cache has that part.

local facts = require "sessile.facts"
local jsonl = require "sessile.import.jsonl"
local recalled = require "sessile.recalled"
local sessile = require "sessile"

local demo_recall = {}

-- What the scripted model notes when a message has these words: it is about the bundled recording.
local NOTES = {
  { "takes about 40 seconds until", "fact | - | Our departures service takes about 40 seconds "
    .. "until /healthz answers; Kubernetes gives it 45. | slow start, outage" },
  { "with two workers like in production", "procedure | - | `make serve` starts it locally, with "
    .. "two workers like in production. | how to start the service" },
  { "DNS is a wrong path", "fact | - | DNS is a wrong path: a start makes one lookup, not 43. | "
    .. "Is it DNS, as Jörg says? ndots:5, search domains" },
  { "cProfile is fine", "procedure | - | Profile locally, in one process; cProfile is fine. | "
    .. "profiler, guessing" },
  { "the cache warms twice", "fact | cause | The cache warms twice, in every worker: app.py:30 and "
    .. "app.py:50. | why it is slow, creeps back" },
  { "Write the test first", "procedure | - | Write the test first and let me see it fail. | " ..
    "how to fix and change code" },
  { "no readiness probe yet", "fact | - | The deployment has no readiness probe yet. | What "
    .. "should we watch after the roll-out? Jörg, cluster" },
  { "the build stage needs the recorded feed", "fact | - | The image's build stage needs the "
    .. "recorded feed; the final image does not. | build the image, Docker" },
  { "Der zweite Worker.", "fact | - | Der zweite Worker zahlt alles noch einmal: preload_app ist "
    .. "False, jeder Worker lädt selbst. | second worker, memory" },
  { "the text for the pull request", "procedure | - | The text for the pull request and the "
    .. "changelog lines: German and English, short. | diff, how to write" },
}

--- A model that notes what NOTES has, asked by the policies remember and tidy.
---@param request {messages: table[], purpose: string?}
---@return string
function demo_recall.note(request)
  local lines = {}
  if request.purpose == "remember" then
    local number
    for line in request.messages[2].content:gmatch "[^\n]+" do
      number = line:match "^%[(%d+)%]" or number -- a message has several lines
      for _, one in ipairs(NOTES) do
        if line:find(one[1], 1, true) then
          lines[#lines + 1] = ("%s | %s"):format(number, one[2])
        end
      end
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or "none"
end

-- ---------------------------------------------------------------- the recording

-- Of a recording: the turns, {question = text, answers = {message, …}}; its tools, which give the
-- recorded results; the system message.
local function read(path)
  local turns, tools, results, system = {}, {}, {}, nil
  local tool = { run = function(_, ctx) return results[ctx.call] or "stopped by the user" end }
  local lines = io.lines(path)
  for record in jsonl.records(function() return lines() end) do
    for _, raw in ipairs(record.kind == "turn" and record.messages or {}) do
      local message = sessile.decode(raw)
      if message.role == "system" then
        system = system or message.content
      elseif message.role == "user" then
        turns[#turns + 1] = { question = message.content, answers = {} }
      elseif message.role == "assistant" then
        table.insert(turns[#turns].answers, message)
        for _, call in ipairs(message.tool_calls or {}) do
          tools[call.name] = tool
        end
      else
        results[message.tool_call_id] = message.content
      end
    end
  end
  return turns, tools, system
end

-- ---------------------------------------------------------------- requests

-- Puts a request into numbers: how many tokens it has, and how many are not the beginning of the
-- one before; the same if what is recalled stood in the system message. The notes themselves are
-- left out of the latter.
local function measure(requests, messages)
  local before = requests[#requests]
  local one = { lines = {}, tokens = 0, new = 0, new_in_system = 0, blocks = 0 }
  local changed = not before
  for i, message in ipairs(messages) do
    local tokens = facts.within(message).tokens or 0
    one.lines[i] = sessile.encode(message)
    changed = changed or one.lines[i] ~= before.lines[i]
    one.tokens = one.tokens + tokens
    one.new = one.new + (changed and tokens or 0)
    if recalled.of(message) then
      one.blocks = one.blocks + 1
    else
      one.new_in_system = one.new_in_system + tokens
    end
  end
  requests[#requests + 1] = one
  return one
end

---@class sessile.demo_recall.row
---@field question string
---@field recalled integer       entries that are quoted for the question
---@field requests integer
---@field tokens integer         of all requests
---@field new integer            that no request before began with
---@field new_in_system integer  the same, if what is recalled stood in the system message

--- Asks the questions of a recording in a session. Returns a row for each question, and the
--- requests: {lines = the messages as JSON, tokens=, new=, …}.
---@param session sessile.Session
---@param path string
---@return sessile.demo_recall.row[] rows
---@return table[] requests
function demo_recall.ask(session, path)
  local turns, tools, system = read(path)
  local requests, rows = {}, {}
  assert(session:append { role = "system", content = system })
  for i, turn in ipairs(turns) do
    local row = { question = turn.question, requests = 0, tokens = 0, new = 0, new_in_system = 0 }
    local outcome = assert(session:send(turn.question, { tools = tools, model = function(request)
      local one = measure(requests, request.messages)
      if row.requests > 0 then
        one.new_in_system = one.new -- the block is that of the question
      end
      row.requests = row.requests + 1
      for _, name in ipairs { "tokens", "new", "new_in_system" } do
        row[name] = row[name] + one[name]
      end
      local answer = turn.answers[row.requests]
      return answer and { role = "assistant", content = answer.content,
        tool_calls = answer.tool_calls } or "Stopped."
    end }))
    assert(outcome.status == "completed", outcome.error)
    requests[#requests].compacted = outcome.compaction ~= nil
    row.recalled = outcome.recalled and outcome.recalled.recalled or 0
    row.recall_id = outcome.recalled and outcome.recalled.id
    rows[i] = row
  end
  return rows, requests
end

return demo_recall
