-- Who was given what, on the command line: grants, access keys and locks, and what decides.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile, done, fails = cli.sessile, cli.done, cli.fails
local has = expect.has

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
    expect.has_not((as(key, "list")), "b ")
  end)

  it("is refused when it is revoked, mistyped, or its holder is locked out, and alike", function()
    local key = new_key "ann --role editor"
    local said = {}
    local function refused(text)
      local _, err, code = as(text, "list")
      assert.equal(7, code, err)
      said[err] = true
      expect.has_not(err, text)
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

  it("needs a role", function()
    fails(2, "access key new ann", "--role")
    fails(1, "access key new ann --role wizard", "wizard", "sessile guard status")
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
