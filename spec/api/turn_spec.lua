-- Turns as the unit of persistence: saved whole, read back as copies, there after reopening.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

-- A policy of the host's own that keeps the newest turns.
local function keep(turns)
  return { name = "keep", truncate = function(state) state:keep_last(turns, "turns") end }
end

stores.each_kind("a turn in", function(open)
  local s

  before_each(function() s = stores.session(open(), "my-session") end)

  it("is saved whole and says what it wrote", function()
    local outcome = assert(s:turn { user "hello", assistant "hi" })
    assert.equal("completed", outcome.status)
    assert.same({ "00000001", "00000002" }, outcome.ids)
    assert.equal("00000003", outcome.turn)
    assert.equal(outcome.turn, assert(s:head()))
    assert.is_nil(outcome.policy)
    assert.is_nil(outcome.compaction)
    assert.is_true(outcome.tokens.after > 0)
    assert.same({ "hello", "hi" }, contents(outcome.context))
    assert.same({ "hello", "hi" }, contents(assert(s:messages())))
  end)

  it("with a name is written once, however often it is asked for", function()
    local base = assert(s:append(user "before"))
    local given = { base = base, once = "a reply that was lost" }
    local first = assert(s:turn({ assistant "hello", user "hi" }, given))
    assert.is_nil(first.again)
    assert(s:append(assistant "meanwhile"))
    local again = assert(s:turn({ assistant "hello", user "hi" }, given))
    assert.is_true(again.again)
    assert.same({ first.ids, first.turn }, { again.ids, again.turn })
    assert.equal(s:head(), again.head)
    assert.equal(4, #assert(s:messages()))
    local value, message, code = s:turn({ user "x" }, { once = "no base" })
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.matches("base", message)
  end)

  it("is refused whole when one message cannot be taken", function()
    local before = s:event_count()
    local value, message, code = s:turn { user "fine", { role = "nobody", content = "x" } }
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.is_string(message)
    assert.same({}, assert(s:messages()))
    assert.equal(before, s:event_count())
  end)

  it("of no messages ends the turn of those that were appended since the last one", function()
    local function nothing_to_end(given)
      local value, message, code = s:turn({}, given)
      assert.is_nil(value)
      assert.equal("EINVALID", code)
      return message
    end
    assert.matches("no message was appended", nothing_to_end())
    assert(s:turn { user "a", assistant "b" })
    assert.matches("no message was appended", nothing_to_end())
    assert(s:append(user "c"))
    assert(s:append(assistant "d"))
    assert.matches("usage", nothing_to_end { usage = { input = 1 } })
    local outcome = assert(s:turn({}, { metadata = { trace = "t1" }, policy = keep(1) }))
    assert.same({}, outcome.ids)
    assert.is_true(outcome.policy.applied)
    assert.equal(outcome.turn, s:entry(outcome.head).parent_id)
    assert.same({ trace = "t1" }, s:entry(outcome.turn).data.metadata)
    assert.same({ "c", "d" }, contents(s:context()))
    assert.matches("no message was appended", nothing_to_end())
    assert.same({ "a", "b", "c", "d" }, contents(s:messages()))
  end)

  it("adds its usage to the total", function()
    assert(s:turn({ user "a", assistant "b" }, { usage = { input = 10, output = 3 } }))
    assert(s:turn({ user "c", assistant "d" },
      { usage = { input = 20, output = 5, cache_read = 7 } }))
    assert.same({ input = 30, output = 8, cache_read = 7, cache_write = 0 },
      assert(s:usage()))
  end)

  it("keeps metadata and the model's name in its entry", function()
    local outcome = assert(s:turn({ user "a" },
      { metadata = { trace = "t1" }, model = "some-model" }))
    local entry = assert(s:entry(outcome.turn))
    assert.equal("turn", entry.type)
    assert.equal("t1", entry.data.metadata.trace)
    assert.equal("some-model", entry.data.model)
    assert.matches('"trace":"t1"', entry.json)
  end)

  it("is CONFLICT when the head is not what it was thought on", function()
    local base = assert(s:head())
    assert(s:append(user "one"))
    local value, _, code = s:turn({ assistant "late" }, { base = base })
    assert.is_nil(value)
    assert.equal("ECONFLICT", code)
    assert.same({ "one" }, contents(assert(s:messages())))
  end)

  it("counts turns, bare appends and compactions as events", function()
    assert.equal(0, s:event_count())
    assert(s:turn { user "a", assistant "b" })
    assert(s:turn { user "c", assistant "d" })
    assert.equal(2, s:event_count())
    assert(s:append(user "e"))
    assert.equal(3, s:event_count())
    assert.is_true(assert(s:compact { policy = keep(1) }).compaction ~= nil)
    assert.equal(4, s:event_count())
  end)

  it("lists messages by from, limit, last and role", function()
    for i = 1, 5 do
      assert(s:turn { user("q" .. i), assistant("a" .. i) })
    end
    local all = assert(s:messages())
    assert.same({ "q1", "a1" }, contents(assert(s:messages { limit = 2 })))
    assert.same({ "q5", "a5" }, contents(assert(s:messages { last = 2 })))
    assert.same({ "q3", "a3", "q4" },
      contents(assert(s:messages { from = all[5].id, limit = 3 })))
    assert.same({ "a4", "a5" }, contents(assert(s:messages { role = "assistant", last = 2 })))
    assert.equal(10, #assert(s:messages { limit = 0, last = 0 })) -- 0 is no limit
    local value, _, code = s:messages { from = "0000ffff" }
    assert.is_nil(value)
    assert.equal("ENOTFOUND", code)
  end)

  it("is read as a deep copy", function()
    local given = { role = "user", content = { { type = "text", text = "hello" } } }
    assert(s:turn { given })
    given.content[1].text = "changed"
    local list = assert(s:messages())
    assert.equal("hello", list[1].content[1].text)
    list[1].content[1].text = "changed too"
    assert.equal("hello", s:messages()[1].content[1].text)
    assert.equal("hello", s:context()[1].content[1].text)
  end)

  it("is compacted by a policy; messages stay, the context shrinks", function()
    for i = 1, 6 do
      assert(s:turn { user("question " .. i), assistant("answer " .. i) })
    end
    local outcome = assert(s:compact { policy = keep(2) })
    assert.is_true(outcome.policy.applied)
    assert.equal("applied", outcome.policy.verdict)
    assert.equal(8, outcome.policy.dropped)
    assert.equal(8, #outcome.policy.removals)
    assert.equal("lost", outcome.policy.removals[1].disposition)
    assert.is_true(outcome.tokens.after < outcome.tokens.before)
    assert.same({ "question 5", "answer 5", "question 6", "answer 6" },
      contents(outcome.context))
    local context, info = s:context()
    assert.same(contents(outcome.context), contents(context))
    assert.equal(8, info.dropped)
    assert.equal(12, #assert(s:messages()))
    assert.equal(outcome.compaction, assert(s:head()))
  end)

  it("has no compaction without a policy: INVALID", function()
    assert(s:turn { user "a" })
    local value, _, code = s:compact {}
    assert.is_nil(value)
    assert.equal("EINVALID", code)
  end)

  it("is planned without being written", function()
    for i = 1, 4 do
      assert(s:turn { user("question " .. i), assistant("answer " .. i) })
    end
    local head, count = s:head(), s:event_count()
    local plan = assert(s:plan { policy = keep(1) })
    assert.equal(8, #plan.before)
    assert.equal(2, #plan.after)
    local text, rows = plan:diff()
    assert.matches("\n%- 00000002 +assistant +%d+ +lost +answer 1\n", text)
    assert.matches("\n  %x+ +user +%d+ +question 4\n", text)
    assert.matches("8 messages, %d+ tokens %-> 2 messages", text)
    assert.equal(8, #rows)
    assert.equal("-", rows[1].mark)
    assert.equal(" ", rows[8].mark)
    assert.equal(text, tostring(plan))
    assert.equal(head, s:head())
    assert.equal(count, s:event_count())
    assert.equal(8, #assert(s:context()))
  end)

  it("says by how much the context does not fit", function()
    local outcome = assert(s:turn({ user(("word "):rep(500)) },
      { policy = keep(1), window = 100 }))
    assert.is_true(outcome.cannot_fit > 0)
    assert.is_nil(assert(s:turn({ user "x" }, { policy = keep(1) })).cannot_fit)
  end)

  it("has a title that is a fact", function()
    assert.equal("", s.title)
    s.title = "Slow start"
    assert.equal("Slow start", s.title)
    assert(s:set_title "Fast start")
    assert.equal("Fast start", s.title)
    assert.equal(0, s:event_count())
    local value, _, code = s:set_title(("x"):rep(2000))
    assert.is_nil(value)
    assert.equal("ELIMIT", code)
    assert.has_error(function() s.title = ("x"):rep(2000) end)
    assert.equal("Fast start", s.title)
  end)

  it("may have custom entries beside it, which no model sees", function()
    local id = assert(s:custom({ seen = true }, "host"))
    assert(s:turn { user "a" })
    assert.equal("custom", assert(s:entry(id)).type)
    assert.equal(1, #assert(s:context()))
    local types = {}
    for entry in s:entries() do
      types[#types + 1] = entry.type
    end
    assert.same({ "session", "custom", "message", "turn" }, types)
  end)

  it("counts tokens with a margin", function()
    assert(s:turn { user "hello there" })
    local n, info = s:tokens()
    assert.is_true(n > 0)
    assert.is_true(info.low <= n and n <= info.high)
    assert.equal("estimate", info.source)
  end)
end)

describe("a file store", function()
  temp.each_test()

  it("has everything after it was opened again", function()
    local url = "file:" .. temp.dir() .. "/store"
    do
      local store <close> = assert(sessile.open(url, { key = false }))
      local s <close> = assert(store:create { id = "bug-42", title = "Slow start", user = "u1",
        metadata = { ticket = 42 } })
      assert(s:turn({ user "why?", assistant "because" }, { usage = { input = 5, output = 2 } }))
      assert(s:turn { user "and?", assistant "so" })
      assert(s:compact { policy = keep(1) })
    end
    local store <close> = assert(sessile.open(url, { key = false }))
    local s <close> = assert(store:resume { id = "bug-42", user = "u1" })
    assert.equal("bug-42", s.id)
    assert.equal("main", s.agent)
    assert.equal("u1", s.user)
    assert.equal("Slow start", s.title)
    assert.equal(0, s.torn)
    assert.is_true(s.created > 1600000000000 and s.modified >= s.created)
    assert.same({ "why?", "because", "and?", "so" }, contents(assert(s:messages())))
    assert.same({ "and?", "so" }, contents((assert(s:context()))))
    assert.equal(3, s:event_count())
    assert.same({ input = 5, output = 2, cache_read = 0, cache_write = 0 }, assert(s:usage()))
    assert.equal(42, assert(s:entry "00000000").data.metadata.ticket)
  end)

  it("lists its sessions, newest first", function()
    local store <close> = assert(sessile.open("file:" .. temp.dir(), { key = false }))
    assert.same({}, assert(store:list()))
    for _, id in ipairs { "one", "two", "three" } do
      local s <close> = assert(store:create { id = id, title = "title of " .. id })
      assert(s:turn { user(id) })
      os.execute "sleep 0.01" -- times are in milliseconds
    end
    local s <close> = assert(store:create { id = "other", agent = "coder" })
    assert(s:append(user "x"))
    local rows = assert(store:list { agent = "main" })
    assert.equal(3, #rows)
    for i, id in ipairs { "three", "two", "one" } do
      assert.equal(id, rows[i].id)
      assert.equal("title of " .. id, rows[i].title)
      assert.equal(1, rows[i].messages)
      assert.equal("active", rows[i].status)
    end
    assert.equal(4, #assert(store:list()))
    assert.equal(1, #assert(store:list { limit = 1 }))
    assert.equal(4, #assert(store:list { limit = 0 })) -- 0 is no limit
    assert.equal("three", assert(store:list { offset = 1, limit = 1 })[1].id)
    assert.equal(2, #assert(store:list { prefix = "t" }))
    assert.equal("two", assert(store:list { title = "title of two" })[1].id)
    assert.same({}, assert(store:list { prefix = "t", agent = "coder" }))
    assert.has_error(function() store:list { titel = "x" } end,
      "store:list: unknown option 'titel', did you mean 'title'?")
  end)

  it("names what is missing and what is taken", function()
    local store <close> = assert(sessile.open("file:" .. temp.dir(), { key = false }))
    local value, message, code = store:resume "nobody"
    assert.is_nil(value)
    assert.equal("ENOTFOUND", code)
    assert.matches("nobody", message)
    local s <close> = assert(store:create "taken")
    local again, _, taken = store:create(s.id)
    assert.is_nil(again)
    assert.equal("EEXISTS", taken)
  end)

  it("takes ids of any bytes, and structured ones", function()
    local store <close> = assert(sessile.open("file:" .. temp.dir(), { key = false }))
    for _, id in ipairs { "../../etc/passwd", "a/b", "\0\1\255", ("x"):rep(300), " ", "Ünï" } do
      local s <close> = assert(store:create(id))
      assert.equal(id, s.id)
      assert(s:append(user "here"))
      local again <close> = assert(store:resume(id))
      assert.equal("here", assert(again:messages())[1].content)
    end
    local s <close> = assert(store:session { session_id = "s", user_id = "u" })
    assert.equal("s", s.id)
    assert.equal("u", s.user)
    local again <close> = assert(store:resume { id = { session_id = "s", user_id = "u" } })
    assert.equal("u", again.user)
    assert.is_nil((store:resume "s"))
  end)

  it("tells two agents with the same id apart", function()
    local store <close> = assert(sessile.open("file:" .. temp.dir(), { key = false }))
    local a <close> = assert(store:create { id = "x", agent = "a" })
    local b <close> = assert(store:create { id = "x", agent = "b" })
    assert(a:append(user "to a"))
    assert.same({}, assert(b:messages()))
    assert.equal("to a", assert(a:messages())[1].content)
  end)
end)
