-- sessile.of: the engine's fields of a message, for messages that have fields of the same names
-- themselves; and what ships reads them so.

local sessile = require "sessile"
local stores = require "spec.support.stores"
local testing = require "sessile.testing"

-- A message as a provider gives it, with a field for each name of the engine's.
local function named(role, text, more)
  local message = { role = role, content = text, id = "rs_1", key = "k", tokens = -1, time = "noon",
    json = "no" }
  for name, value in pairs(more or {}) do
    message[name] = value
  end
  return message
end

describe("sessile.of", function()
  local store, s
  stores.each_test(function()
    store = stores.ram()
    s = assert(store:create())
  end)

  it("gives the id, key, tokens, time and text of a message that has such fields", function()
    local id = assert(s:append(named("user", "hello", { timestamp = 1700000000123 })))
    for _, list in ipairs { assert(s:messages()), (assert(s:context())) } do
      local message = list[1]
      assert.equal("rs_1", message.id)
      local of = sessile.of(message)
      assert.equal(id, of.id)
      assert.equal(id, of.key)
      assert.is_true(of.tokens > 0)
      assert.equal(1700000000123, of.time)
      assert.same(named("user", "hello", { timestamp = 1700000000123 }), sessile.decode(of.json))
    end
  end)

  it("gives the text of an entry, of settings and of metadata", function()
    local id = assert(s:append { role = "user", content = "hello" })
    assert(s:settings { json = 1 })
    assert(s:metadata { json = 2 })
    assert.equal(id, sessile.decode(sessile.of(s:entry(id)).json).id)
    assert.equal('{"json":1}', sessile.of(s:settings()).json)
    assert.equal('{"json":2}', sessile.of(s:metadata()).json)
  end)

  it("gives nil for what was not read", function()
    local plan = assert(s:plan { policy = "sliding_window" })
    assert.is_nil(sessile.of { role = "user", id = "x" })
    assert.is_nil(sessile.of(s))
    assert.is_nil(sessile.of(plan))
    assert.is_nil(sessile.of(sessile.json "{}"))
    assert.is_nil(sessile.of(setmetatable({}, { __index = { id = 1 } })))
  end)

  it("names no message that the engine made", function()
    assert(s:append { role = "assistant", content = "", tool_calls = {
      { id = "c", name = "ls", arguments = "{}" } } })
    assert(s:append { role = "user", content = "well?" })
    local made = s:context()[2]
    assert.equal("c", made.tool_call_id)
    assert.is_nil(sessile.of(made).key)
    assert.is_string(sessile.of(made).json)
  end)
end)

describe("messages with fields of the engine's names", function()
  stores.each_test(function() end)

  it("keep a policy lawful, in the eyes of the test kit", function()
    local turns = {}
    for i = 1, 12 do
      turns[i] = { named("user", "question " .. i), named("assistant", "answer " .. i) }
    end
    local policy = testing.load("sliding_window", { messages = 6 })
    local result = policy:run({ name = "named", turns = turns }, { window = 4000 })
    assert.is_true(result.applied > 0)
    assert.lawful(result)
    assert.keeps(result, { "last_user", sessile.of(result.context[1]).key })
  end)

  it("stay apart in a plan", function()
    local s = assert(stores.ram():create())
    for i = 1, 6 do
      assert(s:turn { named("user", "question " .. i), named("assistant", "answer " .. i) })
    end
    local _, rows = s:plan { policy = { "sliding_window", messages = 4 } }:diff()
    local left, kept = {}, {}
    for _, row in ipairs(rows) do
      table.insert(row.mark == "-" and left or kept, row.key)
      assert.matches("^%x+$", row.key)
      assert.is_true(row.tokens > 0)
    end
    assert.is_true(#left > 0)
    assert.is_true(#kept >= 4)
  end)

  it("are all sent to the model, once each", function()
    local s = assert(stores.ram():create())
    local sizes = {}
    local outcome = assert(s:send(named("user", "list it"), {
      tools = { ls = { run = function() return "a b c" end } },
      model = function(request)
        sizes[#sizes + 1] = #request.messages
        return #sizes == 3 and named("assistant", "done") or named("assistant", "", { tool_calls = {
          { id = "call" .. #sizes, name = "ls", arguments = "{}" } } })
      end,
    }))
    assert.equal("completed", outcome.status)
    assert.same({ 1, 3, 5 }, sizes)
  end)

  it("are continued where a loop was left", function()
    local store = stores.ram()
    local s = assert(store:create())
    assert(s:append(named("user", "list it")))
    assert(s:append(named("assistant", "", { tool_calls = {
      { id = "call", name = "ls", arguments = "{}" } } })))
    local ran = 0
    local outcome = assert(s:send(nil, {
      tools = { ls = { repeatable = true, run = function() ran = ran + 1 return "a" end } },
      model = function() return "done" end,
    }))
    assert.equal("completed", outcome.status)
    assert.equal(1, ran)
    assert.equal("done", outcome.text)
  end)
end)
