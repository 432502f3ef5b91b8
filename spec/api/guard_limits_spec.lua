-- What a guard counts: rates of rules, and what a caller is told.
-- Files only: the clock and the other places that count are tested in C.
-- Own guard: it sets them.

local expect = require "spec.support.expect"
local sessile = require "sessile"

describe("limits of a guard", function()
  local store

  local function guarded(opts)
    store = assert(sessile.open("ram:", { key = false }))
    assert(store:guard(opts))
    finally(function() store:close() end)
    return assert(store:as { user = "ann", roles = "editor" })
  end

  it("lets ten sessions be made in a minute, and says when there is room", function()
    local ann = guarded { limits = true }
    for _ = 1, 10 do
      assert(ann:create()):close()
    end
    local none, message, code, retry_ms, rule = ann:create()
    assert.is_nil(none)
    expect.has(message, "session_creation of 10/minute")
    assert.equal("ELIMIT", code)
    assert.equal("session_creation", rule)
    assert.is_true(retry_ms > 0 and retry_ms <= 70000)
    ann:close()
  end)

  it("takes rates of one's own, and \"off\"", function()
    local ann = guarded { limits = { session_creation = "off", checkpoint_writes = "2/hour" } }
    for _ = 1, 11 do
      assert(ann:create()):close()
    end
    local s = assert(ann:session "s")
    assert(s:checkpoint())
    assert(s:checkpoint())
    local _, _, code, _, rule = s:checkpoint()
    assert.same({ "ELIMIT", "checkpoint_writes" }, { code, rule })
    ann:close()
  end)

  it("says rule and time, whatever was called too often", function()
    local ann = guarded { limits = { branch_operations = "1/hour", memory_writes = "1/hour",
      memory_reads = "2/hour", searches = "1/hour" } }
    local s = assert(ann:create())
    local m = assert(ann:memory { user = "ann", consent = "yes" })
    assert(s:append { role = "user", content = "hello" })
    local calls = {
      branch_operations = { function() return s:fork() end, function() return s:child() end,
        function() return s:branch(s:head()) end },
      memory_writes = { function() return m:write("a", "b") end },
      memory_reads = { function() return m:list() end, function() return m:search "b" end,
        function() return m:read "a" end },
      searches = { function() return ann:search "hello" end },
    }
    for rule, list in pairs(calls) do
      for _ = 1, 2 do list[1]() end
      for i, call in ipairs(list) do
        local none, _, code, retry_ms, said = call()
        assert.same({ nil, "ELIMIT", rule }, { none, code, said }, ("%s %d"):format(rule, i))
        assert.is_true(retry_ms > 0)
      end
    end
    ann:close()
  end)

  it("counts nothing without being asked to", function()
    local ann = guarded {}
    for _ = 1, 20 do
      assert(ann:create()):close()
    end
    ann:close()
  end)

  it("counts operations of the host's own", function()
    local ann = guarded { limits = { searches = "1/hour" } }
    local asked = { permission = "view_session", limit = "searches" }
    assert(ann:may("look", asked))
    local _, _, code, _, rule = ann:may("look", asked)
    assert.same({ "ELIMIT", "searches" }, { code, rule })
    expect.has(expect.refused("EDENIED", ann:may("x", { permission = "delete_session" })),
      "delete_session")
    expect.has(expect.refused("EDENIED",
      ann:may("look", { permission = "view_session", id = "s", user = "bob" })), "not yours")
    expect.has(expect.refused("EINVALID",
      ann:may("look", { permission = "view_session", limit = "wishes" })), "wishes")
    ann:close()
  end)

  for rate, part in pairs { ["10/fortnight"] = "10/minute", ["-1/minute"] = "10/minute" } do
    it("refuses the rate " .. rate, function()
      local one = assert(sessile.open("ram:", { key = false }))
      expect.has(expect.refused("EINVALID", one:guard { limits = { searches = rate } }), part)
      one:close()
    end)
  end
end)
