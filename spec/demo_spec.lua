-- The demonstration: it runs to its end, and shows what it promises.

local binary = os.getenv "SESSILE_BIN" or "build/bin/sessile"

describe("sessile demo", function()
  it("seals, replays, kills, and finds everything again, leaving nothing behind", function()
    local function folders()
      local pipe <close> = assert(io.popen "ls -d \"${TMPDIR:-/tmp}\"/sessile-demo.* 2>/dev/null")
      return pipe:read "a"
    end
    local before = folders()
    local pipe = assert(io.popen(binary .. " demo 2>&1"))
    local out = pipe:read "a"
    local ok, _, code = pipe:close()
    assert.equal(0, code, out)
    assert.is_true(ok)
    for _, text in ipairs {
      "1. Seal it", "in 0 lines", "2. Replay it", "The first compaction", "BEFORE", "tiered",
      "3. Kill a writer", "signal 9", "Lost: 0.", "4. What is here now", "slow-start",
    } do
      assert.truthy(out:find(text, 1, true), text .. "\n" .. out)
    end
    assert.is_nil(out:find("traceback", 1, true))
    assert.equal(before, folders())
  end)
end)
