-- Somebody edits the file of a session, so that the agent restores a state that was never saved.
-- Files only: it edits one. Own guard: it sets one.

local attacks = require "spec.support.attacks"
local expect = require "spec.support.expect"
local shell = require "spec.support.shell"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

-- The log of the one session in a folder of a store.
local function log_of(dir)
  local find = "find %s -name '*.jsonl' -path '*/main/*'"
  local pipe = assert(io.popen(find:format(shell.quote(dir))))
  local path = pipe:read "l"
  pipe:close()
  return assert(path)
end

-- Changes one character in the middle of the last line but `back`.
local function edit_line(path, back)
  local lines = {}
  for line in temp.read(path):gmatch "[^\n]*\n" do
    lines[#lines + 1] = line
  end
  local at = #lines - back
  local middle = #lines[at] // 2
  local byte = lines[at]:sub(middle, middle)
  lines[at] = lines[at]:sub(1, middle - 1) .. (byte == "A" and "B" or "A")
    .. lines[at]:sub(middle + 1)
  temp.write(path, table.concat(lines), "600")
end

describe("a checkpoint in a file that somebody edited", function()
  local store, dir, id

  stores.each_test(function()
    store, dir = attacks.store()
    local ann <close> = attacks.user(store, "ann")
    local s <close> = assert(ann:create { id = "bug-42" })
    assert(s:append { role = "user", content = "one" })
    id = assert(s:checkpoint { name = "before", state = { step = 3 } })
    assert(s:append { role = "user", content = "two" })
  end)

  it("is not restored, and the attempt is in the audit", function()
    edit_line(log_of(dir), 1)
    local ann <close> = attacks.user(store, "ann")
    local s <close> = assert(ann:resume "bug-42")
    local restored, message, code = s:restore(id)
    expect.refused("EDAMAGED", restored, message, code)
    expect.has_not(message, "step")
    local failed = attacks.events(store, { operation = "restore", outcome = "failure" })
    assert.equal(1, #failed)
    assert.same({ "ann", "bug-42", "DAMAGED" },
      { failed[1].name, failed[1].session, failed[1].code })
  end)

  it("is restored when nobody did, which the audit has, too", function()
    local ann <close> = attacks.user(store, "ann")
    local s <close> = assert(ann:resume "bug-42")
    local restored = assert(s:restore "before")
    assert.same({ step = 3 }, restored.state)
    local events = attacks.events(store, { operation = "restore", outcome = "success" })
    assert.equal(1, #events)
    assert.equal("bug-42", events[1].session)
    assert.is_string(events[1].entry)
  end)
end)
