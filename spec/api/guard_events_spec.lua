-- The audit of a guard in Lua: where it is kept, and what it takes.
-- Files only: a ram: store has no audit of its own, and the others are tested in C.
-- Own guard: it sets them.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"

describe("the audit of a guard", function()
  local function open(url)
    return assert(sessile.open(url, { key = false }))
  end

  it("is kept in another store, which stays open as long", function()
    local kept, ram = open(temp.dir() .. "/kept"), open "ram:"
    expect.has(expect.refused("EUNSUPPORTED", ram:guard { audit = true }), "another store")
    assert(ram:guard { audit = { store = kept } })
    local ann = assert(ram:as { user = "ann", roles = "editor" })
    kept:close()
    assert(ann:session "a"):close()
    ann:close()
    ram:close()
  end)

  it("takes notes of the host's own", function()
    local store = open(temp.dir() .. "/store")
    expect.has(expect.refused("EINVALID", store:note("deployed")), "no audit")
    assert(store:guard { audit = { sync = true, reads = false, closed = true } })
    local ann = assert(store:as { user = "ann", roles = "editor" })
    assert(ann:note("deployed", { version = 3 }))
    assert(ann:may("deploy", { permission = "modify_session" }))
    expect.has(expect.refused("EINVALID", ann:note("")), "1 to 63 bytes")
    assert(ann:revoke())
    expect.refused("EDENIED", ann:note("deployed"))
    ann:close()
    store:close()
  end)
end)
