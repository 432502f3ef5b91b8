-- The configuration: what its files may say, which word holds, and whose files are believed.
-- Files only: where the default folder is.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local project = require "spec.support.project"
local has = expect.has
local own, of_project, exists = cli.configure, project.configure, cli.exists
local sessile, done, fails = project.sessile, project.done, project.fails
local write = cli.write
local home, folder

project.each_test(function(path, inside) home, folder = path, inside end)

describe("which file holds", function()
  it("is the project's over the user's own, the environment over both, an option over all",
    function()
      own 'return { store = "$HOME/mine", agent = "smith" }'
      done "new --id a"
      assert.is_true(exists(home .. "/mine/agents/smith"))
      of_project 'return { store = "./theirs" }'
      done "new --id b"
      assert.is_true(exists(folder .. "/theirs/agents/smith"))
      done("new --id c", ("env SESSILE_STORE=%s/env"):format(home))
      assert.is_true(exists(home .. "/env/agents/smith"))
      done(("new --id d --agent jones --store %s/typed"):format(home),
        ("env SESSILE_STORE=%s/env"):format(home))
      assert.is_true(exists(home .. "/typed/agents/jones"))
    end)

  it("needs no variable of a store that $SESSILE_STORE overrides", function()
    own 'return { store = "$THERE_IS_NO_SUCH_VARIABLE/mine" }'
    done("new --id a", ("env SESSILE_STORE=%s/env"):format(home))
    assert.is_true(exists(home .. "/env/agents/main"))
    fails(1, "new --id b")
  end)

  it("is the one that is named, alone, by --config before SESSILE_CONFIG", function()
    own 'return { agent = "smith", store = "~/mine" }'
    write(home .. "/one.lua", 'return { agent = "one" }')
    write(home .. "/two.lua", 'return { agent = "two" }')
    local before = ("env SESSILE_CONFIG=%s/one.lua"):format(home)
    done("new --id a", before)
    assert.is_true(exists(home .. "/data/sessile/agents/one"))
    done(("--config %s/two.lua new --id b"):format(home), before)
    assert.is_true(exists(home .. "/data/sessile/agents/two"))
    assert.is_false(exists(home .. "/mine"))
    done "--config /dev/null new --id c"
    assert.is_true(exists(home .. "/data/sessile/agents/main"))
  end)

  it("is no file when the one that is named is not there: exit code 2", function()
    has(fails(2, "--config nowhere.lua list"), "nowhere.lua")
    fails(2, "list", "SESSILE_CONFIG", "env SESSILE_CONFIG=nowhere.lua")
  end)

  it("gives a script what it gives the command line", function()
    own [[return { store = "~/mine", key = false, policy = { "sliding_window", messages = 3 },
      agents = { coder = { policy = false } } }]]
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      print(store.url, store.sealed)
      for _, agent in ipairs { "main", "coder" } do
        local s <close> = assert(store:session { id = "s", agent = agent })
        for i = 1, 5 do s:turn { { role = "user", content = "message " .. i } } end
        print(agent, #s:messages(), #s:context())
      end]])
    assert.equal(home .. "/mine\tfalse\nmain\t5\t3\ncoder\t5\t5\n", (done "run script.lua"))
    assert.equal(5, #cli.json "show s --agent main")
  end)
end)

describe("a value", function()
  local function value(words, name)
    for _, one in ipairs(cli.json(words).values) do
      if one.key == name then
        return one
      end
    end
  end

  it("is a time or a size as people write them", function()
    own [[return { timeout_ms = "2m", retention = 0.5,
      limits = { message = "1MiB", session = "100MB", policy_ms = "2s", title = 500 } }]]
    assert.equal(120000, value("config", "timeout_ms").value)
    assert.equal(500, value("config", "retention").value)
    assert.equal(1048576, value("config", "limits.message").value)
    assert.equal(100000000, value("config", "limits.session").value)
    assert.equal(2000, value("config", "limits.policy_ms").value)
    assert.equal(500, value("config", "limits.title").value)
    assert.equal("4KiB", value("config", "limits.id").text)
  end)

  it("is a limit that holds", function()
    own "return { limits = { message = 300 } }"
    done "new --id s"
    done "append s short"
    has(fails(1, "append s " .. ("x"):rep(400)), "[message]")
  end)

  it("may hold variables and ~; a path begins where the file is", function()
    own 'return { store = "$PLACE/${NAME}x", key = { file = "./secret" } }'
    write(home .. "/config/sessile/secret", "a passphrase that is long enough")
    os.execute(("chmod 600 %s/config/sessile/secret"):format(home))
    done("new --id a", ("env PLACE=%s NAME=na"):format(home))
    assert.is_true(exists(home .. "/nax/keyring"))
    has(fails(1, "list"), "the variable PLACE is not set")
    own 'return { store = "a$$b" }'
    assert.equal(home .. "/config/sessile/a$b", value("config", "store").text)
    own 'return { store = "~/$" }'
    has(fails(1, "list"), "'store': $NAME or ${NAME} expected")
  end)

  it("postgres is $DATABASE_URL", function()
    own 'return { store = "postgres" }'
    has(fails(1, "list"), "DATABASE_URL is not set")
    local out = done("config --set", "env DATABASE_URL=postgres://u:geheim@host/db")
    has(out, "postgres://u:hidden@host/db")
    assert.is_nil(out:find("geheim", 1, true))
    out = done("config --set", "env 'DATABASE_URL=postgres://host/db?pass%77ord=geheim&pool=2'")
    has(out, "pool=2")
    assert.is_nil(out:find("geheim", 1, true))
    -- nobody listens there
    for _, words in ipairs { "list", "doctor" } do
      local said, err =
        sessile(words, "env DATABASE_URL=postgres://u:geh%65im@127.0.0.1:1/db?timeout=9s")
      has(said .. err, "u@127.0.0.1:1/db")
      assert.is_nil((said .. err):find("geh%65im", 1, true))
      assert.is_nil((said .. err):find("geheim", 1, true))
    end
  end)

  it("is a key that is fetched from where it is said to be, SESSILE_KEY before it", function()
    own 'return { key = { env = "MY_KEY" } }'
    local mine = "env MY_KEY=a-passphrase-of-some-length"
    done("new --id a", mine)
    assert.equal(7, (select(3, sessile "list")))
    done("show a", mine)
    done("show a", "env SESSILE_KEY=a-passphrase-of-some-length")
    fails(7, "show a", nil, mine .. " SESSILE_KEY=another-passphrase-of-length")
    own 'return { key = { command = { "printf", "%s-of-some-length", "a-passphrase" } } }'
    done "show a"
    assert.is_false(exists(home .. "/config/sessile/key"))
  end)

  it("gives an agent's sessions what is the agent's, and the others what is everybody's", function()
    own [[return {
      key = false, policy = { "sliding_window", messages = 4 }, window = 1000, ttl = "30d",
      agents = { coder = { policy = { "sliding_window", messages = 2 }, window = 500,
        reserve = 40, ttl = false,
        checkpoint = { messages = 2, keep = 3 } } },
    }]]
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      for _, agent in ipairs { "main", "coder" } do
        local s <close> = assert(store:create { id = "s", agent = agent })
        for i = 1, 10 do s:turn { { role = "user", content = "message " .. i } } end
        local seen
        local own <close> = assert(store:create { id = "own", agent = agent,
          policy = { truncate = function(state)
            seen = state.window .. " " .. state.reserve
          end } })
        own:turn { { role = "user", content = "x" } }
        print(agent, #s:context(), #s:checkpoints(), s:life().ttl, seen)
        local child <close> = assert(s:child { agent = "coder" })
        for i = 1, 6 do child:turn { { role = "user", content = "message " .. i } } end
        print("child", #child:context())
      end]])
    local main, child, coder, again = done("run script.lua"):match "^(.-)\n(.-)\n(.-)\n(.-)\n$"
    assert.equal("main\t4\t0\t2592000000\t1000 0", main)
    assert.equal("coder\t2\t3\tnil\t500 40", coder)
    assert.equal("child\t2", child)
    assert.equal(child, again)
  end)

  it("preserve_recent goes to the policies that have it", function()
    own [[return { policy = { { "sliding_window", messages = 9 }, "edit_tools" },
      preserve_recent = 20, agents = { a = { preserve_recent = 30 },
        b = { policy = { "summarize", preserve_recent = 4 } } } }]]
    write(folder .. "/script.lua", [[
      local config = assert(require "sessile".config())
      local function show(policy)
        print(policy[1][1] or policy[1], (policy[1] or policy).preserve_recent,
          policy[2] and policy[2].preserve_recent or policy.preserve_recent)
      end
      show(config.policy) show(config.agents.a.policy)
      print(config.agents.b.policy.preserve_recent)]])
    assert.equal("sliding_window\tnil\t20\nsliding_window\tnil\t30\n4\n", (done "run script.lua"))
  end)

  it("is an encoding that counts, by its name or its file", function()
    own 'return { key = false, encoding = "o200k_base" }'
    done "new --id s"
    done "append s 'hello world, this is a text'"
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      local tokens, about = store:count "hello world, this is a text"
      print(tokens, about.source, about.missing)]])
    assert.equal("7\texact\tnil\n", (done "run script.lua"))
    own 'return { key = false, encoding = "./none.tiktoken", encoding_path = { "x" } }'
    assert.equal(1, (select(3, sessile "doctor")))
    has((sessile "doctor"), home .. "/config/sessile/none.tiktoken")
  end)

  it("is a strategy for checkpoints, with the condition that it stands for", function()
    local script = folder .. "/script.lua"
    write(script, [[
      local c = require "sessile".config().checkpoint
      local got = require "sessile.triggers".checkpoints("test", c)
      print(got.on.interval_ms, got.on.share, got.on.messages, got.keep)]])
    local function means(text, expected)
      own(("return { checkpoint = %s }"):format(text))
      assert.equal(expected .. "\n", (done "run script.lua"))
    end
    means('{ strategy = "manual" }', "nil\tnil\tnil\tnil")
    means('{ strategy = "manual", keep = 3 }', "nil\tnil\tnil\t3")
    means('{ strategy = "periodic" }', "300000\tnil\tnil\tnil")
    means('{ strategy = "periodic", interval = "5m", keep = 9 }', "300000\tnil\tnil\t9")
    means('{ strategy = "periodic", messages = 20 }', "nil\tnil\t20\tnil")
    means('{ strategy = "threshold" }', "nil\t800\tnil\tnil")
    own 'return { checkpoint = { strategy = "event" } }'
    has(fails(1, "config"), "needs events")
  end)

  it("is a model, asked when something first wants it", function()
    own [[return { key = false, model = "fast", models = {
      fast = "base", base = function(request) return "a summary of " .. #request.messages end } }]]
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local config = assert(sessile.config())
      local store <close> = assert(sessile.open(nil, config))
      local s <close> = assert(store:create())
      local outcome = assert(s:send "hello")
      print(outcome.text or outcome.code, config:for_agent("x").model_name)]])
    assert.equal("a summary of 1\tbase\n", (done "run script.lua"))
    own 'return { key = false, model = { lua = "./model.lua" } }'
    done "new --id there" -- nobody asks: it need not be there
    assert.equal("ENOTFOUND\tnil\n", (done "run script.lua"))
    write(home .. "/config/sessile/model.lua",
      "return function(request) return os.getenv('HOME') and 'full Lua' end")
    has(done "run script.lua", "full Lua")
  end)
end)

describe("a model that is an endpoint", function()
  it("connects to public addresses only, if it says so", function()
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      local s <close> = assert(store:create())
      local outcome = assert(s:send "hello")
      print(outcome.code, outcome.error)]])
    local model = "{ endpoint = 'http://127.0.0.1:1/v1', name = 'm', public_only = true, %s }"
    own("return { key = false, model = " .. model:format "" .. " }")
    local out = done "run script.lua"
    has(out, "EDENIED")
    has(out, "a loopback address")
    own("return { key = false, model = " .. model:format "allow = { 'localhost:1' }" .. " }")
    has(done "run script.lua", "cannot connect")
  end)
end)

describe("a value that is wrong", function()
  -- What each says after the path of the file and the line.
  local cases = {
    { "polcy = 'tiered'", ":1: 'polcy': there is no such key, did you mean 'policy'?" },
    { "token_threshold = 0.8", "did you mean 'triggers'?" },
    { "backend = 'file'", "did you mean 'store'?" },
    { "nonsense_of_a_kind = 1", "'nonsense_of_a_kind': there is no such key" },
    { "limits = {\n mesage = 1 }",
      ":2: 'limits.mesage': there is no such key, did you mean 'message'?" },
    { "agents = { coder = {\n policy = 'x',\n windw = 1 } }",
      ":3: 'agents.coder.windw': there is no such key, did you mean 'window'?" },
    { "agents = { coder = { store = 'x' } }", "'agents.coder.store': there is no such key" },
    { "checkpoint = { max_history = 3 }", "did you mean 'keep'?" },
    { "checkpoint = { interval = '5x' }",
      "'checkpoint.interval': a time of a second or more expected, as 90 (seconds), \"10m\"" },
    { "checkpoint = { strategy = 'often' }", "manual, periodic, event or threshold expected" },
    { "checkpoint = { strategy = 'manual', messages = 2 }", "\"manual\" means by hand" },
    { "timeout_ms = 'soon'", "'timeout_ms': milliseconds, or a time" },
    { "timeout_ms = -2", "'timeout_ms': milliseconds, or a time" },
    { "limits = { session = '4 potatoes' }", "'limits.session': a size expected" },
    { "limits = { session = 0 }", "'limits.session': a size expected" },
    { "limits = { depth = 1.5 }", "a whole number expected, 1 or more, got 1.5" },
    { "triggers = { share = 80 }", "above 0 and at most 1 (0.8 is 80 %), got 80" },
    { "triggers = { seconds = 5 }", "did you mean 'interval'?" },
    { "triggers = { events = 'deploy' }", "'triggers.events': table expected" },
    { "durability = 'often'", "sync or none expected" },
    { "network = 'yes'", "true or false expected, got \"yes\"" },
    { "window = '8k'", "a whole number expected" },
    { "store = 5", "'store': a text expected" },
    { "agent = ''", "'agent': a text expected, not empty" },
    { "policy = 5", "a policy's name" },
    { "agents = 'coder'", "'agents': a table expected" },
    { "model = {}", "one of command, endpoint or lua expected in it" },
    { "model = { endpoint = 'http://x/v1' }", "name the endpoint's model" },
    { "model = { endpoint = 'x', name = 'y' }", "http://… or https://… expected" },
    { "model = { command = {} }", "the program first" },
    { "model = { command = { 'a' }, lua = 'b' }", "not both" },
    { "model = { endpoint = 'https://x/v1', name = 'y', public_only = 'yes' }",
      "'model.public_only': true or false expected" },
    { "model = { endpoint = 'https://x/v1', name = 'y', allow = { 5 } }",
      "'model.allow': a text expected" },
    { "model = 'fast'", "'model': there is no model 'fast' in `models`" },
    { "model = 'a', models = { a = 'b', b = 'a' }", "there is no model" },
    { "key = { env = 'A', file = 'b' }", "one of { env = \"NAME\" }" },
    { "key = { kms = 'A' }", "'key.kms': there is no such key" },
  }

  it("is an error with its file, its key, and the nearest right one", function()
    for _, case in ipairs(cases) do
      local path = own("return { " .. case[1] .. " }")
      local err = fails(1, "list")
      has(err, case[2])
      has(err, path)
    end
  end)

  it("is told without a secret", function()
    for _, text in ipairs { 'key = "hunter2-hunter2"', 'key = { "hunter2-hunter2" }',
      'models = { a = { endpoint = "https://me:hunter2@x/v1", name = "y" } }',
      'models = { a = { endpoint = "https://x", name = "y", key = "hunter2-hunter2" } }' } do
      own("return { " .. text .. " }")
      local err = fails(1, "list")
      assert.is_nil(err:find("hunter2", 1, true), err)
    end
    own 'return { key = "hunter2-hunter2" }'
    has(fails(1, "list"), "this file must not hold a secret")
  end)

  it("is YAML", function()
    write(home .. "/session.yaml", "session:\n  backend: file\n")
    has(fails(2, ("--config %s/session.yaml list"):format(home)),
      "Lua that returns a table, not YAML")
  end)

  it("leaves help, and what wants no configuration, alone", function()
    own "return { polcy = 1 }"
    done "help"
    done "version"
    done "config path"
    assert.equal(1, (select(3, sessile "doctor")))
  end)
end)
