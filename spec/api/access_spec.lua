-- What is given to users in Lua: roles, grants, access keys, locks.
-- Own guard: it sets them.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local function refusal(code, part, ...)
  expect.has(expect.refused(code, ...), part)
end

local function say(s, text)
  return s:append { role = "user", content = text or "hello" }
end

-- A store with a guard, closed with the views that a test has made of it.
local function guarded()
  local store = assert(sessile.open("ram:", { key = false, policy = "sliding_window" }))
  assert(store:guard())
  local function view(credential)
    local made = assert(store:as(credential))
    finally(function() made:close() end)
    return made
  end
  return store, view
end

describe("the roles of a view", function()
  -- What each may do on a session of its own: viewer, editor, admin.
  local matrix = {
    { "messages", true, true, true, function(s) return s:messages() end },
    { "context", true, true, true, function(s) return s:context() end },
    { "tree", true, true, true, function(s) return s:tree() end },
    { "labels", true, true, true, function(s) return s:labels() end },
    { "plan", true, true, true, function(s) return s:plan() end },
    { "append", false, true, true, function(s) return say(s) end },
    { "turn", false, true, true,
      function(s) return s:turn { { role = "user", content = "x" } } end },
    { "label", false, true, true, function(s) return s:label(s:head(), "here") end },
    { "settings", false, true, true, function(s) return s:settings { model = "m" } end },
    { "compact", false, true, true, function(s) return s:compact() end },
    { "checkpoint", false, true, true, function(s) return s:checkpoint { name = "c" } end },
    { "suspend", false, true, true, function(s) return s:suspend { reason = "why" } end },
    { "list", true, true, true, function(_, view) return view:list() end },
    { "resume", true, true, true, function(_, view) return view:resume "a" end },
    { "grants", true, true, true, function(_, view) return view:grants() end },
    { "create", false, true, true, function(_, view) return view:create() end },
    { "memory", true, true, true,
      function(_, view) return view:memory { user = "ann" }:list() end },
    { "remember", false, true, true,
      function(_, view)
        local m, message, code = view:memory { user = "ann", consent = "yes" }
        if not m then
          return nil, message, code
        end
        return m:write("k", "v")
      end },
    { "access_keys", false, false, true, function(_, view) return view:access_keys() end },
    { "lock", false, false, true, function(_, view) return view:lock { user = "zoe" } end },
    { "check", false, false, true, function(_, view) return view:check() end },
    { "purge", false, false, true, function(_, view) return view:purge() end },
    { "delete", false, false, true, function(_, view) return view:delete "a" end },
  }

  for column, role in ipairs { "viewer", "editor", "admin" } do
    it(("let a %s do what it may, and nothing else"):format(role), function()
      local store, view = guarded()
      finally(function() store:close() end)
      local editor = view { user = "ann", roles = "editor" }
      say(assert(editor:session "a"))
      assert(editor:memory { user = "ann" }):close() -- which a viewer could not make
      local of_ann = view { user = "ann", roles = role }
      for _, row in ipairs(matrix) do
        local s = assert(of_ann:resume { id = "a", user = "ann" })
        local which = of_ann
        if role == "admin" and (row[1] == "resume" or row[1] == "delete") then
          which = setmetatable({}, { __index = function(_, name)
            return function(_, id) return of_ann[name](of_ann, { id = id, user = "ann" }) end
          end })
        end
        local value, message, code = row[5](s, which)
        if row[1 + column] then
          assert.truthy(value, ("%s: %s"):format(row[1], message))
        else
          assert.is_nil(value, row[1])
          assert.equal("EDENIED", code, row[1])
        end
        s:close()
      end
    end)
  end
end)

describe("a grant", function()
  local store, view

  before_each(function() store, view = guarded() end)
  after_each(function() store:close() end)

  it("adds a role until it is ended", function()
    local bob = view { user = "bob" }
    refusal("EDENIED", "view_session", bob:list())
    local id = assert(store:grant { user = "bob", role = "editor" })
    assert(say(bob:session "a"))
    local row = assert(store:grants())[1]
    assert.same({ id, "bob", "editor" }, { row.id, row.user, row.role })
    assert(store:ungrant(id))
    refusal("EDENIED", "view_session", bob:list())
    refusal("ENOTFOUND", "in force", store:ungrant(id))
    refusal("ENOTFOUND", "no grant has the id", store:ungrant "bug-42")
    assert.same({}, store:grants())
  end)

  it("lets a user share one session of its own", function()
    local ann = view { user = "ann", roles = "editor" }
    local bob = view { user = "bob", roles = "editor" }
    say(assert(ann:session "bug"))
    say(assert(ann:session "other"))
    local id = assert(ann:grant { user = "bob", role = "viewer", session = "bug" })
    local s = assert(bob:resume { id = "bug", user = "ann" })
    assert.equal(1, #s:messages())
    refusal("EDENIED", "modify_session", say(s))
    refusal("EDENIED", "not yours", bob:resume { id = "other", user = "ann" })
    assert.same({ "bug", "ann" }, { bob:grants()[1].session, bob:grants()[1].owner })
    assert.equal(0, #bob:list())
    assert(ann:ungrant(id))
    refusal("EDENIED", "not accepted", s:messages())
    refusal("EDENIED", "manage_access", ann:grant { user = "bob", role = "viewer" })
    refusal("EDENIED", "do not have",
      ann:grant { user = "bob", role = "admin", session = "bug" })
  end)

  it("is given to holders of a role, and for some agents", function()
    assert(store:grant { holders = "viewer", role = "editor", agents = { "code*" } })
    local bob = view { user = "bob", roles = "viewer" }
    assert(say(bob:session { id = "a", agent = "coder" }))
    refusal("EDENIED", "create_session", bob:create { id = "a", agent = "main" })
    assert.same({ "code*" }, store:grants()[1].agents)
    refusal("EINVALID", "would have ended",
      store:grant { user = "bob", role = "viewer", ["until"] = 1 })
    refusal("EINVALID", "no role", store:grant { user = "bob", role = "wizard" })
    assert.error_matches(function() store:grant { user = "bob" } end, "'role' is missing")
  end)
end)

describe("an access key", function()
  local store, view

  before_each(function() store, view = guarded() end)
  after_each(function() store:close() end)

  it("is shown once, and says who one is", function()
    local key = assert(store:access_key { user = "ann", roles = "editor", label = "laptop" })
    assert.matches("^sesk_%w+_%w+_%w+$", key)
    local ann = view { key = key, source = "10.0.0.1" }
    assert(say(ann:session "a"))
    assert.same({ "ann", "key" }, { ann:who().user, ann:who().method })
    local row = store:access_keys()[1]
    assert.same({ "ann", { "editor" }, "laptop" }, { row.user, row.roles, row.label })
    assert.equal(row.id, ann:who().key)
    assert.is_nil(row.hash)
    assert(store:revoke_key(row.id))
    refusal("EDENIED", "not accepted", ann:list())
    refusal("EDENIED", "the credential is not accepted", store:as { key = key })
    refusal("ENOTFOUND", "no such access key", store:revoke_key(row.id))
  end)

  it("is refused with one sentence, whatever is wrong", function()
    local key = assert(store:access_key { user = "ann", roles = "editor", device = "laptop" })
    for _, wrong in ipairs { "x", key:sub(1, -2), key .. "a", key:upper(), (key:gsub("_", "-")) } do
      assert.equal("the credential is not accepted",
        expect.refused("EDENIED", store:as { key = wrong }))
    end
    refusal("EDENIED", "the credential is not accepted", store:as { key = key })
    view { key = key, device = "laptop" }
    refusal("EINVALID", "one thing", store:as { key = key, user = "ann" })
  end)
end)

describe("a lock", function()
  it("refuses a user, or a key, until it is ended", function()
    local store, view = guarded()
    finally(function() store:close() end)
    local ann = view { user = "ann", roles = "editor" }
    local key = assert(store:access_key { user = "bob", roles = "viewer" })
    local bob = view { key = key }
    assert(store:lock { user = "ann", reason = "left" })
    assert(store:lock { key = bob:who().key })
    refusal("EDENIED", "not accepted", ann:list())
    refusal("EDENIED", "not accepted", bob:list())
    refusal("EDENIED", "not accepted", store:as { user = "ann" })
    local locks = assert(store:locks())
    assert.same({ "ann", "left" }, { locks[1].user, locks[1].reason })
    assert(store:unlock { user = "ann" })
    assert(ann:list())
    refusal("ENOTFOUND", "no such lock", store:unlock { user = "ann" })
    refusal("EINVALID", "name one", store:lock {})
  end)
end)

describe("a store that stays guarded", function()
  temp.each_test()

  it("refuses whoever opens it without its guard", function()
    local path = temp.url(temp.dir() .. "/store")
    local opts = { key = false }
    local store = assert(sessile.open(path, opts))
    assert(say(store:session "a"))
    assert(store:guard { profile = "standard" })
    store:close()
    store = assert(sessile.open(path, opts))
    refusal("EDENIED", "guarded", store:list())
    refusal("EDENIED", "guarded", store:resume "a")
    assert(store:guard())
    assert.equal(1, #store:list())
    store:close()
    store = assert(sessile.open(path, opts))
    assert(store:guard { off = true })
    assert.equal(1, #store:list())
    store:close()
    store = assert(sessile.open(path, opts))
    assert.equal(1, #store:list())
    store:close()
  end)

  it("does not show what was granted as a session, and checks it", function()
    local path = temp.url(temp.dir() .. "/store")
    local store = assert(sessile.open(path, { key = false }))
    assert(store:guard())
    assert(store:grant { user = "bob", role = "viewer" })
    assert.equal(0, #store:list())
    local report = assert(store:check())
    assert.is_true(report.ok)
    store:close()
    store = assert(sessile.open(path, { key = false }))
    assert(store:guard())
    assert.equal("bob", store:grants()[1].user)
    store:close()
  end)
end)
