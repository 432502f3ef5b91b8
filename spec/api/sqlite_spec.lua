-- Sessions in a SQLite file: as somebody types it, from Lua, and asked with SQL.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local output = require("spec.support.shell").output
local sessile = require "sessile"
local has = expect.has
local done, fails, json, quote = cli.done, cli.fails, cli.json, cli.quote
local home, path, url

cli.each_test(function(at)
  home = at
  path = home .. "/in/sessions.db"
  url = "sqlite:" .. path
end)

-- What a command of the shell prints.
local function shell(command)
  return (output(command .. " 2>&1"))
end

describe("the command line over sqlite:", function()
  it("makes, appends, shows, lists, searches, checks and deletes", function()
    local at = " --store " .. url
    has(done("doctor" .. at), path .. ": does not exist yet")
    for _, words in ipairs { "show bug-42", "search why", "check", "stats" } do
      has(fails(3, words .. at), "there is no store at sqlite:")
    end
    assert.same({}, json("list" .. at))
    assert.equal("", shell("(ls " .. quote(path) .. "* 2>/dev/null)")) -- nothing was made
    done("new --id bug-42 --title 'Slow start'" .. at)
    done("append bug-42 -" .. at, "why is it slow?\n")
    has(done("show bug-42" .. at), "why is it slow?")
    local listed = json("list" .. at)
    assert.equal("bug-42", listed[1].id)
    assert.equal("Slow start", listed[1].title)
    has(done("search slow" .. at), "bug-42")
    has(done("check" .. at), "nothing is damaged")
    has(done("doctor" .. at), path .. ": yours, mode 0600, schema version 1")
    assert.equal("600", shell("stat -c %a " .. quote(path)):match "%d+")
    done("fork bug-42 --id copy" .. at)
    done("delete bug-42 --yes" .. at)
    listed = json("list" .. at)
    assert.equal(1, #listed)
    assert.equal("copy", listed[1].id)
  end)

  it("reseals it under a newer key", function()
    local at = " --store " .. url
    done("new --id a" .. at)
    for i = 1, 4 do
      done("append a -" .. at, "message " .. i .. "\n")
    end
    done("keys rotate" .. at)
    done("keys reseal" .. at)
    has(done("show a" .. at), "message 4")
    has(done("check" .. at), "nothing is damaged")
  end)

  it("knows ~, and makes no folder of that name", function()
    done "new --id at-home --store 'sqlite:~/in/at.db'"
    has(done("list --store sqlite:" .. home .. "/in/at.db"), "at-home")
    local text = "local s = require 'sessile'; local t = assert(s.open('sqlite:~/in/at.db', "
      .. "{ guard = os.getenv 'TEST_GUARD' })); "
      .. "print(t:list()[1].id)"
    cli.write(home .. "/ask.lua", text)
    has(done("run " .. home .. "/ask.lua"), "at-home")
  end)

  it("says what was forgotten, or is too much, before its path", function()
    done("new --id a --store " .. url)
    done("backup " .. home .. "/b.db --store " .. url)
    has(fails(1, "list --store " .. path), "Say so: sqlite:" .. path)
    has(fails(1, "migrate " .. path .. " " .. home .. "/to"), "Say so: sqlite:" .. path)
    has(fails(1, "migrate " .. url .. " " .. home .. "/b.db"), "Say so: sqlite:" .. home)
    for _, slashes in ipairs { "//", "///" } do
      has(fails(1, "new --store sqlite:" .. slashes .. "none.db"), 'write "sqlite:none.db"')
    end
  end)

  it("says --plain of one that is not sealed", function()
    done("new --id open --plain --store " .. url)
    done "new --id made-the-key" -- a key file is there, and does not fit
    has(fails(7, "list --store " .. url), "If that is intended, pass --plain")
  end)

  it("says what is wrong with a path", function()
    assert.truthy(os.execute("mkdir -m 700 " .. quote(home .. "/in")))
    cli.write(path, ("this is no database, whatever its name says; "):rep(20))
    assert.truthy(os.execute("chmod 600 " .. quote(path)))
    has(fails(1, "list --store " .. url), "is not a database of SQLite")
    assert.equal(20 * 45, #cli.read(path))
    has(fails(1, "list --store sqlite:" .. home .. "/in/"), "path of a file")
    has(fails(1, "list --store sqlite:"), "needs a file")
    assert.truthy(os.execute(("ln -s %s %s"):format(quote(path), quote(home .. "/in/link"))))
    has(fails(7, "list --store sqlite:" .. home .. "/in/link"), "is a link")
    done("new --id a --store sqlite:" .. home .. "/in/open.db")
    assert.truthy(os.execute("chmod 644 " .. quote(home .. "/in/open.db")))
    local out, _, code = cli.sessile("doctor --store sqlite:" .. home .. "/in/open.db")
    assert.equal(1, code)
    has(out, "chmod 600")
    assert.truthy(os.execute("mkdir -m 777 " .. quote(home .. "/all")
      .. " && chmod 777 " .. quote(home .. "/all")))
    out, _, code = cli.sessile("doctor --store sqlite:" .. home .. "/all/new.db")
    assert.equal(1, code)
    has(out, "other users can write in its folder")
  end)
end)

describe("a store at sqlite:", function()
  it("is one store to several handles, and keeps what it was given", function()
    local one <close> = assert(sessile.open(url, { key = false }))
    local two <close> = assert(sessile.open(url, { key = false }))
    local a = assert(one:create { id = "a" })
    assert(a:append { role = "user", content = "hello" })
    local b = assert(two:resume "a")
    assert.equal("hello", b:messages()[1].content)
    assert(b:append { role = "assistant", content = "hi" })
    assert.equal("hi", a:messages()[2].content)
    a:close()
    b:close()
  end)
end)

describe("the query of store/sqlite/README.md", function()
  it("gives what was said in a plain store", function()
    guarded.unguarded_only "the query finds the logs of a guard as well"
    if not os.execute "command -v sqlite3 >/dev/null" then
      pending "sqlite3 is not installed"
      return
    end
    local readme = cli.read("engine/store/sqlite/README.md")
    local query = assert(readme:match "\n    (sqlite3 sessions%.db \"[^\n]*)\n")
    local at = " --plain --store " .. url
    done("new --id bug-42" .. at)
    done("append bug-42 -" .. at, "why is it slow?\n")
    assert.equal("user|why is it slow?\n",
      shell(("cd %s && %s"):format(quote(home .. "/in"), query)))
    assert.equal(json("info bug-42" .. at).head .. "\n", shell(
      ("sqlite3 %s 'SELECT head FROM overview'"):format(quote(path))))
    assert.truthy(os.execute(("sqlite3 %s '.backup %s/copy.db' && chmod 600 %s/copy.db"):format(
      quote(path), home .. "/in", home .. "/in")))
    has(done("show bug-42 --plain --store sqlite:" .. home .. "/in/copy.db"), "why is it slow?")
  end)
end)
