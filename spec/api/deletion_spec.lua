-- The records of sessions that were removed for good, over each kind of store.
-- Own stores: of every kind.

local kinds = require "spec.support.kinds"
local temp = require "spec.support.temp"
local sessile = require "sessile"

kinds.each(function(name, kind)
  describe("a removed session of a " .. name .. " store", function()
    local url, store

    before_each(function()
      if not kind.reason then
        url = kind.place()
        store = assert(sessile.open(url, { key = kind.key }))
      end
    end)

    after_each(function()
      if store then
        store:close()
      end
      kinds.clean()
    end)

    local function make(id, user)
      local s <close> = assert(store:create { id = id, user = user })
      assert(s:append { role = "user", content = "hello" })
    end

    it("is found by its id alone if it is the only one, as by resume", function()
      local function of(agent)
        assert(store:create { id = "shared", agent = agent }):close()
      end
      of "one"
      of "two"
      local gone, message, code = store:delete "shared"
      assert.is_nil(gone)
      assert.equal("EINVALID", code)
      assert.equal('there are 2 sessions "shared": name the agent, one of one, two', message)
      assert.equal(2, #store:list())
      assert(store:delete { id = "shared", agent = "one" })
      assert(store:delete("shared", { soft = true }))
      assert.equal(0, #store:list())
      assert(store:undelete "shared")
      assert.equal("two", store:list()[1].agent)
      assert(store:delete "shared")
      assert.same({}, store:list { status = { "active", "deleted" } })
    end)

    it("leaves a record of when, who and why", function()
      if kind.reason then
        return pending(kind.reason)
      end
      assert.same({}, assert(store:deletions()))
      make "a"
      local gone = assert(store:delete("a", { reason = "a mistake", actor = "ops" }))
      local rows = assert(store:deletions())
      assert.equal(1, #rows)
      assert.same({ id = "a", agent = "main", id_hash = gone.id_hash, time = gone.time,
        bytes = gone.bytes, reason = "a mistake", actor = "ops" }, rows[1])
      -- one that is not there leaves none
      assert.is_nil((store:delete "nobody"))
      assert.is_nil((store:delete("nobody", { reason = "\xff" })))
      assert.equal(1, #assert(store:deletions()))
      -- it can be made again, and be removed again
      make "a"
      assert(store:delete "a")
      rows = assert(store:deletions())
      assert.equal(2, #rows)
      assert.is_nil(rows[1].reason)
      assert.is_nil(rows[1].actor)
    end)

    it("has its record in copies of the store", function()
      if kind.reason then
        return pending(kind.reason)
      end
      make "a"
      make "b"
      assert(store:delete("a", { reason = "a mistake", actor = "ops" }))
      local wanted = assert(store:deletions())
      local own = sessile.key.secret("hex:" .. ("2b"):rep(32))
      for _, key in ipairs { kind.key, own } do
        local to = temp.dir() .. "/copy"
        local other = key ~= kind.key
        assert(sessile.migrate(store, other and { url = to, key = key } or to, { change = other }))
        local copy <close> = assert(sessile.open(to, { key = key }))
        assert.same(wanted, assert(copy:deletions()))
      end
      local file = temp.dir() .. "/b.db"
      assert(store:backup(file))
      assert(store:delete("b", { reason = "later" }))
      assert(store:backup(file, { update = true }))
      local backup <close> = assert(sessile.open("sqlite:" .. file, { key = kind.key }))
      assert.equal(2, #assert(backup:deletions()))
    end)

    it("is not named if it had a user", function()
      if kind.reason then
        return pending(kind.reason)
      end
      make("diary", "ann@example.org")
      local gone = assert(store:delete({ id = "diary", user = "ann@example.org" },
        { reason = "asked for", actor = "ops" }))
      local row = assert(store:deletions())[1]
      assert.is_nil(row.id)
      assert.is_nil(row.agent)
      assert.equal(gone.id_hash, row.id_hash)
      assert.equal("asked for", row.reason)
    end)

    it("is recorded when it is purged", function()
      if kind.reason then
        return pending(kind.reason)
      end
      make "soft"
      assert(store:delete("soft", { soft = true }))
      assert.same({}, assert(store:deletions()))
      assert.equal(1, #assert(store:purge { retention = 0 }))
      assert.equal("purged: deleted softly", assert(store:deletions())[1].reason)
    end)

    it("keeps its record through another process, master key and suite", function()
      if kind.reason then
        return pending(kind.reason)
      end
      make "a"
      assert(store:delete("a", { reason = "a mistake" }))
      if kind.key then
        assert(store:rotate())
        assert(store:reseal { suite = "xchacha20-poly1305" })
        assert.equal(1, #assert(store:keys()).epochs)
      end
      assert(store:close())
      store = assert(sessile.open(url, { key = kind.key }))
      assert.equal("a mistake", assert(store:deletions())[1].reason)
      assert.same({}, assert(store:check()).findings)
    end)
  end)
end)

describe("a removed session of a store in memory", function()
  it("leaves its record, which a copy has too", function()
    local store <close> = assert(sessile.open("ram:", { key = false }))
    assert(store:create "a"):close()
    assert(store:delete("a", { reason = "a mistake" }))
    assert.equal("a mistake", assert(store:deletions())[1].reason)
    local to = temp.dir() .. "/copy"
    assert(store:create "b"):close()
    assert(sessile.migrate(store, { url = to, key = false }))
    local copy <close> = assert(sessile.open(to, { key = false }))
    assert.equal("a mistake", assert(copy:deletions())[1].reason)
    temp.clean()
  end)
end)
