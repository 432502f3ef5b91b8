-- The records of sessions that were removed for good, over each kind of store.
-- Own stores: of every kind.

local kinds = require "spec.support.kinds"
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
