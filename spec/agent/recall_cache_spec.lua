-- A provider's prompt cache and what is recalled: each request begins with the bytes of the one
-- before, until a compaction. The bundled transcript is asked again in a session that recalls.

local demo_recall = require "sessile.demo_recall"
local import = require "sessile.import"
local recalled = require "sessile.recalled"
local sessile = require "sessile"
local transcript = require "spec.support.transcript"

-- A session whose memories have notes of the transcript, and options of the store.
local function session_of(options)
  options.policy_path = "policies"
  options.memory = { enabled = true, policy = "memory", remember = false, recall = { min = 0.05 } }
  options.model = function() return "What was said so far." end
  local store = assert(sessile.open("ram:", options))
  local heard = assert(import.into(store, assert(import.open(transcript.demo)),
    { from = "jsonl", id = "heard" }))
  local outcome = assert(heard:remember { model = demo_recall.note })
  assert.is_true(outcome.written >= 5, outcome.log)
  return assert(store:session "next-week")
end

-- The request as a provider gets it, without the end of the list.
local function bytes_of(request)
  return '{"messages":[' .. table.concat(request.lines, ",")
end

-- The numbers of the requests that do not begin with the one before.
local function breaks(requests)
  local list = {}
  for i = 2, #requests do
    local before = bytes_of(requests[i - 1])
    if bytes_of(requests[i]):sub(1, #before) ~= before then
      list[#list + 1] = i
    end
  end
  return list
end

local function sum_of(rows, name)
  local sum = 0
  for _, row in ipairs(rows) do
    sum = sum + row[name]
  end
  return sum
end

describe("requests with recall over the bundled transcript", function()
  it("each begin with the bytes of the one before, and cost what is new", function()
    local session = session_of { window = 200000 }
    local rows, requests = demo_recall.ask(session, transcript.demo)
    assert.is_true(#rows >= 9 and #requests > 30)
    assert.same({}, breaks(requests))
    local blocks = 0
    for _, row in ipairs(rows) do
      blocks = blocks + (row.recall_id and 1 or 0)
    end
    assert.is_true(blocks >= 3, "hardly anything was recalled")
    assert.equal(blocks, requests[#requests].blocks)
    -- All is sent once for the first time: the last request is what was new in all.
    assert.equal(requests[#requests].tokens, sum_of(rows, "new"))
    print "# question, recalled, requests, tokens, new tokens, new if in the system message:"
    for _, row in ipairs(rows) do
      print(("# %-30s %2d %2d %7d %6d %6d"):format(row.question:match "^[\32-\126]*":sub(1, 30),
        row.recalled, row.requests, row.tokens, row.new, row.new_in_system))
    end
    assert.is_true(4 * sum_of(rows, "new") < sum_of(rows, "new_in_system"))
    for _, name in ipairs { "tokens", "new", "new_in_system" } do
      print(("# figure: tokens of requests with recall over the transcript, %s = %d"):format(({
        tokens = "all", new = "in no prompt cache",
        new_in_system = "in none if recalled in the system message" })[name], sum_of(rows, name)))
    end
  end)

  it("until a compaction, and again behind it", function()
    local session = session_of { window = 16000, policy = "tiered" }
    local rows, requests = demo_recall.ask(session, transcript.demo)
    local compacted = {}
    for i = 2, #requests do
      if requests[i - 1].compacted then
        compacted[#compacted + 1] = i
      end
    end
    assert.is_true(#compacted >= 2)
    assert.same(compacted, breaks(requests))
    -- What left the context is recalled again: once in each context.
    assert.is_true(sum_of(rows, "recalled") > 5)
    local seen = {}
    for _, message in ipairs(assert(session:context())) do
      for _, one in ipairs(recalled.of(message) or {}) do
        assert.is_nil(seen[one.id])
        seen[one.id] = true
      end
    end
    assert.is_truthy(next(seen))
  end)

  it("is true of the bytes: a message that is moved, or changed, is noticed", function()
    local session = session_of { window = 200000 }
    local _, requests = demo_recall.ask(session, transcript.demo)
    local line = requests[3].lines[2]
    requests[3].lines[2] = line:gsub("40 seconds", "41 seconds")
    assert.same({ 3, 4 }, breaks(requests))
  end)
end)
