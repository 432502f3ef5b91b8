-- What a configuration says about long-term memory: off and on, by agent, and what new entries get.

local fails = require("spec.support.expect").refused
local expect = require "spec.support.expect"
local cli = require "spec.support.cli"
local project = require "spec.support.project"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local times = require "sessile.times"
local has = expect.has

describe("the option memory of a store", function()
  after_each(stores.clean)

  it("turns memory off for an agent; what is there can be read and deleted", function()
    local place = temp.dir() .. "/store"
    local on = stores.open(place, { key = false })
    local kept = assert(on:memory { agent = "coder", user = "ann", consent = "yes" })
    assert(kept:write("editor", "vim"))
    local off = stores.open(place, { key = false,
      agents = { coder = { memory = { enabled = false } } } })
    local m = assert(off:memory { agent = "coder", user = "ann" })
    has(fails("EDENIED", m:write("editor", "emacs")), "agents.coder.memory.enabled")
    fails("EDENIED", m:consent(true, { text = "yes" }))
    fails("EDENIED", off:memory { agent = "coder", user = "ann", consent = "again" })
    fails("EDENIED", off:memory { agent = "coder" })
    fails("ENOTFOUND", off:memory { agent = "coder", must_exist = true })
    assert.equal("vim", assert(m:read "editor").value)
    assert.is_true(m:consent(false))
    assert.is_true(m:delete "editor")
    assert(off:memory { agent = "other" }:write("k", "v"))
  end)

  it("gives entries and searches what they do not say themselves, an agent's before the store's",
    function()
      local store = stores.ram { memory = { ttl = "1h", language = "german", weight = 1 },
        agents = { brief = { memory = { ttl = "1m" } }, keeper = { memory = { ttl = false } } } }
      for agent, ms in pairs { other = 3600000, brief = 60000 } do
        local m = assert(store:memory(agent))
        local row = assert(m:get(assert(m:write(nil, "zwei Katzen"))))
        assert.equal(ms, row.expires - row.time)
        assert.is_nil(m:get(assert(m:write(nil, "bleibt", { ttl = false }))).expires)
        assert.equal(1, #m:search "Katze")
        assert.equal("german", m:stats().language)
      end
      local m = assert(store:memory "keeper")
      assert.is_nil(m:get(assert(m:write(nil, "bleibt"))).expires)

      local cat, dog = assert(m:write(nil, "Katze")), assert(m:write(nil, "Hund"))
      assert(m:embed("tiny", { cat, dog }, { { 1, 0 }, { 0, 1 } }))
      assert.equal("Hund", m:search("Katze", { vector = { 0, 1 } })[1].value)
      assert.equal("Katze", m:search("Katze", { vector = { 0, 1 }, weight = 0 })[1].value)
    end)

  it("names a policy that cannot be loaded when the store is opened", function()
    local sessile = require "sessile"
    local memory = { policy = "memroy" }
    has(fails("ENOTFOUND", sessile.open("ram:", { memory = memory })), "did you mean 'memory'")
    local told
    local store = stores.ram { memory = memory, on_policy_error = function(message, code, key)
      told = { message, code, key }
    end }
    has(told[1], "there is no policy 'memroy'")
    assert.same({ "ENOTFOUND", "memory.policy" }, { told[2], told[3] })
    local s = assert(store:session { id = "one", agent = "coder" })
    fails("ENOTFOUND", s:remember())
    local own = stores.ram { agents = { coder = { memory = { policy = "tdy" } } } }
    has(fails("ENOTFOUND", own:session { id = "one", agent = "coder" }), "agent 'coder'",
      "did you mean 'tidy'")
    assert(own:session { id = "one", agent = "other" })
  end)

  it("lets a session's memory write for all", function()
    local store = stores.ram { memory = { share = true } }
    local s = assert(store:session { id = "one", agent = "coder", user = "ann" })
    local both = assert(s:memory())
    assert(both:write("tests", "run with make"))
    assert.equal("agent", both:read "tests".memory)
    fails("EDENIED", both:write("mine", "x", { share = false }))
  end)

  it("says when days begin", function()
    local day = 1769904000000 -- 2026-02-01, UTC
    for zone, value in pairs { UTC = 0, ["+02:00"] = 7200000, ["-05:30"] = -19800000 } do
      assert.equal(value, times.zone(zone))
      assert.equal("2026-02-01", times.day(day - value, value))
      assert.equal("2026-01-31", times.day(day - value - 1, value))
    end
    local now = os.time() * 1000
    for _, zone in ipairs { "UTC", "+14:00", "-12:00" } do
      local store = stores.ram { memory = { zone = zone } }
      local m = assert(store:memory "coder")
      assert(m:write(nil, "something"))
      local time = m:list()[1].time
      local today = times.day(time, times.zone(zone))
      assert.equal(1, #m:list { day = today })
      assert.equal(0, #m:list { day = "2020-02-01" })
      assert.is_true(time >= now)
      fails("EINVALID", m:list { day = "2026-02-30" })
      fails("EINVALID", m:list { day = "24h" })
    end
  end)

  it("is refused at the line of the call when it is wrong", function()
    for name, value in pairs { weight = 2, zone = "Berlin", ttl = "soon", enabld = true } do
      local ok, message = pcall(stores.ram, { memory = { [name] = value } })
      assert.is_false(ok)
      has(message, name)
    end
  end)
end)

describe("memory in a configuration", function()
  project.each_test(function() end)

  it("takes who embeds and where vectors go from one's own file alone", function()
    cli.configure "return { models = { mine = { command = { 'true' }, dims = 3 } } }"
    for key, set in pairs { embed = "embed = 'mine'", vectors = "vectors = { put = 1, search = 1 }",
      enabled = "enabled = true", dims = "dims = 3" } do
      project.configure(("return { memory = { %s } }"):format(set))
      has(project.fails(7, "list"), ("'memory.%s': it is taken from your own configuration only")
        :format(key))
    end
    project.configure "return { memory = { weight = 0.5 } }"
    assert.matches("memory%.weight +0%.5", project.done "config")
    cli.configure "return { memory = { embed = 'mine' } }"
    has(project.fails(1, "list"), "there is no model 'mine'")
    cli.configure "return { memory = { vectors = { put = print } } }"
    has(project.fails(1, "list"), "memory.vectors")
  end)

  it("is merged key by key, for all and for an agent, and shown with its lines", function()
    cli.configure [[return {
      memory = { ttl = "90d", zone = "+02:00" },
      agents = { coder = { memory = { enabled = false,
        ttl = "1h" } } } }]]
    project.configure [[return { memory = { zone = "UTC" } }]]
    local out = project.done "config"
    has(out, "memory.ttl")
    assert.matches("memory%.ttl +90d +%S+config%.lua:2", out)
    assert.matches("memory%.zone +UTC +%S*sessile%.lua:1", out)
    assert.matches("agents%.coder%.memory%.enabled +false +%S+config%.lua:3", out)
    assert.matches("agents%.coder%.memory%.ttl +1h +%S+config%.lua:4", out)
    assert.matches("memory%.weight +0%.3 +default", out)
    has(project.fails(7, "memory add coder text"), "agents.coder.memory.enabled")
    project.done "memory add other text"
    assert.is_true(project.json "memory show other"[1].expires > 0)
  end)

  it("is not a project's where it could harm", function()
    for _, name in ipairs { "enabled = true", "ttl = '1s'", "share = true" } do
      project.configure("return { memory = { " .. name .. " } }")
      has(project.fails(7, "list"), name:match "%a+")
    end
    project.configure "return { memory = { language = 'german', weight = 0.5 } }"
    project.done "list"
  end)

  for text, what in pairs {
    ["memory = true"] = "'memory': a table expected",
    ["memory = { enabld = true }"] = "'memory.enabld': there is no such key, did you mean",
    ["memory = { weight = 2 }"] = "'memory.weight': a number from 0 to 1 expected, got 2",
    ["memory = { zone = 'Berlin' }"] = "'memory.zone': \"UTC\", or an offset",
    ["memory = { backend = 'file' }"] = "'memory.backend': there is no such key",
    ["agents = { a = { memory = { ttl = 'soon' } } }"] = "'agents.a.memory.ttl': a time expected",
  } do
    it("is refused when it says " .. text, function()
      cli.configure("return { " .. text .. " }")
      has(project.fails(1, "memory show coder"), what)
    end)
  end

  it("cannot raise a limit beyond its bound", function()
    project.done "new --id a"
    cli.configure "return { limits = { memory_dims = 5000 } }"
    has(project.fails(1, "memory add coder text"), "[memory_dims] is at most 4096")
  end)

  it("limits an entry, and warns when a memory is nearly full", function()
    cli.configure "return { limits = { memory_value = 10, memory_entries = 5 } }"
    has(project.fails(1, "memory add coder 'eleven byte'"), "[memory_value]")
    for i = 1, 3 do
      local _, err = project.done("memory add coder e" .. i)
      assert.equal("", err)
    end
    local _, err = project.done "memory add coder e4"
    has(err, "4 of 5 entries")
    project.done "memory add coder e5"
    has(project.fails(1, "memory add coder e6"), "[memory_entries]")
  end)
end)
