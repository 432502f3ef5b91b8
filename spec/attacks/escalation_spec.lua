-- A view tries to do more than it was given, or than it still has. Own guard: it sets one.

local attacks = require "spec.support.attacks"
local expect = require "spec.support.expect"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local SECRET = "the launch is on the ninth"

describe("a view", function()
  local store, session

  stores.each_test(function()
    store = attacks.store()
    local ann <close> = attacks.user(store, "ann")
    session = assert(ann:create { id = "plans" })
    assert(session:append { role = "user", content = SECRET })
  end)

  local function view(credential)
    local made = assert(store:as(credential))
    finally(function() made:close() end)
    return made
  end

  it("of a service is not given away by an empty key or token", function()
    local service = view { os = true }
    for _, credential in ipairs { { key = "" }, { token = "" }, { key = "sesk_" } } do
      local got, message, code = service:as(credential)
      expect.refused("EDENIED", got, message, code)
      assert.equal("the credential is not accepted", message)
    end
  end)

  it("by a key without roles may nothing, whoever makes it", function()
    local key = assert(store:access_key { user = "mallory", roles = {} })
    local by_key = view { os = true }
    local made <close> = assert(store:as { key = key })
    assert.same({}, assert(made:who()).permissions)
    local again, _, code = by_key:as { key = key }
    if again then
      assert.same({}, assert(again:who()).permissions)
      again:close()
    else
      assert.equal("EDENIED", code)
    end
  end)

  it("loses its open sessions with the grant that opened them", function()
    local bob = view { user = "bob", roles = "editor" }
    local grant = assert(store:grant { user = "bob", role = "admin" })
    local s = assert(bob:resume { id = "plans", user = "ann" })
    assert.equal(SECRET, assert(s:messages())[1].content)
    local entries = assert(s:entries())
    assert(store:ungrant(grant))
    expect.refused("EDENIED", s:messages())
    expect.refused("EDENIED", s:append { role = "user", content = "x" })
    expect.refused("EDENIED", s:fork { id = "stolen", user = "bob" })
    expect.refused("EDENIED", bob:put(s, { id = "stolen", user = "bob" }))
    local steps = 0
    local _, raised = pcall(function()
      for _ in entries do steps = steps + 1 end
    end)
    assert.equal(0, steps)
    expect.has(tostring(raised), "EDENIED")
    s:close()
  end)

  it("of some agents does nothing to the whole store", function()
    local narrow = view { user = "ops", roles = "admin", agents = "helper" }
    for _, try in ipairs {
      function() return narrow:access_key { user = "ops", roles = { "admin" } } end,
      function() return narrow:grant { user = "ops", role = "admin" } end,
      function() return narrow:lock { user = "ann" } end,
      function() return narrow:backup(temp.dir() .. "/copy") end,
      function() return narrow:audit {} end,
      function() return narrow:forget "ann" end,
      function() return narrow:as { user = "ops" }:consents "ann" end,
      function() return narrow:as { user = "ops" }:erase_user "ann" end,
    } do
      expect.refused("EDENIED", try())
    end
  end)

  it("makes no key for somebody who has more", function()
    assert(store:grant { user = "root", role = "admin" })
    local helpdesk = "helpdesk"
    local other <close> = assert(stores.open("file:" .. temp.dir() .. "/other", { key = false }))
    assert(other:guard { roles = { [helpdesk] = { "manage_access", "view_session", all = true } } })
    assert(other:grant { user = "root", role = "admin" })
    local desk <close> = assert(other:as { user = "hans", roles = helpdesk })
    expect.refused("EDENIED", desk:access_key { user = "root", roles = {} })
    assert(desk:access_key { user = "zoe", roles = { helpdesk } })
  end)

  it("keeps nothing of a shared session that was removed and made again", function()
    local ann, bob = view { user = "ann", roles = "editor" }, view { user = "bob" }
    assert(ann:grant { user = "bob", role = "viewer", session = "plans" })
    assert(bob:resume { id = "plans", user = "ann" }):close()
    assert(store:delete { id = "plans", user = "ann" })
    assert(ann:create { id = "plans" }):close()
    expect.refused("EDENIED", bob:resume { id = "plans", user = "ann" })
    assert.is_false(bob:can("view_session", { id = "plans", user = "ann" }))
    expect.refused("EDENIED", bob:may("look", { permission = "view_session", id = "plans",
      user = "ann" }))
  end)

  it("of one session is not that of another agent by the same id", function()
    local ann = view { user = "ann", roles = "editor" }
    assert(ann:create { id = "plans", agent = "coder" }):close()
    local one = view { user = "ann", roles = "editor", session = "plans" }
    assert(one:resume "plans"):close()
    expect.refused("EDENIED", one:resume { id = "plans", agent = "coder" })
    local other = view { user = "ann", roles = "editor", session = "plans", agent = "coder" }
    assert(other:resume { id = "plans", agent = "coder" }):close()
    expect.refused("EDENIED", other:resume "plans")
  end)

  it("of some agents ends no grant of another part of its user", function()
    local ann = view { user = "ann", roles = "editor" }
    local id = assert(ann:grant { user = "bob", role = "viewer", session = "plans" })
    local narrow = assert(ann:as { user = "ann", agents = "helper" })
    finally(function() narrow:close() end)
    assert.same({}, narrow:grants())
    expect.refused("ENOTFOUND", narrow:ungrant(id))
    assert.equal(1, #ann:grants())
  end)

  it("does not let itself live longer", function()
    local helper = assert(store:as { user = "ann", roles = "editor",
      expires = os.time() * 1000 + 60000 })
    finally(function() helper:close() end)
    expect.refused("EDENIED", helper:renew(0))
    expect.refused("EDENIED", helper:renew { user = "ann" })
    expect.refused("EDENIED", helper:renew { os = true })
    assert(store:renew(helper, 0))
    assert(helper:revoke())
    expect.refused("EDENIED", store:renew(helper, 0))
  end)

  it("of a viewer makes no memory by opening it", function()
    local viewer = view { user = "ann", roles = "viewer" }
    expect.refused("ENOTFOUND", viewer:memory { user = "ann" })
    expect.refused("ENOTFOUND", store:memory { user = "ann", must_exist = true })
  end)

  it("cannot damage the audit by what it writes into it", function()
    local ann = attacks.user(store, "ann")
    finally(function() ann:close() end)
    for _, name in ipairs { "\xff\xfe", "a\nb", "" } do
      expect.refused("EINVALID", ann:note(name, { a = 1 }))
      expect.refused("EINVALID", ann:may(name, { permission = "view_session" }))
    end
    assert(store:audit_seal())
    assert.is_true(assert(store:audit_verify {}).holds)
  end)

  it("whose key is locked by pasting it leaves no secret in the audit", function()
    local key = assert(store:access_key { user = "bob", roles = { "editor" } })
    local by_key = view { key = key }
    expect.refused("ENOTFOUND", store:lock { key = "abcd" })
    expect.refused("EINVALID", store:lock { key = key:sub(1, -5) })
    assert(store:lock { key = key })
    expect.refused("EDENIED", by_key:list())
    attacks.says_nothing(store, key:sub(-20))
  end)
end)
