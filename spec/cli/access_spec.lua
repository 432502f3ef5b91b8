-- Who was given what, on the command line: grants, access keys and locks, and what decides.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local core = require "sessile.core"
local expect = require "spec.support.expect"
local lib = require "sessile"
local sessile, done, fails = cli.sessile, cli.done, cli.fails
local has, has_not = expect.has, expect.has_not

cli.each_test(function()
  cli.configure 'return { guard = "standard" }'
  done "new --id a --user ann"
  done "append a hello --user ann"
end)

-- Runs a command for the holder of a key. Returns stdout, stderr, the exit code.
local function as(key, words)
  return sessile(words, nil, "env SESSILE_TOKEN=" .. key)
end

local function new_key(words)
  local key = done("access key new " .. words):match "^(sesk_%S+)\n$"
  return assert(key)
end

describe("an access key", function()
  it("is its holder, in a variable or a file, and no more", function()
    local key = new_key "ann --role editor"
    has((as(key, "show a")), "hello")
    assert.equal(0, select(3, as(key, "append a more")))
    local path = cli.home() .. "/key"
    cli.write(path, key .. "\n")
    assert(os.execute("chmod 600 " .. path))
    local who = cli.json("whoami --token-file " .. path)
    assert.same({ "ann", "key", "own" }, { who.user, who.method, who.scope })
    local _, err, code = as(key, "delete a --yes")
    assert.equal(7, code)
    has(err, "delete_session")
    has(err, "sessile whoami")
    done "new --id b --user bob"
    assert.equal(7, select(3, as(key, "show b --user bob")))
    assert.equal(3, select(3, as(key, "show b")))
    has_not((as(key, "list")), "b ")
  end)

  it("is refused when it is revoked, mistyped, or its holder is locked out, and alike", function()
    local key = new_key "ann --role editor"
    local said = {}
    local function refused(text)
      local _, err, code = as(text, "list")
      assert.equal(7, code, err)
      said[err] = true
      has_not(err, text)
    end
    done "access lock ann --reason left"
    refused(key)
    done "access unlock ann"
    refused(key:sub(1, -2) .. (key:sub(-1) == "a" and "b" or "a"))
    assert.equal(0, select(3, as(key, "list")))
    local id = cli.json("access key list")[1].id
    done("access key revoke " .. id)
    refused(key)
    assert.is_nil(next(said, (next(said))))
    fails(3, "access key revoke " .. id, "sessile access key list")
  end)

  it("cannot load a policy, as whoever has the store can", function()
    local key = new_key "ann --role editor"
    local _, err, code = as(key, "compact a --policy sliding_window")
    assert.equal(7, code, err)
    done "compact a --user ann --policy sliding_window"
  end)

  it("is made before the first session, and a list makes no store", function()
    for _, words in ipairs { "access list", "access key list" } do
      fails(3, words .. " --store " .. cli.home() .. "/other", "there is no store")
    end
    done("access key new ann --role editor --store " .. cli.home() .. "/other")
    has(done("access list --store " .. cli.home() .. "/other"), "ann")
  end)

  it("needs a role", function()
    fails(2, "access key new ann", "--role")
    fails(1, "access key new ann --role wizard", "wizard", "sessile access roles")
    fails(1, "access grant ann wizard", "wizard", "sessile access roles")
  end)

  it("that names a device is accepted with that device, and says so", function()
    local key = new_key "ann --role editor --device phone"
    local function with(device)
      return sessile("show a", nil, ("env SESSILE_TOKEN=%s SESSILE_DEVICE=%s"):format(key, device))
    end
    has((with "phone"), "hello")
    for _, device in ipairs { "", "phon", "phone2" } do
      local _, err, code = with(device)
      assert.equal(7, code)
      has(err, "the credential is not accepted")
      has(err, "$SESSILE_DEVICE")
    end
    has(done "access key list", "phone")
    assert.equal("phone", cli.json("access key list")[1].device)
    has(done "access explain ann view_session", "with the device phone")
  end)
end)

describe("access roles", function()
  it("says what each role may, also of the configuration, and opens no store", function()
    cli.configure [[return { guard = { profile = "standard",
      roles = { support = { "view_session", all = true }, editor = { "view_session" } } } }]]
    local found = cli.json "access roles --store /nowhere"
    local of = {}
    for _, role in ipairs(found.roles) do
      of[role.role] = role
    end
    assert.same({ "all", { "view_session" } }, { of.support.sessions, of.support.permissions })
    assert.same({ "own", { "view_session" } }, { of.editor.sessions, of.editor.permissions })
    assert.equal(14, #of.admin.permissions)
    assert.same({ "read_audit", "check_store" }, of.auditor.permissions)
    local text = done "access roles"
    has(text, "SUPPORT")
    for _, permission in ipairs(core.permissions()) do
      local line = assert(text:match("\n" .. permission .. "[^\n]+"), permission)
      assert.matches("%l  +%l[%l ,:;']+$", line) -- with what it allows
    end
  end)
end)

describe("a grant", function()
  it("shares one session, until it is revoked", function()
    local key = new_key "bob --role viewer"
    assert.equal(7, select(3, as(key, "show a --user ann")))
    local id = done("access grant bob viewer --on a --user ann"):match "%S+"
    has((as(key, "show a --user ann")), "hello")
    done("access revoke " .. id)
    assert.equal(7, select(3, as(key, "show a --user ann")))
    fails(3, "access revoke " .. id, "sessile access list")
  end)

  it("says whose a session is that was to be shared, or that there is none", function()
    local words = "access grant bob viewer --on "
    fails(3, words .. "a", "The session a is of ann: say so with --user")
    fails(3, words .. "nosuch --user ann", "--user and --agent", "sessile list")
    assert.equal("", (select(2, done(words .. "a --user ann"))))
    local _, err, code = as(new_key "ann --role editor", words .. "a")
    assert.same({ "", 0 }, { err, code })
  end)
end)

describe("access list", function()
  it("shows users what they were given, and what they have shared", function()
    local ann, bob, eve = new_key "ann --role editor", new_key "bob --role viewer",
      new_key "eve --role editor"
    assert.equal(0, select(3, as(ann, "access grant bob viewer --on a")))
    done "access grant eve viewer --only other"
    for _, key in ipairs { ann, bob } do
      local out, err, code = as(key, "access list")
      assert.equal(0, code, err)
      has(out, "session a")
      has(out, "bob")
      expect.has_not(out, "eve")
      expect.has_not(out, "key ")
    end
    expect.has_not((as(eve, "access list")), "session a")
    local found = require("sessile").decode((as(bob, "access list --json")))
    assert.same({ "a", "bob" }, { found.grants[1].session, found.grants[1].user })
    assert.is_nil(found.keys)
    has(done "access list", "key ")
  end)
end)

describe("access explain", function()
  it("says which of all that a user was given decides", function()
    done "access grant ann viewer --only 'code*'"
    new_key "ann --role editor"
    local text = done "access explain ann modify_session"
    has(text, "yes: ann may modify_session")
    has(text, "viewer does not have modify_session")
    has(text, "yes: editor")
    text = done "access explain ann view_session b --user bob"
    has(text, "no: ann may not view_session on b of bob")
    has(text, "editor is for one's own sessions")
    has(text, "only with code*")
    assert.is_true(cli.json("access explain eve view_session --role auditor").allowed == false)
    assert.is_true(cli.json("access explain eve read_audit --role auditor").allowed)
    done "access lock ann --reason left"
    has(done "access explain ann modify_session", "no: ann may not")
    assert.is_true(cli.json("access explain ann modify_session").locked)
    has(done "access explain nobody view_session", "nothing gives this user a role")
  end)
end)

-- What ann and bob were given, and what the engine says of it, asked with the keys themselves.
describe("what access explain says", function()
  local store, views

  local function given()
    cli.configure [[return { guard = { profile = "standard",
      roles = { support = { "view_session", "read_audit", all = true } } } }]]
    local keys = { ann = new_key "ann --role editor", bob = new_key "bob --role viewer",
      kim = new_key "kim --role support --only code", eve = new_key "eve --role admin" }
    done "access grant bob editor --on a --user ann"
    done "access grant bob auditor --only 'code*'"
    done "access grant ann editor --only code"
    done "access grant viewer support --group"
    done "access lock eve"
    return keys
  end

  it("is what the engine does", function()
    local keys = given()
    local config = assert(lib.config(cli.home() .. "/config/sessile/config.lua"))
    config.key = lib.key.file(cli.home() .. "/config/sessile/key")
    store, views = assert(lib.open(cli.url(cli.home() .. "/data/sessile"), config)), {}
    for user, key in pairs(keys) do
      views[user] = store:as { key = key } or false
    end
    local compared = { [true] = 0, [false] = 0 }
    for user, view in pairs(views) do
      for _, permission in ipairs { "view_session", "modify_session", "create_session",
        "read_audit", "delete_session" } do
        for _, on in ipairs { { "main", user, "b" }, { "code", user, "b" }, { "main", "ann", "a" },
          { "code", "zoe", "c" } } do
          local said = cli.json(("access explain %s %s %s --agent %s --user %s"):format(user,
            permission, on[3], on[1], on[2])).allowed
          local can = view and view:can(permission, { agent = on[1], user = on[2], id = on[3] })
            or false
          if permission == "read_audit" then
            can = view and view:audit_root() ~= nil or false
          end
          assert.equal(can, said, table.concat({ user, permission, table.unpack(on) }, " "))
          compared[said] = compared[said] + 1
        end
      end
    end
    assert.is_true(compared[true] > 10 and compared[false] > 10)
    store:close()
  end)

  it("has the keys that are no good any more", function()
    local err = fails(1, "access key new ann --role editor --for 1ms", "have ended already")
    has_not(err, "access roles") -- the role is right
    new_key "ann --role editor --for 2s"
    new_key "zoe --role editor"
    local id = cli.json("access key list zoe")[1].id
    done("access lock --key " .. id)
    has(done "access explain zoe view_session", "no: it is locked out")
    os.execute "sleep 2.1"
    has(done "access explain ann view_session", "no: it has expired")
    assert.is_false(cli.json("access explain ann view_session").allowed)
  end)
end)

describe("a store that had a guard", function()
  it("is denied to who says none, and opened by who says it is off", function()
    fails(7, "--config /dev/null list", "this store is guarded", "sessile guard init")
    cli.configure 'return { guard = "off" }'
    has(done "list", "a ")
    done "--config /dev/null list"
  end)

  it("wants one of the commands that are about it", function()
    cli.configure 'return { guard = "off" }'
    fails(2, "access list", "has no guard", "sessile guard init")
  end)
end)
