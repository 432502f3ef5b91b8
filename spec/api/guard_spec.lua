-- The guard of a store in Lua: views, what they may, and whose sessions they see.
-- Own guard: it sets them.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local function refusal(code, part, ...)
  expect.has(expect.refused(code, ...), part)
end

describe("a store with a guard", function()
  local store

  before_each(function()
    store = assert(sessile.open("ram:", { key = false, policy = "sliding_window" }))
    assert(store:guard { roles = {
      support = { "view_session", "read_memory", all = true },
    } })
  end)
  after_each(function() store:close() end)

  local function view(user, roles)
    local made = assert(store:as { user = user, roles = roles })
    finally(function() made:close() end)
    return made
  end

  it("gives each user a namespace", function()
    local ann, bob = view("ann", "editor"), view("bob", "editor")
    local s = assert(ann:session "bug-42")
    assert(s:append { role = "user", content = "hello" })
    assert.equal("ann", s.user)
    refusal("ENOTFOUND", "bug-42", bob:resume "bug-42")
    refusal("EDENIED", "not yours", bob:resume { id = "bug-42", user = "ann" })
    refusal("EDENIED", "not yours", bob:resume { id = "none", user = "ann" })
    assert.equal(0, #bob:list())
    assert.equal(1, #ann:list())
    assert.equal(1, #store:list())
    assert.equal("hello", store:resume { id = "bug-42", user = "ann" }:messages()[1].content)
  end)

  it("runs turns under the policy of the store", function()
    local ann = view("ann", "editor")
    local s = assert(ann:session "a")
    assert(s:turn { { role = "user", content = "hello" } })
    refusal("EDENIED", "host's own handle", s:compact { policy = "summarize" })
    assert(s:compact())
  end)

  it("asks for the permissions of roles, its own and the store's", function()
    local s = assert(view("ann", "editor"):session "a")
    assert(s:append { role = "user", content = "hello" })
    local support = view("sue", "support")
    local read = assert(support:resume { id = "a", user = "ann" })
    assert.equal(1, #read:messages())
    refusal("EDENIED", "modify_session", read:append { role = "user", content = "x" })
    refusal("EDENIED", "delete_session", support:delete { id = "a", user = "ann" })
    refusal("EINVALID", "wizard", store:as { user = "ann", roles = "wizard" })
  end)

  it("tells who a view is of, and what it can", function()
    local ann = assert(store:as { user = "ann", roles = { "viewer" }, agents = "code*",
      actor = "bot" })
    local who = assert(ann:who())
    assert.same({ "view_session", "read_memory" }, who.permissions)
    assert.same({ "ann", "bot", false, false, { "code*" } },
      { who.user, who.actor, who.all, who.host, who.agents })
    assert.is_true(assert(store:who()).host)
    assert.is_true(ann:can("view_session", { agent = "coder" }))
    assert.is_false(ann:can "view_session") -- the agent "main"
    assert.is_false(ann:can("view_session", { agent = "coder", user = "bob" }))
    assert.is_false(ann:can("modify_session", { agent = "coder" }))
    assert.error_matches(function() ann:can "fly" end, "no permission 'fly'")
    assert.is_true(assert(sessile.open("ram:", { key = false })):can "delete_session")
    ann:close()
  end)

  it("ends a view, and those that were made from it", function()
    local ann = view("ann", "editor")
    local narrow = assert(ann:as { user = "ann", roles = "viewer" })
    local s = assert(ann:session "a")
    refusal("EDENIED", "same user", ann:as { user = "bob" })
    assert(ann:revoke())
    refusal("EDENIED", "not accepted", s:append { role = "user", content = "x" })
    refusal("EDENIED", "not accepted", narrow:list())
    narrow:close()
  end)

  it("lets an expired view pass again when it is renewed", function()
    local ann = view("ann", "editor")
    refusal("EINVALID", "expired already", store:renew(ann, 1))
    refusal("EINVALID", "expired already", store:as { user = "ann", expires = 1 })
    assert(store:renew(ann, 4102444800000))
    assert.equal(4102444800000, ann:who().expires)
    refusal("EDENIED", "does not renew itself", ann:renew(0))
    refusal("EDENIED", "does not renew itself", ann:renew(ann, 0))
    refusal("EINVALID", "no view", store:renew(0))
  end)

  it("keeps the store open while a view is", function()
    local other = assert(sessile.open("ram:", { key = false }))
    assert(other:guard())
    local ann = assert(other:as { user = "ann", roles = "editor" })
    other:close()
    assert(ann:session("a"):append { role = "user", content = "x" })
    assert.equal(1, #ann:list())
    ann:close()
    refusal("ECLOSED", "closed", ann:list())
  end)

  it("shows a view the memory of its user, and that of the agent to read", function()
    local ann, admin = view("ann", "editor"), view("eve", "admin")
    assert(store:memory { consent = "yes", user = "ann" }:write("editor", "vim"))
    assert.equal("vim", ann:memory { user = "ann" }:read "editor".value)
    refusal("EDENIED", "not yours", ann:memory { user = "bob" })
    assert(admin:memory():write("rule", "tests first"))
    assert.equal("tests first", ann:memory():read "rule".value)
    refusal("EDENIED", "scope all", ann:memory():write("rule", "none"))
  end)

  it("remembers for the user alone, under the policy of the store", function()
    finally(temp.clean)
    local path = temp.dir() .. "/eager.lua"
    temp.write(path, [[return { name = "eager", version = 1, remember = function(said, ctx)
      for _, row in ipairs(ctx.memory.list() or {}) do ctx.memory.delete(row) end
      ctx.memory.write { value = said[1].content, from = said[1] }
    end }]])
    local owner = assert(sessile.open("ram:", { key = false, memory = { policy = path } }))
    assert(owner:guard())
    assert(owner:memory():write("rule", "of the agent"))
    local ann = assert(owner:as { user = "ann", roles = "editor" })
    local s = assert(ann:session "a")
    assert(s:append { role = "user", content = "I like tea" })
    s:remember() -- without consent there is only the agent's memory, which is not ann's to write
    assert.equal("of the agent", owner:memory():list()[1].value)
    assert.equal(1, #owner:memory():list())
    assert(s:memory { consent = "yes" })
    assert.equal("applied", assert(s:remember()).verdict)
    assert.equal("I like tea", owner:memory { user = "ann" }:list()[1].value)
    assert.equal("of the agent", owner:memory():list()[1].value)
    assert.equal(1, #owner:memory():list())
    ann:close()
    owner:close()
  end)

  it("may want a principal for everything", function()
    local strict = assert(sessile.open("ram:", { key = false }))
    assert(strict:guard { require_principal = true })
    refusal("EDENIED", "make a view", strict:session "a")
    local ann = assert(strict:as { user = "ann", roles = "editor" })
    assert(ann:session "a")
    ann:close()
    strict:close()
  end)

  it("has one guard, and refuses what is no role", function()
    refusal("EINVALID", "already", store:guard())
    local other = assert(sessile.open("ram:", { key = false }))
    refusal("EINVALID", "view_sessions", other:guard { roles = { x = { "view_sessions" } } })
    refusal("EINVALID", "no guard", other:as { user = "ann" })
    assert.error_matches(function() other:guard { roles = { x = "view" } } end, "role \"x\"")
    assert.error_matches(function() other:guard { rolls = {} } end, "roles")
    other:close()
  end)
end)
