-- What somebody meets whose log is damaged: from Lua, and at the command line.
-- Files only: logs are damaged by hand.
-- Own guard: logs are counted, of which a guard has two more.

local sessile = require "sessile"

local cli = require "spec.support.cli"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

-- Changes one letter of what a plain log holds.
local function spoil(path, word)
  local text = cli.read(path)
  local at = assert(text:find(word, 1, true))
  cli.write(path, text:sub(1, at - 1) .. word:upper() .. text:sub(at + #word))
end

describe("a damaged session", function()
  local folder, store

  stores.each_test(function()
    folder = temp.dir()
    store = assert(sessile.open(folder, { key = false }))
    local s <close> = assert(store:create "hurt")
    for i = 1, 6 do
      assert(s:append { role = "user", content = "word" .. i })
    end
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

  -- The newest write of a store, changed by `hurt` after it was acknowledged.
  local function check_newest(over, hurt)
    local s <close> = assert(over:create "newest")
    for i = 1, 3 do
      assert(s:append { role = "user", content = "said " .. i })
    end
    s:close()
    hurt()
    assert.equal("EDAMAGED", over:list { prefix = "newest" }[1].status)
    local report = assert(over:check "newest")
    assert.equal(1, report.damaged)
    assert.equal(1, report.lost)
    assert.equal("00000003", report.findings[#report.findings].entry)
    assert.matches("damaged at byte %d+, entry 00000003", report.findings[1].what)
    report = assert(over:check { id = "newest", salvage = true })
    assert.equal(1, report.salvaged)
    local again <close> = assert(over:resume "newest")
    assert.equal("tombstone", again:entry("00000003").type)
    assert.equal("00000004", assert(again:append { role = "user", content = "on" }))
  end

  it("keeps the id of the newest entry, when that is what was hurt", function()
    local path = folder .. "/agents/main/newest.jsonl"
    check_newest(store, function() spoil(path, "said 3") end)
    assert.matches("said 3", (cli.read(folder .. "/agents/main/newest.replaced-1"):lower()))
  end)

  it("keeps it in a database too", function()
    if not os.execute "command -v sqlite3 >/dev/null" then
      return pending "sqlite3 is not installed"
    end
    local path = folder .. "/store.db"
    check_newest(stores.open("sqlite:" .. path, { key = false }), function()
      assert(os.execute(("sqlite3 %s \"UPDATE entries SET line = CAST(replace(CAST(line AS TEXT),"
        .. " 'said 3', 'SAID 3') AS BLOB)\""):format(path)))
    end)
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

  cli.each_test(function(path) home = path end)

  it("prints one line for a healthy store, and has exit code 5 for damage", function()
    local store = home .. "/plain"
    local function at(words) return ("--plain --store %s %s"):format(store, words) end
    cli.done(at "new --id hurt")
    for i = 1, 4 do
      cli.done(at(("append hurt word%d"):format(i)))
    end
    local out, err = cli.done(at "check")
    assert.matches("^1 log, 5 entries, .*nothing is damaged\n$", out)
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
    assert.is_false(cli.json(at "check hurt --salvage --yes").damaged == 0)
    cli.done(at "append hurt more")
    out = cli.done(at "check hu")
    assert.matches("nothing is damaged", out)
  end)

  -- A store of one session of n messages; the words for it, and its log.
  local function plain(n)
    local folder = home .. "/plain"
    local store <close> = assert(sessile.open(folder, { key = false }))
    local s <close> = assert(store:create "hurt")
    for i = 1, n do
      assert(s:append { role = "user", content = ("word%d."):format(i) })
    end
    return function(words) return ("--plain --store %s %s"):format(folder, words) end,
      folder .. "/agents/main/hurt.jsonl"
  end

  -- Runs the last line that was printed.
  local function paste(text, more)
    local command = assert(text:match("([^\n]+)\n?$"):match(
      cli.binary:gsub("%p", "%%%0") .. " (.*)"), text)
    return cli.sessile(command .. (more or ""))
  end

  it("is named once by a write that is refused, as a command that works", function()
    local at, path = plain(4)
    spoil(path, "word2")
    local out, err, code = cli.sessile(at "append hurt more")
    assert.equal(5, code)
    assert.equal("", out)
    local _, times = err:gsub("is damaged at byte", "")
    assert.equal(1, times, err)
    out, err, code = paste(err, " --yes")
    assert.equal(0, code, out .. err)
    assert.matches("salvaged: 4 entries", out)
    assert.is_nil(out:find("check [^\n]*%-%-salvage"), out) -- it is done
    assert.truthy(out:find(path, 1, true), out)
    cli.done(at "append hurt more")
  end)

  it("is told by the exit code of what meets an old entry", function()
    local at, path = plain(600)
    spoil(path, "word2.")
    for _, word in ipairs { "show", "context" } do
      local out, err, code = cli.sessile(at(word .. " hurt"))
      assert.equal("", out)
      assert.equal(5, code, word .. ": " .. err)
    end
  end)

  it("finds nothing in an index that another process wrote", function()
    local at = plain(600)
    local out = cli.done(at "check")
    assert.matches("^1 log, 601 entries, [^\n]*nothing is damaged\n$", out)
  end)

  it("calls a session whose user was forgotten no damage", function()
    local folder = home .. "/sealed"
    cli.done(("--store %s new --id a"):format(folder))
    cli.write(home .. "/user.lua", ([[
      local store <close> = assert(require "sessile".open(%q))
      assert(store:create { id = "b", user = "ann" }):close()
    ]]):format(folder))
    cli.done("run " .. home .. "/user.lua")
    cli.done(("--store %s forget ann --yes"):format(folder))
    local out = cli.done(("--store %s check"):format(folder))
    assert.matches("note: [^\n]*was forgotten", out)
    assert.matches("nothing is damaged", out)
  end)

  it("promises no salvage of a log that has no first line", function()
    local at, path = plain(2)
    cli.write(path, "")
    local _, err, code = cli.sessile(at "show hurt")
    assert.equal(5, code)
    assert.matches("bring back a backup", err)
    assert.is_nil(err:find("salvage", 1, true), err)
  end)

  it("of logs that may not be read has exit code 7", function()
    if cli.is_root() then
      local at = plain(1)
      os.execute(("ln -sf /etc/passwd %s/plain/agents/main/hurt.jsonl"):format(home))
      local out, err, code = cli.sessile(at "check hurt")
      assert.equal(7, code, out .. err)
    else
      local at, path = plain(1)
      os.execute("chmod 000 " .. path)
      local out, err, code = cli.sessile(at "check")
      assert.equal(7, code, out .. err)
    end
  end)

  it("of a store whose keyring is gone says which file to bring back", function()
    local folder = home .. "/sealed"
    cli.done(("--store %s new --id a"):format(folder))
    for _, harm in ipairs { ": >", "rm" } do
      os.execute(("%s %s/keyring"):format(harm, folder))
      local _, err, code = cli.sessile(("--store %s list"):format(folder))
      assert.is_true(code == 5 or code == 7, err)
      assert.truthy(err:find(folder .. "/keyring", 1, true), err)
      assert.is_nil(err:find("right one", 1, true), err)
    end
  end)

  it("has nothing to say of an index that another process wrote", function()
    local folder = home .. "/other"
    local store = assert(sessile.open(folder, { key = false, durability = "none" }))
    local s = assert(store:create "long")
    for i = 1, 300 do
      assert(s:append { role = "user", content = "word" .. i })
    end
    assert(s:close())
    store:close()
    assert.is_true(#cli.read(folder .. "/agents/main/long.idx") > 0)
    local out, err = cli.done(("--store %s --plain check"):format(folder))
    assert.matches("nothing is damaged", out)
    assert.not_matches("index", out .. err)
  end)

  it("hints at commands of two words with the store that was named", function()
    local folder = home .. "/sealed"
    cli.done(("--store %s new --id a"):format(folder))
    local _, err = cli.done(("--store %s keys rotate"):format(folder))
    local command = assert(err:match("`[^ ]+ ([^`]+)`"), err)
    assert.equal("keys reseal --store " .. folder, command)
    assert.matches("sealed again: 1 of 1", (cli.done(command)))
  end)
end)
