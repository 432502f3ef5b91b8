-- Stores that the host keeps: an adapter's load, save, delete and list, whatever they answer,
-- at once or after yielding.

local sessile = require "sessile"
local lists = require "spec.support.lists"
local user = require("spec.support.messages").user

local function texts(session)
  return lists.field(session:messages(), "content")
end

-- A host's table of records, compared by count. `answer`, when set, is asked first: what it
-- returns (packed) is the answer instead. `log` has what was asked.
local function host()
  local self = { kept = {}, log = {}, answer = nil }
  local function name(id)
    return type(id) == "table" and id.session_id .. "/" .. id.user_id or id
  end
  local function asked(what, ...)
    self.log[#self.log + 1] = what
    if self.answer then
      return self.answer(what, ...)
    end
  end
  self.functions = {
    load = function(id, ctx)
      local answer = asked({ "load", id, ctx })
      if answer then
        return table.unpack(answer, 1, answer.n)
      end
      local have = self.kept[name(id)]
      return have and table.move(have, 1, #have, 1, {})
    end,
    save = function(id, new, was, ctx)
      local answer = asked({ "save", id, ctx, new = new, was = was })
      if answer then
        return table.unpack(answer, 1, answer.n)
      end
      local have = self.kept[name(id)] or {}
      if #have ~= was then
        return false
      end
      self.kept[name(id)] = table.move(new.records, 1, #new.records, was + 1,
        table.move(have, 1, #have, 1, {}))
      assert(#self.kept[name(id)] == new.count)
      return true
    end,
    delete = function(id, ctx)
      local answer = asked({ "delete", id, ctx })
      if answer then
        return table.unpack(answer, 1, answer.n)
      end
      local was = self.kept[name(id)] ~= nil
      self.kept[name(id)] = nil
      return was
    end,
    list = function(ctx)
      local answer = asked({ "list", nil, ctx })
      if answer then
        return table.unpack(answer, 1, answer.n)
      end
      local ids = {}
      for id in pairs(self.kept) do
        ids[#ids + 1] = id
      end
      table.sort(ids)
      return ids
    end,
  }
  function self.answers(...)
    local answer = table.pack(...)
    self.answer = function() return answer end
  end
  return self
end

describe("an adapter", function()
  local h, store

  before_each(function()
    h = host()
    store = assert(sessile.open(h.functions))
  end)

  after_each(function()
    h.answer = nil
    store:close()
  end)

  -- -------------------------------------------------------------- kept

  it("is given what a call has written before the call returns", function()
    local s = assert(store:create "a")
    assert.equal(1, #h.kept.a)
    assert.equal("00000001", s:append(user "one"))
    assert.equal(2, #h.kept.a)
    local outcome = assert(s:turn { user "two", { role = "assistant", content = "three" } })
    assert.equal(5, #h.kept.a)
    assert.is_true(outcome.saved)
    s.title = "A title"
    assert.equal(6, #h.kept.a)
    assert.equal(0, s.unsaved)
    s:close()
    local again = assert(store:resume "a")
    assert.same({ "one", "two", "three" }, texts(again))
    assert.equal("A title", again.title)
  end)

  it("gets the records after those it has, how many there are then, and why", function()
    local before = os.time() * 1000
    local s = assert(store:create { id = "a", agent = "coder" })
    s:append(user "one")
    s:turn { user "two" }
    local saves = {}
    for _, asked in ipairs(h.log) do
      if asked[1] == "save" then
        saves[#saves + 1] = { asked.was, #asked.new.records, asked.new.count, asked[3].reason }
      end
    end
    assert.same({ { 0, 1, 1, "create" }, { 1, 1, 2, "append" }, { 2, 2, 4, "turn" } }, saves)
    local ctx = h.log[#h.log][3]
    assert.same({ id = "a", agent = "coder", user = "" }, ctx.session)
    assert.is_true(ctx.deadline > before + 4000 and ctx.deadline < before + 60000)
    s:set_timeout(-1)
    s:append(user "three")
    assert.is_nil(h.log[#h.log][3].deadline)
  end)

  it("keeps plain lines that other tools can read", function()
    assert(store:create "a"):append(user "in the clear")
    assert.truthy(h.kept.a[2]:find('"content":"in the clear"', 1, true))
    assert.is_false(store.sealed)
  end)

  it("keeps sealed lines with a key of 32 bytes, and opens them with that one alone", function()
    local key = ("\0\n\255k"):rep(8)
    local sealed = assert(sessile.open(h.functions, { key = key }))
    assert.is_true(sealed.sealed)
    assert(sealed:create { id = "a", user = "u" }):append(user "squeamish")
    local kept = table.concat(h.kept["a/u"], "\n")
    assert.is_nil(kept:find("squeamish", 1, true))
    assert.truthy(kept:find('"epoch":0', 1, true))
    local again = assert(sessile.open(h.functions, { key = key }))
    assert.same({ "squeamish" }, texts(assert(again:resume { id = "a", user = "u" })))
    local _, _, code = store:resume { id = "a", user = "u" }
    assert.equal("ESEALED", code)
    local other = assert(sessile.open(h.functions, { key = ("x"):rep(32) }))
    _, _, code = other:resume { id = "a", user = "u" }
    assert.equal("ESEALED", code)
    _, _, code = sessile.open(h.functions, { key = "a passphrase of some length" })
    assert.equal("EINVALID", code)
    _, _, code = sessile.open(h.functions, { key = sessile.key.secret "no key, a passphrase" })
    assert.equal("EINVALID", code)
    _, _, code = sessile.open(h.functions, { key = sessile.key.env "HOME" })
    assert.equal("EINVALID", code)
    for _, s in ipairs { sealed, again, other } do
      s:close()
    end
  end)

  it("is given ids as the host has them", function()
    assert(store:create { session_id = "s", user_id = "u" })
    assert.same({ session_id = "s", user_id = "u" }, h.log[1][2])
    local s = assert(store:session { id = { session_id = "s", user_id = "u" } })
    assert.equal("s", s.id)
    assert.equal("u", s.user)
    assert(store:create { id = { session_id = "plain" } })
    assert.equal("plain", h.log[#h.log][2])
    assert(store:create "any\0bytes\n\255")
    assert.equal("any\0bytes\n\255", h.log[#h.log][2])
    local new = assert(store:create())
    assert.equal(36, #new.id)
    assert.equal(new.id, h.log[#h.log][2])
  end)

  it("is asked whether a session is there", function()
    local _, _, code = store:resume "a"
    assert.equal("ENOTFOUND", code)
    assert(store:session "a"):append(user "one")
    assert.same({ "one" }, texts(assert(store:session "a")))
    local _, message
    _, message, code = store:create "a"
    assert.equal("EEXISTS", code)
    assert.truthy(message:find('"a"', 1, true))
    h.kept.empty = {}
    _, _, code = store:resume "empty"
    assert.equal("ENOTFOUND", code)
  end)

  it("lists and deletes", function()
    assert(store:create "b")
    assert(store:create "a")
    local rows = assert(store:list())
    assert.equal("a", rows[1].id)
    assert.equal("b", rows[2].id)
    assert.equal(1, #assert(store:list { offset = 1 }))
    assert.equal(1, #assert(store:list { limit = 1 }))
    assert.equal("b", assert(store:list { prefix = "b" })[1].id)
    assert.is_true(store:delete "a")
    local _, message, code = store:delete "a"
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find('"a"', 1, true))
    h.answers(nil)
    assert.is_false(store:delete "b")
    h.answers { { id = { session_id = "x", user_id = "u" }, title = "T", modified = 1000 },
      { session_id = "y", modified = 2000, agent = "coder" } }
    rows = assert(store:list())
    assert.same({ "y", "coder", "x", "u", "T" },
      { rows[1].id, rows[1].agent, rows[2].id, rows[2].user, rows[2].title })
    assert.equal("y", assert(store:list { agent = "coder" })[1].id)
  end)

  it("may do without list and delete, and nothing else", function()
    local small = assert(sessile.open { load = h.functions.load, save = h.functions.save })
    for _, call in ipairs { "list", "delete", "check", "keys", "rotate", "reseal", "forget" } do
      local _, message, code = small[call](small, call ~= "list" and call ~= "check"
        and call ~= "keys" and call ~= "rotate" and call ~= "reseal" and "x" or nil)
      assert.equal("EUNSUPPORTED", code, call .. ": " .. tostring(message))
    end
    small:close()
    assert.error_matches(function() sessile.open { load = h.functions.load } end, "'save'")
    assert.error_matches(function() sessile.open { save = h.functions.save } end, "'load'")
    assert.error_matches(function()
      sessile.open { load = h.functions.load, save = h.functions.save, list = 5 }
    end, "'list'")
  end)

  -- -------------------------------------------------------------- what save may answer

  it("says false: another handle was faster, and this one is of no more use", function()
    local a, b = assert(store:create "a"), assert(store:resume "a")
    assert(a:append(user "by a"))
    local _, message, code = b:append(user "by b")
    assert.equal("ECONFLICT", code)
    assert.truthy(message:find("resume the session", 1, true))
    _, _, code = b:append(user "by b")
    assert.equal("ECONFLICT", code)
    _, _, code = b:turn { user "by b" }
    assert.equal("ECONFLICT", code)
    assert.equal(2, #h.kept.a)
    assert.is_true(b:close())
    b = assert(store:resume "a")
    assert(b:append(user "by b"))
    assert.same({ "by a", "by b" }, texts(assert(store:resume "a")))
  end)

  it("says nil: not stored, by choice, and the outcome shows it", function()
    local s = assert(store:create "a")
    h.answers(nil)
    assert.equal("00000001", s:append(user "one"))
    local outcome = assert(s:turn { user "two" })
    assert.equal("completed", outcome.status)
    assert.is_nil(outcome.saved)
    assert.equal(3, s.unsaved)
    h.answer = function() return { n = 0 } end -- nothing at all
    assert.is_nil(assert(s:turn { user "three" }).saved)
    h.answer = nil
    assert.is_true(s:save())
    assert.equal(0, s.unsaved)
    assert.same({ "one", "two", "three" }, texts(assert(store:resume "a")))
    h.answers(nil)
    assert(s:append(user "four"))
    assert.is_true(s:close())
  end)

  it("fails: what is not saved is said, and goes with the next save", function()
    local s = assert(store:create "a")
    for _, failure in ipairs {
      function() return table.pack(nil, "the table is locked") end,
      function() error "the table is locked" end,
      function()
        error(setmetatable({}, { __tostring = function() return "table is locked" end }))
      end,
    } do
      h.answer = failure
      local id, message, code = s:append(user "one")
      assert.is_nil(id)
      assert.equal("EIO", code)
      assert.truthy(message:find("table is locked", 1, true))
      assert.truthy(message:find("in this handle alone", 1, true))
    end
    assert.equal(3, s.unsaved)
    assert.equal(1, #h.kept.a)
    assert.same({ "one", "one", "one" }, texts(s))
    local _, message, code
    _, _, code = s:save()
    assert.equal("EIO", code)
    h.answer = nil
    assert(s:append(user "two"))
    assert.equal(5, #h.kept.a)
    assert.equal(0, s.unsaved)
    h.answers(nil, "gone")
    _, _, code = s:append(user "three")
    assert.equal("EIO", code)
    _, message, code = s:close()
    assert.equal("EIO", code)
    assert.truthy(message:find("with 1 unsaved records", 1, true))
    assert.is_true(s:close())
    h.answer = nil
    assert.error_matches(function()
      local t <close> = assert(store:resume "a")
      h.answers(nil, "gone")
      t:append(user "three")
    end, "unsaved records")
  end)

  it("answers rubbish: nothing is believed", function()
    local s = assert(store:create "a")
    for _, rubbish in ipairs { 1, "true", {}, print } do
      h.answers(rubbish)
      local _, message, code = s:append(user "one")
      assert.equal("EIO", code)
      assert.truthy(message:find("true, false or nil expected", 1, true))
    end
    h.answer = nil
    assert.is_true(s:save())
    for _, rubbish in ipairs { 1, false, "line", { 5 }, { id = "x" } } do
      h.answers(rubbish)
      local _, message, code = store:resume "a"
      assert.equal("EIO", code, tostring(message))
    end
    h.answers(5)
    local _, _, code = store:list()
    assert.equal("EIO", code)
    h.answers { 5 }
    _, _, code = store:list()
    assert.equal("EIO", code)
    h.answers "yes"
    _, _, code = store:delete "a"
    assert.equal("EIO", code)
    h.answers { "no record" }
    _, _, code = store:resume "a"
    assert.equal("EDAMAGED", code)
  end)

  it("fails while a session is made: there is none", function()
    h.answer = function(asked) return asked[1] == "save" and table.pack(nil, "full") or nil end
    local _, message, code = store:create "a"
    assert.equal("EIO", code)
    assert.truthy(message:find("full", 1, true))
    _, _, code = store:session "a"
    assert.equal("EIO", code)
    h.answer = function(asked) return asked[1] == "load" and table.pack(nil, "down") or nil end
    for _, way in ipairs { "create", "resume", "session" } do
      _, message, code = store[way](store, "a")
      assert.equal("EIO", code)
      assert.truthy(message:find("down", 1, true))
    end
    h.answer = nil
    assert(store:create "a")
  end)

  it("lost the race while it made a session: session opens it, create says so", function()
    local other = host()
    local theirs = assert(sessile.open(other.functions))
    assert(theirs:create "a"):append(user "theirs")
    h.answer = function(asked)
      if asked[1] == "save" then
        h.kept.a = other.kept.a
      end
    end
    assert.same({ "theirs" }, texts(assert(store:session "a")))
    h.kept.a = nil
    local _, _, code = store:create "a"
    assert.equal("ECONFLICT", code)
    theirs:close()
  end)

  -- -------------------------------------------------------------- what load may answer

  it("looks at loaded records as at a log on a disk", function()
    local s = assert(store:create "a")
    s:append(user "one")
    s:turn { user "two", user "three" }
    local good = h.kept.a
    local function with(change)
      local copy = table.move(good, 1, #good, 1, {})
      change(copy)
      h.kept.a = copy
      return store:resume "a"
    end
    local _, message, code = with(function(r) r[#r] = nil end)
    assert.equal("EDAMAGED", code)
    assert.truthy(message:find("the first 2 are whole writes", 1, true))
    local hurt = assert(with(function(r) r[2] = r[2]:gsub("one", "two") end))
    assert.equal("EDAMAGED", hurt.damage.code)
    _, _, code = hurt:append(user "four")
    assert.equal("EDAMAGED", code)
    hurt = assert(with(function(r) r[2], r[3] = r[3], r[2] end))
    assert.equal("EDAMAGED", hurt.damage.code)
    h.kept.b, h.kept.a = good, good
    _, _, code = store:resume "b"
    assert.equal("EDAMAGED", code)
    _, _, code = store:resume { id = "a", agent = "another" }
    assert.equal("EDAMAGED", code)
    assert(store:resume "a")
  end)

  -- -------------------------------------------------------------- turns, policies, models

  it("has the turn before a model is asked, and the compaction when it is done", function()
    local s = assert(store:create "a")
    for i = 1, 6 do
      s:turn { user("question " .. i), { role = "assistant", content = "answer " .. i } }
    end
    local before
    local outcome = assert(s:turn({ user "last" }, {
      policy = { summarize = function(state, ctx)
        state:insert(1, { role = "user", content = assert(ctx.model { messages = {} }) },
          { covers = { 1, 4 } })
      end },
      model = function()
        before = #h.kept.a
        return "the gist"
      end,
    }))
    assert.is_true(outcome.saved)
    assert.truthy(before and before >= 1 + 6 * 3)
    assert.equal(0, s.unsaved)
    assert.same(texts(s), texts(assert(store:resume "a")))
    assert.equal(#s:context(), #assert(store:resume "a"):context())
  end)

  it("keeps what a run has written when it is stepped by hand", function()
    local s = assert(store:create "a")
    local run = assert(sessile.step(s, "turn", { user "one" }))
    assert.is_true(run:step())
    assert.equal(3, #h.kept.a)
    assert.is_true(run:outcome().saved)
    run:close()
  end)

  it("takes sends; one that was not saved is sent again by save, once", function()
    local s = assert(store:create { id = "a", model = function() return "yes" end })
    assert.equal("completed", assert(s:send "really?").status)
    local saved = #h.kept.a
    local calls = 0
    h.answer = function(asked)
      if asked[1] == "save" then
        calls = calls + 1
        return calls > 1 and table.pack(nil, "down") or nil -- the reply is not taken
      end
    end
    local outcome = s:send "and now?"
    assert.equal("failed", outcome.status)
    assert.equal("EIO", outcome.code)
    h.answer = nil
    assert.is_true(s:save())
    assert.is_nil(s:save())
    assert.is_true(#h.kept.a > saved)
    assert.same({ "really?", "yes", "and now?", "yes" }, texts(assert(store:resume "a")))
  end)

  it("keeps children, and what their parent says of them", function()
    local s = assert(store:create { id = "p" })
    assert(s:append(user "one"))
    local child = assert(s:child { id = "c" })
    assert(child:append(user "two"))
    assert(child:merge { summary = "done" })
    assert(assert(s:child { id = "d", context = true }):discard())
    assert.equal(0, s.unsaved)
    assert(store:close())
    store = assert(sessile.open(h.functions))
    s = assert(store:resume "p")
    local messages = s:messages()
    assert.equal("done", messages[2].content)
    local rows = assert(s:subsessions())
    assert.equal("merged", rows[1].state)
    assert.equal("discarded", rows[2].state)
    assert.equal("p", assert(store:resume "c").parent.id)
    assert.equal("one", assert(store:resume "d"):messages()[1].content)
    assert(store:close())
  end)

  it("keeps forks, and copies of sessions of other stores", function()
    local s = assert(store:create { id = "a", title = "First" })
    assert(s:append(user "one"))
    local at = assert(s:append(user "two"))
    assert(s:append(user "three"))
    local fork = assert(s:fork(at, { id = "b" }))
    assert.same({ "one", "two" }, texts(fork))
    assert.equal(0, fork.unsaved)
    assert(fork:append(user "else"))
    assert.same({ "one", "two", "three" }, texts(s))
    assert.same({ "one", "two", "else" }, texts(assert(store:resume "b")))
    assert.equal("a", assert(store:resume "b").origin.id)
    local _, _, code = s:fork(at, { id = "b" })
    assert.equal("EEXISTS", code)
    assert(s:fork(nil, { id = "c" })) -- what was made and refused is not in the way
    h.answer = function(asked) return asked[1] == "save" and table.pack(nil, "full") or nil end
    _, _, code = s:fork(at, { id = "d" })
    assert.equal("EIO", code)
    h.answer = nil
    assert(s:fork(at, { id = "d" }))

    local ram = assert(sessile.open "ram:")
    local copy = assert(ram:put(s))
    assert.same({ "one", "two", "three" }, texts(copy))
    assert(copy:append(user "four"))
    local back = assert(store:put(copy, { id = "e" }))
    assert.equal("First", back.title)
    assert.same({ "one", "two", "three", "four" }, texts(assert(store:resume "e")))
    _, _, code = store:put(copy)
    assert.equal("EEXISTS", code)
    ram:close()
  end)

  it("keeps labels, settings and pauses", function()
    local s = assert(store:create "a")
    local id = assert(s:append(user "one"))
    local before = #h.kept.a
    assert(s:label(id, "here"))
    assert(s:settings { model = "m" })
    assert(s:suspend { reason = "lunch" })
    assert.is_true(#h.kept.a >= before + 3)
    assert.equal(0, s.unsaved)
    s = assert(store:resume "a")
    assert.equal("m", assert(s:settings()).model)
    local _, _, code = s:turn { user "two" }
    assert.equal("ESUSPENDED", code)
    h.answers(nil, "down") -- what only reads asks nobody
    assert(s:settings())
    assert(s:labels())
  end)

  it("has a run that is pending, and the answer to it", function()
    local policy = { { "summarize", preserve_recent = 2 } }
    local s = assert(store:create { id = "a", policy = policy })
    for i = 1, 6 do
      s:turn({ user(("question "):rep(20) .. i), { role = "assistant", content = "yes" } },
        { policy = false })
    end
    local run = assert(sessile.step(s, "compact"))
    local need = assert(run:step())
    assert.equal("model", need.kind)
    assert(run:defer())
    run:close()
    assert.equal(0, s.unsaved)
    s = assert(store:resume { id = "a", policy = policy })
    assert.equal(1, #assert(s:pending_runs()))
    assert(s:answer "In short: six questions.")
    assert.equal(0, s.unsaved)
    s = assert(store:resume "a")
    assert.equal(0, #assert(s:pending_runs()))
    assert.truthy(s:context()[1].content:find("six questions", 1, true))
  end)

  -- -------------------------------------------------------------- later

  describe("that yields", function()
    -- Runs f in a coroutine; each yield of the host is resumed by `go`.
    local function start(f)
      local co = coroutine.create(f)
      local result
      local function go(...)
        result = table.pack(coroutine.resume(co, ...))
        assert(result[1], result[2])
        return table.unpack(result, 2, result.n)
      end
      return go, co
    end

    -- A session, whose host yields from here on.
    local function created()
      h.answer = nil
      local s = assert(store:create "a")
      h.answer = function() coroutine.yield() end
      return s
    end

    -- The session goes on: both messages are kept.
    local function has_both(s)
      assert(s:append(user "two"))
      assert.same({ "one", "two" }, texts(assert(store:resume "a")))
    end

    before_each(function()
      h.answer = function(asked)
        coroutine.yield(asked[1])
      end
    end)

    it("is waited for by every call, and by nobody else", function()
      local go, co = start(function()
        local s = assert(store:create "a")
        assert(s:append(user "one"))
        s.title = "T"
        local outcome = assert(s:turn { user "two" })
        assert(store:list())
        assert(store:delete "a")
        return outcome.saved
      end)
      local order = {}
      local result = go()
      while coroutine.status(co) ~= "dead" do
        order[#order + 1] = result
        result = go()
      end
      assert.is_true(result)
      assert.same({ "load", "save", "save", "save", "save", "list", "delete" }, order)
    end)

    it("is not given a second save of a session before the first is answered", function()
      local s
      local make, made = start(function() s = assert(store:create "a") end)
      repeat make() until coroutine.status(made) == "dead"
      local first, co = start(function() return s:append(user "one") end)
      assert.equal("save", first())
      assert.same({ "one" }, texts(s)) -- reading goes on
      local _, message, code = s:append(user "two")
      assert.equal("EBUSY", code)
      assert.truthy(message:find("nothing was done", 1, true))
      assert.equal("00000001", first())
      assert.equal("dead", coroutine.status(co))
      h.answer = nil
      has_both(s)
    end)

    it("may be abandoned: the next save sends the same again", function()
      local s = created()
      local go, co = start(function() return s:append(user "one") end)
      go()
      assert(coroutine.close(co))
      h.answer = nil
      assert.equal(1, s.unsaved)
      has_both(s)
    end)

    it("answers when the session is closed, or the store", function()
      local s = created()
      local go = start(function() return s:append(user "one") end)
      go()
      s:close()
      assert.equal("00000001", go())
      go = start(function() return store:resume "a" end)
      go()
      store:close()
      local _, _, code = go()
      assert.equal("ECLOSED", code)
      assert.equal(2, #h.kept.a)
    end)
  end)
end)
