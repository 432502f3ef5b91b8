-- A guard on the command line: who a command acts for, what it may, and where a guard is set.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile, done, fails = cli.sessile, cli.done, cli.fails
local has = expect.has

local function guarded(text)
  return cli.configure(('return { guard = %s }'):format(text or '"standard"'))
end

cli.each_test()

describe("a command on a store with a guard", function()
  it("may all, for whoever has the store", function()
    guarded '"strict"'
    done "new --id a"
    done("append a -", "hello")
    has(done "show a", "hello")
    done "compact a --policy sliding_window" -- it loads the policy, as the owner of the store
    done "memory add main 'tests run with make' --key tests"
    done "memory tidy main --policy memory"
    done "check"
    done "keys status"
    done "delete a --yes"
  end)

  it("copies a session into another store, which has the guard as well", function()
    guarded '"strict"'
    done "new --id a"
    done("append a -", "hello")
    for i = 1, 2 do -- into a store that is made, and into one that stays guarded
      done(("copy a %s/other --id b%d"):format(cli.home(), i))
    end
    has(done(("show b2 --store %s/other"):format(cli.home())), "hello")
    cli.configure "return {}"
    fails(7, ("list --store %s/other"):format(cli.home()), "this store is guarded (strict)")
  end)

  it("does the same for the sessions of users", function()
    guarded()
    done "new --id a --user ann"
    done "append a hello --user ann"
    assert.equal("ann", cli.json("info a").user)
  end)
end)

describe("a text that a rule of the guard refuses", function()
  it("is named by its rule, also for programs", function()
    guarded()
    done "new --id a"
    local words = "memory add main 'see http://169.254.169.254/latest' --key docs"
    local said = fails(7, words)
    has(said, "metadata")
    has(said, "guard status")
    local _, err = sessile("--json " .. words)
    assert.equal("metadata", require("sessile").decode(err).error.rule)
    assert.same({}, cli.json "memory show main")
  end)
end)

describe("a credential", function()
  local function file(mode, text)
    local path = cli.home() .. "/token"
    cli.write(path, text or "sesk_not_one")
    assert(os.execute(("chmod %s %s"):format(mode, cli.quote(path))))
    return path
  end

  it("is read from a file that nobody else may read", function()
    guarded()
    done "new"
    for _, mode in ipairs { "640", "604", "660" } do
      fails(7, "list --token-file " .. file(mode), "others than you can read", "chmod 600")
    end
    assert(os.execute(("ln -sf token %s/link"):format(cli.home())))
    fails(7, ("list --token-file %s/link"):format(cli.home()), "others than you can read")
    fails(2, "list --token-file nowhere", "nowhere", "--token-file FILE")
    fails(2, "list --token-file .", "no file")
  end)

  it("is one word", function()
    guarded()
    done "new"
    for _, text in ipairs { "", " \n", "two words", ("x"):rep(20000) } do
      fails(7, "list --token-file " .. file("600", text), "holds no credential")
    end
  end)

  it("is refused where no guard would ask for it", function()
    done "new"
    local _, err, code = sessile("list", nil, "env SESSILE_TOKEN=sesk_x")
    assert.equal(7, code)
    has(err, "SESSILE_TOKEN names who you are, and this store has no guard to ask")
    has(err, "sessile guard init")
    expect.has_not(err, "sesk_x")
    assert.equal(0, select(3, sessile("list", nil, "env SESSILE_TOKEN=")))
  end)
end)

describe("whoami", function()
  it("is the owner of the store without a credential", function()
    guarded '"strict"'
    done "new"
    local who = cli.json "whoami"
    assert.same({ true, "os", "all" }, { who.guard, who.method, who.scope })
    assert.equal(14, #who.permissions)
    assert.is_nil(who.user)
    local text = done "whoami"
    has(text, "delete_session")
    expect.has_not(text, "impersonate")
    has(text, "strict")
  end)

  it("says that nobody asks, without a guard", function()
    done "new"
    has(done "whoami", "There is no guard")
    assert.is_false(cli.json("whoami").guard)
  end)
end)

describe("a store that stays guarded", function()
  before_each(function()
    guarded '"strict"'
    done "new"
    cli.configure "return {}"
  end)

  it("is said to be, with the profile, where the configuration sets no guard", function()
    local said = "is store is guarded (strict), and your configuration sets no guard"
    for _, words in ipairs { "guard status", "whoami" } do
      local text, told = done(words)
      has(text, said)
      has(told, "sessile guard init --profile strict")
    end
    local who = cli.json "whoami"
    assert.same({ true, false, {} }, { who.guard, who.configured, who.permissions })
    assert.same({ false, "unset" }, { cli.json("guard status").on, cli.json("guard status").store })
    fails(7, "list", said, "sessile guard init --profile strict")
    local _, err, code = sessile("list", nil, "env SESSILE_TOKEN=sesk_x")
    assert.equal(7, code)
    has(err, said)
  end)

  it("opens with what the step says", function()
    local step = select(2, done "guard status"):match "sessile (guard init[%w -]*)"
    done(step)
    assert.same({ "strict", "set" }, { cli.json("guard status").profile,
      cli.json("guard status").store })
    done "list"
  end)

  it("is not opened to say that the guard is off", function()
    cli.configure 'return { guard = "off" }'
    has(done "guard status", "There is no guard")
    cli.configure "return {}"
    fails(7, "list", "guarded (strict)") -- it was not switched off by looking
  end)
end)

describe("doctor", function()
  -- The state and the text of a finding about the guard.
  local function finding(name, ...)
    local out = cli.sessile("--json doctor --offline " .. table.concat({ ... }, " "))
    for _, one in ipairs(cli.decoded(out).findings) do
      if one.group == "Guard" and one.name == name then
        return one.state .. ": " .. one.text, one.next
      end
    end
  end

  it("says whether there is a guard", function()
    has(finding "guard", "ok: none")
    guarded '"strict"'
    done "new --id a"
    has(finding "guard", "ok: strict, by ")
    local text, step = finding("guard", "--config /dev/null")
    has(text, "bad: this store is guarded (strict), and your configuration sets no guard")
    has(step, "sessile guard init")
    guarded '"off"'
    has(finding "guard", "ok: off, by ")
  end)

  it("looks at the control log and the audit", function()
    guarded()
    done "new --id a"
    done "access lock bob"
    assert.equal("ok: 0 grants, 0 access keys, 1 lock", (finding "control log"))
    assert.matches("^ok: in the store itself: last sealed .*, %d+ events since$", (finding "audit"))
    local key = done("access key new ann --role viewer"):match "%S+"
    local out = sessile("--json doctor --offline", nil, "env SESSILE_TOKEN=" .. key)
    has(out, "what is in it is not for you")
    guarded '{ profile = "standard", audit = false }'
    has(finding "audit", "warn: none")
  end)

  it("finds a Redis that does not answer, and a key set that others may read or write", function()
    local path = cli.home() .. "/jwks.json"
    cli.write(path, ('{"keys":[{"kty":"oct","kid":"1","alg":"HS256","k":"%s"}]}'):format(
      ("A"):rep(43)))
    local function configured(mode, deny)
      assert(os.execute("chmod " .. mode .. " " .. path))
      guarded(([[{ profile = "standard",
        rate_limits = { shared = "redis://127.0.0.1:1", deny = %s },
        identity = { token = { issuer = "x", audience = "y", keys = %q } } }]]):format(deny, path))
    end
    configured(600, true)
    has(finding "limits", "bad: redis://127.0.0.1:1: ")
    has(finding "tokens", "ok: of x, keys in ")
    configured(644, false)
    has(finding "limits", "warn: redis://127.0.0.1:1: ")
    has(finding "tokens", "bad: ")
    configured(622, false)
    local text, step = finding "tokens"
    has(text, "others can write it")
    has(step, "chmod go-w " .. path)
    assert(os.remove(path))
    has(finding "tokens", "bad: the key set is not there")
    local err = fails(3, "new", "key set")
    has(err, "sessile config show")
  end)
end)

describe("guard init", function()
  local function text_of(path) return cli.read(path) end

  it("writes a configuration where there is none", function()
    local path = cli.home() .. "/config/sessile/config.lua"
    has(done "guard init", path)
    has(text_of(path), 'guard = "standard"')
    assert.equal("standard", cli.json("guard status").profile)
    has(done "guard init", "says already")
    fails(1, "guard init --profile strict", "config.lua", 'guard = "standard" on line 3')
    assert.equal("standard", cli.json("guard status").profile)
  end)

  it("adds a line to one that is there, and changes nothing else", function()
    done "config init"
    local path = cli.home() .. "/config/sessile/config.lua"
    local was = text_of(path)
    assert.is_true(cli.json("guard init --profile strict").written)
    local now = text_of(path)
    assert.equal(was, (now:gsub('  guard = "strict",\n', "", 1)))
    assert.equal("strict", cli.json("guard status").profile)
    has(done "config --set", "tiered")
  end)

  it("leaves a file alone that is made in another way", function()
    for _, text in ipairs { "local t = {}\nreturn t\n",
      "local t = [[\nreturn {\n]]\nreturn { window = 100, agent = t:sub(1, 0) .. 'x' }\n" } do
      local path = cli.configure(text)
      has(fails(2, "guard init"), 'Write this line into it yourself: guard = "standard",')
      assert.equal(text, text_of(path))
    end
  end)

  it("does not add to a file that says the guard is off", function()
    local path = cli.configure 'return { guard = "off" }'
    fails(1, "guard init", 'guard = "off"', "Change that line yourself")
    assert.equal('return { guard = "off" }', text_of(path))
  end)
end)

describe("guard status", function()
  it("says what a guard is, and is not", function()
    guarded '{ profile = "standard", roles = { support = { "view_session" } } }'
    local text = done "guard status"
    has(text, "seat belt")
    has(text, "support")
    has(text, "session_creation 10/minute")
    has(text, "config.lua:1")
  end)

  it("says that there is none", function()
    has(done "guard status", "There is no guard")
    assert.is_false(cli.json("guard status").on)
    guarded '"off"'
    assert.equal("off", cli.json("guard status").profile)
  end)
end)
