-- A conversation with branches: going on from an older entry, what is said of what was left,
-- and the tree of it all.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local workers = require "spec.support.workers"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

-- Entries 1 to 6: three questions and their answers; the head is 00000006.
local function talk(store, id)
  local s = assert(store:create { id = id })
  for i = 1, 3 do
    assert(s:append(user("question " .. i)))
    assert(s:append(assistant("answer " .. i)))
  end
  return s
end

local function count(s)
  local n = 0
  for _ in s:entries() do n = n + 1 end
  return n
end

stores.each_kind("a branch in", function(open)
  local store, s

  before_each(function()
    store = open()
    s = talk(store, "s")
  end)

  it("continues from an older entry, and what was left stays", function()
    local outcome = assert(s:branch "00000002")
    assert.equal("branch", outcome.kind)
    assert.equal("00000002", outcome.head)
    assert.equal("00000006", outcome.from)
    assert.is_nil(outcome.branch_summary)
    assert.is_nil(outcome.policy)
    assert.same({ "question 1", "answer 1" }, contents(outcome.context))
    local id = assert(s:append(user "another question"))
    assert.equal("00000002", s:entry(id).parent_id)
    assert.same({ "question 1", "answer 1", "another question" }, contents(s:messages()))
    assert.equal("answer 3", s:entry("00000006").data.content)
    assert.equal(6, #s:messages { at = "00000006" })
  end)

  it("is there for another handle though nothing was said on it", function()
    assert(s:branch "00000003")
    local again = assert(store:resume "s")
    assert.equal("00000003", again:head())
    assert.same({ "question 1", "answer 1", "question 2" }, contents(again:messages()))
  end)

  it("begins where the newest messages are taken off", function()
    local popped = assert(s:pop())
    assert.same({ assistant "answer 3" }, popped)
    assert.equal("00000006", sessile.of(popped[1]).id)
    assert.same({ "answer 2", "question 3" }, contents(s:pop(2, { base = "00000005" })))
    assert.equal("00000003", s:head())
    assert(s:branch "00000006")
    assert.same({ "question 3", "answer 3" }, contents(s:pop(2)))
    assert.equal(4, #s:pop(9))
    assert.same({}, s:pop())
    assert.same({}, s:messages())
  end)

  it("begins there only if nobody has written since", function()
    local other = assert(store:resume "s")
    assert(other:append(user "question 4"))
    local popped, message, code = s:pop(1)
    assert.is_nil(popped)
    assert.matches("moved on from 00000006 to 00000007", message)
    assert.equal("ECONFLICT", code)
    assert.same({ "answer 3", "question 4" }, contents(s:pop(2, { base = "00000007" })))
    assert.equal("ECONFLICT", select(3, other:pop(1)))
  end)

  it("may begin at the header", function()
    assert(s:branch "00000000")
    assert.same({}, s:messages())
    local id = assert(s:append(user "from the start"))
    assert.equal("00000000", s:entry(id).parent_id)
  end)

  it("back and forth leaves everything where it was", function()
    assert(s:branch "00000001")
    assert(s:branch "00000006")
    assert.equal(6, #s:messages())
    local before = count(s)
    assert(s:branch "00000006")
    assert.equal(before, count(s))
  end)

  it("takes a summary along, which the model is shown once", function()
    local outcome = assert(s:branch("00000002", { summary = "It led nowhere." }))
    assert.equal(outcome.head, outcome.branch_summary)
    assert.equal("It led nowhere.", outcome.summary)
    local entry = assert(s:entry(outcome.branch_summary))
    assert.equal("branch_summary", entry.type)
    assert.equal("00000002", entry.parent_id)
    assert.equal("user", entry.data.role)
    assert.same({ kind = "branch_summary", from = "00000006", ancestor = "00000002" },
      entry.data.metadata)
    local shown = { "question 1", "answer 1", "It led nowhere." }
    assert.same(shown, contents(s:context()))
    assert.same(shown, contents(assert(store:resume "s"):context()))
    -- no turn begins with it, and it is not the user's last word
    local state
    assert(s:plan { policy = { truncate = function(given)
      state = { given.messages[3].turn, given:turns() }
    end } })
    assert.equal(1, state[1])
  end)

  it("asks the model for a summary of what is left, and of no more", function()
    local asked = {}
    local outcome = assert(s:branch("00000004", {
      summary = true, instructions = "the file names", model_name = "small",
      model = function(request)
        asked[#asked + 1] = request
        return "tried question 3"
      end,
    }))
    assert.equal(1, #asked)
    assert.equal("branch_summary", asked[1].purpose)
    assert.equal("small", asked[1].model)
    assert.equal("system", asked[1].messages[1].role)
    local said = asked[1].messages[2].content
    assert.matches("question 3", said, 1, true)
    assert.matches("answer 3", said, 1, true)
    assert.matches("the file names", said, 1, true)
    assert.not_matches("question 2", said, 1, true)
    assert.equal("applied", outcome.policy.verdict)
    assert.equal("tried question 3", outcome.summary)
    assert.equal("tried question 3", contents(s:context())[5])
  end)

  it("asks the policy that has the hook, not the model", function()
    local seen
    local policy = { name = "mine", branch_summary = function(abandoned, ctx)
      seen = { #abandoned, abandoned[1].content, abandoned[4].id, ctx.instructions }
      assert.is_false(pcall(function() abandoned[1] = nil end))
      return "left " .. #abandoned
    end }
    local outcome = assert(s:branch("00000002", {
      summary = true, policy = policy, instructions = "briefly",
      model = function() error "the model was asked" end,
    }))
    assert.same({ 4, "question 2", "00000006", "briefly" }, seen)
    assert.equal("left 4", outcome.summary)
    assert.equal("mine", outcome.policy.name)
    assert.equal("policy", s:entry(outcome.head).source)
  end)

  it("is not stopped by a summary that fails", function()
    local cases = {
      { function() error "out of order" end, "out of order" },
      { function() return nil, "no credit" end, "no credit" },
      { function() return "  \n" end, nil },
      { function() return "\xff" end, "UTF%-8" },
      { nil, "no model is configured" },
    }
    for _, case in ipairs(cases) do
      local outcome = assert(s:branch("00000002", { summary = true, model = case[1] }))
      assert.equal("00000002", outcome.head)
      assert.equal("00000002", s:head())
      assert.is_nil(outcome.branch_summary)
      assert.is_false(outcome.policy.applied)
      if case[2] then
        assert.matches(case[2], outcome.policy.refused)
      else
        assert.equal("no summary was given", outcome.policy.message)
      end
      assert.equal(2, #s:context())
      assert(s:branch "00000006")
    end
  end)

  it("has a policy's failure told with its name, and asks the next", function()
    local policy = {
      { name = "first", branch_summary = function() error "broken" end },
      { name = "second", branch_summary = function() return { "no text" } end },
    }
    local outcome = assert(s:branch("00000002", { summary = true, policy = policy }))
    assert.equal("second", outcome.policy.name)
    assert.equal("branch_summary", outcome.policy.hook)
    assert.matches("not a text", outcome.policy.refused)
    assert(s:branch "00000006")
    policy[3] = { name = "third", branch_summary = function() return "fine" end }
    outcome = assert(s:branch("00000002", { summary = true, policy = policy }))
    assert.equal("fine", outcome.summary)
    assert.equal("third", outcome.policy.name)
    assert.is_nil(outcome.policy.refused)
  end)

  it("that leaves nothing asks nobody", function()
    assert(s:branch "00000002")
    local outcome = assert(s:branch("00000006", {
      summary = true, model = function() error "the model was asked" end,
    }))
    assert.equal("00000006", outcome.head)
    assert.equal("nothing was left behind", outcome.policy.message)
  end)

  it("drops a summary that comes when the conversation has gone on", function()
    local other = assert(store:resume "s")
    local outcome = assert(s:branch("00000002", {
      summary = true,
      model = function()
        assert.equal("00000002", other:head()) -- it has moved before anybody is asked
        assert(other:append(user "quicker"))
        return "late"
      end,
    }))
    assert.equal("stale", outcome.policy.verdict)
    assert.is_nil(outcome.branch_summary)
    assert.same({ "question 1", "answer 1", "quicker" }, contents(s:context()))
  end)

  it("is refused when the head is not what was seen, unless that is accepted", function()
    local other = assert(store:resume "s")
    assert(other:append(user "meanwhile"))
    local value, message, code = s:branch "00000002"
    assert.is_nil(value)
    assert.equal("ECONFLICT", code)
    assert.matches("read it again", message)
    assert.equal(7, #other:messages())
    assert(s:branch("00000002", { on_conflict = "append" }))
    assert.equal("00000002", other:head())
    assert.has_error(function() s:branch("00000003", { on_conflict = "branch" }) end,
      [[session:branch: option 'on_conflict': "fail" or "append" expected, got "branch"]])
  end)

  it("names the nearest entries when there is none of that id", function()
    assert(s:custom { note = 1 }) -- 7: a fact
    local before = count(s)
    for _, case in ipairs {
      { "zzzz", { "zzzz", "00000006" } }, { "00000099", { "00000006", "00000005" } },
      { "00000007", { "custom", "00000006" } },
    } do
      local value, message, code = s:branch(case[1])
      assert.is_nil(value)
      assert.equal("ENOTFOUND", code)
      for _, text in ipairs(case[2]) do
        assert.matches(text, message, 1, true)
      end
    end
    assert.equal(before, count(s))
    assert.equal("00000006", s:head())
  end)

  it("before a compaction has never heard of it; from one, it has", function()
    local cut = { name = "cut", compact = function(state)
      state:insert(1, { role = "user", content = "summary" }, { covers = { 1, 4 } })
      state.vars.cuts = (state.vars.cuts or 0) + 1
    end }
    local compacted = assert(s:compact { policy = cut })
    assert.same({ "summary", "question 3", "answer 3" }, contents(s:context()))
    assert(s:branch "00000004")
    assert.same({ "question 1", "answer 1", "question 2", "answer 2" }, contents(s:context()))
    local vars
    local look = { name = "cut", truncate = function(state) vars = state.vars.cuts end }
    assert(s:plan { policy = look })
    assert.is_nil(vars)
    assert(s:turn({ user "elsewhere" }, { policy = look }))
    assert(s:branch(compacted.compaction))
    assert.same({ "summary", "question 3", "answer 3" }, contents(s:context()))
    assert(s:plan { policy = look })
    assert.equal(1, vars)
    assert(s:turn { user "on" })
    assert.same({ "summary", "question 3", "answer 3", "on" }, contents(s:context()))
    -- and each branch has its own
    local other = assert(s:leaves())
    assert.equal(2, #other)
  end)

  it("lets a turn beside the head be compacted where it is", function()
    local drop = { name = "drop", truncate = function(state) state:drop(1, 2) end }
    local outcome = assert(s:turn({ user "aside" },
      { base = "00000004", on_conflict = "branch", policy = drop }))
    assert.equal("00000006", s:head())
    assert.equal("applied", outcome.policy.verdict)
    assert.equal(outcome.compaction, outcome.head)
    assert.same({ "question 2", "answer 2", "aside" }, contents(outcome.context))
    assert.same({ "question 2", "answer 2", "aside" },
      contents(s:context { at = outcome.head }))
    assert.equal(6, #s:context())
    local seen -- the notes of a policy are those of its own branch
    assert(s:turn({ user "aside" }, { base = "00000004", on_conflict = "branch", policy = {
      name = "drop", truncate = function(state) state.vars.n = (state.vars.n or 0) + 1 end,
    } }))
    assert(s:plan { policy = { name = "drop",
      truncate = function(state) seen = state.vars.n or "none" end } })
    assert.equal("none", seen)
  end)

  it("takes no other words", function()
    assert.has_error(function() s:branch(2) end)
    assert.has_error(function() s:branch("00000002", { summary = 1 }) end)
    assert.has_error(function() s:branch("00000002", { sumary = "x" }) end)
    assert.has_error(function() s:path(1) end)
    assert.has_error(function() s:children() end)
  end)
end)

stores.each_kind("the tree in", function(open)
  local store, s, tree

  -- 1 ─ 2 ─ 3 ─ 4 ─ 5 ─ 6, and 2 ─ 8 ─ 9, and 2 ─ b; 7 and a move the head.
  before_each(function()
    store = open()
    s = talk(store, "s")
    assert(s:branch "00000002")
    assert(s:append(user "again"))
    assert(s:append(assistant "again, then"))
    assert(s:branch "00000002")
    assert(s:append(user "once more"))
    tree = assert(s:tree())
  end)

  it("has a root, the head, and every entry by its id", function()
    assert.equal("session", tree.root.entry.type)
    assert.equal(s:head(), tree.current)
    assert.equal(count(s), #tree.list)
    for id, node in pairs(tree.nodes) do
      assert.equal(id, node.id)
      assert.equal(id, node.entry.id)
      assert.equal(node.entry.timestamp, node.timestamp)
      assert.equal(node.entry.type, node.type)
      if node.parent then
        assert.equal(node.entry.parent_id, node.parent)
      end
    end
  end)

  it("has the children of each, oldest first", function()
    local ids = {}
    for i, child in ipairs(tree.nodes["00000002"].children) do
      ids[i] = child.id
    end
    assert.same({ "00000003", "00000008", "0000000b" }, ids)
    assert.same(ids, s:children "00000002")
    assert.same({ "00000003", "0000000b" }, s:siblings "00000008")
    assert.same({}, s:children "00000006")
    assert.same({}, s:siblings "00000000")
    assert.same({ "00000006", "00000009", "0000000b" }, s:leaves())
  end)

  it("knows paths and where they part", function()
    assert.same({ "00000000", "00000001", "00000002", "0000000b" }, s:path())
    assert.same({ "00000000", "00000001", "00000002", "00000008" }, s:path "00000008")
    assert.equal("00000002", s:common_ancestor("00000006", "00000009"))
    assert.equal("00000004", s:common_ancestor("00000004", "00000006"))
    assert.equal("00000000", s:common_ancestor("00000000", "00000006"))
  end)

  it("counts tokens along each path, and says what the model is shown", function()
    local total = 0
    for _, id in ipairs(s:path "00000009") do
      total = total + tree.nodes[id].tokens
      assert.equal(total, tree.nodes[id].total_tokens)
    end
    assert.is_true(tree.nodes["00000001"].in_context)
    assert.is_true(tree.nodes["0000000b"].in_context)
    assert.is_false(tree.nodes["00000003"].in_context)
    assert.is_true(tree.nodes["0000000b"].is_head)
    assert.is_false(tree.nodes["00000008"].on_path)
    assert.is_false(tree.nodes["00000007"].is_path)
  end)

  it("of some types only keeps who descends from whom", function()
    assert(s:compact { policy = { compact = function(state) state:drop(1) end } })
    assert(s:append(user "after it"))
    local messages_only = assert(s:tree { types = { "message" } })
    for _, node in ipairs(messages_only.list) do
      assert.equal("message", node.type)
    end
    assert.is_nil(messages_only.root)
    assert.equal(s:head(), messages_only.current)
    assert.equal(s:head(), messages_only.nodes["0000000b"].children[1].id)
    assert.is_nil(messages_only.nodes["00000001"].parent)
    assert.is_false(messages_only.nodes["00000001"].in_context)
    local facts = assert(s:tree { types = { "head", "compaction" } })
    assert.equal(3, #facts.list)
    local value, message, code = s:tree { types = { "messages" } }
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.matches("branch_summary", message)
  end)

  it("has the labels in force, and can be of what has one", function()
    assert(s:label("00000004", "good"))
    assert(s:label("00000004", "better"))
    assert(s:pin "00000008")
    assert(s:label("00000006", "gone"))
    assert(s:unlabel("00000006", "gone"))
    local all = assert(s:tree())
    assert.same({ "good", "better" }, all.nodes["00000004"].labels)
    assert.same({}, all.nodes["00000006"].labels)
    local labelled = assert(s:tree { labelled = true })
    assert.equal(2, #labelled.list)
    assert.equal("00000004", labelled.list[1].id)
    assert.same({ "pinned" }, labelled.nodes["00000008"].labels)
    assert.equal(1, #s:tree { labelled = true, types = { "message" } }.nodes["00000008"].labels)
    assert.equal(0, #s:tree { labelled = true, types = { "turn" } }.list)
  end)

  it("grows with the session, and with what others write", function()
    local other = assert(store:resume "s")
    assert(other:head())
    assert(other:append(assistant "indeed"))
    assert.same({ "0000000c" }, s:children "0000000b")
    assert(s:branch("00000002", { summary = "all of it", on_conflict = "append" }))
    assert.same({ "00000003", "00000008", "0000000b", "0000000e" }, s:children "00000002")
    assert.same(s:children "00000002", assert(store:resume "s"):children "00000002")
  end)
end)

describe("a run of a branch", function()
  it("can be stepped by hand, and left: the head has moved", function()
    local store <close> = assert(sessile.open "ram:")
    local s = talk(store, "s")
    local run = assert(sessile.step(s, "branch", "00000002", { summary = true }))
    local need = assert(run:step())
    assert.equal("model", need.kind)
    assert.equal("", need.policy)
    assert.equal("EINVALID", (select(3, run:defer())))
    assert(run:close())
    assert.equal("00000002", s:head())
    assert(s:branch "00000006")
    run = assert(sessile.step(s, "branch", "00000002", { summary = true }))
    need = assert(run:step())
    assert(run:reply(need.request.purpose))
    assert.is_true(run:step())
    assert.equal("branch_summary", assert(run:outcome()).summary)
  end)

  it("asks a policy's file, here and in a process of its own", function()
    local path = temp.write(temp.dir() .. "/left.lua", [[
      return { name = "left", branch_summary = function(abandoned, ctx)
        local text, why = ctx.model { purpose = "left", messages = {
          { role = "user", content = abandoned[1].content } } }
        ctx.log("asked")
        return (text or why) .. " of " .. #abandoned .. " " .. ctx.reason
      end }]], "600")
    local broken = temp.write(temp.dir() .. "/broken.lua",
      "return { branch_summary = function() return {} end }", "600")
    for _, isolation in ipairs { "none", "worker" } do
      local store <close> = assert(sessile.open("ram:", {
        isolation = isolation, worker = workers.path, policy = path,
        model = function(request) return request.messages[1].content:upper() end,
      }))
      local s = talk(store, "s")
      local outcome = assert(s:branch("00000004", { summary = true }))
      assert.equal("QUESTION 3 of 2 manual", outcome.summary)
      assert.same({ "asked" }, outcome.log)
      assert(s:branch "00000006")
      outcome = assert(s:branch("00000004", { summary = true, policy = broken }))
      assert.matches("returned a table, not a text", outcome.policy.refused)
      assert.equal("00000004", s:head())
    end
    temp.clean()
  end)
end)
