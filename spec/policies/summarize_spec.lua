-- summarize in the real sandbox, with a scripted model: what it is asked, what takes the
-- place of what, and what happens when the answer is of no use.

local lists = require "spec.support.lists"
local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

-- A session of `turns` without a policy, whose model is given.
local function session_of(turns, model, options)
  local session = transcript.under({ model = model }, {}, options)
  transcript.play(session, turns, { policy = false })
  return session
end

local function request_text(request)
  return table.concat(lists.field(request.messages, "content"), "\n")
end

describe("summarize", function()
  it("asks the model once, and its answer takes the place of the older messages", function()
    local model = transcript.model "Nine questions were answered."
    local session = session_of(transcript.chat(15, 30), model)
    local outcome = session:compact { policy = "summarize" }
    assert.is_true(outcome.policy.applied)
    assert.equal(1, #model.requests)
    local context = session:context()
    assert.equal("Nine questions were answered.", context[2].content)
    assert.equal("user", context[2].role)
    assert.equal("summary", context[2].metadata.kind)
    assert.equal(1 + 1 + 10, #context)
  end)

  it("keeps the newest preserve_recent messages word for word", function()
    for _, recent in ipairs { 2, 7, 12 } do
      local session = session_of(transcript.chat(15, 30), transcript.model "Short.")
      local before = session:context()
      session:compact { policy = { "summarize", preserve_recent = recent } }
      local after = session:context()
      shipped.same_end(before, after, recent)
      assert.equal(1 + 1 + recent, #after)
    end
  end)

  it("gives the model everything that leaves, calls and errors included", function()
    local turns = transcript.work(8, 20)
    turns[1][5].is_error = true
    local model = transcript.model "Short."
    session_of(turns, model):compact { policy = "summarize" }
    local text = request_text(model.requests[1])
    assert.truthy(text:find('read({"path":"file1"})', 1, true))
    assert.truthy(text:find("[tool]\nfile 1 word", 1, true))
    assert.truthy(text:find("[tool, error]\nbuilt 1 word", 1, true))
    assert.truthy(text:find("[assistant]\nanswer 1", 1, true))
    assert.is_nil(text:find("answer 8", 1, true))
    assert.is_nil(text:find("You are a test.", 1, true))
  end)

  it("reads the blocks of a message: texts, results, names of calls and of media", function()
    local turns = transcript.chat(9, 30)
    turns[2] = {
      { role = "user", content = { { type = "text", text = "what is this?" },
        { type = "image", data = "aGVsbG8=" } } },
      { role = "assistant", content = { { type = "tool_use", id = "t", name = "look_closer",
        input = {} } } },
      { role = "user", content = { { type = "tool_result", tool_use_id = "t",
        content = { { type = "text", text = "a barnacle" } } } } },
    }
    local model = transcript.model "Short."
    session_of(turns, model):compact { policy = "summarize" }
    local text = request_text(model.requests[1])
    for _, part in ipairs { "what is this?\nimage", "look_closer", "a barnacle" } do
      assert.truthy(text:find(part, 1, true), part)
    end
  end)

  it("asks for decisions, files, outcomes, open questions and identifiers verbatim", function()
    local model = transcript.model "Short."
    session_of(transcript.chat(15, 30), model):compact { policy = "summarize" }
    local request = model.requests[1]
    assert.equal("summary", request.purpose)
    assert.equal("system", request.messages[1].role)
    for _, word in ipairs { "Decisions", "Files", "Outcomes", "Open questions", "letter by" } do
      assert.truthy(request.messages[1].content:find(word, 1, true), word)
    end
  end)

  it("passes on the options prompt, model and max_tokens, and what a person typed", function()
    local model = transcript.model "Short."
    session_of(transcript.chat(15, 30), model):compact {
      policy = { "summarize", prompt = "Rhyme.", model = "small-1", max_tokens = 77 },
      instructions = "keep file names",
    }
    local request = model.requests[1]
    assert.truthy(request.messages[1].content:find("Rhyme.", 1, true))
    assert.truthy(request.messages[1].content:find("keep file names", 1, true))
    assert.equal(77, request.max_tokens)
    assert.equal("small-1", request.model)
  end)

  it("gives a second summary the first one and everything since", function()
    local model = transcript.model("The first summary.", "The second summary.")
    local session = session_of(transcript.chat(15, 30), model)
    session:compact { policy = "summarize" }
    transcript.play(session, { { { role = "user", content = "and then?" } } },
      { policy = false })
    for i = 1, 14 do
      assert(session:append { role = "assistant", content = "later " .. i })
    end
    assert.is_true(session:compact { policy = "summarize" }.policy.applied)
    local text = request_text(model.requests[2])
    assert.truthy(text:find("The first summary.", 1, true))
    assert.truthy(text:find("Update this summary", 1, true))
    assert.truthy(text:find("answer 15", 1, true))
    local context = session:context()
    assert.equal("The second summary.", context[2].content)
    assert.is_nil(transcript.find(context, "The first summary."))
  end)

  it("keeps the last question where the summary covers both sides of it", function()
    local session = session_of(transcript.chat(5, 30), transcript.model "Short.")
    assert(session:append { role = "user", content = "the long one" })
    for i = 1, 20 do
      assert(session:append { role = "assistant", content = transcript.text("step " .. i, 30) })
    end
    assert.is_true(session:compact { policy = "summarize" }.policy.applied)
    local context = session:context()
    assert.equal("Short.", context[2].content)
    assert.equal("the long one", context[3].content)
    assert.truthy(transcript.find({ context[4] }, "step 11"))
  end)

  it("never splits a call from its results", function()
    for recent = 2, 12 do
      local session = session_of(transcript.work(6, 40), transcript.model "Short.")
      local outcome = session:compact { policy = { "summarize", preserve_recent = recent } }
      assert.is_true(outcome.policy.applied)
      assert.is_nil(transcript.broken_pair(session:context()))
    end
  end)

  it("keeps a call whose answer came late, together with that answer", function()
    local session = session_of(transcript.chat(8, 30), transcript.model "Short.")
    assert(session:append { role = "assistant", content = "",
      tool_calls = { { id = "slow", name = "run", arguments = "{}" } } })
    for i = 1, 15 do
      assert(session:append { role = "assistant", content = transcript.text("step " .. i, 30) })
    end
    assert(session:append { role = "tool", tool_call_id = "slow", content = "done at last" })
    local outcome = session:compact { policy = "summarize" }
    assert.is_true(outcome.policy.applied)
    local context = session:context()
    assert.truthy(transcript.find(context, "done at last"))
    assert.is_nil(transcript.broken_pair(context))
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    shipped.leaves_open_work({ "summarize", preserve_recent = 2 }, transcript.model "Short.")
  end)

  it("does nothing, and asks nobody, when there is nothing to summarize", function()
    local model = transcript.model "Short."
    local session = session_of(transcript.chat(5, 30), model)
    assert.equal("unchanged", session:compact { policy = "summarize" }.policy.verdict)
    assert.equal(0, #model.requests)
    assert.same({}, transcript.compactions(session))
  end)

  it("does not summarize a summary alone", function()
    local model = transcript.model "Short."
    local session = session_of(transcript.chat(15, 30), model)
    session:compact { policy = "summarize" }
    assert.equal("unchanged", session:compact { policy = "summarize" }.policy.verdict)
    assert.equal(1, #model.requests)
  end)

  describe("of more than a request holds", function()
    it("asks in parts that each fit into half of the window", function()
      local model = transcript.model("one", "two", "three", "four", "five", "six", "seven")
      local session = session_of(transcript.chat(100, 100), model, { window = 12000 })
      assert.is_true(session:compact { policy = "summarize" }.policy.applied)
      assert.is_true(#model.requests >= 4)
      for i, request in ipairs(model.requests) do
        assert.is_true(#request_text(request) / 4 < 6000)
        if i > 1 then
          local former = ({ "one", "two", "three", "four", "five", "six" })[i - 1]
          assert.truthy(request_text(request):find("\n\n" .. former .. "\n\n", 1, true))
        end
      end
    end)

    it("shows the model the beginning and the end of a long text, whole characters", function()
      local turns = transcript.chat(9, 30)
      turns[2][2].content = "BEGIN " .. ("ü大阪🚋"):rep(4000) .. " END"
      local model = transcript.model "Short."
      local session = session_of(turns, model)
      assert.is_true(session:compact { policy = "summarize" }.policy.applied)
      local text = request_text(model.requests[1])
      assert.truthy(text:find("BEGIN", 1, true))
      assert.truthy(text:find("END", 1, true))
      assert.truthy(utf8.len(text))
      assert.is_true(#text < 20000)
    end)
  end)

  describe("when the answer is of no use", function()
    local NONE = "the model gave no summary: "
    local useless = {
      ["an error"] = { function() error "boom" end, NONE },
      ["nothing"] = { false, NONE .. "the line is dead" },
      ["an empty text"] = { "", NONE .. "its answer is empty" },
      ["white space"] = { " \n\t ", NONE .. "its answer is empty" },
      ["a text longer than what it replaces"] = { ("blah "):rep(5000),
        "the model's summary is longer than what it replaces" },
      ["bytes that are no UTF-8"] = { "caf\xe9 \xff\xfe", NONE },
    }
    for name, case in pairs(useless) do
      it("fails with the reason, and changes nothing: " .. name, function()
        local session = session_of(transcript.chat(30, 50), transcript.model(case[1]))
        local before = session:tokens()
        local outcome = session:compact { policy = "summarize" }
        assert.matches(case[2], outcome.policy.refused, 1, true)
        assert.equal("compact", outcome.policy.hook)
        assert.equal(before, session:tokens())
        assert.equal(61, #session:context())
      end)
    end

    it("keeps the summary there was, in the fallback too", function()
      local model = transcript.model("The first summary.", false)
      local session = session_of(transcript.chat(15, 30), model)
      session:compact { policy = "summarize" }
      transcript.play(session, transcript.chat(15, 30), { policy = false })
      local outcome = session:compact { policy = "summarize", fallback = "sliding_window" }
      assert.is_true(outcome.policy.fallback.applied)
      assert.truthy(transcript.find(session:context(), "The first summary."))
    end)

    for name, model in pairs { ["a model that fails"] = transcript.model(false),
      ["no model"] = false } do
      it("costs no turn, and cuts by its fallback: " .. name, function()
        local session = assert(transcript.session { policy = "summarize", window = 2000,
          model = model or nil })
        for _, outcome in ipairs(transcript.play(session, transcript.chat(40, 50))) do
          assert.equal("completed", outcome.status)
          assert.is_nil(outcome.cannot_fit)
        end
        assert.equal(81, #session:messages())
        assert.is_true(session:tokens() <= 1700)
      end)
    end
  end)

  describe("in the log", function()
    it("has the summary, the first kept entry, tokens, time and strategy", function()
      local session = session_of(transcript.chat(15, 30), transcript.model "Short.")
      local before = session:tokens()
      session:compact { policy = "summarize" }
      local entries = transcript.compactions(session)
      assert.equal(1, #entries)
      local data = entries[1].data
      assert.equal("Short.", data.summary)
      assert.equal(before, data.tokens_before)
      assert.equal(session:tokens(), data.tokens_after)
      assert.is_true(data.duration_ms >= 0)
      assert.equal("manual", data.reason)
      assert.equal("summarize", data.policy[1].name)
      assert.equal(1, data.policy[1].version)
      assert.equal(64, #data.policy[1].hash)
      assert.equal("message", session:entry(data.first_kept_entry_id).type)
      assert.equal(31, #session:messages())
    end)

    it("says the first kept entry and the time also where it is asked for", function()
      local session = session_of(transcript.chat(15, 30), transcript.model "Short.")
      local plan = assert(session:plan { policy = "summarize" })
      local outcome = session:compact { policy = "summarize" }
      local entry = transcript.compactions(session)[1]
      local first = outcome.first_kept
      assert.equal(entry.data.first_kept_entry_id, first)
      assert.equal(first, plan.first_kept)
      local ids = {}
      for _, message in ipairs(outcome.context) do
        ids[#ids + 1] = message.id
      end
      -- the summary stands in front of it
      assert.truthy((table.concat(ids, " ") .. " "):find("%.1 " .. first .. " "))
      local row = session:log()[1]
      assert.equal(first, row.first_kept)
      assert.equal(outcome.time, row.time)
      assert.truthy(outcome.time > 1600000000000)
      -- nothing was written: no time, and nothing was kept from leaving
      local turn = session:turn({ { role = "user", content = "x" } }, { policy = false })
      assert.is_nil(turn.time)
      assert.is_nil(turn.first_kept)
      session:uncompact()
      assert.is_nil(session:log()[2].first_kept)
    end)

    it("accounts for every message as covered by the summary", function()
      local session = session_of(transcript.chat(15, 30), transcript.model "Short.")
      local outcome = session:compact { policy = "summarize" }
      assert.equal(20, #outcome.policy.removals)
      for _, removal in ipairs(outcome.policy.removals) do
        assert.equal("covered", removal.disposition)
      end
    end)
  end)

  it("starts by itself at 80 % of the window, and not before", function()
    local model = transcript.model "Short."
    local session = assert(transcript.session { policy = "summarize", window = 4000,
      model = model })
    for _, outcome in ipairs(transcript.play(session, transcript.chat(80, 50))) do
      assert.equal(outcome.tokens.before > 3200, outcome.policy.applied)
    end
    assert.is_true(#model.requests > 0)
  end)

  it("starts at another share of the window when told so", function()
    local session = assert(transcript.session { window = 4000, model = transcript.model "Short.",
      policy = { "summarize", share = 0.5 } })
    local outcomes = transcript.play(session, transcript.chat(20, 60))
    for _, outcome in ipairs(outcomes) do
      assert.equal(outcome.tokens.before > 2000, outcome.policy.applied)
    end
  end)

  it("keeps a session of 1,200 messages below its window, by itself", function()
    local session = assert(transcript.session { policy = "summarize", window = 8000,
      model = transcript.model "Short." })
    for _, outcome in ipairs(transcript.play(session, transcript.chat(600, 20))) do
      assert.is_true(outcome.tokens.after <= 6400)
    end
    assert.is_true(#transcript.compactions(session) >= 1)
    assert.is_true(session:tokens() < transcript.tokens(session:messages()) / 2)
    assert.equal(1201, #session:messages())
  end)

  it("leaves less than half of 1,000 messages when a person asks", function()
    local session = session_of(transcript.chat(500, 20), transcript.model "Short.")
    local before = session:tokens()
    assert.is_true(session:compact { policy = "summarize" }.policy.applied)
    assert.is_true(session:tokens() < before / 2)
  end)

  it("refuses options that are out of range or unknown", function()
    shipped.refuses_options("summarize", {
      { preserve_recent = 1 }, { max_tokens = 0 }, { share = 2 }, { promt = "x" }, { model = 7 },
    })
  end)

  it("is never refused on the bundled session, whatever the window", function()
    shipped.never_refused("summarize", function()
      return transcript.model "Summary of the conversation so far: a slow start."
    end)
  end)
end)

describe("summarize in a window that is too small, with a model that often fails,", function()
  -- Texts of 1 to 60 words; every fifth time no answer, and as often an empty one.
  local function answers_of(seed)
    local n = 0
    return function()
      n = n + 1
      local kind = (n * 7 + seed) % 5
      if kind == 0 then
        return nil, "no quota"
      end
      return kind == 1 and "" or transcript.text("s" .. n, (n * 13 + seed * 5) % 60 + 1)
    end
  end

  it("breaks no law, nor does its fallback, also if a person asks again and again", function()
    local policy = { "summarize", preserve_recent = 2, max_tokens = 50 }
    local cut = { "sliding_window", keep = 0.5 }
    local failed = 0
    for window = 40, 400, 24 do
      for seed = 0, 4 do
        local session, outcomes = transcript.under({ policy = policy },
          transcript.chat(14, 1 + seed * 8), { window = window, model = answers_of(seed) })
        for k = 1, 6 do
          outcomes[#outcomes + 1] = assert(session:compact {
            policy = k % 2 == 0 and "sliding_window" or policy, fallback = cut })
        end
        for i, outcome in ipairs(outcomes) do
          local where = ("window %d, seed %d, outcome %d"):format(window, seed, i)
          local told = outcome.policy
          assert.is_nil(told.law, where)
          if told.fallback then
            failed = failed + 1
            assert.is_nil(told.fallback.refused, where)
          end
        end
      end
    end
    assert.is_true(failed > 100)
  end)
end)
