-- When things were said: a message's own time is what people see and sort by.

local cli = require "spec.support.cli"
local stores = require "spec.support.stores"

local DAY = 24 * 60 * 60 * 1000
local THEN = 1767225600000 -- 2026-01-01

local function told(store, id, at, options)
  local s = assert(store:create(options or { id = id }))
  assert(s:turn({
    { role = "user", content = "needle", timestamp = at },
    { role = "assistant", content = "found", timestamp = at + 1000, model = "m",
      usage = { input = 10, output = 5 } },
  }, { policy = false, usage = { input = 10, output = 5 } }))
  return s
end

describe("a message with a time of its own", function()
  stores.each_kind("in a store", function(open)
    it("has it in messages, context, tree, why, usage, search and lists", function()
      local store <close> = open()
      local s = told(store, "old", THEN)
      told(store, "older", THEN - 400 * DAY)
      local entry = s:messages()[1].id
      assert.equal(THEN, s:messages()[1].time)
      assert.equal(THEN, s:context()[1].time)
      assert.equal(THEN, s:tree().nodes[entry].time)
      assert.equal(THEN, s:why(entry).steps[1].time)
      assert.equal("2026-01-01", s:usage({ by = "day" })[1].key)
      assert.equal(THEN, store:search("needle")().time)
      assert.equal(THEN + 1000, s.modified)
      for _ = 1, 2 do -- from the logs, then from the list cache
        local list = assert(store:list())
        assert.equal("old", list[1].id)
        assert.equal(THEN + 1000, list[1].modified)
        assert.equal("older", list[2].id)
        assert.equal(1, #store:list { since = THEN })
        assert.equal(1, #store:list { ["until"] = THEN })
      end
      assert.not_matches("2026%-01%-01", s:entry(entry).timestamp)
      s:close()
    end)
  end)

  it("may be a date and time; nothing is said later than it was written", function()
    local store = stores.ram()
    local s = assert(store:create {})
    assert(s:append { role = "user", content = "x", timestamp = "2026-01-01T00:00:00.000Z" })
    assert.equal(THEN, s:messages()[1].time)
    for i, odd in ipairs { 4e15, -1, 0.5, "yesterday", {}, true } do
      assert(s:append { role = "user", content = "x", timestamp = odd })
      local time = s:messages()[i + 1].time
      assert.is_true(time > THEN and time < THEN + 9999 * DAY)
    end
  end)

  it("does not count for the time to live", function()
    local store = stores.ram()
    local s = told(store, nil, THEN, { id = "kept", ttl = "30d" })
    assert.equal("active", s:life().status)
    assert.equal("active", store:list()[1].status)
    assert.equal(0, #assert(store:purge { dry_run = true }))
  end)

  it("is not older in a fork than the fork", function()
    local store = stores.ram()
    local fork = assert(told(store, "old", THEN):fork(nil, { id = "new" }))
    assert.equal(fork.created, fork.modified)
  end)
end)

describe("an imported recording", function()
  cli.each_test()

  it("keeps its times in show, tree, list, stats and usage", function()
    local line = [[{"type":"message","id":"%s","parentId":%s,"message":{"role":"%s",]]
      .. [["content":"needle","model":"m","usage":{"input":%d,"output":0},"timestamp":%d}}]]
    cli.write(cli.home() .. "/talk.jsonl", table.concat({
      [[{"type":"session","version":3,"id":"t","timestamp":"2025-05-05T10:00:00.000Z"}]],
      line:format("a", "null", "user", 0, 1746439200000),
      line:format("b", '"a"', "assistant", 9, 1746439201000), "",
    }, "\n"))
    cli.done("import " .. cli.home() .. "/talk.jsonl --id talk")
    assert.equal(1746439201000, cli.json("list")[1].modified)
    assert.equal(1746439200000, cli.json("show talk")[1].time)
    assert.equal("2025-05-05", cli.json("usage talk --by day").groups[1].key)
    assert.equal(0, #cli.json "list --since 30d")
    assert.equal("2025-05-05", cli.json("stats talk --by day").rows[1].label)
  end)
end)
