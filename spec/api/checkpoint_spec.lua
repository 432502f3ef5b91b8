-- Checkpoints: where an agent stood, and the way back.

local cli = require "spec.support.cli"
local stores = require "spec.support.stores"
local run, done, json = cli.sessile, cli.done, cli.json
local sessile = require "sessile"

cli.each_test()

describe("in Lua", function()
  local store

  stores.each_test(function()
    store = stores.open("ram:", {
      agent_info = { version = "1.0", config = "abc", tools = { "read", "write" } },
    })
  end)

  it("go back to where they were made, with their state", function()
    local s = assert(store:create { id = "s" })
    local one = assert(s:append { role = "user", content = "one" })
    local state = { step = 3, plan = { "a", "b" }, none = sessile.array {} }
    local id = assert(s:checkpoint { name = "first", state = state, metadata = { by = "me" } })
    assert(s:append { role = "user", content = "two" })
    local restored = assert(s:restore "first")
    assert.equal(id, restored.checkpoint)
    assert.equal(one, restored.head)
    assert.equal(one, s:head())
    assert.equal(3, restored.state.step)
    assert.same({ "a", "b" }, restored.state.plan)
    assert.equal('{"none":[],"plan":["a","b"],"step":3}', restored.json)
    assert.same({}, restored.warnings)
    assert.equal(1, #s:messages())

    local rows = assert(s:checkpoints())
    assert.equal(1, #rows)
    assert.equal("first", rows[1].name)
    assert.equal("manual", rows[1].reason)
    assert.equal("1.0", rows[1].agent_version)
    assert.same({ by = "me" }, rows[1].metadata)
    assert.is_true(rows[1].sound)
    assert.same({}, s:checkpoints { name = "other" })
  end)

  it("are of an agent's version, unless forced", function()
    local s = assert(store:create { id = "s" })
    assert(s:append { role = "user", content = "one" })
    local id = assert(s:checkpoint {})
    s:close()
    s = assert(store:resume { id = "s", agent_info = { version = "2.0", tools = { "read" } } })
    local none, message, code = s:restore(id)
    assert.is_nil(none)
    assert.equal("ECONFLICT", code)
    assert.truthy(message:find("version 1.0", 1, true), message)
    local restored = assert(s:restore(id, { force = true }))
    assert.equal(2, #restored.warnings)
    assert.truthy(restored.warnings[2]:find("'write'", 1, true))
  end)

  it("are thrown out oldest first, and withdrawn by name", function()
    local s = assert(store:create { id = "s" })
    for i = 1, 4 do
      assert(s:checkpoint { name = i == 1 and "kept" or nil, state = i, keep = 3 })
    end
    assert.equal(3, #s:checkpoints())
    assert.equal(1, #s:checkpoints { named = true })
    assert.is_true(s:delete_checkpoint "kept")
    local none, _, code = s:delete_checkpoint "kept"
    assert.is_nil(none)
    assert.equal("ENOTFOUND", code)
    none, _, code = s:restore "nothing"
    assert.is_nil(none)
    assert.equal("ENOTFOUND", code)
  end)

  it("keep any JSON as it is", function()
    local s = assert(store:create { id = "s" })
    assert(s:checkpoint { name = "n", state = sessile.json "9007199254740993" })
    assert.equal("9007199254740993", s:restore("n").json)
    assert(s:checkpoint { name = "f", state = false })
    assert.is_false(s:restore("f").state)
    assert(s:checkpoint { name = "none" })
    assert.is_nil(s:restore("none").state)
  end)
end)

describe("on the command line", function()
  it("are made, listed, restored and removed", function()
    done "new --id s"
    done "append s one"
    local id = done "checkpoint s 'before it all' --state '{\"step\": 1.50}'":match "%x+"
    done "append s two"
    local list = done "checkpoints s"
    assert.truthy(list:find("before it all", 1, true), list)
    assert.equal(id, json("checkpoints s").checkpoints[1].id)

    assert.truthy(done("tree s"):find("before it all, of 00000001", 1, true))

    local _, message, status = run "restore s 'before'" -- nobody is asked about it
    assert.equal(3, status)
    assert.truthy(message:find("sessile checkpoints s", 1, true), message)
    _, message, status = run "restore s 'before it all'"
    assert.equal(2, status)
    assert.truthy(message:find("--yes", 1, true), message)
    assert.equal('{"step":1.50}\n', (done "restore s 'before it all' --yes"))
    assert.is_nil(done("show s"):find("two", 1, true))
    assert.equal(1.5, json("restore s " .. id .. " --yes").state.step)
    assert.equal(id, json("restore s " .. id:gsub("^0+", "") .. " --yes").checkpoint)
    done("label s " .. id .. " safe")
    assert.equal(id, json("restore s safe --yes").checkpoint)
    done "label s 1 safe" -- of two nobody chooses
    _, message, status = run "restore s safe --yes"
    assert.equal(2, status)
    assert.truthy(message:find("on 2 entries", 1, true), message)
    done("label rm s 1 safe")

    done "checkpoint rm s safe"
    _, message, status = run("restore s " .. id .. " --yes")
    assert.equal(3, status)
    assert.truthy(message:find("sessile checkpoints s", 1, true), message)
    _, message, status = run "checkpoint s x --state '{'"
    assert.equal(2, status)
    assert.truthy(message:find("not JSON", 1, true), message)
  end)
end)
