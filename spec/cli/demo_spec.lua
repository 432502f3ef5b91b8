-- The demonstration: it runs to its end, and shows what it promises.
-- Files only: it has a folder of its own.

local binary = require("spec.support.built").binary
local shell = require "spec.support.shell"

describe("sessile demo", function()
  it("seals, replays, kills, and finds everything again, leaving nothing behind", function()
    local function folders()
      return (shell.output "ls -d \"${TMPDIR:-/tmp}\"/sessile-demo.* 2>/dev/null")
    end
    local before = folders()
    local out, ok, code = shell.output(binary .. " demo 2>&1")
    assert.equal(0, code, out)
    assert.is_true(ok)
    for _, text in ipairs {
      "1. Seal it", "in 0 lines", "2. Replay it", "The first compaction", "BEFORE", "tiered",
      "3. Remember it", "Notes from earlier sessions", "are in no prompt cache",
      "4. Kill a writer", "signal 9", "Lost: 0.", "5. `sessile list`", "slow-start",
    } do
      assert.truthy(out:find(text, 1, true), text .. "\n" .. out)
    end
    assert.is_nil(out:find("traceback", 1, true))
    assert.equal(before, folders())
    -- What it says at its end works when it is typed.
    assert.truthy(out:find(binary .. " import ", 1, true), out)
    local transcript = out:match " import (%S+) %-%-id"
    assert(io.open(transcript)):close()
  end)

  it("leaves nothing behind when it is ended", function()
    local function gone(folder)
      for _ = 1, 100 do
        local pipe <close> = assert(io.popen("ls -A " .. folder))
        if pipe:read "a" == "" then return true end
        os.execute "sleep 0.1"
      end
      return false
    end
    local pipe = assert(io.popen "mktemp -d")
    local folder = pipe:read "l"
    pipe:close()
    os.execute(("TMPDIR=%s %s demo 2>&1 | head -1 >/dev/null"):format(folder, binary))
    assert.is_true(gone(folder), "a closed pipe")
    for _, signal in ipairs { "INT", "TERM", "KILL" } do
      os.execute(("TMPDIR=%s timeout --foreground -s %s 0.3 %s demo >/dev/null 2>&1")
        :format(folder, signal, binary))
      assert.is_true(gone(folder), signal)
    end
    os.execute("rmdir " .. folder)
  end)
end)
