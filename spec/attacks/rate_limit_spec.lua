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
end)
