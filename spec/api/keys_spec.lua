-- Sealed stores and where their secret comes from.

local guarded = require "spec.support.guarded"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local canary = "xyzzy-canary-7f3a"
local hex = "hex:" .. ("0123456789abcdef"):rep(4)

local function open(dir, key)
  return sessile.open("file:" .. dir .. "/store", { key = key })
end

local function fill_store(store)
  local s <close> = assert(store:create { id = "s", title = canary, metadata = { x = canary } })
  assert(s:turn({ { role = "user", content = canary } }, { metadata = { y = canary } }))
  assert(s:custom { z = canary })
end

-- The same in the store that this key opens or makes; false: a plain one.
local function fill(dir, key)
  local store <close> = assert(open(dir, key))
  assert.equal(key ~= false, store.sealed)
  fill_store(store)
end

local function read(store)
  local s <close> = assert(store:resume "s")
  return assert(s:messages())[1].content
end

describe("a sealed store", function()
  local dir

  temp.each_test(function(path) dir = path end)

  it("takes its secret from a file that nobody else reads", function()
    local path = temp.write(dir .. "/key", hex .. "\n", "600")
    fill(dir, sessile.key.file(path))
    local store <close> = assert(open(dir, sessile.key.file(path)))
    assert.equal(canary, read(store))
  end)

  it("refuses a key file that others may read, and makes nothing", function()
    local path = temp.write(dir .. "/key", hex .. "\n", "644")
    local store, message, code = open(dir, sessile.key.file(path))
    assert.is_nil(store)
    assert.equal("EDENIED", code)
    assert.matches("key", message)
    assert.not_matches(hex, message, 1, true)
    assert.same({ path }, temp.files(dir))
  end)

  it("refuses an environment variable that is not set", function()
    local store, message, code = open(dir, sessile.key.env "SESSILE_SPEC_NO_SUCH_VARIABLE")
    assert.is_nil(store)
    assert.equal("ESEALED", code)
    assert.matches("SESSILE_SPEC_NO_SUCH_VARIABLE", message)
    assert.same({}, temp.files(dir))
  end)

  it("takes its secret from the environment", function()
    -- This process cannot set a variable; one that is there will do when it is long enough.
    local value = os.getenv "PATH"
    if not value or #value < 12 then
      return
    end
    fill(dir, sessile.key.env "PATH")
    local store <close> = assert(open(dir, sessile.key.env "PATH"))
    assert.equal(canary, read(store))
  end)

  it("takes its secret from a command, whose words no shell reads", function()
    local trap = dir .. "/touched"
    local tricky <close> = assert(open(dir, sessile.key.command { "printf", "%s\n", hex,
      "; touch " .. trap, "$(touch " .. trap .. ")", "`touch " .. trap .. "`", "a'b" }))
    assert.is_nil(io.open(trap))
    assert(tricky:close())
    temp.clean()
    dir = temp.dir()
    fill(dir, sessile.key.command { "printf", "%s\n", hex })
    local same <close> = assert(open(dir, sessile.key.secret(hex)))
    assert.equal(canary, read(same))
  end)

  it("says so when the command fails", function()
    local store, message, code = open(dir, sessile.key.command { "false" })
    assert.is_nil(store)
    assert.equal("ESEALED", code)
    assert.matches("false", message)
    assert.same({}, temp.files(dir))
  end)

  it("takes a passphrase", function()
    fill(dir, sessile.key.secret "correct horse battery")
    local store <close> = assert(open(dir, sessile.key.secret "correct horse battery"))
    assert.equal(canary, read(store))
    local weak, _, code = sessile.open(dir .. "/other", { key = sessile.key.secret "short" })
    assert.is_nil(weak)
    assert.is_true(code == "EINVALID" or code == "ESEALED", code)
  end)

  it("is SEALED for a wrong key, for none, and stays as it was", function()
    temp.files_only "their bytes"
    fill(dir, sessile.key.secret(hex))
    local before = temp.snapshot(dir)
    for _, key in ipairs { sessile.key.secret("hex:" .. ("f"):rep(64)), false } do
      local store, message, code = open(dir, key)
      assert.is_nil(store)
      assert.equal("ESEALED", code)
      assert.is_string(message)
    end
    assert.equal(before, temp.snapshot(dir))
  end)

  it("does not open as plain, nor a plain one as sealed", function()
    do
      local store <close> = assert(open(dir, false))
      assert.is_false(store.sealed)
      fill_store(store)
    end
    local store, _, code = open(dir, sessile.key.secret(hex))
    assert.is_nil(store)
    assert.equal("ESEALED", code)
    local plain <close> = assert(open(dir, false))
    assert.equal(canary, read(plain))
  end)

  it("shows nothing of what was said on disk, nor its key", function()
    do
      local store <close> = assert(open(dir, sessile.key.secret(hex)))
      fill_store(store)
      local s <close> = assert(store:resume "s")
      assert(s:turn({ { role = "user", content = canary } }, {
        policy = { truncate = function(state) state:keep_last(1, "turns") end } }))
    end
    local files = temp.files(dir)
    assert.is_true(#files >= 2)
    for _, path in ipairs(files) do
      local text = temp.read(path)
      assert.is_nil(text:find(canary, 1, true), path)
      assert.is_nil(text:find("0123456789abcdef0123456789abcdef", 1, true), path)
      assert.is_nil(text:find('"content"', 1, true), path)
    end
  end)

  it("shows what was said when it is plain: the search above can find something", function()
    fill(dir, false)
    local found
    for _, path in ipairs(temp.files(dir)) do
      found = found or temp.read(path):find(canary, 1, true)
    end
    assert.is_truthy(found)
  end)
end)

describe("the keys of a store", function()
  local dir, store
  local ann = "ann.lee@example.org" -- long enough not to be found by chance
  local other = "hex:" .. ("f0"):rep(32)

  stores.each_test(function()
    dir = temp.dir()
    store = assert(open(dir, sessile.key.secret(hex)))
    fill_store(store)
    local s <close> = assert(store:create { id = "s", user = ann })
    assert(s:append { role = "user", content = canary })
  end)

  it("are told about, and never shown", function()
    guarded.unguarded_only "what was decided about a store is a log, too"
    local keys = assert(store:keys())
    assert.is_true(keys.sealed)
    assert.same({ { epoch = 1, logs = 2 } }, keys.epochs)
    assert.equal("none", keys.kdf)
    assert.equal("secret", keys.source)
    assert.equal(1, keys.users)
    assert.equal(1, keys.user_logs)
    assert.equal(0, keys.old_logs)
    for _, value in pairs(keys) do
      assert.not_matches("0123456789abcdef", tostring(value), 1, true)
    end
  end)

  it("do not count sessions of forgotten users as old", function()
    guarded.unguarded_only "what was decided about a store is a log, too"
    local url = require("spec.support.temp").dir() .. "/forgotten"
    local key = sessile.key.secret("hex:" .. ("5e"):rep(32))
    local own <close> = assert(sessile.open(url, { key = key }))
    assert(own:create { id = "diary", user = "ann" }):close()
    assert(own:rotate())
    assert.equal(1, assert(own:keys()).old_logs)
    assert(own:forget "ann")
    assert.equal(0, assert(own:keys()).old_logs)
  end)

  it("get a new epoch, and old sessions are resealed", function()
    guarded.unguarded_only "what was decided about a store is a log, too"
    assert.equal(2, assert(store:rotate()))
    local seen = 0
    local done = assert(store:reseal { progress = function(state)
      seen = math.max(seen, state.seen)
    end })
    assert.equal(2, seen)
    assert.equal(2, done.resealed)
    assert.equal(1, done.dropped)
    assert.same({}, done.failures)
    assert.equal(canary, read(store))
    assert.same({ { epoch = 2, logs = 2 } }, assert(store:keys()).epochs)
  end)

  it("are wrapped by another secret, and the old one is refused", function()
    assert.same({ 1, false }, { store:rotate { key = sessile.key.secret(other) } })
    assert.equal(canary, read(store))
    local refused, message, code = open(dir, sessile.key.secret(hex))
    assert.is_nil(refused)
    assert.equal("ESEALED", code)
    assert.not_matches(hex, message, 1, true)
    local again <close> = assert(open(dir, sessile.key.secret(other)))
    assert.equal(canary, read(again))
  end)

  it("are wrapped by a key file that is made for it", function()
    local path = dir .. "/new.key"
    assert(store:rotate { key = sessile.key.file(path), make = true })
    local again <close> = assert(open(dir, sessile.key.file(path)))
    assert.equal(canary, read(again))
  end)

  it("change the suite", function()
    local done = assert(store:reseal { suite = "xchacha20-poly1305" })
    assert.equal(0, done.failed)
    assert.equal("xchacha20-poly1305", assert(store:keys()).suite)
    assert.equal(canary, read(store))
    local none, _, code = store:reseal { suite = "rot13" }
    assert.is_nil(none)
    assert.equal("EUNSUPPORTED", code)
  end)

  it("of a user are forgotten for ever", function()
    local s = assert(store:resume { id = "s", user = ann })
    assert.equal(1, assert(store:forget(ann)))
    local none, message, code = store:resume { id = "s", user = ann }
    assert.is_nil(none)
    assert.equal("ESEALED", code)
    assert.matches("forgotten", message)
    none, message, code = s:append { role = "user", content = "more" }
    assert.is_nil(none)
    assert.equal("ESEALED", code, message)
    s:close()
    assert.equal(canary, read(store)) -- nobody else's
    assert.equal(0, assert(store:forget(ann)))
    local again <close> = assert(store:create { id = "t", user = ann })
    assert(again:append { role = "user", content = "new" })
  end)

  -- A forgotten user's session, and what a check and a list of its store say.
  local function check_forgotten(id)
    local none, message, code = store:resume { id = id, user = ann }
    assert.is_nil(none)
    assert.equal("ESEALED", code)
    assert.matches("forgotten", message)
    local report = assert(store:check())
    assert.is_true(report.ok)
    local found = report.findings[1]
    assert.equal("note", found.severity)
    assert.matches("forgotten", found.what)
    assert.equal("sessile purge --forgotten", found.next)
  end

  it("of a forgotten user stay forgotten, and are no damage, when all is resealed", function()
    local s <close> = assert(store:create { id = "gone", user = ann })
    s:close()
    assert.same({ sessions = 0, bytes = 0 }, assert(store:purge_forgotten()))
    local sessions = assert(store:forget(ann))
    check_forgotten "gone"
    assert(store:rotate())
    assert.equal(0, assert(store:reseal()).failed)
    check_forgotten "gone"
    -- also when the user is back
    local back <close> = assert(store:create { id = "back", user = ann })
    assert(back:append { role = "user", content = "hello again" })
    check_forgotten "gone"

    local before = #store:list()
    assert.equal(sessions, assert(store:purge_forgotten { dry_run = true }).sessions)
    assert.equal(before, #store:list())
    local purged = assert(store:purge_forgotten())
    assert.equal(sessions, purged.sessions)
    assert.is_true(purged.bytes > 0)
    assert.equal(before - sessions, #store:list())
    assert.same({}, assert(store:check()).findings)
    assert.equal("hello again", assert(back:messages())[1].content)
    assert.equal(canary, read(store))
    assert.same({ sessions = 0, bytes = 0 }, assert(store:purge_forgotten()))
  end)

  it("of who was forgotten by an earlier version are damaged until that is repeated", function()
    temp.files_only "markers are files that can be written by hand"
    assert(store:forget(ann))
    local marker
    for _, path in ipairs(temp.files(dir)) do
      marker = path:match "/forgotten%-%w+%-1$" and path or marker
    end
    for _, text in ipairs { '{"sessile_forgotten":1}\n', false } do
      os.remove(marker)
      if text then
        temp.write(marker, text, "600")
      end
      local none, message, code = store:resume { id = "s", user = ann }
      assert.is_nil(none)
      assert.equal("EDAMAGED", code)
      assert.matches("by an earlier version: forget the user again", message, 1, true)
      local report = assert(store:check())
      assert.is_false(report.ok)
      assert.matches("sessile forget USER", report.findings[1].next, 1, true)
      assert.same({ sessions = 0, bytes = 0 }, assert(store:purge_forgotten()))
      assert(store:forget(ann))
      none, message, code = store:resume { id = "s", user = ann }
      assert.is_nil(none)
      assert.equal("ESEALED", code, message)
      assert.is_true(assert(store:check()).ok)
    end
    assert.equal(1, assert(store:purge_forgotten()).sessions)
  end)

  it("of a user are kept when the first line of the user's session is damaged", function()
    temp.files_only "a log is a file"
    local path
    for _, file in ipairs(temp.files(dir)) do
      path = file:match "/main/=%w+%.jsonl$" and file or path
    end
    local whole = temp.read(path)
    local at = whole:find('"key":"', 1, true) + 7
    temp.write(path, whole:sub(1, at - 1) .. (whole:sub(at, at) == "A" and "B" or "A")
      .. whole:sub(at + 1), "600")
    local none, message, code = store:resume { id = "s", user = ann }
    assert.is_nil(none)
    assert.equal("EDAMAGED", code)
    assert.matches("first line was changed", message, 1, true)
    assert(store:rotate())
    local done = assert(store:reseal())
    assert.equal(0, done.forgotten)
    assert.equal(1, done.failed)
    assert.equal(2, #assert(store:keys()).epochs)
    done = assert(sessile.migrate(store, { url = dir .. "/to", key = sessile.key.secret(other) }))
    assert.equal(0, done.forgotten)
    assert.equal(1, done.damaged)
    temp.write(path, whole, "600")
    local s <close> = assert(store:resume { id = "s", user = ann })
    assert.equal(canary, s:messages()[1].content)
  end)

  it("of a forgotten user are not purged past a log that cannot be read", function()
    temp.files_only "a log that cannot be read is a loop of links"
    local s <close> = assert(store:create { id = "gone", user = ann })
    s:close()
    assert(store:forget(ann))
    local path = dir .. "/store/agents/main/loop.jsonl"
    assert(os.execute(("ln -s loop.jsonl '%s'"):format(path)))
    local none, _, code = store:purge_forgotten()
    assert.is_nil(none)
    assert.equal("EDENIED", code) -- a loop of links
    assert(os.remove(path))
    -- how many are left depends on the order of the folder
    assert(store:purge_forgotten())
    assert.same({ sessions = 0, bytes = 0 }, assert(store:purge_forgotten { dry_run = true }))
  end)

  it("are none in a plain store", function()
    guarded.unguarded_only "what was decided about a store is a log, too"
    local plain <close> = assert(sessile.open(dir .. "/plain", { key = false }))
    for _, call in ipairs { "rotate", "reseal" } do
      local none, message, code = plain[call](plain)
      assert.is_nil(none)
      assert.equal("EUNSUPPORTED", code)
      assert.matches("plain", message)
    end
    local none, _, code = plain:forget(ann)
    assert.is_nil(none)
    assert.equal("EUNSUPPORTED", code)
    assert.same({ sealed = false, logs = 0 }, assert(plain:keys()))
  end)

  it("are made before anything else", function()
    local url = dir .. "/made"
    assert.is_true(sessile.keys_init(url, { key = sessile.key.secret(hex),
      suite = "xchacha20-poly1305" }))
    local none, _, code = sessile.keys_init(url, { key = sessile.key.secret(hex) })
    assert.is_nil(none)
    assert.equal("EEXISTS", code)
    local made <close> = assert(sessile.open(url, { key = sessile.key.secret(hex) }))
    assert.equal("xchacha20-poly1305", assert(made:keys()).suite)
  end)

  it("raise for what is a mistake in the program", function()
    assert.has_error(function() store:rotate { make = true } end)
    assert.has_error(function() store:rotate { key = false } end)
    assert.has_error(function() store:rotate { key = "text" } end)
    assert.has_error(function() store:forget() end)
    assert.has_error(function() store:reseal { progress = 1 } end)
    assert.has_error(function() store:rotate { secret = 1 } end)
  end)

  it("shows nothing on disk, whatever was done to them", function()
    assert(store:rotate())
    assert(store:reseal())
    assert(store:rotate { key = sessile.key.secret(other) })
    assert(store:forget(ann))
    for _, path in ipairs(temp.files(dir)) do
      local text = temp.read(path)
      for _, secret in ipairs { canary, hex:sub(5), other:sub(5), ann, '"content"' } do
        assert.is_nil(text:find(secret, 1, true), path)
      end
    end
  end)
end)

describe("a key", function()
  it("never prints its secret", function()
    assert.equal("sessile.Key: secret", tostring(sessile.key.secret(hex)))
    assert.equal("sessile.Key: command", tostring(sessile.key.command { "echo", hex }))
  end)

  it("raises for what is no key", function()
    assert.has_error(function() sessile.key.env "" end)
    assert.has_error(function() sessile.key.file() end)
    assert.has_error(function() sessile.key.command "echo x" end)
    assert.has_error(function() sessile.key.command {} end)
    assert.has_error(function() sessile.key.command { "-x" } end)
    assert.has_error(function() sessile.key.command { "echo", "a\0b" } end)
    assert.has_error(function() sessile.key.secret(1) end)
    assert.has_error(function() sessile.open("ram:", { key = true }) end)
  end)
end)

describe("the default store", function()
  it("and its key file are made under the home folders", function()
    local dir = temp.dir()
    local script = temp.write(dir .. "/script.lua", [[
      local sessile = require "sessile"
      local store = assert(sessile.open())
      local s = assert(store:create "s")
      assert(s:append { role = "user", content = "hello" })
      assert(store:close())
      print(store.sealed, store.url)
    ]])
    local command = ("HOME='%s' XDG_DATA_HOME='%s/data' XDG_CONFIG_HOME='%s/config' "
      .. "LUA_PATH_5_4='%s' LUA_CPATH_5_4='%s' lua5.4 '%s' 2>&1"):format(dir, dir, dir,
      package.path, package.cpath, script)
    local pipe = assert(io.popen(command))
    local text = pipe:read "a"
    local ok = pipe:close()
    assert.is_true(ok, text)
    assert.equal("true\t" .. dir .. "/data/sessile\n", text)
    local listed = table.concat(temp.files(dir), "\n")
    assert.matches("/config/sessile/key\n", listed, 1, true)
    assert.matches("/data/sessile/keyring", listed, 1, true)
    temp.clean()
  end)
end)
