-- examples/memory.lua says what it promises, a week passes between its processes, and in the end
-- nothing of the person can be found.
-- Files only: its files are searched.
-- Own guard: examples open their stores by themselves.

local example = require "spec.support.example"
local lists = require "spec.support.lists"
local sessile = require "sessile"
local temp = example.temp

-- 2 and 9 March 2026, 10:00 UTC.
local MONDAY, WEEK = 1772445600000, 7 * 24 * 60 * 60 * 1000
local HERS = { agent = "coder", user = "ann", must_exist = true }
-- As they were said and noted, and as an index might have them. Sealed lines are base64: what is
-- shorter is there by chance.
local WORDS = { "switched to Vim", "switch", "Fridays", "fridai", "walnut", "hazelnut", "editor",
  "uses Emacs", "allerg", "at length" }

local function run_step(dir, name, now)
  local out, err, status = example.shell(("%s/clock/sessile run examples/memory.lua %s %s")
    :format(example.build, dir, name), "SESSILE_TEST_NOW=" .. now)
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

local function open(dir)
  return assert(sessile.open(dir .. "/store", { key = sessile.key.file(dir .. "/key") }))
end

-- The words that are in a name or in the bytes of a file of a folder.
local function words_in(dir)
  local found, all = {}, temp.snapshot(dir)
  for _, word in ipairs(WORDS) do
    found[#found + 1] = all:find(word, 1, true) and word or nil
  end
  return found
end

-- What is said where, read with the key.
local function known(dir)
  local store <close> = open(dir)
  local memory = assert(store:memory(HERS))
  local texts = lists.field(assert(memory:list()), "value")
  for _, id in ipairs { "monday", "days-later" } do
    local session = store:resume { id = id, agent = "coder", user = "ann" }
    for _, message in ipairs(session and assert(session:messages()) or {}) do
      texts[#texts + 1] = message.content
    end
  end
  return table.concat(texts, "\n")
end

describe("examples/memory.lua", function()
  teardown(temp.clean)

  it("runs from its first step to its last, and leaves nothing behind", function()
    local lines = example.lines "memory.lua"
    local steps = {}
    for _, line in ipairs(lines) do
      steps[#steps + 1] = line:match "^%-%-%- (%a+)$"
    end
    assert.same({ "first", "second", "person", "forget" }, steps)
    assert.equal("files with her words: 0", lines[#lines])
  end)

  it("remembers, recalls a week later, is edited and corrected, and forgets", function()
    local dir = temp.dir()
    temp.write(dir .. "/key", ("5e"):rep(32), "600")
    local out = run_step(dir, "first", MONDAY)
    assert.matches("compacted, 1%d%d%d tokens to %d+; what was said is remembered: 3 notes\n$", out)
    assert.same({}, words_in(dir))
    assert.matches("switched to Vim", known(dir), 1, true) -- there was something to find

    -- The first turn of another process, a week later.
    out = run_step(dir, "second", MONDAY + WEEK)
    local recalled = out:match "\n(recall.-)\nmodel"
    local count, tokens = recalled:match "^recall (%d+) notes, (%d+) of 200 tokens"
    assert.equal("2", count)
    assert.is_true(tonumber(tokens) > 0 and tonumber(tokens) <= 200)
    assert.matches('2026-03-02, user, fact] "Ann switched to Vim for Lua."', recalled, 1, true)
    assert.is_nil(recalled:find("walnuts", 1, true)) -- it is not what she asks about
    assert.matches('\nmodel  I know: "Ann switched to Vim for Lua.".\n', out, 1, true)
    assert.matches("closed; 1 note was written, and took the place of 1\n$", out)
    do
      local store <close> = open(dir)
      local memory = assert(store:memory(HERS))
      assert.equal("Ann uses Emacs and is happy.", memory:read("editor").value)
      assert.equal("replaced", memory:history("editor")[2].state)
    end

    out = run_step(dir, "person", MONDAY + WEEK + 60000)
    assert.matches("MEMORY.md edited: 1 entry replaced\n"
      .. "editor is: Ann uses Emacs and is happy.\n"
      .. "rejected; editor is: Ann switched to Vim for Lua.\n", out, 1, true)
    assert.matches("\n%- Ann is allergic to walnuts and hazelnuts%. <!%-%- %x+ %-%->\n", out)
    assert.is_nil(out:match "\n#.*Emacs") -- MEMORY.md has what is live
    assert.same({}, words_in(dir))
    assert.matches("hazelnuts", known(dir), 1, true)

    out = run_step(dir, "forget", MONDAY + 2 * WEEK)
    assert.matches("forgotten: 3 sessions and memories of Ann\n", out, 1, true)
    assert.matches("cannot be opened: ESEALED: .*forgotten", out)
    assert.matches("files with her words: 0\n$", out)
  end)

  it("leaves nothing that the key opens", function()
    local dir = temp.dir()
    temp.write(dir .. "/key", ("5e"):rep(32), "600")
    for n, name in ipairs { "first", "second", "person", "forget" } do
      run_step(dir, name, MONDAY + n * WEEK)
    end
    assert.same({}, words_in(dir))
    local store <close> = open(dir)
    local memory, message, code = store:memory(HERS)
    assert.same({ nil, "ESEALED" }, { memory, code })
    assert.matches("forgotten", message)
    for _, id in ipairs { "monday", "days-later" } do
      local session, _, why = store:resume { id = id, agent = "coder", user = "ann" }
      assert.same({ nil, "ESEALED" }, { session, why })
    end
    local unread = 0
    for hit in store:search "Vim" do
      assert.same({ "unread", "ESEALED" }, { hit.kind, hit.code })
      unread = unread + 1
    end
    assert.equal(2, unread)
  end)
end)
