-- What somebody meets whose log is damaged: from Lua, and at the command line.

local sessile = require "sessile"

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local cli = dofile(here .. "/support/cli.lua")
local temp = dofile(here .. "/support/temp.lua")

-- Changes one letter of what a plain log holds.
local function spoil(path, word)
  local text = cli.read(path)
  local at = assert(text:find(word, 1, true))
  cli.write(path, text:sub(1, at - 1) .. word:upper() .. text:sub(at + #word))
end

describe("a damaged session", function()
  local folder, store

  before_each(function()
    folder = temp.dir()
    store = assert(sessile.open(folder, { key = false }))
    local s <close> = assert(store:create "hurt")
    for i = 1, 6 do
      assert(s:append { role = "user", content = "word" .. i })
    end
  end)

  after_each(function()
    store:close()
    temp.clean()
  end)

  it("is read, says what it is, and takes no write", function()
    spoil(folder .. "/agents/main/hurt.jsonl", "word3")
    local s <close> = assert(store:resume "hurt")
    assert.equal("EDAMAGED", s.damage.code)
    assert.equal(1, s.damage.lost)
    assert.matches("sessile check hurt %-%-salvage", s.damage.message)
    assert.equal(5, #s:messages())
    local list, info = s:context()
    assert.equal(5, #list)
    assert.equal(1, info.lost)
    assert.equal("tombstone", s:entry("00000003").type)
    local id, message, code = s:append { role = "user", content = "no" }
    assert.is_nil(id)
    assert.equal("EDAMAGED", code)
    assert.matches("salvage", message)
    assert.equal("EDAMAGED", store:list()[1].status)
    assert.equal(5, store:list()[1].messages)
  end)

  it("is found by check, which changes nothing, and mended by salvage", function()
    local path = folder .. "/agents/main/hurt.jsonl"
    assert(store:create "fine"):close()
    spoil(path, "word3")
    local before = cli.read(path)
    local report = assert(store:check())
    assert.is_false(report.ok)
    assert.equal(2, report.sessions)
    assert.equal(1, report.damaged)
    assert.equal("00000003", report.findings[#report.findings].entry)
    assert.equal(before, cli.read(path))
    assert.is_true(assert(store:check "fine").ok)

    local steps = 0
    report = assert(store:check { id = "hurt", salvage = true,
      on_step = function() steps = steps + 1 end })
    assert.is_true(report.ok)
    assert.equal(1, report.salvaged)
    assert.equal(1, steps)
    assert.equal(before, cli.read(folder .. "/agents/main/hurt.replaced-1"))
    local s <close> = assert(store:resume "hurt")
    assert.is_nil(s.damage)
    assert.equal("00000007", assert(s:append { role = "user", content = "on" }))
    assert.is_true(assert(store:check()).ok)
  end)

  it("is named by check when there is none", function()
    local report, message, code = store:check "nobody"
    assert.is_nil(report)
    assert.equal("ENOTFOUND", code)
    assert.matches("nobody", message)
  end)
end)

describe("sessile check", function()
  local home

  before_each(function() home = cli.begin() end)
  after_each(cli.finish)

  it("prints one line for a healthy store, and has exit code 5 for damage", function()
    local store = home .. "/plain"
    local function at(words) return ("--plain --store %s %s"):format(store, words) end
    cli.done(at "new --id hurt")
    for i = 1, 4 do
      cli.done(at(("append hurt word%d"):format(i)))
    end
    local out, err = cli.done(at "check")
    assert.matches("^1 session, 5 entries, .*nothing is damaged\n$", out)
    assert.equal("", err)
    spoil(store .. "/agents/main/hurt.jsonl", "word2")
    local code
    out, err, code = cli.sessile(at "check")
    assert.equal(5, code, err)
    assert.matches("agents/main/hurt.jsonl: entry 00000002 is lost", out)
    assert.matches("check .* hurt %-%-salvage", out)
    out, err, code = cli.sessile(at "append hurt more")
    assert.equal(5, code)
    assert.equal("", out)
    assert.matches("salvage", err)
    assert.is_false(cli.json(at "check hurt --salvage").damaged == 0)
    cli.done(at "append hurt more")
    out = cli.done(at "check hu")
    assert.matches("nothing is damaged", out)
  end)
end)
