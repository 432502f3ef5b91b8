-- What `sessile doctor` says of the servers that share a store, and of its database's standbys.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local postgres = require "spec.support.postgres"
local server = require "spec.support.server"

-- The finding of a name, as "state: text"; nil: none.
local function finding(name)
  local out = cli.sessile "--json doctor --offline"
  for _, one in ipairs(cli.decoded(out).findings) do
    if one.group == "Servers" and one.name == name then
      return one.state .. ": " .. one.text .. " " .. (one.next or "")
    end
  end
  return nil
end

describe("doctor, of servers", function()
  cli.each_test()
  before_each(function() guarded.unguarded_only() end)

  it("says that a store without a database has no standbys", function()
    cli.done "new --id s"
    assert.is_nil(finding "replicas")
    assert.is_nil(finding "nodes")
    cli.configure "return { serve = { replicas = 1 } }"
    expect.has(finding "replicas", "warn: serve.replicas is 1, and the store has no standbys")
  end)

  if not postgres.server() then
    pending "there is no PostgreSQL server here"
    return
  end
  after_each(postgres.clean)

  local function configure(place, replicas)
    cli.configure(("return { store = %q, key = false, serve = { replicas = %d } }"):format(place,
      replicas))
  end

  it("compares the standbys that commits wait for with serve.replicas", function()
    local place = postgres.place()
    configure(place, 0)
    cli.done "new --id s"
    assert.is_nil(finding "replicas")
    configure(place, 2)
    expect.has(finding "replicas", "bad: commits wait for 0 standbys, and serve.replicas is 2")
    local _, _, code = cli.sessile "doctor --offline"
    assert.equal(1, code)
  end)

  it("names the oldest version among the servers that live", function()
    local place, schema = postgres.place()
    configure(place, 0)
    local one = server.start()
    finally(function() one:stop() end)
    expect.has(finding "nodes", "ok: 1 node; the oldest is ")
    local insert = ("INSERT INTO %s.nodes VALUES ('%s', %d, '10.0.0.9:1', '%s', now(), "
      .. "clock_timestamp() + interval '%s', 0, 0)")
    local url = postgres.server().url
    assert(postgres.sql(url, insert:format(schema, "old", 5, "0.0.10", "1 hour")))
    assert(postgres.sql(url, insert:format(schema, "older", 6, "0.0.9", "1 hour")))
    assert(postgres.sql(url, insert:format(schema, "dead", 7, "0.0.1", "-1 minute")))
    expect.has(finding "nodes", "warn: 3 nodes; the oldest is older with version 0.0.9")
  end)
end)
