-- A session that others write to, watched: from Lua, and by `sessile show --follow`. The others
-- are processes of their own.

local cli = require "spec.support.cli"
local decode = require("sessile").decode
local sessile = require "sessile"

local home

cli.each_test(function(path)
  home = path
  cli.done "new --id one"
end)

-- The same environment as cli.sessile, for what runs beside the test.
local function command(words)
  return ("env -u SESSILE_KEY -u SESSILE_STORE -u SESSILE_CONFIG HOME=%s XDG_DATA_HOME=%s/data "
    .. "XDG_CONFIG_HOME=%s/config %s %s"):format(cli.quote(home), cli.quote(home),
    cli.quote(home), cli.quote(cli.binary), words)
end

-- Runs a shell script beside the test.
local function beside(script)
  assert(os.execute(("{ %s ; } >%s/beside 2>&1 &"):format(script, cli.quote(home))))
end

-- Waits until a file has what is looked for: fails the test after a minute.
local function wait_for(path, part)
  for _ = 1, 1200 do
    local file <close> = io.open(path)
    local text = file and file:read "a" or ""
    if text:find(part, 1, true) then
      return text
    end
    os.execute "sleep 0.05"
  end
  error(part .. " never came:\n" .. cli.read(path))
end

local function resumed()
  local store = assert(sessile.open("file:" .. home .. "/data/sessile",
    { key = sessile.key.file(home .. "/config/sessile/key") }))
  return assert(store:resume "one"), store
end

describe("session:watch", function()
  it("waits for what another process writes, and says what the newest entry is", function()
    local s, store = resumed()
    beside("sleep 0.1; " .. command "append one hello")
    local changed, newest = s:watch { timeout_ms = 20000 }
    assert.is_true(changed)
    assert.equal("00000001", newest)
    assert.equal("hello", s:messages { last = 1 }[1].content)
    assert.is_false((s:watch { after = newest, timeout_ms = 0 }))
    assert(s:append { role = "user", content = "mine" })
    assert.is_false((s:watch { timeout_ms = 20 }))
    assert.same({ true, "00000002" }, { s:watch { after = newest, timeout_ms = 20000 } })
    s:close()
    store:close()
  end)

  it("ends when its time is up", function()
    local s, store = resumed()
    assert.same({ false, "00000000" }, { s:watch { timeout_ms = 30 } })
    s:close()
    store:close()
  end)

  it("says that a session was removed", function()
    local s, store = resumed()
    beside("sleep 0.1; " .. command "delete one --yes")
    local changed, message, code = s:watch { timeout_ms = 20000 }
    assert.is_nil(changed)
    assert.equal("ENOTFOUND", code)
    assert.matches("removed", message)
    s:close()
    store:close()
  end)

  it("is not for records that the host keeps", function()
    local kept = {}
    local store <close> = assert(sessile.open {
      load = function() return kept end,
      save = function(_, new) table.move(new, 1, #new, #kept + 1, kept) return true end,
    })
    local s <close> = assert(store:create { id = "one" })
    local changed, message, code = s:watch { timeout_ms = 0 }
    assert.is_nil(changed)
    assert.equal("EUNSUPPORTED", code)
    assert.matches("the host's", message)
  end)

  it("refuses what is is not a time and no entry", function()
    local s, store = resumed()
    assert.has_error(function() s:watch { timeout_ms = "soon" } end)
    assert.has_error(function() s:watch { timeout = 1 } end)
    local changed, message, code = s:watch { after = "nowhere", timeout_ms = 0 }
    assert.is_nil(changed)
    assert.truthy(message)
    assert.equal("ENOTFOUND", code)
    assert.has_error(function() s:watch { timeout_ms = -2 } end)
    assert.has_error(function() s:watch { timeout_ms = 0.5 } end)
    s:close()
    store:close()
  end)
end)

describe("sessile show --follow", function()
  local function follow(words, act)
    local out = home .. "/followed"
    cli.write(home .. "/follow.sh", ("echo $$ >%s/pid; exec %s >%s 2>%s/wrong\n"):format(
      cli.quote(home), command(words), cli.quote(out), cli.quote(home)))
    beside(("exec sh %s/follow.sh"):format(cli.quote(home)))
    act(out)
    return cli.read(out)
  end

  -- Ends whoever follows, as Ctrl-C does.
  local function interrupt()
    assert(os.execute("kill -INT " .. cli.read(home .. "/pid")))
  end

  it("prints each message once, as it comes", function()
    cli.done "append one first"
    local text = follow("show one --follow --for 60", function(out)
      wait_for(out, "first")
      for i = 1, 3 do
        cli.done("append one number-" .. i)
        wait_for(out, "number-" .. i)
      end
      cli.done "rename one 'Another title'" -- no message
      cli.done "append one last-one"
      wait_for(out, "last-one")
      interrupt()
    end)
    local at = 0
    for _, part in ipairs { "first", "number-1", "number-2", "number-3", "last-one" } do
      local found = text:find(part, at + 1, true)
      assert.truthy(found, text)
      assert.is_nil(text:find(part, found + 1, true), text)
      at = found
    end
    assert.equal("", cli.read(home .. "/wrong"))
  end)

  it("prints each message once, of a writer that does not wait", function()
    cli.done "append one first"
    cli.write(home .. "/writer.lua", [[local store = require "sessile".open(arg[1],
        { guard = os.getenv "TEST_GUARD" })
      local s = store:resume "one"
      for i = 1, 300 do assert(s:append { role = "user", content = "number-" .. i }) end]])
    local text = follow("--json show one --follow --for 60", function(out)
      wait_for(out, "first")
      cli.done(("run %s/writer.lua %s"):format(home, cli.store()))
      wait_for(out, "number-300")
      interrupt()
    end)
    local at = 0
    for number in text:gmatch "number%-(%d+)" do
      at = at + 1
      assert.equal(at, tonumber(number))
    end
    assert.equal(300, at)
  end)

  it("is a line of JSON for each message", function()
    cli.done "append one first"
    local text = follow("--json show one --follow --for 60", function(out)
      wait_for(out, "first")
      cli.done "append one second"
      wait_for(out, "second")
      interrupt()
    end)
    local keys, said = {}, {}
    for line in text:gmatch "[^\n]+" do
      local row = assert(decode(line), line)
      keys[#keys + 1], said[#said + 1] = row.key, row.message.content
    end
    assert.same({ "00000001", "00000002" }, keys)
    assert.same({ "first", "second" }, said)
  end)

  it("ends when its time is up, and says when the session is removed", function()
    local out, err = cli.done "show one --follow --for 0"
    assert.equal("", out .. err)
    follow("show one --follow --for 60", function()
      os.execute "sleep 0.2"
      cli.done "delete one --yes"
      wait_for(home .. "/wrong", "removed")
    end)
  end)

  it("refuses an entry, and a time alone", function()
    cli.done "append one first"
    local out, err, code = cli.sessile "show one@1 --follow"
    assert.same({ "", 2 }, { out, code })
    assert.matches("sessile show one %-%-follow", err)
    out, err, code = cli.sessile "show one --for 5"
    assert.same({ "", 2 }, { out, code })
    assert.matches("%-%-follow", err)
    out, err, code = cli.sessile "show one --follow --for soon"
    assert.equal("", out)
    assert.equal(2, code)
    assert.matches("is not a time", err)
  end)
end)
