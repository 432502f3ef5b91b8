-- The minimal session: an id, messages in order, copies, clear; over each kind of store.

local stores = require "spec.support.stores"
local sessile = require "sessile"
local user = require("spec.support.messages").user

stores.each_kind("a session in", function(open)
  local store

  before_each(function()
    store = open()
  end)

  it("is new: it has an id and no messages", function()
    local s = assert(store:create())
    assert.is_string(s.id)
    assert.not_equal("", s.id)
    assert.same({}, assert(s:messages()))
  end)

  it("has an id of its own", function()
    local seen = {}
    for _ = 1, 100 do
      local s = assert(store:create())
      assert.is_nil(seen[s.id])
      seen[s.id] = true
      assert(s:close())
    end
  end)

  it("keeps its id, which is a UUID of version 7 unless version 4 is asked for", function()
    local s = assert(store:create())
    local id = s.id
    assert(s:append(user "hello"))
    assert.equal(id, s.id)
    assert.matches("^%x+%-%x+%-7%x+%-[89ab]%x+%-%x+$", id)
    assert.matches("^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$",
      assert(store:create { uuid = "v4" }).id)
  end)

  it("gives a message back with all its fields", function()
    local s = assert(store:create())
    local given = {
      role = "tool", content = "42", tool_call_id = "call_1", timestamp = 1700000000123,
      author = "calculator", metadata = { exact = true },
    }
    local id = assert(s:append(given))
    local list = assert(s:messages())
    assert.equal(1, #list)
    assert.same(given, list[1])
    assert.equal(id, list[1].id)
    assert.is_true(list[1].tokens > 0)
  end)

  it("keeps messages in the order of insertion", function()
    local s = assert(store:create())
    for i = 1, 50 do
      assert(s:append(user("message " .. i)))
    end
    for i, m in ipairs(assert(s:messages())) do
      assert.equal("message " .. i, m.content)
    end
  end)

  it("takes each role", function()
    local s = assert(store:create())
    local roles = { "system", "developer", "user", "assistant", "model", "tool", "function" }
    for _, role in ipairs(roles) do
      assert(s:append { role = role, content = role })
    end
    for i, m in ipairs(assert(s:messages())) do
      assert.equal(roles[i], m.role)
    end
    for _, role in ipairs(roles) do
      local only = assert(s:messages { role = role })
      assert.equal(1, #only)
      assert.equal(role, only[1].content)
    end
  end)

  it("keeps calls and their results", function()
    local s = assert(store:create())
    local calls = {
      { id = "a", name = "read", arguments = '{"path":"x"}' },
      { id = "b", name = "list", arguments = "{}" },
    }
    assert(s:append { role = "assistant", content = "", tool_calls = calls })
    assert(s:append { role = "tool", tool_call_id = "a", content = "text" })
    local list = assert(s:messages())
    assert.same(calls, list[1].tool_calls)
    assert.equal("a", list[2].tool_call_id)
  end)

  it("hands out a list of its own", function()
    local s = assert(store:create())
    assert(s:append(user "one"))
    local list = assert(s:messages())
    list[1].content = "changed"
    list[2] = user "made up"
    assert.same({ user "one" }, assert(s:messages()))
  end)

  it("hands out calls of its own", function()
    local s = assert(store:create())
    assert(s:append { role = "assistant", content = "",
      tool_calls = { { id = "a", name = "read", arguments = "{}" } } })
    local list = assert(s:messages())
    list[1].tool_calls[1].name = "changed"
    list[1].tool_calls[2] = { id = "b", name = "more", arguments = "{}" }
    local again = assert(s:messages())
    assert.equal(1, #again[1].tool_calls)
    assert.equal("read", again[1].tool_calls[1].name)
  end)

  it("takes a copy of what it is given", function()
    local s = assert(store:create())
    local message = { role = "user", content = "one", metadata = { n = 1 } }
    assert(s:append(message))
    message.content = "changed"
    message.metadata.n = 2
    assert.same({ { role = "user", content = "one", metadata = { n = 1 } } },
      assert(s:messages()))
  end)

  it("is empty after clear, and the log remains", function()
    local s = assert(store:create())
    assert(s:append(user "one"))
    assert.is_true(s:clear())
    assert.same({}, assert(s:messages()))
    assert.same({}, (assert(s:context())))
    local found
    for entry in s:entries { types = { "message" } } do
      found = entry
    end
    assert.equal("one", found.data.content)
  end)

  it("takes messages and facts in one commit, or none of them", function()
    local s = assert(store:create())
    local ids = assert(s:write {
      { custom = { n = 0 } },
      { message = user "one" },
      { custom = sessile.json '{"n":1}', source = "agent" },
      { message = sessile.json '{"role":"user","content":"two"}' },
    })
    assert.same({ "00000001", "00000002", "00000003", "00000004" }, ids)
    assert.same({ user "one", user "two" }, assert(s:messages()))
    assert.equal("00000002", s:entry("00000003").parent_id)
    assert.same({ n = 1 }, s:entry("00000003").data)
    assert.equal("agent", s:entry("00000003").source)
    assert.equal(ids[4], s:head())
    for _, bad in ipairs { { message = { role = "nobody" } }, { custom = { 1 } },
      { custom = {}, source = "policy" } } do
      local got, message, code = s:write { { message = user "three" }, bad }
      assert.is_nil(got)
      assert.is_string(message)
      assert.equal("EINVALID", code)
    end
    assert.equal("EINVALID", select(3, s:write {}))
    assert.equal("ECONFLICT", select(3, s:write({ { custom = { n = 2 } } }, { base = ids[2] })))
    assert.equal(2, #s:messages())
    assert.same({ "00000005" }, s:write({ { custom = { n = 2 } } }, { base = ids[4] }))
  end)

  it("shows what came since an entry, and the newest of a type", function()
    local function shown(given)
      local ids = {}
      for entry in assert(store:resume("log"):entries(given)) do
        ids[#ids + 1] = tonumber(entry.id, 16)
      end
      return ids
    end
    local s = assert(store:create { id = "log" })
    for i = 1, 3 do
      assert(s:append(user("message " .. i)))
      assert(s:custom { n = i })
    end
    assert(s:label("00000004", "second"))
    assert.same({ 0, 1, 2, 3, 4, 5, 6, 7 }, shown())
    assert.same({ 5, 6, 7 }, shown { after = "second" })
    assert.same({ 5, 6 }, shown { after = "00000004", before = "00000007" })
    assert.same({ 7, 6, 5 }, shown { after = "00000004", reverse = true })
    assert.same({ 6, 4 }, shown { types = { "custom" }, reverse = true, limit = 2 })
    assert.same({}, shown { after = "00000007" })
    for _, given in ipairs { { after = "00000008" }, { types = { "massage" } } } do
      local iterator, message, code = s:entries(given)
      assert.is_nil(iterator)
      assert.matches("entr", message)
      assert.equal("EINVALID", code)
    end
    assert.equal("ENOTFOUND", select(3, s:entries { after = "third" }))
  end)

  it("takes messages after clear", function()
    local s = assert(store:create())
    assert(s:append(user "one"))
    assert(s:clear())
    assert(s:append(user "two"))
    assert.same({ user "two" }, assert(s:messages()))
  end)

  -- Lua has no threads: the same interleavings come from handles and coroutines.
  it("keeps every message of 100 writers that take turns", function()
    local id = assert(store:create()).id
    local writers = {}
    for i = 1, 100 do
      local s = assert(store:resume(id))
      writers[i] = coroutine.wrap(function()
        assert(s:append(user("a" .. i)))
        coroutine.yield()
        assert(s:append(user("b" .. i)))
        assert(s:close())
      end)
    end
    for _ = 1, 2 do
      for i = 1, 100 do
        writers[i]()
      end
    end
    local seen, list = {}, assert(assert(store:resume(id)):messages())
    for _, m in ipairs(list) do
      seen[m.content] = true
    end
    assert.equal(200, #list)
    for i = 1, 100 do
      assert.is_true(seen["a" .. i] and seen["b" .. i])
    end
  end)

  it("shows each reader a whole prefix while others write", function()
    local writer = assert(store:create())
    local reader = assert(store:resume(writer.id))
    for i = 1, 30 do
      assert(writer:append(user(tostring(i))))
      local list = assert(reader:messages())
      assert.equal(i, #list)
      assert.equal(tostring(i), list[i].content)
    end
  end)

  it("survives clear between the writes of others", function()
    local one = assert(store:create())
    local two = assert(store:resume(one.id))
    for i = 1, 20 do
      assert(one:append(user(tostring(i))))
      if i % 5 == 0 then
        assert(two:messages())
        assert(two:clear())
        assert(one:messages())
      end
    end
    assert.same({}, assert(two:messages()))
    assert(two:append(user "after"))
    assert.same({ user "after" }, assert(one:messages()))
  end)
end)

describe("who acted", function()
  local function users(s)
    local found = {}
    for entry in s:entries() do
      found[#found + 1] = entry.type == "session" and "(header)" or entry.user or "nobody"
    end
    return found
  end

  it("is in every entry of a user's session, and in none of a session of no user", function()
    local store <close> = assert(sessile.open("ram:", { key = false }))
    for _, who in ipairs { "ann", false } do
      local s = assert(store:create { id = "a", user = who or nil })
      s:append { role = "user", content = "one", author = "bob" }
      s:turn { { role = "user", content = "two" } }
      s:custom { n = 1 }
      s:label("00000001", "here")
      s:set_title "T"
      local all = users(s)
      assert.equal("(header)", table.remove(all, 1))
      assert.truthy(#all >= 6)
      for _, one in ipairs(all) do
        assert.equal(who or "nobody", one)
      end
      assert.equal("bob", s:entry("00000001").author)
    end
  end)

  it("stays what it was in a fork for somebody else", function()
    local store <close> = assert(sessile.open("ram:", { key = false }))
    local s = assert(store:create { id = "a", user = "ann" })
    s:append { role = "user", content = "one" }
    local fork = assert(s:fork { id = "b", user = "bob", title = "other" })
    fork:append { role = "user", content = "two" }
    local all = users(fork)
    assert.equal("ann", all[2])
    assert.equal("bob", all[#all])
  end)

  it("is a table where the name is not UTF-8", function()
    local store <close> = assert(sessile.open("ram:", { key = false }))
    local s = assert(store:create { id = "a", user = "\xff\xfe" })
    local id = s:append { role = "user", content = "one" }
    assert.equal("//4=", s:entry(id).user.b64)
    assert.equal("one", s:messages()[1].content)
  end)
end)

describe("a handle", function()

  it("says so when it is used after it was closed", function()
    local store = assert(sessile.open("ram:"))
    local s = assert(store:create { id = "x" })
    assert(s:close())
    assert(s:close())
    for _, call in ipairs {
      function() return s:append(user "one") end,
      function() return s:turn { user "one" } end,
      function() return s:messages() end,
      function() return s:context() end,
      function() return s:compact {} end,
      function() return s:plan {} end,
      function() return s:clear() end,
      function() return s:entries() end,
      function() return s:head() end,
      function() return s:usage() end,
    } do
      local value, message, code = call()
      assert.is_nil(value)
      assert.is_string(message)
      assert.equal("ECLOSED", code)
    end
    assert.equal("x", s.id)
    assert.matches("closed", tostring(s))
    assert(store:close())
    local value, _, code = store:create()
    assert.is_nil(value)
    assert.equal("ECLOSED", code)
  end)

  it("of a session is closed with its store", function()
    local store = assert(sessile.open("ram:"))
    local s = assert(store:create())
    assert(store:close())
    local value, _, code = s:append(user "one")
    assert.is_nil(value)
    assert.equal("ECLOSED", code)
  end)

  it("is closed at the end of its block", function()
    local kept
    do
      local store <close> = assert(sessile.open("ram:"))
      local s <close> = assert(store:create())
      assert(s:append(user "one"))
      kept = s
    end
    assert.is_nil((kept:messages()))
  end)

  it("may be collected in any order", function()
    for _ = 1, 20 do
      local store = assert(sessile.open("ram:"))
      local s = assert(store:create())
      assert(s:append(user "one"))
      local run = assert(sessile.step(s, "turn", { user "two" }))
      local iterator = assert(s:entries())
      assert.equal("session", iterator().type)
      assert.is_truthy(run)
    end
    collectgarbage()
    collectgarbage()
  end)

  it("raises for misuse, on the caller's line", function()
    local store = assert(sessile.open("ram:"))
    local s = assert(store:create())
    assert.has_error(function() store:session() end)
    assert.has_error(function() store:resume {} end)
    assert.has_error(function() store:create { titel = "x" } end)
    assert.has_error(function() s:append "text" end)
    assert.has_error(function() s:turn(user "not a list") end)
    assert.has_error(function() s:turn { "text" } end)
    assert.has_error(function() s:entry(1) end)
    assert.equal("ENOTFOUND", select(3, s:entry "not an id"))
    assert.has_error(function() s.titel = "x" end)
    assert.has_error(function() sessile.open(1) end)
    assert.has_error(function() sessile.open("ram:", { key = "secret" }) end)
    local _, message = pcall(function() s:messages { lasst = 1 } end)
    assert.matches("session_spec.lua:%d+: .*'lasst', did you mean 'last'", message)
    store:close()
  end)
end)
