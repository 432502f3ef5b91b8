-- The guard of a configuration and of sessile.open: profiles, what replaces their keys, who may set
-- them, and how each mistake is named.
-- Files only: whose configuration it is.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local profiles = require "sessile.profiles"
local project = require "spec.support.project"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local has = expect.has
local own, of_project = cli.configure, project.configure
local done, fails = project.done, project.fails

describe("a configured guard", function()
  local folder

  project.each_test(function(_, inside) folder = inside end)

  it("is shown with the profile's values, and with the lines of those that are set", function()
    local path = own 'return {\n  guard = { profile = "strict",\n    plain = true } }'
    local rows = {}
    for _, row in ipairs(cli.json("config").values) do
      rows[row.key] = row
    end
    assert.same({ "strict", "file", path, 2 }, { rows["guard.profile"].text,
      rows["guard.profile"].from, rows["guard.profile"].file, rows["guard.profile"].line })
    assert.same({ "true", 3 }, { rows["guard.plain"].text, rows["guard.plain"].line })
    assert.same({ true, "profile", "strict" }, { rows["guard.require_principal"].value,
      rows["guard.require_principal"].from, rows["guard.require_principal"].name })
    own 'return { guard = "off" }'
    has(done "config show --set", "guard.profile")
  end)

  it("is standard when a table names no profile", function()
    own 'return { guard = { roles = { support = { "view_session" } } } }'
    assert.equal("standard", cli.json("guard status").profile)
  end)

  it("is never a project's, be it trusted or not, and nothing in it is weakened there", function()
    own 'return { guard = "strict" }'
    for _, text in ipairs { '"off"', '"standard"', '{ profile = "strict" }', '{ plain = true }' } do
      of_project(("return { guard = %s }"):format(text))
      has(fails(7, "list"), "'guard': a project's file cannot set it, trusted or not")
      done "config trust --yes"
      has(fails(7, "list"), "Take it out of that file")
    end
    of_project 'return { key = false, agent = "x" }'
    done "config trust --yes"
    has(fails(7, "new"), "lets no store be opened that is not sealed")
    assert.is_false(cli.exists(folder .. "/store"))
  end)

  it("names each mistake, its file and its line", function()
    for text, said in pairs {
      ['"standrd"'] = "'guard.profile': standard, strict or off expected, got \"standrd\": did you "
        .. "mean \"standard\"?",
      ['{ rols = {} }'] = "'guard.rols': there is no such key, did you mean 'roles'?",
      ['{ roles = { x = { "view_sesion" } } }'] = "'guard.roles.x': there is no permission "
        .. "\"view_sesion\", did you mean \"view_session\"?",
      ['{ roles = { x = { al = true } } }'] = "'guard.roles.x.al': there is no such key",
      ['{ roles = { x = { all = 1 } } }'] = "'guard.roles.x.all': true or false expected, got 1",
      ['{ roles = "editor" }'] = "'guard.roles': a table expected, got \"editor\"",
      ['{ rate_limits = { searches = "10/fortnight" } }'] = "'guard.rate_limits.searches': a rate "
        .. "expected, as \"10/minute\", a second, hour or day, or \"off\", got \"10/fortnight\"",
      ['{ rate_limits = { searches = "65536/day" } }'] = "'guard.rate_limits.searches': a rate",
      ['{ retention = { sessions = "soon" } }'] = "'guard.retention.sessions': a time expected",
      ['{ retention = { users = { ann = { forks = 1 } } } }'] = "'guard.retention.users.ann.forks'",
      ['{ rate_limits = { searches = 10 } }'] = "'guard.rate_limits.searches': a rate expected",
      ['{ rate_limits = { serches = "1/day" } }'] = "'guard.rate_limits.serches': there is no such "
        .. "key, did you mean 'searches'?",
      ['{ audit = { sink = true } }'] = "'guard.audit.sink': there is no such key",
      ['{ audit = "yes" }'] = "'guard.audit': a table expected, got \"yes\"",
      ['{ authorize = true }'] = "'guard.authorize': a text expected, not empty, got true",
      ['{ authorize = "" }'] = "'guard.authorize': a text expected, not empty",
      ['{ require_principal = "yes" }'] = "'guard.require_principal': true or false expected",
      ['3'] = "'guard': a table expected, got 3",
    } do
      own(("return {\n  guard = %s,\n}"):format(text))
      has(fails(1, "list"), "config.lua:2: " .. said)
    end
  end)
end)

describe("sessile.open with a guard", function()
  after_each(stores.clean)

  it("is a store with the guard of that profile", function()
    local store = stores.ram { guard = "standard" }
    assert.is_true(assert(store:who()).host)
    local ann = assert(store:as { user = "ann", roles = "editor" })
    assert(ann:session "a")
    expect.refused("EDENIED", ann:resume { id = "a", user = "bob" })
    ann:close()
  end)

  it("puts a table over the profile", function()
    local store = stores.ram { guard = { profile = "strict", require_principal = false,
      roles = { support = { "view_session", all = true } } } }
    assert(store:session "a")
    local sue = assert(store:as { user = "sue", roles = "support" })
    assert.equal(1, #sue:list())
    sue:close()
  end)

  it("replaces one rate of the profile, and keeps the others", function()
    local store = stores.ram { guard = { rate_limits = { searches = "2/day" } } }
    local ann = assert(store:as { user = "ann", roles = "editor" })
    for _ = 1, 2 do
      assert(ann:search "x")
    end
    local value, _, code, retry, rule = ann:search "x"
    assert.is_nil(value)
    assert.same({ "ELIMIT", "searches" }, { code, rule })
    assert.is_true(retry > 1000)
    for n = 1, 10 do
      assert(ann:session("a" .. n))
    end
    assert.equal("ELIMIT", select(3, ann:session "one more"))
    for n = 1, 12 do
      assert(store:session("host" .. n)) -- whoever has the store is not counted
    end
    ann:close()
  end)

  it("lets nobody use the store's own handle when it is strict", function()
    local store = stores.ram { guard = "strict" }
    has(expect.refused("EDENIED", store:session "a"), "make a view")
  end)

  it("opens no plain store when it is strict, and makes none", function()
    local temp = require "spec.support.temp"
    local place = temp.dir() .. "/store"
    local function refused()
      has(expect.refused("EDENIED", sessile.open(place, { key = false, guard = "strict" })),
        "not sealed")
    end
    refused()
    assert.is_false(cli.exists(place))
    assert(sessile.open(place, { key = false })):close()
    refused()
    assert(sessile.open(place, { key = false, guard = { profile = "strict", plain = true } }))
      :close()
  end)

  it("has no guard when it is off, or when nothing is said", function()
    expect.refused("EINVALID", stores.ram { guard = "off" }:who())
    expect.refused("EINVALID", stores.ram():who())
  end)

  it("names each mistake at the line of the call", function()
    for said, guard in pairs {
      ['guard: profile: standard, strict or off expected, got "standrd"'] = "standrd",
      ["guard: unknown option 'rols', did you mean 'roles'?"] = { rols = {} },
      ['guard: roles.x: there is no permission "fly"'] = { roles = { x = { "fly" } } },
    } do
      assert.error_matches(function() sessile.open("ram:", { guard = guard }) end, said, 1, true)
    end
  end)
end)

describe("a profile", function()
  it("sets the same keys as the others", function()
    local function keys(profile)
      local list = {}
      for name in pairs(profile) do
        list[#list + 1] = name
      end
      table.sort(list)
      return list
    end
    assert.same(keys(profiles.standard), keys(profiles.strict))
  end)
end)
