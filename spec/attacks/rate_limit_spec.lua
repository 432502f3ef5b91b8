-- A user creates 100 sessions within a minute. Own guard: it sets one.

local attacks = require "spec.support.attacks"
local stores = require "spec.support.stores"

describe("a user who creates sessions without end", function()
  stores.each_test(function() end)

  it("is stopped after the tenth of a minute, and others are not", function()
    local store = attacks.store()
    local ann, bob = attacks.user(store, "ann"), attacks.user(store, "bob")
    local made, refused = 0, 0
    for i = 1, 100 do
      local s, _, code, retry_ms, rule = ann:create { id = "s" .. i }
      if s then
        made = made + 1
        s:close()
      else
        refused = refused + 1
        assert.same({ "ELIMIT", "session_creation" }, { code, rule })
        assert.is_true(retry_ms > 0 and retry_ms <= 62000)
      end
    end
    assert.same({ 10, 90 }, { made, refused })
    assert.equal(10, #ann:list())
    assert(bob:create { id = "s1" }):close()

    ann:close()
    bob:close()
    local over, count = attacks.events(store, { operation = "create", code = "LIMIT" }), 0
    for _, event in ipairs(over) do
      assert.same({ "ann", "session_creation" }, { event.name, event.rule })
      count = count + (event.count or 1)
    end
    assert.is_true(count >= 60 and count <= 90, count) -- equal failures of a minute are counted
  end)

  it("is stopped by the same rule when each is a fork or a child of the one before", function()
    local store = attacks.store()
    local ann <close> = attacks.user(store, "ann")
    local made = { assert(ann:create { id = "s" }) }
    local last, code, rule, _ = made[1]
    repeat
      assert(last:append { role = "user", content = "hello" })
      last, _, code, _, rule = last[#made % 2 == 0 and "fork" or "child"](last)
      made[#made + 1] = last
    until not last
    assert.same({ "ELIMIT", "session_creation", 10 }, { code, rule, #made })
    assert.equal(10, #ann:list())
    for _, s in ipairs(made) do s:close() end
  end)

  it("does not fill the control log with grants", function()
    local store = attacks.store()
    local ann <close> = attacks.user(store, "ann")
    assert(ann:create { id = "s" }):close()
    local given, refused = 0, 0
    for _ = 1, 100 do
      local id, _, code, retry_ms, rule = ann:grant { user = "bob", role = "viewer", session = "s" }
      given = given + (id and 1 or 0)
      if not id then
        refused = refused + 1
        assert.same({ "ELIMIT", "grants" }, { code, rule })
        assert.is_true(retry_ms > 0)
      end
    end
    assert.same({ 60, 40 }, { given, refused })
    assert.equal(60, #store:grants())
    assert(store:lock { user = "ann" }) -- what refuses somebody is not counted
    assert.equal(1, #store:locks())
  end)
end)
