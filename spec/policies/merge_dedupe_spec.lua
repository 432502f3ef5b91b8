-- merge_dedupe in the real sandbox: what is there twice goes once, in pairs, and nothing else.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

local REMINDER = transcript.text("Be careful with files.", 40)
local CONTENTS = transcript.text("the contents of x", 60)

-- A turn in which a reminder is repeated and a file is read that does not change.
local function turn(i, contents)
  local id = ("call%d"):format(i)
  return {
    { role = "user", content = "question " .. i },
    { role = "user", content = REMINDER, metadata = { kind = "reminder" } },
    { role = "assistant", content = "", tool_calls = {
      { id = id, name = "read", arguments = '{"path":"x"}' } } },
    { role = "tool", tool_call_id = id, content = contents or CONTENTS },
    { role = "assistant", content = "answer " .. i },
  }
end

-- The context after turns under merge_dedupe; no outcome was a refusal, no pair is broken.
local function after(turns, options, open)
  options = options or {}
  options[1], options.min_tokens = "merge_dedupe", options.min_tokens or 20
  -- The work is bounded by policy_gas; the time is that of a slow machine.
  local session = assert(transcript.session { policy = options, limits = { policy_ms = 60000 } })
  local outcomes = transcript.play(session, turns)
  shipped.none_refused(outcomes)
  local context = session:context()
  assert.equal(open and "1 calls have no result" or nil, transcript.broken_pair(context))
  return context, outcomes, session
end

local function keys_with(context, text)
  local keys = {}
  for _, message in ipairs(context) do
    if message.content == text then
      keys[#keys + 1] = message.key
    end
  end
  return keys
end

local function turns_of(count, contents)
  local turns = {}
  for i = 1, count do
    turns[i] = turn(i, contents and contents(i))
  end
  return turns
end

describe("merge_dedupe", function()
  it("keeps the newest of messages that say the same, and calls with their results", function()
    local context = after(turns_of(6))
    -- the newest ten messages are two turns; of what is older nothing is there twice
    assert.equal(2, #keys_with(context, REMINDER))
    assert.equal(2, #keys_with(context, CONTENTS))
    assert.equal(4 * 2 + 10, #context)
    assert.equal("question 1", context[1].content)
    assert.equal("answer 1", context[2].content)
  end)

  it("keeps the oldest by option, and so what comes before it as it was", function()
    local context = after(turns_of(6), { keep = "oldest", preserve_recent = 5 })
    -- the newest five messages are the last turn, which keeps its own
    assert.same({ "00000002", context[#context - 3].key }, keys_with(context, REMINDER))
    for i = 1, 5 do
      assert.equal(("%08x"):format(i), context[i].key)
    end
  end)

  it("leaves alone what differs in a word", function()
    local context = after(turns_of(6, function(i) return CONTENTS .. i end))
    local results = 0
    for _, message in ipairs(context) do
      results = results + (message.role == "tool" and 1 or 0)
    end
    assert.equal(6, results)
  end)

  it("leaves alone calls with other arguments, and results with other outcomes", function()
    local turns = turns_of(4)
    turns[1][3].tool_calls[1].arguments = '{"path":"y"}'
    turns[2][4].is_error = true
    local context = after(turns, { preserve_recent = 5 })
    assert.equal(3, #keys_with(context, CONTENTS)) -- of turns 3 and 4 one
  end)

  it("looks into blocks, and takes calls and results that are blocks for different", function()
    local function blocks(i, text)
      return {
        { role = "user", content = { { type = "text", text = REMINDER } } },
        { role = "assistant", content = { { type = "tool_use", id = "b" .. i, name = "read",
          input = { path = "x" } } } },
        { role = "user", content = { { type = "tool_result", tool_use_id = "b" .. i,
          content = text } } },
        { role = "assistant", content = "answer " .. i },
      }
    end
    local context = after({ blocks(1, CONTENTS), blocks(2, CONTENTS), blocks(3, CONTENTS) },
      { preserve_recent = 4 })
    local reminders, results = 0, 0
    for _, message in ipairs(context) do
      local block = type(message.content) == "table" and message.content[1]
      reminders = reminders + (block and block.type == "text" and 1 or 0)
      results = results + (block and block.type == "tool_result" and 1 or 0)
    end
    assert.equal(1, reminders)
    assert.equal(3, results)
  end)

  it("leaves the user's last message and small ones alone", function()
    local turns = transcript.chat(3)
    turns[4] = { { role = "user", content = REMINDER } }
    turns[5] = { { role = "user", content = REMINDER } }
    for i = 1, 30 do
      table.insert(turns[5], { role = "assistant", content = "step" })
      turns[4][i + 1] = { role = "assistant", content = "step" }
    end
    local context = after(turns, { keep = "oldest", preserve_recent = 2 })
    assert.equal(2, #keys_with(context, REMINDER))
    assert.equal(60, #keys_with(context, "step"))
    context = after(turns, { preserve_recent = 2 })
    assert.equal(1, #keys_with(context, REMINDER))
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    local turns = turns_of(3)
    local open = turn(4)
    open[3].tool_calls[2] = { id = "waits", name = "read", arguments = '{"path":"x"}' }
    open[5] = nil
    turns[4] = open
    local context = after(turns, { preserve_recent = 2 }, true)
    assert.equal(REMINDER, context[#context - 2].content)
    assert.equal(2, #keys_with(context, CONTENTS))
  end)

  it("leaves alone what is under 100 tokens, unless told otherwise", function()
    local session = assert(transcript.session { policy = "merge_dedupe" })
    local turns = turns_of(6)
    for i, one in ipairs(turns) do
      one[4].content = transcript.text("the contents of x", i < 3 and 60 or 160)
    end
    transcript.play(session, turns)
    local context = session:context()
    assert.equal(6, #keys_with(context, REMINDER))
    assert.equal(2, #keys_with(context, turns[1][4].content))
    assert.equal(2, #keys_with(context, turns[3][4].content))
  end)

  it("goes in front of another policy", function()
    local session = assert(transcript.session { window = 600,
      policy = { { "merge_dedupe", min_tokens = 20 }, { "sliding_window" } } })
    for _, outcome in ipairs(transcript.play(session, turns_of(20))) do
      assert.is_nil(outcome.policy.refused)
      assert.is_nil(outcome.cannot_fit)
    end
  end)

  it("does nothing when a person asks to compact", function()
    local session = assert(transcript.session { policy = false })
    transcript.play(session, turns_of(6))
    assert.equal("unchanged", session:compact { policy = "merge_dedupe" }.policy.verdict)
  end)

  it("stands a turn of ten thousand messages of one size", function()
    local turns = { {} }
    for i = 1, 10000 do
      turns[1][i] = { role = i % 2 == 1 and "user" or "assistant",
        content = transcript.text("line " .. i % 3000, 30) }
    end
    local _, outcomes = after(turns)
    assert.is_true(outcomes[1].policy.dropped >= 3990)
  end)

  it("refuses options that are out of range or unknown", function()
    shipped.refuses_options("merge_dedupe", {
      { keep = "both" }, { preserve_recent = 1 }, { min = 3 },
    })
  end)
end)
