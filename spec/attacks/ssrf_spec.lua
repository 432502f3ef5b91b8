-- The address of a cloud's credentials is written where an agent reads it later. Own guard: it sets
-- one.

local attacks = require "spec.support.attacks"
local expect = require "spec.support.expect"
local stores = require "spec.support.stores"

local URLS = {
  "http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/", "http://2852039166/",
  "http://[::ffff:169.254.169.254]/", "http://0xa9.0xfe.0xa9.0xfe/", "http://127.1/",
  "http://metadata.google.internal/",
}

describe("a URL that leads inwards", function()
  local store, ann, memory, session

  stores.each_test(function()
    store = attacks.store()
    ann = attacks.user(store, "ann")
    memory = assert(ann:memory { user = "ann", consent = "Remember what I like." })
    session = assert(ann:create { id = "s" })
    assert(session:append { role = "user", content = "hello" })
  end)

  it("is in no memory and no state, in whatever spelling", function()
    for _, url in ipairs(URLS) do
      expect.refused("EDENIED", memory:write("docs", "See " .. url, { source = "user" }))
      expect.refused("EDENIED", session:checkpoint { name = "a", state = { next = url } })
    end
    assert.same({}, assert(memory:list()))
    assert.same({}, assert(session:checkpoints()))
    assert(memory:write("docs", "See https://example.org/.", { source = "user" }))
    assert(session:checkpoint { name = "a", state = { next = "https://example.org/" } })
  end)

  it("is in the audit by its rule, and not by its words", function()
    memory:write("docs", "See " .. URLS[1], { source = "user" })
    session:checkpoint { name = "a", state = { next = URLS[1] } }
    local tried = attacks.events(store, { outcome = "failure", name = "ann" })
    assert.equal(2, #tried)
    assert.same({ "memory_write", "checkpoint" }, { tried[1].operation, tried[2].operation })
    for _, event in ipairs(tried) do
      assert.equal("DENIED", event.code)
      expect.has(event.rule, "metadata")
    end
    attacks.says_nothing(store, "169.254")
  end)
end)
