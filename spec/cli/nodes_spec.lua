-- `sessile nodes`, and two servers of one PostgreSQL store, as processes: each passes calls on to
-- the other, one is killed, and the other goes on.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local postgres = require "spec.support.postgres"
local server = require "spec.support.server"

-- Waits until look() gives something.
local function soon(look, what)
  for _ = 1, 600 do
    local found = look()
    if found then
      return found
    end
    os.execute "sleep 0.05"
  end
  error(what)
end

describe("servers that share a store", function()
  local servers

  before_each(function()
    guarded.unguarded_only "the specs' guard asks for credentials"
    cli.begin()
    servers = {}
  end)
  after_each(function()
    for _, one in ipairs(servers) do
      one:stop()
    end
    cli.finish()
    postgres.clean()
  end)

  if not postgres.server() then
    pending("there is no PostgreSQL server here")
    return
  end

  local function start(place, name)
    cli.configure(("return { store = %q, key = false, serve = { name = %q } }"):format(place, name))
    servers[#servers + 1] = server.start()
    return servers[#servers]
  end

  -- Rows of `sessile nodes` by name.
  local function nodes()
    local by_name, out = {}, cli.decoded((cli.done "--json nodes"))
    for _, row in ipairs(out.nodes) do
      by_name[row.name] = row
    end
    return by_name, #out.nodes
  end

  it("are listed, pass calls on, and do without one that was killed", function()
    local place = postgres.place()
    local first = start(place, "first")
    local second = start(place, "second")
    local listed = soon(function()
      local rows, count = nodes()
      return count == 2 and rows
    end, "two servers are not listed")
    assert.equal(first.address, listed.first.address)
    assert.is_true(listed.first.living and listed.second.living)

    -- what either writes the other reads
    for i = 1, 12 do
      local session = { id = "s" .. i }
      assert.equal("OK", (first:call("CreateSession", { session = session })))
      for _, one in ipairs { second, first } do
        assert.equal("OK", (one:call("AppendMessage", { session = session,
          message = { text = '{"role":"user","content":"hello"}' } })))
      end
    end
    local kept = soon(function()
      local rows = nodes()
      return rows.first.sessions > 0 and rows.second.sessions > 0 and rows
    end, "one server keeps every session")
    assert.is_true(kept.first.sessions + kept.second.sessions <= 24)

    second:signal "KILL"
    for i = 1, 12 do
      local code, reply = first:call("AppendMessage", { session = { id = "s" .. i },
        message = { text = '{"role":"user","content":"still there"}' } })
      -- one that was on its way may have been done
      assert.equal("OK", code, code ~= "OK" and reply or nil)
    end
    soon(function()
      return not nodes().second.living
    end, "a server that was killed is alive")
    local out = cli.done "nodes"
    expect.has_all(out, { "first", "second", "alive", "dead" })

    first:stop()
    assert.is_nil(nodes().first) -- it left
  end)

  it("have names of their own", function()
    local place = postgres.place()
    start(place, "first")
    local said = select(2, cli.sessile "serve --listen 127.0.0.1:0")
    expect.has_all(said, { "another node is called", "first" })
  end)
end)
