-- sliding_window in the real sandbox: what a cut leaves, and when there is none.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

local function play(policy, turns, options)
  return transcript.under({ policy = policy }, turns, options)
end

local function count_applied(outcomes)
  local count = 0
  for _, outcome in ipairs(outcomes) do
    count = count + (outcome.policy.applied and 1 or 0)
  end
  return count
end

describe("sliding_window", function()
  describe("without a limit", function()
    it("cuts nothing, and writes nothing", function()
      local session, outcomes = play("sliding_window", transcript.chat(40))
      assert.equal(81, #session:context())
      assert.equal(0, count_applied(outcomes))
      assert.equal("unchanged", outcomes[40].policy.verdict)
      assert.same({}, transcript.compactions(session))
    end)
  end)

  describe("of messages", function()
    it("keeps the newest 20 and the system message", function()
      local session = play({ "sliding_window", messages = 20 }, transcript.chat(40))
      local context = session:context()
      assert.equal(21, #context)
      assert.equal("system", context[1].role)
      assert.truthy(transcript.find({ context[2] }, "question 31"))
      assert.truthy(transcript.find({ context[21] }, "answer 40"))
    end)

    it("leaves whole turns, so that what is left begins with a user's message", function()
      local session = play({ "sliding_window", messages = 7, keep = 0.8 }, transcript.chat(10))
      local context = session:context()
      assert.equal("user", context[2].role)
      assert.equal(5, #context)
      assert.truthy(transcript.find({ context[2] }, "question 9"))
    end)

    it("cuts within a turn rather than lose more than half of what it keeps", function()
      local turn = { { role = "user", content = "one long turn" } }
      for i = 1, 12 do
        turn[#turn + 1] = { role = "assistant", content = "step " .. i }
      end
      local session = play({ "sliding_window", messages = 10, keep = 0.5 }, { turn })
      assert.equal(5, #session:context()) -- the user's last message and the newest four
    end)

    it("keeps the limit in every turn after it is passed, in whole turns", function()
      local _, outcomes = play({ "sliding_window", messages = 20 }, transcript.chat(40))
      for i = 11, 40 do
        assert.equal(21, #outcomes[i].context)
        assert.is_true(outcomes[i].policy.applied)
      end
    end)

    it("cuts to `keep` of the limit once it is passed, and then leaves it alone", function()
      local session, outcomes = play({ "sliding_window", messages = 20, keep = 0.8 },
        transcript.chat(11))
      assert.is_true(outcomes[11].policy.applied)
      assert.equal(0, count_applied { table.unpack(outcomes, 1, 10) })
      assert.equal(17, #session:context())
      local outcome = assert(session:turn { { role = "user", content = "more" } })
      assert.equal("unchanged", outcome.policy.verdict)
    end)

    it("cuts seldom with `keep`: once in several turns, not on every one", function()
      local _, outcomes = play({ "sliding_window", messages = 50, keep = 0.8 },
        transcript.chat(200))
      assert.is_true(count_applied(outcomes) <= 40)
      assert.is_true(count_applied(outcomes) >= 20)
    end)
  end)

  describe("of turns", function()
    it("keeps whole turns, the newest ones", function()
      local session = play({ "sliding_window", turns = 5 }, transcript.work(9, 20))
      local context = session:context()
      assert.equal("question 5", context[2].content)
      assert.equal(1 + 5 * 5, #context)
      assert.is_nil(transcript.broken_pair(context))
    end)

    it("cuts to `keep` of them", function()
      local session = play({ "sliding_window", turns = 10, keep = 0.8 }, transcript.chat(11))
      assert.equal(1 + 8 * 2, #session:context())
    end)
  end)

  describe("of tokens", function()
    it("keeps as many as the limit allows", function()
      local _, outcomes = play({ "sliding_window", tokens = 1000 }, transcript.chat(60, 50))
      local greatest = 0
      for _, outcome in ipairs(outcomes) do
        greatest = outcome.policy.applied and math.max(greatest, outcome.tokens.after) or greatest
        assert.is_true(outcome.tokens.after <= 1000)
      end
      assert.is_true(greatest > 800)
    end)

    it("leaves at most `keep` of the limit after a cut", function()
      local session, outcomes = play({ "sliding_window", tokens = 1000, keep = 0.8 },
        transcript.chat(60, 50))
      for _, outcome in ipairs(outcomes) do
        assert.is_true(outcome.tokens.after <= 1000)
        if outcome.policy.applied then
          assert.is_true(outcome.tokens.before > 1000)
          assert.is_true(outcome.tokens.after <= 800)
        end
      end
      assert.is_true(session:tokens() <= 1000)
    end)

    it("leaves room for a system message of any size", function()
      local turns = transcript.chat(40, 30)
      turns[1][1].content = transcript.text("You are a test.", 600)
      local _, outcomes = play({ "sliding_window", tokens = 1000, keep = 0.8 }, turns)
      assert.is_true(count_applied(outcomes) > 5 and count_applied(outcomes) < 30)
      for _, outcome in ipairs(outcomes) do
        assert.is_true(outcome.tokens.after <= 1000)
      end
    end)

    it("has the window less the reserve as its limit when none is given", function()
      local _, outcomes = play("sliding_window", transcript.chat(60, 50),
        { window = 2000, reserve = 500 })
      assert.is_true(count_applied(outcomes) > 0)
      for _, outcome in ipairs(outcomes) do
        assert.is_true(outcome.tokens.after <= 1500)
        assert.is_true(not outcome.policy.applied or outcome.tokens.after <= 1200)
        assert.is_nil(outcome.cannot_fit)
      end
    end)
  end)

  it("never splits a call from its results, wherever the cut falls", function()
    for messages = 4, 24 do
      local session, outcomes = play({ "sliding_window", messages = messages },
        transcript.work(8, 20))
      shipped.none_refused(outcomes)
      assert.is_nil(transcript.broken_pair(session:context()))
    end
  end)

  it("keeps the system message and the last question, however long the turn is", function()
    local turn = { { role = "system", content = "rules" }, { role = "user", content = "go" } }
    for i = 1, 40 do
      turn[#turn + 1] = { role = "assistant", content = transcript.text("step " .. i, 50) }
    end
    local session = play({ "sliding_window", tokens = 500 }, { turn })
    local context = session:context()
    assert.equal("rules", context[1].content)
    assert.equal("go", context[2].content)
    assert.truthy(transcript.find(context, "step 40"))
    assert.is_nil(transcript.find(context, "step 1 "))
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    shipped.leaves_open_work { "sliding_window", tokens = 900 }
  end)

  it("carries the summary at the front over a cut", function()
    for _, unit in ipairs { "messages", "turns" } do
      local session = play(false, transcript.chat(30, 50),
        { model = transcript.model "It began." })
      local policy = { "sliding_window", [unit] = unit == "turns" and 3 or 6 }
      assert.is_true(session:compact { policy = "summarize" }.policy.applied)
      assert.is_true(session:compact { policy = policy }.policy.applied)
      local context = session:context()
      assert.equal("It began.", context[2].content)
      assert.equal("summary", context[2].metadata.kind)
      assert.equal(8, #context) -- neither the summary nor the system message counts
      assert.equal("unchanged", session:compact { policy = policy }.policy.verdict)
    end
  end)

  describe("asked by a person", function()
    it("cuts to half of the present tokens when there is no limit", function()
      local session = play(false, transcript.chat(40, 50))
      local before = session:tokens()
      local outcome = session:compact { policy = "sliding_window" }
      assert.is_true(outcome.policy.applied)
      assert.is_true(session:tokens() <= before // 2)
      assert.is_true(session:tokens() > before // 3)
      assert.equal(81, #session:messages())
    end)

    it("cuts to `keep` of the limit before it is reached", function()
      local session = play({ "sliding_window", tokens = 2000, keep = 0.8 },
        transcript.chat(18, 50))
      local before = session:tokens()
      assert.is_true(before > 1600 and before <= 2000)
      assert.is_true(session:compact().policy.applied)
      assert.is_true(session:tokens() <= 1600)
    end)

    it("cuts to 80 % of the window before it is full", function()
      local session = play(false, transcript.chat(18, 50))
      local outcome = session:compact { policy = "sliding_window", window = session:tokens() + 10 }
      assert.is_true(outcome.policy.applied)
    end)

    it("changes nothing the second time, nor below a limit without `keep`", function()
      local session = play({ "sliding_window", tokens = 2000, keep = 0.8 },
        transcript.chat(18, 50))
      assert.equal("unchanged",
        session:compact { policy = { "sliding_window", tokens = 2000 } }.policy.verdict)
      assert.is_true(session:compact().policy.applied)
      assert.equal("unchanged", session:compact().policy.verdict)
    end)

    it("stays out of it with by_hand = false", function()
      local session = play({ "sliding_window", by_hand = false }, transcript.chat(9, 50))
      assert.equal("unchanged", session:compact().policy.verdict)
    end)
  end)

  describe("options", function()
    it("takes one limit, and says so when it gets two; the turn stands", function()
      local session, outcomes = play({ "sliding_window", messages = 9, tokens = 9 },
        transcript.chat(1))
      assert.truthy(outcomes[1].policy.refused:find("one of messages, turns, tokens", 1, true))
      assert.equal(3, #session:messages())
    end)

    it("refuses what is out of range, unknown or of the wrong type", function()
      local messages = shipped.refuses_options("sliding_window", {
        { messages = 1 }, { turns = 0 }, { keep = 2 }, { tokens = "many" }, { mesages = 9 },
      })
      for _, message in ipairs(messages) do
        assert.truthy(message:find("sliding_window", 1, true))
      end
    end)
  end)

  it("is never refused on the bundled session, whatever the window", function()
    shipped.never_refused("sliding_window", nil, function(session)
      assert.equal(90, #session:messages())
    end)
  end)
end)
