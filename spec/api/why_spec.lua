-- Why a message is in the context, or not; and what compactions did.

local sessile = require "sessile"
local M = require "spec.support.messages"
local stores = require "spec.support.stores"

local function covering(first, last, content)
  return { name = "covering", version = 7, compact = function(state)
    state:insert(first, { role = "user", content = content }, { covers = { first, last } })
  end }
end

local function kinds(why)
  local list = {}
  for i, step in ipairs(why.steps) do
    list[i] = step.kind
  end
  return table.concat(list, " ")
end

describe("why", function()
  local store, s

  stores.each_test(function()
    store = stores.open "ram:"
    s = assert(store:create())
    for i = 1, 8 do
      assert(s:append((i % 2 == 1 and M.user or M.assistant)(("word "):rep(30) .. i)))
    end
  end)

  it("says that a message is there since it was said", function()
    local why = assert(s:why "00000003")
    assert.is_true(why.in_context)
    assert.equal("00000003", why.shown)
    assert.equal("said", kinds(why))
    assert.equal("user", why.steps[1].role)
    assert.equal("The model is shown it.", why.verdict)
    assert.equal(why.text, tostring(why))
    assert.matches("^00000003 %(user%) was said on %d%d%d%d%-", why.text)
  end)

  it("follows a message from summary to summary, oldest first", function()
    local one = assert(s:compact { policy = covering(1, 3, "one"), instructions = "be brief" })
    local two = assert(s:compact { policy = covering(1, 2, "two") })
    local why = assert(s:why "00000002")
    assert.is_false(why.in_context)
    assert.equal("said left left", kinds(why))
    assert.equal(two.compaction .. ".1", why.shown)
    local left = why.steps[2]
    assert.equal("covered", left.disposition)
    assert.equal(one.compaction .. ".1", left.by)
    assert.equal("covering 0", left.compaction.policy)
    assert.equal("manual", left.compaction.reason)
    assert.equal("be brief", left.compaction.instructions)
    assert.equal("one", left.compaction.summary)
    assert.equal(one.tokens.before, left.compaction.tokens.before)
    assert.equal(one.tokens.after, left.compaction.tokens.after)
    assert.is_true(left.compaction.time > 0)
    assert.equal(one.compaction .. ".1", why.steps[3].key)
    assert.equal(two.compaction .. ".1", why.steps[3].by)
    assert.matches('which was told "be brief"', why.text)
    assert.matches("The model is shown " .. two.compaction .. ".1 for it.$", why.text)

    local summary = assert(s:why(one.compaction .. ".1"))
    assert.equal("written left", kinds(summary))
    assert.same({ "00000001", "00000002", "00000003" }, summary.steps[1].stands_for)
    assert.equal("written", kinds(assert(s:why(two.compaction .. ".1"))))

    assert(s:uncompact(two.compaction))
    assert.equal("said left left restored", kinds(assert(s:why "00000002")))
    assert.equal(one.compaction .. ".1", s:why("00000002").shown)
    assert(s:uncompact(one.compaction))
    why = assert(s:why "00000002")
    assert.equal("said left left restored restored", kinds(why))
    assert.is_true(why.in_context)
    local gone = assert(s:why(one.compaction .. ".1"))
    assert.equal("undone", gone.steps[#gone.steps].disposition)
    assert.equal("The model is not shown it.", gone.verdict)
  end)

  it("tells what was lost from what was replaced", function()
    assert(s:compact { policy = { name = "lossy", compact = function(state)
      state:drop(1)
      state:replace(2, { content = "short" })
    end } })
    local lost = assert(s:why "00000001")
    assert.equal("lost", lost.steps[2].disposition)
    assert.is_nil(lost.shown)
    local replaced = assert(s:why "00000002")
    assert.equal("replaced", replaced.steps[2].disposition)
    assert.equal(replaced.steps[2].by, replaced.shown)
    assert.matches("replaced it", replaced.text)
  end)

  it("names the place where another branch left the path", function()
    assert(s:clear())
    assert(s:append(M.user "anew"))
    local why = assert(s:why "00000003")
    assert.equal("said elsewhere", kinds(why))
    assert.equal("00000000", why.steps[2].at)
    assert.is_false(why.in_context)
    assert.matches("not on the path to the head: the two part at 00000000", why.text)
  end)

  it("says what an entry is that is no message", function()
    local outcome = assert(s:turn { M.user "a turn" })
    local why = assert(s:why(outcome.turn))
    assert.equal("no_message", kinds(why))
    assert.equal("turn", why.steps[1].type)
    local done = assert(s:compact { policy = covering(1, 4, "sum") })
    assert.matches("called " .. done.compaction .. "%.1", assert(s:why(done.compaction)).text)
  end)

  it("says what is left out, answered for, or shown elsewhere", function()
    local orphan = assert(s:append { role = "tool", tool_call_id = "nobody", content = "x" })
    local call = assert(s:append { role = "assistant", content = "",
      tool_calls = { { id = "c", name = "f", arguments = "{}" } } })
    assert(s:append(M.user "go on"))
    local why = assert(s:why(orphan))
    assert.equal("said orphan", kinds(why))
    assert.is_false(why.in_context)
    assert.matches("unknown or was answered already", why.text)
    assert.equal("said unanswered", kinds(assert(s:why(call))))
    assert.is_true(s:why(call).in_context)
    local late = assert(s:append { role = "tool", tool_call_id = "c", content = "late" })
    assert.equal("said", kinds(assert(s:why(call))))
    why = assert(s:why(late))
    assert.equal("said moved", kinds(why))
    assert.equal(call, why.steps[2].by)
  end)

  it("names the call that an orphan has lost", function()
    local call = assert(s:append { role = "assistant", content = "",
      tool_calls = { { id = "c", name = "f", arguments = "{}" } } })
    assert(s:append(M.user "go on"))
    assert(s:append(M.assistant "on it"))
    assert(s:compact { policy = { name = "dead", compact = function(state)
      state:drop(9)
    end } })
    local late = assert(s:append { role = "tool", tool_call_id = "c", content = "late" })
    local why = assert(s:why(late))
    assert.equal("said orphan", kinds(why))
    assert.equal(call, why.steps[2].by)
    assert.matches("its call in " .. call .. " is not in the context", why.text)
  end)

  it("knows nothing of what is not there", function()
    local _, message, code = s:why "000000ff"
    assert.equal("ENOTFOUND", code)
    assert.matches("its newest is 00000008", message)
    _, message, code = s:why "00000001.1"
    assert.equal("ENOTFOUND", code)
    assert.matches("is a message, which writes no messages", message)
    local done = assert(s:compact { policy = covering(1, 2, "sum") })
    _, message, code = s:why(done.compaction .. ".2")
    assert.equal("ENOTFOUND", code)
    assert.matches("wrote no message 2", message)
    _, _, code = s:why "what?"
    assert.equal("ENOTFOUND", code)
    assert.has_error(function() s:why() end)
  end)
end)

describe("log", function()
  it("has compactions and refusals in their order", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    for i = 1, 8 do
      assert(s:append((i % 2 == 1 and M.user or M.assistant)(("word "):rep(30) .. i)))
    end
    assert.same({}, s:log())
    local naive = { name = "naive", compact = function(state)
      state:drop(#state.messages - 1, #state.messages)
    end }
    assert(s:compact { policy = naive })
    assert(s:compact { policy = naive })
    local done = assert(s:compact { policy = covering(1, 3, "sum") })
    local back = assert(s:uncompact())
    local log = assert(s:log())
    assert.equal(3, #log)
    assert.equal("refusal", log[1].kind)
    assert.equal("naive", log[1].policy)
    assert.equal(5, log[1].law)
    assert.equal("pinned", log[1].law_name)
    assert.equal("compact", log[1].hook)
    assert.equal("00000007", log[1].entry)
    assert.equal(1, log[1].repeated)
    assert.matches("00000007", log[1].message)
    assert.equal("compaction", log[2].kind)
    assert.equal(done.compaction, log[2].id)
    assert.same({ 5, 0, 3, 0, 1 },
      { log[2].kept, log[2].lost, log[2].covered, log[2].replaced, log[2].written })
    assert.equal("no", log[2].in_force)
    assert.equal("covering", log[2].policies[1].name)
    assert.same({ before = done.tokens.before, after = done.tokens.after }, log[2].tokens)
    assert.equal(back.compaction, log[3].id)
    assert.equal(done.compaction, log[3].uncompacts)
    assert.same({ 3, 1 }, { log[3].restored, log[3].undone })
    assert.equal("yes", log[3].in_force)
  end)

  it("tells of the path alone", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    for i = 1, 4 do
      assert(s:append((i % 2 == 1 and M.user or M.assistant)(("word "):rep(30) .. i)))
    end
    assert(s:compact { policy = covering(1, 2, "sum") })
    assert.equal(1, #s:log())
    assert(s:clear())
    assert.same({}, s:log())
  end)
end)
