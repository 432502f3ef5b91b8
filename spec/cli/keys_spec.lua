-- sessile keys and sessile forget, as somebody types them.
-- Own guard: logs are counted, of which a guard has two more.

local cli = require "spec.support.cli"

local home

describe("a key file that is not there", function()
  cli.each_test(function(path) home = path end)

  it("makes no store, least of all a plain one", function()
    local out, err, code = cli.sessile(("new --store %s/s --key-file %s/none"):format(home, home))
    assert.equal("", out)
    assert.equal(7, code)
    assert.is_nil(err:find("not sealed", 1, true), err)
    assert.is_nil(io.open(home .. "/s"))
  end)
end)

describe("sessile keys", function()
  cli.each_test(function(path) home = path end)

  it("init makes the keyring and a key file, once", function()
    local out, err = cli.done "keys init"
    assert.matches("sealed", out)
    assert.matches("config/sessile/key", out, 1, true)
    assert.matches("copy", err)
    local _, again, code = cli.sessile "keys init"
    assert.equal(1, code)
    assert.matches("keyring already", again)
    assert.not_matches(cli.read(home .. "/config/sessile/key"):sub(5, 30), out .. err, 1, true)
  end)

  it("init takes a suite", function()
    cli.done "keys init --suite xchacha20-poly1305"
    assert.equal("xchacha20-poly1305", cli.json("keys status").suite)
    cli.fails(2, "keys init --suite rot13")
  end)

  it("status says how the store is sealed, and never the key", function()
    cli.done "new --id a"
    local out = cli.done "keys status"
    assert.matches("epoch 1", out)
    assert.matches("epoch 1 +seals 1", out)
    assert.matches("a key of 32 bytes, from the key file", out)
    assert.not_matches("hex:", out, 1, true)
    local keys = cli.json "keys status"
    assert.is_true(keys.sealed)
    assert.equal(1, keys.epochs[1].logs)
  end)

  it("status says that a plain store is plain", function()
    cli.done "--plain new --id a"
    assert.matches("plain", (cli.done "--plain keys status"))
    assert.is_false(cli.json("--plain keys status").sealed)
    local _, err, code = cli.sessile "--plain keys rotate"
    assert.equal(1, code)
    assert.matches("plain", err)
  end)

  it("rotate and reseal bring a new epoch to old sessions", function()
    cli.done "new --id a"
    cli.done("append a -", "hello")
    local out, err = cli.done "keys rotate"
    assert.matches("Epoch 2", out)
    assert.matches("sessile keys reseal", err, 1, true)
    assert.matches("keys reseal`: 1", (select(2, cli.done "keys status")))
    out = cli.done "keys reseal"
    assert.matches("again: 1 of 1", out)
    assert.matches("keys removed: 1", out)
    assert.matches("hello", (cli.done "show a"))
    local done = cli.json "keys reseal"
    assert.equal(0, done.resealed)
    assert.same({}, done.failures)
  end)

  it("rotate changes the secret to that of a file, or of a variable", function()
    cli.done "new --id a"
    cli.done("append a -", "hello")
    local _, err = cli.done("keys rotate --new-key-file " .. home .. "/new.key")
    assert.matches("--key-file", err, 1, true)
    assert.matches("still sealed with epoch 1.*keys rotate, then .*keys reseal", err)
    local _, refused, code = cli.sessile "show a"
    assert.equal(7, code)
    cli.no_traceback(refused)
    assert.matches("hello", (cli.done("--key-file " .. home .. "/new.key show a")))
    local out
    out, err, code = cli.sessile("keys rotate --key-file " .. home
      .. "/new.key --new-key-env MINE", nil, "MINE='correct horse battery staple'")
    assert.equal(0, code, err)
    assert.not_matches("horse", out .. err, 1, true)
    out, err, code = cli.sessile("show a", nil, "SESSILE_KEY='correct horse battery staple'")
    assert.equal(0, code, err)
    assert.matches("hello", out)
  end)

  it("rotate says what is wrong with a new secret, and changes nothing", function()
    cli.done "new --id a"
    local _, err, code = cli.sessile "keys rotate --new-key-env NO_SUCH_VARIABLE"
    assert.equal(7, code)
    assert.matches("NO_SUCH_VARIABLE", err)
    assert.matches("Nothing was changed", err)
    _, err, code = cli.sessile("keys rotate --new-key-env MINE", nil, "MINE=short")
    assert.equal(1, code)
    assert.not_matches("MINE=short", err, 1, true)
    cli.fails(2, "keys rotate --new-key-env A --new-key-file B")
    cli.done "show a"
  end)

  it("say what there is when asked for nothing", function()
    local _, err, code = cli.sessile "keys"
    assert.equal(2, code)
    for _, name in ipairs { "init", "rotate", "reseal", "status" } do
      assert.matches("keys " .. name, err, 1, true)
    end
  end)
end)

describe("sessile forget", function()
  cli.each_test(function(path)
    home = path
    local script = home .. "/make.lua"
    cli.write(script, [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      for _, user in ipairs { "ann", "bob" } do
        local s <close> = assert(store:create { id = "of-" .. user, user = user })
        assert(s:append { role = "user", content = "words of " .. user })
      end
    ]])
    cli.done("run " .. script)
  end)

  it("asks, and does nothing when nobody can answer", function()
    local _, err, code = cli.sessile("forget ann", "yes\n")
    assert.equal(2, code)
    assert.matches("--yes", err, 1, true)
    assert.matches("words of ann", (cli.done "show of-ann"))
  end)

  it("makes the sessions of that user unreadable, and of nobody else", function()
    assert.matches("unreadable: 1", (cli.done "forget ann --yes"))
    local _, err, code = cli.sessile "show of-ann"
    assert.is_true(code == 7 or code == 3, code)
    cli.no_traceback(err)
    assert.matches("words of bob", (cli.done "show of-bob"))
    assert.equal(0, cli.json("forget ann --yes").sessions)
  end)

  it("counts memories as logs, and not as sessions", function()
    cli.done [[memory add main "likes tea" --user ann --consent yes]]
    assert.matches("logs +3, of sessions and memories\n", (cli.done "keys status"))
    assert.matches("^3 logs, ", (cli.done "check"))
    local _, said = cli.done "forget ann --dry-run"
    assert.matches("1 session would be unreadable, and what agents remember", said)
    assert.matches("^Logs of sessions and memories made unreadable: 2\n$",
      (cli.done "forget ann --yes"))
    local out, _, code = cli.sessile "memory show main --user ann"
    assert.is_true(code == 7 or code == 3, code)
    assert.is_nil(out:find("tea", 1, true))
  end)

  it("leaves no title of theirs in what lists keep", function()
    cli.done "list"
    cli.done "forget ann --yes"
    assert.not_matches("of-ann", (cli.done "list"), 1, true)
  end)

  it("leaves what purge --forgotten removes", function()
    cli.done "forget ann --yes"
    assert.matches("forgotten", (cli.done "check"))
    assert.matches("1 session of forgotten users, .*nothing was changed",
      (cli.done "purge --forgotten --dry-run"))
    assert.equal(2, #cli.json("list"))
    local out, err, code = cli.sessile "purge --forgotten"
    assert.equal(2, code, out)
    assert.matches("--yes", err, 1, true)
    assert.equal(1, cli.json("purge --forgotten --yes").forgotten)
    assert.equal("of-bob", cli.json("list")[1].id)
    assert.equal(1, #cli.json("list"))
  end)

  it("has nothing to forget in a plain store", function()
    cli.done("--plain --store " .. home .. "/p new --id a")
    local _, err, code = cli.sessile("--plain --store " .. home .. "/p forget ann --yes")
    assert.equal(1, code)
    assert.matches("plain", err)
  end)
end)
