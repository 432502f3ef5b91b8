-- The shipped policies, over and over: what a compaction kept the next one does not lose, a
-- call that was never answered stops nobody, and everything can be undone.

local transcript = require "spec.support.transcript"

local SHIPPED = {
  "sliding_window", "key_messages", "token_budget", "edit_tools", "merge_dedupe", "summarize",
  "tiered",
}
local WINDOW = 6000

-- A model whose summary is the marks of all it was given: "question 7", "answer 7".
local function marking_model()
  return transcript.model(function(request)
    local seen, marks = {}, {}
    for _, message in ipairs(request.messages) do
      for mark in message.content:gmatch "%a+ %d+%f[^%d]" do
        local kind = mark:match "^%a+"
        if (kind == "question" or kind == "answer") and not seen[mark] then
          seen[mark] = true
          marks[#marks + 1] = mark
        end
      end
    end
    return table.concat(marks, "; ")
  end)
end

local function text_of(list)
  local texts = {}
  for i, message in ipairs(list) do
    texts[i] = type(message.content) == "string" and message.content or ""
  end
  return table.concat(texts, "\n") .. "\n"
end

-- Work, questions that repeat, and early on a call that nobody ever answers.
local function turns_with_a_dead_call()
  local turns = transcript.work(30, 120)
  for i = 2, 30, 3 do
    local reminder = transcript.text("the same reminder", 130)
    table.insert(turns[i], 2, { role = "user", content = reminder })
  end
  turns[2] = {
    { role = "user", content = "question 2" },
    { role = "assistant", content = "", tool_calls = { { id = "dead", name = "f",
      arguments = "{}" } } },
    { role = "user", content = "never mind" },
    { role = "assistant", content = "answer 2" },
  }
  return turns
end

describe("a summary of summaries", function()
  for _, name in ipairs { "summarize", "tiered" } do
    it(("of %s has all that was ever said"):format(name), function()
      local session = assert(transcript.session { policy = name, model = marking_model(),
        window = WINDOW })
      local turns = transcript.chat(150, 60)
      for i, turn in ipairs(turns) do
        local outcome = assert(session:turn(turn))
        assert.is_nil(outcome.policy.refused)
        local text = text_of(session:context())
        for k = 1, i do
          for _, kind in ipairs { "question", "answer" } do
            assert.is_truthy(text:find(("%s %d%%f[^%%d]"):format(kind, k)),
              ("after turn %d %s %d is nowhere"):format(i, kind, k))
          end
        end
      end
      local log = session:log()
      assert.is_true(#log >= 3, #log .. " compactions")
      for _, message in ipairs(session:messages()) do
        local why = assert(session:why(message.id))
        assert.is_not_nil(why.shown, why.text)
      end
    end)
  end
end)

describe("a dead call", function()
  for _, name in ipairs(SHIPPED) do
    it("does not stop " .. name, function()
      local session = assert(transcript.session { policy = name, model = marking_model(),
        window = WINDOW })
      local applied = 0
      for _, turn in ipairs(turns_with_a_dead_call()) do
        local outcome = assert(session:turn(turn))
        assert.is_nil(outcome.policy.refused, outcome.policy.refused)
        assert.is_nil(transcript.broken_pair(session:context()))
        applied = applied + (outcome.policy.applied and 1 or 0)
      end
      assert.is_true(applied > 0)
      if name ~= "merge_dedupe" and name ~= "edit_tools" then -- those do not cut
        assert.is_true(transcript.tokens(session:context()) <= WINDOW)
      end
    end)
  end
end)

describe("what the shipped policies did", function()
  for _, name in ipairs(SHIPPED) do
    it(("can be undone: %s"):format(name), function()
      local session = assert(transcript.session { policy = name, model = marking_model(),
        window = WINDOW })
      transcript.play(session, turns_with_a_dead_call())
      local log = session:log()
      for i = #log, 1, -1 do
        assert.equal("compaction", log[i].kind)
        assert(session:uncompact(log[i].id))
      end
      local all, context = {}, {}
      for i, message in ipairs(session:messages()) do
        all[i] = message.id
      end
      for _, message in ipairs(session:context()) do
        context[#context + 1] = message.id -- what the engine answers for the dead call has none
      end
      assert.same(all, context)
    end)
  end
end)
