-- edit_tools in the real sandbox: which outputs become a line, and what stays word for word.

local shipped = require "spec.support.shipped"
local transcript = require "spec.support.transcript"

local MARK = "[tool output left out: "

local function compact(turns, options)
  options = options or {}
  options[1] = "edit_tools"
  return shipped.compacted(options, turns)
end

local function count_marks(list)
  local count = 0
  for _, message in ipairs(list) do
    local text = message.content
    count = count + (type(text) == "string" and text:sub(1, #MARK) == MARK and 1 or 0)
  end
  return count
end

describe("edit_tools", function()
  it("says in place of an output how long it was and which tool wrote it", function()
    local turns = transcript.work(6, 10)
    turns[1][4].content = ("x"):rep(12345)
    local after = compact(turns)
    assert.equal("[tool output left out: 12,345 bytes, read]", after[4].content)
  end)

  it("takes the tool's name from the result when it says one", function()
    local turns = transcript.work(6, 10)
    turns[1][4].content = ("x"):rep(999)
    turns[1][4].name = "read_file"
    local after = compact(turns)
    assert.equal("[tool output left out: 999 bytes, read_file]", after[4].content)
  end)

  it("keeps the pair, the call's arguments and everything that was said", function()
    local after, before = compact(transcript.work(6, 200))
    assert.equal(#before, #after)
    for i, message in ipairs(after) do
      assert.equal(before[i].role, message.role)
      assert.equal(before[i].tool_call_id, message.tool_call_id)
      if message.role ~= "tool" then
        assert.equal(before[i].json, message.json)
      end
    end
    assert.is_true(count_marks(after) > 0)
  end)

  it("leaves the newest messages alone", function()
    local after, before = compact(transcript.work(6, 200), { preserve_recent = 16 })
    shipped.same_end(before, after, 16)
    assert.equal(#after, 31)
    assert.equal(6, count_marks(after))
  end)

  it("leaves short outputs alone", function()
    local after = compact(transcript.work(6, 200), { min_tokens = 300 })
    assert.equal(0, count_marks(after))
  end)

  it("leaves errors alone, unless told otherwise", function()
    local turns = transcript.work(6, 200)
    turns[2][3].is_error = true
    local after = compact(turns)
    assert.truthy(transcript.find(after, "file 2 word"))
    after = compact(turns, { keep_errors = false })
    assert.is_nil(transcript.find(after, "file 2 word"))
  end)

  it("works on result blocks in a user's message, and keeps their ids", function()
    local turns = transcript.chat(8)
    turns[2] = {
      { role = "user", content = "look" },
      { role = "assistant", content = { { type = "tool_use", id = "t1", name = "read",
        input = { path = "a" } } } },
      { role = "user", content = { { type = "tool_result", tool_use_id = "t1",
        content = { { type = "text", text = ("long "):rep(400) } } } } },
      { role = "assistant", content = "seen" },
    }
    local after = compact(turns)
    local block = after[6].content[1]
    assert.equal("t1", block.tool_use_id)
    assert.equal("[tool output left out: 2,000 bytes]", block.content)
  end)

  it("leaves a call that still waits, and all that follows it, alone", function()
    shipped.leaves_open_work { "edit_tools", preserve_recent = 2 }
  end)

  it("changes nothing the second time", function()
    local _, _, _, session = compact(transcript.work(6, 200))
    assert.equal("unchanged", session:compact { policy = "edit_tools" }.policy.verdict)
  end)

  it("replaces no line of its own, however long the name of the tool is", function()
    local turns = transcript.work(6, 900)
    turns[1][4].name = ("a_tool_with_a_long_name_"):rep(20)
    local _, _, _, session = compact(turns)
    assert.equal("unchanged", session:compact { policy = "edit_tools" }.policy.verdict)
  end)

  it("writes nothing when there is nothing to edit", function()
    local _, _, outcome, session = compact(transcript.chat(20, 100))
    assert.equal("unchanged", outcome.policy.verdict)
    assert.same({}, transcript.compactions(session))
  end)

  it("starts by itself at 80 % of the window, and not before", function()
    local session = assert(transcript.session { policy = "edit_tools", window = 4000 })
    local outcomes = transcript.play(session, transcript.work(12, 150))
    local applied
    for _, outcome in ipairs(outcomes) do
      if outcome.policy.applied then
        applied = true
        assert.is_true(outcome.tokens.before > 3200)
      else
        assert.is_true(outcome.tokens.before <= 3200)
      end
    end
    assert.is_true(applied)
  end)

  it("accounts for each output as replaced", function()
    local _, _, outcome = compact(transcript.work(6, 200))
    for _, removal in ipairs(outcome.policy.removals) do
      assert.equal("replaced", removal.disposition)
      assert.equal("tool", removal.role)
    end
  end)

  it("leaves the whole output in the log", function()
    local _, before, _, session = compact(transcript.work(6, 200))
    local messages = session:messages()
    for i, message in ipairs(messages) do
      assert.equal(before[i].json, message.json)
    end
  end)

  it("refuses options that are out of range", function()
    shipped.refuses_options("edit_tools", {
      { preserve_recent = 0 }, { min_tokens = 1 }, { share = 1.5 },
    })
  end)

  it("halves the bundled session, and is never refused on it", function()
    local after, before = compact(transcript.turns())
    assert.is_true(transcript.tokens(after) < 0.6 * transcript.tokens(before))
    shipped.never_refused "edit_tools"
  end)
end)
