-- key_messages in the real sandbox: what is kept by rule, and that the rest goes in pairs.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

-- A session of the bundled transcript, compacted by key_messages with these options.
local function compact_demo(options)
  options = options or {}
  options[1] = "key_messages"
  return shipped.compacted(options, transcript.turns())
end

local function keys_of(list)
  local keys = {}
  for _, message in ipairs(list) do
    keys[message.key or ""] = true
  end
  return keys
end

-- How many of `before` that satisfy `wanted` are in `after`, and how many there were.
local function count_kept(after, before, wanted)
  local keys, kept, all = keys_of(after), 0, 0
  for _, message in ipairs(before) do
    if message.key and wanted(message) then
      all = all + 1
      kept = kept + (keys[message.key] and 1 or 0)
    end
  end
  return kept, all
end

local function is_user(message) return message.role == "user" end
local function is_error(message) return message.is_error == true end
local function is_result(message) return message.role == "tool" end
local function is_system(message) return message.role == "system" end

describe("key_messages", function()
  it("keeps the system message and everything the user said", function()
    local after, before = compact_demo()
    local kept, all = count_kept(after, before, is_user)
    assert.equal(9, all)
    assert.equal(all, kept)
    assert.equal(1, (count_kept(after, before, is_system)))
  end)

  it("keeps every error, together with its call and the other results of that call", function()
    local after, before = compact_demo()
    local kept, all = count_kept(after, before, is_error)
    assert.equal(5, all)
    assert.equal(all, kept)
  end)

  it("drops other calls together with their results", function()
    local after, before, outcome = compact_demo()
    local kept, all = count_kept(after, before, is_result)
    assert.is_true(kept < all / 2)
    assert.is_true(outcome.tokens.after < outcome.tokens.before / 2)
  end)

  it("keeps the newest messages as they are", function()
    local after, before = compact_demo { preserve_recent = 15 }
    shipped.same_end(before, after, 15)
  end)

  it("drops users but the last with keep_user = false", function()
    local after, before = compact_demo { keep_user = false, preserve_recent = 2 }
    local kept = count_kept(after, before, is_user)
    assert.equal(1, kept)
    assert.truthy(transcript.find(after, "what should we watch after the roll-out"))
  end)

  it("keeps the last question, however long ago it was asked", function()
    local session = assert(transcript.session { policy = false })
    transcript.play(session, transcript.chat(3))
    for i = 1, 20 do
      assert(session:append { role = "assistant", content = "step " .. i })
    end
    session:compact { policy = { "key_messages", keep_user = false } }
    assert.equal(1 + 1 + 10, #session:context())
    assert.truthy(transcript.find({ session:context()[2] }, "question 3"))
  end)

  it("drops errors in pairs with keep_errors = false", function()
    local after, before = compact_demo { keep_errors = false, preserve_recent = 2 }
    local kept = count_kept(after, before, is_error)
    assert.equal(0, kept)
  end)

  it("keeps all calls and results with keep_tools = true", function()
    local after, before = compact_demo { keep_tools = true }
    local kept, all = count_kept(after, before, is_result)
    assert.equal(all, kept)
  end)

  it("keeps what matches a pattern", function()
    local without = compact_demo { preserve_recent = 2 }
    assert.is_nil(transcript.find(without, "**the cache warms twice**"))
    local with = compact_demo { preserve_recent = 2, pattern = "cache warms %a+ce" }
    assert.truthy(transcript.find(with, "**the cache warms twice**"))
  end)

  it("keeps summaries", function()
    local session = assert(transcript.session { model = transcript.model "It began." })
    transcript.play(session, transcript.work(20, 50))
    session:compact { policy = { "summarize", preserve_recent = 40 } }
    local outcome = session:compact { policy = { "key_messages", keep_user = false } }
    assert.is_true(outcome.policy.applied)
    assert.equal("It began.", session:context()[2].content)
  end)

  it("finds errors in result blocks of a user's message", function()
    local session = assert(transcript.session { policy = false })
    local turns = transcript.chat(12, 30)
    turns[2] = {
      { role = "user", content = "try it" },
      { role = "assistant", content = { { type = "tool_use", id = "t1", name = "run",
        input = { command = "make" } } } },
      { role = "user", content = { { type = "tool_result", tool_use_id = "t1", is_error = true,
        content = "it broke" } } },
      { role = "assistant", content = "it broke, I see" },
    }
    transcript.play(session, turns)
    assert.is_true(session:compact { policy = "key_messages" }.policy.applied)
    local blocks = 0
    for _, message in ipairs(session:context()) do
      blocks = blocks + (type(message.content) == "table" and 1 or 0)
    end
    assert.equal(2, blocks)
    assert.is_nil(transcript.find(session:context(), "it broke, I see"))
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    shipped.leaves_open_work { "key_messages", preserve_recent = 2 }
  end)

  it("starts by itself at 80 % of the window, and not before", function()
    local session = assert(transcript.session { policy = "key_messages", window = 4000 })
    for _, outcome in ipairs(transcript.play(session, transcript.work(30, 100))) do
      local share = outcome.tokens.before / 4000
      assert.equal(share > 0.8, outcome.policy.verdict == "applied", tostring(share))
      assert.is_nil(outcome.policy.refused)
    end
  end)

  it("writes nothing when everything matters", function()
    local session = assert(transcript.session { policy = false })
    transcript.play(session, transcript.chat(4))
    assert.equal("unchanged", session:compact { policy = "key_messages" }.policy.verdict)
    assert.same({}, transcript.compactions(session))
  end)

  it("refuses options that are out of range or unknown", function()
    shipped.refuses_options("key_messages", {
      { preserve_recent = 1 }, { share = 0 }, { keep_users = true },
    })
  end)

  it("costs a compaction, and no turn, when its pattern is broken", function()
    local session = assert(transcript.session { window = 500,
      policy = { "key_messages", pattern = "[" } })
    local outcomes = transcript.play(session, transcript.chat(12, 40))
    assert.truthy(outcomes[12].policy.refused)
    assert.equal(25, #session:messages())
  end)

  it("is never refused on the bundled session, whatever the window", function()
    shipped.never_refused "key_messages"
  end)
end)
