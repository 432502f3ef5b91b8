-- A user tries each way to a session of another user. Own guard: it sets one.

local attacks = require "spec.support.attacks"
local expect = require "spec.support.expect"
local stores = require "spec.support.stores"

local SECRET = "the launch is on the ninth"

describe("a user's session", function()
  local store, bob

  stores.each_test(function()
    store = attacks.store()
    local ann <close> = attacks.user(store, "ann")
    local s <close> = assert(ann:create { id = "session-a", title = SECRET })
    assert(s:append { role = "user", content = SECRET })
    bob = attacks.user(store, "bob")
  end)

  it("is refused to another user by its name, whether it is there or not", function()
    local said = {}
    for _, id in ipairs { "session-a", "no-such-session" } do
      for _, try in ipairs {
        function() return bob:resume { id = id, user = "ann" } end,
        function() return bob:session { id = id, user = "ann" } end,
        function() return bob:create { id = id, user = "ann" } end,
        function() return bob:list { user = "ann" } end,
      } do
        local got, message, code = try()
        expect.refused("EDENIED", got, message, code)
        expect.has_not(message, SECRET)
        said[message] = true
      end
    end
    assert.is_string(next(said))
    assert.is_nil(next(said, (next(said))), "there is more than one sentence")
  end)

  it("is in none of the lists and searches of another user", function()
    expect.refused("ENOTFOUND", bob:resume "session-a")
    assert.same({}, assert(bob:list()))
    for hit in assert(bob:search "launch") do
      error("found: " .. hit.id)
    end
  end)

  it("is read by its owner, and is as it was", function()
    bob:resume { id = "session-a", user = "ann" }
    bob:delete { id = "session-a", user = "ann" }
    local ann <close> = attacks.user(store, "ann")
    local s <close> = assert(ann:resume "session-a")
    assert.equal(SECRET, assert(s:messages())[1].content)
  end)

  it("has each attempt in the audit, with both users", function()
    bob:resume { id = "session-a", user = "ann" }
    bob:create { id = "session-a", user = "ann" }
    local tried = attacks.events(store, { outcome = "failure", name = "bob" })
    assert.equal(2, #tried)
    for i, operation in ipairs { "resume", "create" } do
      assert.equal(operation, tried[i].operation)
      assert.same({ "DENIED", "session-a" }, { tried[i].code, tried[i].session })
      assert.matches("^o_%w+$", tried[i].owner)
    end
    assert.equal(tried[1].owner, tried[2].owner)
    attacks.says_nothing(store, SECRET)
  end)
end)
