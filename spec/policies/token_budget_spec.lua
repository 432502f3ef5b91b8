-- token_budget in the real sandbox: shares, what stays in any case, and that it fits.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

local function tokens_of(context, wanted)
  local sum = 0
  for _, message in ipairs(context) do
    sum = sum + (wanted(message) and message.tokens or 0)
  end
  return sum
end

local function is_tool(message) return message.role == "tool" or message.tool_calls ~= nil end
local function is_user(message) return message.role == "user" end
local function is_answer(message)
  return message.role == "assistant" and message.tool_calls == nil
end

-- Turns, then one compaction by token_budget with these options.
local function compact(turns, options, open)
  options = options or {}
  options[1] = "token_budget"
  return shipped.compacted(options, turns, open)
end

-- Questions and answers of 20 tokens, and tool output of `tokens`.
local function mixed(count, tokens)
  local turns = transcript.work(count, tokens)
  for i, turn in ipairs(turns) do
    turn[i == 1 and 2 or 1].content = transcript.text("question " .. i, 20)
    turn[#turn].content = transcript.text("answer " .. i, 20)
  end
  return turns
end

describe("token_budget", function()
  it("leaves at most `keep` of the budget", function()
    local after = compact(mixed(30, 100), { tokens = 2000, keep = 0.5 })
    assert.is_true(transcript.tokens(after) <= 1000)
    assert.is_true(transcript.tokens(after) >= 800)
  end)

  it("lets no kind push out the others", function()
    local turns = mixed(30, 20)
    table.insert(turns[29], 3, { role = "assistant", content = "", tool_calls = {
      { id = "big", name = "run", arguments = "{}" } } })
    table.insert(turns[29], 4, { role = "tool", tool_call_id = "big",
      content = transcript.text("log", 900) })
    local after = compact(turns, { tokens = 2000, keep = 0.5, preserve_recent = 2 })
    assert.is_nil(transcript.find(after, "log"))
    assert.is_true(tokens_of(after, is_user) >= 250)
    assert.is_true(tokens_of(after, is_answer) >= 250)
    assert.is_true(tokens_of(after, is_tool) >= 250)
  end)

  it("divides by the parts that are given", function()
    local turns = mixed(40, 20)
    local users = compact(turns, { tokens = 1200, user = 1, assistant = 0, tools = 0 })
    local tools = compact(turns, { tokens = 1200, user = 0, assistant = 0, tools = 1 })
    assert.is_true(tokens_of(users, is_user) > 2 * tokens_of(tools, is_user))
    assert.is_true(tokens_of(tools, is_tool) > tokens_of(users, is_tool))
  end)

  it("gives what one kind does not use to the newest of all", function()
    local after = compact(transcript.chat(60, 20), { tokens = 1000 })
    assert.is_true(transcript.tokens(after) >= 560 and transcript.tokens(after) <= 600)
  end)

  it("keeps the newest of a kind", function()
    local after = compact(mixed(30, 100), { tokens = 2000 })
    local numbers = {}
    for _, message in ipairs(after) do
      numbers[#numbers + 1] = is_user(message) and tonumber(message.content:match "%d+") or nil
    end
    for i, number in ipairs(numbers) do
      assert.equal(30 - #numbers + i, number)
    end
  end)

  it("keeps system messages, summaries, the newest, and the last question", function()
    local session = assert(transcript.session { model = transcript.model "It began." })
    local turns = mixed(20, 50)
    for i = 1, 15 do
      table.insert(turns[20], { role = "assistant", content = "step " .. i })
    end
    transcript.play(session, turns)
    session:compact { policy = { "summarize", preserve_recent = 60 } }
    local before = session:context()
    local outcome = session:compact { policy = { "token_budget", tokens = 300, keep = 0.1 } }
    assert.is_true(outcome.policy.applied)
    local after = session:context()
    assert.equal("You are a test.", after[1].content)
    assert.equal("It began.", after[2].content)
    assert.truthy(transcript.find(after, "question 20"))
    shipped.same_end(before, after, 10)
    assert.equal(13, #after)
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    local after, before, outcome = compact(transcript.open_work(150),
      { tokens = 3000, preserve_recent = 2 }, true)
    assert.is_true(outcome.policy.applied)
    shipped.same_end(before, after, 17)
  end)

  it("leaves half when there is neither budget nor window, and nothing twice", function()
    local after, before = compact(mixed(30, 100))
    assert.is_true(transcript.tokens(after) <= transcript.tokens(before) / 2)
    local _, _, outcome = compact(mixed(3, 10), { tokens = 100000 })
    assert.equal("unchanged", outcome.policy.verdict)
  end)

  it("starts by itself at 80 % of the window, and not before", function()
    local session = assert(transcript.session { policy = "token_budget", window = 4000 })
    local applied = 0
    for _, outcome in ipairs(transcript.play(session, transcript.work(30, 100))) do
      local share = outcome.tokens.before / 4000
      assert.equal(share > 0.8, outcome.policy.verdict == "applied", tostring(share))
      applied = applied + (outcome.policy.applied and 1 or 0)
    end
    assert.is_true(applied > 0)
  end)

  it("is never refused on the bundled session, whatever the window", function()
    shipped.never_refused "token_budget"
  end)

  it("refuses options that are out of range or unknown", function()
    shipped.refuses_options("token_budget", {
      { tokens = 0 }, { keep = 0 }, { user = -1 }, { system = 0.1 },
    })
  end)
end)
