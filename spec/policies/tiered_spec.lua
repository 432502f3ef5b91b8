-- tiered in the real sandbox: the order of its tiers, and that the last is the last resort.

local lists = require "spec.support.lists"
local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

local function play(turns, model, options)
  return transcript.under({ policy = "tiered", model = model, window = 8000 }, turns, options)
end

-- The names of the policies whose edits a compaction entry holds, in order.
local function names_of(entry)
  return lists.words(entry.data.policy, "name")
end

describe("tiered", function()
  it("edits tool output first, and asks no model when that is enough", function()
    local model = transcript.model "Short."
    local session, outcomes = play(transcript.work(9, 400), model)
    local entries = transcript.compactions(session)
    assert.is_true(#entries > 0)
    assert.equal("edit_tools", names_of(entries[1]))
    assert.equal(0, #model.requests)
    shipped.none_refused(outcomes)
  end)

  it("summarizes when there is no tool output to edit", function()
    local model = transcript.model "Short."
    local session = play(transcript.chat(80, 60), model)
    local entries = transcript.compactions(session)
    assert.equal("summarize", names_of(entries[1]))
    assert.is_true(#model.requests > 0)
  end)

  it("does both in one compaction when the first is not enough", function()
    local turns = transcript.chat(48, 50)
    for i, turn in ipairs(transcript.work(2, 160)) do
      turns[i + 1] = i == 1 and { table.unpack(turn, 2) } or turn
    end
    turns[49] = { { role = "user", content = transcript.text("one long question", 1900) } }
    local model = transcript.model "Short."
    local session = play(turns, model)
    assert.equal("edit_tools summarize", names_of(transcript.compactions(session)[1]))
    assert.is_nil(transcript.broken_pair(session:context()))
  end)

  it("cuts only when one turn jumps past the whole window, and keeps the summary", function()
    local model = transcript.model "Short."
    local turns = transcript.chat(70, 50)
    local session, outcomes = play(turns, model)
    for _, entry in ipairs(transcript.compactions(session)) do
      assert.is_nil(names_of(entry):find("sliding_window", 1, true))
    end
    assert.is_nil(outcomes[70].cannot_fit)

    local big = { { role = "user", content = "now all at once" } }
    for i = 1, 40 do
      big[#big + 1] = { role = "assistant", content = transcript.text("part " .. i, 210) }
    end
    local asked = #model.requests
    local outcome = assert(session:turn(big))
    assert.is_true(outcome.policy.applied)
    assert.equal(asked, #model.requests)
    assert.is_nil(outcome.cannot_fit)
    local entries = transcript.compactions(session)
    assert.truthy(names_of(entries[#entries]):find("sliding_window", 1, true))
    assert.truthy(transcript.find(session:context(), "Short."))
    assert.truthy(transcript.find(session:context(), "now all at once"))
  end)

  it("never cuts when a person asks", function()
    local model = transcript.model "Short."
    local session = assert(transcript.session { policy = false, model = model })
    transcript.play(session, transcript.chat(20, 50))
    assert.is_true(session:compact { policy = "tiered" }.policy.applied)
    assert.equal(1 + 1 + 10, #session:context())
    assert.equal("summarize", names_of(transcript.compactions(session)[1]))
  end)

  it("gives an option to every policy that has it", function()
    local session = assert(transcript.session { policy = false,
      model = transcript.model "Short." })
    transcript.play(session, transcript.chat(20, 50))
    session:compact { policy = { "tiered", preserve_recent = 20 } }
    assert.equal(1 + 1 + 20, #session:context())
  end)

  it("refuses an option that none of them has", function()
    local session, _, code = transcript.session { policy = { "tiered", flavour = "mild" } }
    assert.is_nil(session)
    assert.equal("EINVALID", code)
  end)

  it("fits the bundled session into a window of a third of it", function()
    local model = transcript.model "Summary of the conversation so far: a slow start."
    local session, outcomes = play(transcript.turns(), model, { window = 12000, reserve = 2000 })
    for _, outcome in ipairs(outcomes) do
      assert.is_nil(outcome.policy.refused)
      assert.is_nil(outcome.cannot_fit)
      assert.is_true(outcome.tokens.after <= 10000)
    end
    assert.is_nil(transcript.broken_pair(session:context()))
    assert.equal(90, #session:messages())
  end)

  it("is never refused on the bundled session, whatever the window", function()
    shipped.never_refused("tiered", function()
      return transcript.model("Short.", false, "", "Short again.")
    end)
  end)
end)
