-- config, config init, config path, config trust and doctor, as somebody types them.
-- Files only: what doctor finds in a folder.
-- Own guard: configurations are its own.

local cli = require "spec.support.cli"
local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local mounts = require "sessile.cli.mounts"
local project = require "spec.support.project"
local decode = require("sessile").decode
local has = expect.has
local own = cli.configure
local sessile, done, fails, json = project.sessile, project.done, project.fails, project.json
local write, quote, read = cli.write, cli.quote, cli.read
local home, folder

project.each_test(function(path, inside) home, folder = path, inside end)

local function value(list, key)
  for _, one in ipairs(list.values) do
    if one.key == key then
      return one
    end
  end
end

describe("config", function()
  it("shows every value with the line, the variable or the option that says it", function()
    local path = own [[
-- { policy = "not this one" }
return {
  policy = "tiered", --[=[ window = 1,
  reserve = 2 ]=]
  ["timeout_ms"] = "2m",
  agents = {
    coder = { note = nil,
      window = 8000 },
  },
}]]
    for _, words in ipairs { "config", "config show" } do
      local out = done(words .. " --network", "env SESSILE_STORE=/somewhere")
      assert.truthy(out:find("\nstore +/somewhere +%$SESSILE_STORE\n"), out)
      has(out, path .. ":3\n")
      assert.truthy(out:find("\ntimeout_ms +2m +" .. path:gsub("%p", "%%%0") .. ":5\n"), out)
      assert.truthy(out:find("\nnetwork +true +%-%-network\n"), out)
      assert.truthy(out:find("\nreserve +0 +default\n"), out)
      assert.truthy(out:find("\nagents%.coder%.window +8000 +%S+:8\n"), out)
    end
    local out = done "config --set"
    assert.is_nil(out:find("default", 1, true), out)
    assert.is_nil(out:find("reserve", 1, true), out)
  end)

  it("shows names that are not UTF-8", function()
    own 'return { agents = { ["\\xff\\xfe"] = { window = 5 } } }'
    assert.truthy(done "config":find("agents%.\u{FFFD}\u{FFFD}%.window +5"))
    assert.equal(5, value(json "config", "agents.\u{FFFD}\u{FFFD}.window").value)
  end)

  it("prints the same as JSON, with units", function()
    local path = own 'return { timeout_ms = "2m", limits = { id = 100 } }'
    local list = json "config"
    assert.same({ { path = path, kind = "own", trusted = true } }, list.files)
    assert.same({ key = "timeout_ms", value = 120000, text = "2m", unit = "ms", from = "file",
      file = path, line = 1 }, value(list, "timeout_ms"))
    assert.equal("bytes", value(list, "limits.id").unit)
    assert.equal("default", value(list, "policy").from)
    assert.is_nil(value(list, "policy").value)
    assert.equal("env", value(json("config", "env SESSILE_STORE=/x"), "store").from)
    assert.equal("flag", value(json "config --agent me", "agent").from)
  end)

  it("shows no secret, from wherever it comes", function()
    write(home .. "/named.lua", [[return {
      store = "$URL", key = { command = { "printf", "geheim1" } },
      models = { a = { endpoint = "https://x/v1?api_key=geheim2", name = "m", key = { env = "K" },
          headers = { authorization = "geheim3" } },
        b = { command = { "curl", "-H", "geheim4" } },
        c = { endpoint = "https://x", name = "m", key = { command = { "echo", "geheim5" } } } } }]])
    local before = "env URL='postgres://me:geheim6@host/db?sslpassword=geheim7' K=geheim8 "
      .. "SESSILE_CONFIG=" .. home .. "/named.lua "
    for _, words in ipairs { "config", "config --json", "doctor", "doctor --json" } do
      for _, more in ipairs { "", "SESSILE_KEY=geheim9-geheim9-geheim9" } do
        local out, err = sessile(words, before .. more)
        assert.is_nil((out .. err):find("geheim", 1, true), words .. out .. err)
        has(out, "me:hidden@host")
      end
    end
    has(done("config", before), "from the program printf")
    has(done("config", before .. "SESSILE_KEY=geheim"), "in the variable SESSILE_KEY")
  end)

  it("strips what a terminal would obey", function()
    own 'return { agent = "a\\27[31mb\\u{202e}c", policy = { "x\\27]0;t\\7y" } }'
    local out = done "config"
    assert.is_nil(out:find "[%z\1-\8\11-\31\127]", out)
    assert.is_nil(out:find("\u{202e}", 1, true))
  end)

  it("says off for triggers that are false, and that it is no default", function()
    own "return { policy = 'tiered', triggers = false }"
    local row = value(json "config", "triggers")
    assert.equal("off: nothing is compacted automatically", row.text)
    assert.is_false(row.value)
  end)

  it("takes no argument, and knows its options", function()
    fails(2, "config --sett", "--sett")
    fails(2, "config shwo", "too many arguments")
    fails(2, "config show x", "too many arguments")
  end)
end)

describe("a reserve that leaves nothing of the window", function()
  it("is refused, for every agent, with the line that sets it", function()
    local path = own "return { window = 1000,\n reserve = 1000 }"
    has(fails(1, "config"), path .. ":2: 'reserve': 1000 tokens of the window of 1000")
    path = own "return { reserve = 900,\n agents = { coder = { window = 800 } } }"
    has(fails(1, "list"), path
      .. ":1: 'reserve': 900 tokens of the window of 800 of the agent coder")
    own "return { window = 1000, reserve = 999, agents = { coder = { reserve = 0 } } }"
    done "config"
    own "return { reserve = 8000 }"
    done "config"
  end)
end)

describe("an agent", function()
  it("that is disabled adds nothing, and is read", function()
    done "new --id a --agent coder"
    done("append a hello --agent coder")
    own 'return { agents = { coder = { enabled = false } } }'
    assert.truthy(done "config":find("\nagents%.coder%.enabled +false +"))
    local why = "agent 'coder' is disabled (agents.coder.enabled = false)"
    local said = fails(7, "new --id b --agent coder", why)
    assert.is_nil(said:find "\n.", said)
    fails(7, "append a hello --agent coder", why)
    fails(7, "fork a --agent coder", why)
    has(done "show a --agent coder", "hello")
    has(done "list", "a")
    done "new --id b"
  end)

  it("has no more sessions than the limit says", function()
    own "return { limits = { sessions_per_agent = 1 } }"
    done "new --id a"
    fails(1, "new --id b", "[sessions_per_agent] is 1: delete one permanently, or raise the limit")
    done "new --id b --agent coder"
    done "delete a --yes"
    done "new --id b"
  end)
end)

describe("config init", function()
  it("writes what is in examples/config.lua", function()
    done "config init"
    assert.equal(cli.read "examples/config.lua", cli.read(home .. "/config/sessile/config.lua"))
  end)

  it("writes one that compacts at 80 % of the window, for its owner alone", function()
    local out = done "config init"
    local path = home .. "/config/sessile/config.lua"
    assert.equal(path .. "\n", out)
    assert.truthy(os.execute(("test $(stat -c %%a %s) = 600"):format(path)))
    local list = json "config --set"
    assert.equal("tiered", value(list, "policy").value)
    assert.equal("{ share = 0.8 }", value(list, "triggers").text)
    write(folder .. "/script.lua", [[
      local sessile = require "sessile"
      local config = assert(sessile.config())
      config.window, config.reserve = 2000, 0
      local store <close> = assert(sessile.open("ram:", config))
      local s <close> = assert(store:create())
      for i = 1, 60 do
        local outcome = s:turn { { role = "user", content = ("word "):rep(40) .. i } }
        assert(outcome.tokens.after < 1700, outcome.tokens.after)
        compacted = compacted or outcome.compaction ~= nil
      end
      print(compacted, #s:messages())]])
    assert.equal("true\t60\n", (done "run script.lua"))
  end)

  it("every line of it that is a comment would be right as well", function()
    done "config init"
    local path = home .. "/config/sessile/config.lua"
    local lines = {}
    for line in read(path):gmatch "[^\n]+" do
      local code = line:match "^  %-%- (%l[%w_]* = .*)$" or line:match "^  %-%- (  .*)$"
        or line:match "^  %-%- (},)$"
      lines[#lines + 1] = code or line
    end
    local text = table.concat(lines, "\n")
    write(path, text)
    local list = json("config --set", "env OPENAI_API_KEY=x")
    assert.equal(11, #list.values, text)
  end)

  it("writes over none unless it is told to", function()
    local path = own "return { agent = 'kept' }"
    fails(2, "config init", "is there")
    assert.equal("return { agent = 'kept' }", read(path))
    assert.same({ path = path, written = true }, json "config init --yes")
    assert.is_nil(read(path):find("'kept'", 1, true))
  end)

  it("writes where it is told to, and says when it cannot", function()
    done "config init ./sessile.lua"
    assert.equal("tiered", value(json "config", "policy").value)
    os.execute("mkdir " .. quote(folder .. "/folder"))
    fails(2, "config init folder", "is not a file")
    fails(2, "config init config.yaml", "a configuration is Lua that returns a table, not YAML")
    fails(1, "config init sessile.lua/x", "cannot be written")
    fails(2, "config init a b", "b")
  end)
end)

describe("config path", function()
  it("is the file that is one's own, or the one that was named", function()
    local out, err = done "config path"
    assert.equal(home .. "/config/sessile/config.lua\n", out)
    has(err, "config init")
    own "return {}"
    assert.equal("", (select(2, done "config path")))
    assert.equal("x.lua\n", (done "--config x.lua config path"))
    assert.same({ path = "/y.lua", exists = false, named_by = "SESSILE_CONFIG" },
      json("config path", "env SESSILE_CONFIG=/y.lua"))
    assert.same({ path = home .. "/config/sessile/config.lua", exists = true,
      project = { path = "./sessile.lua", exists = false } }, json "config path")
  end)

  it("is nowhere without a home", function()
    fails(2, "config path", "neither HOME nor XDG_CONFIG_HOME", "env -u HOME -u XDG_CONFIG_HOME")
    fails(2, "config path x", "x")
  end)
end)

describe("config trust", function()
  it("asks, and tells", function()
    write(folder .. "/sessile.lua", "return { key = false }")
    os.execute(("chmod 600 %s/sessile.lua"):format(folder))
    fails(2, "config trust", "--yes")
    fails(7, "list", "config trust")
    local path = folder .. "/sessile.lua"
    assert.equal(path .. " is trusted, as it stands now.\n", (done "config trust --yes"))
    done "list"
    assert.same({ path = path, trusted = false }, json "config trust --remove")
    assert.same({ path = path, trusted = false }, json "config trust --remove") -- again
    assert.same({ path = path, trusted = true }, json("config trust --yes " .. path))
  end)

  it("wants a file that is there and is sound", function()
    fails(3, "config trust --yes", "there is no configuration ./sessile.lua")
    write(folder .. "/sessile.lua", "while true do end")
    os.execute(("chmod 600 %s/sessile.lua"):format(folder))
    fails(1, "config trust --yes", "does not end")
    fails(2, "config trust a b", "b")
  end)
end)

describe("doctor", function()
  local function finding(report, name)
    for _, one in ipairs(report.findings) do
      if one.name == name then
        return one
      end
    end
    error("there is no finding " .. name)
  end

  it("looks at what is installed, at the store and at the machine, and changes nothing", function()
    local out = done "doctor"
    for _, heading in ipairs { "Installed", "Configuration", "Store", "Limits and clock" } do
      assert.truthy(("\n" .. out):find("\n" .. heading .. "\n", 1, true), out)
    end
    for _, name in ipairs { "sessile", "Lua", "libraries", "worker", "encodings", "argparse",
      "libidn2", "schema.so", "folder", "sealed",
      "file system", "free space", "locks", "limits", "clock" } do
      assert.truthy(out:find("\n  %l%l%l?%l? +" .. name .. " "), name .. "\n" .. out)
    end
    assert.is_nil(io.open(home .. "/data"))
    assert.is_nil(io.open(home .. "/config"))
  end)

  it("warns of a session that has used four fifths of what it may take, as info does", function()
    done "new --id a"
    for n = 1, 6 do
      done("append a 'some words " .. n .. "'")
    end
    cli.write(home .. "/small.lua", "return { limits = { session = 3000 } }")
    local small = ("--config %s/small.lua "):format(home)
    local report = json(small .. "doctor")
    assert.equal("warn", finding(report, "room").state)
    assert.truthy(finding(report, "room").text:find("of the 3.0 kB", 1, true))
    local _, err = done(small .. "info a")
    assert.truthy(err:find("raise limits.session", 1, true), err)
    _, err = done "info a"
    assert.equal("", err)
    assert.is_false(pcall(finding, json "doctor", "room"))
  end)

  it("tries a lock where the store is, and leaves nothing there", function()
    done "new --id a"
    local report = json "doctor"
    assert.is_true(report.ok)
    assert.equal("ok", finding(report, "locks").state)
    assert.equal("ok", finding(report, "worker").state)
    has(finding(report, "sealed").text, "its key from the key file")
    assert.equal("1", finding(report, "sessions").text)
    local pipe <close> = assert(io.popen(("ls -A %s/data/sessile"):format(home)))
    assert.is_nil(pipe:read "a":find("doctor", 1, true))
  end)

  it("says what is bad, with a next step and exit code 1", function()
    done "new --id a"
    os.execute(("chmod 644 %s/config/sessile/key; chmod 770 %s/data/sessile"):format(home, home))
    local out, _, code = sessile "doctor"
    assert.equal(1, code)
    has(out, "chmod 600 " .. home .. "/config/sessile/key")
    has(out, "chmod 700 " .. home .. "/data/sessile")
    os.execute(("chmod 600 %s/config/sessile/key; chmod 700 %s/data/sessile"):format(home, home))
    out, _, code = sessile("doctor", "env SESSILE_KEY=another-passphrase")
    assert.equal(1, code)
    assert.truthy(out:find "bad +opens ", out)
    os.execute("rm " .. home .. "/data/sessile/keyring")
    assert.equal(1, (select(3, sessile "doctor")))
    write(home .. "/file", "x")
    out, _, code = sessile(("doctor --store %s/file"):format(home))
    assert.equal(1, code)
    has(out, "not a folder")
  end)

  it("names what a plain store and a damaged session are", function()
    done "new --id a --plain"
    done "append a hello --plain"
    done "append a again --plain"
    local report = json "doctor --plain"
    assert.is_true(report.ok)
    assert.equal("warn", finding(report, "sealed").state)
    os.execute(("sed -i s/hello/hullo/ %s/data/sessile/agents/main/a.jsonl"):format(home))
    assert.equal("warn", finding(json "doctor --plain", "sessions").state)
  end)

  it("says what memory is", function()
    local report = json "doctor --store ram:"
    assert.is_true(report.ok)
    has(finding(report, "place").text, "end with it")
    assert.equal("ok", finding(report, "sealed").state)
    assert.is_false(pcall(finding, report, "file system"))
  end)

  it("names the mount that holds the store", function()
    local lines = {
      "20 1 8:1 / / rw - ext4 /dev/sda1 rw", "21 20 8:1 /a /home rw - ext4 /dev/sda1 rw",
      "22 21 0:9 / /home/ann\\040b rw - nfs4 server:/ann rw", "23 20 0:8 / /homes rw - tmpfs t rw",
      "24 20 8:2 / /srv rw - xfs /dev/sdb rw", "25 20 8:3 / /srv rw - btrfs /dev/sdc rw",
    }
    for path, expected in pairs { ["/"] = "ext4 /", ["/home"] = "ext4 /home",
      ["/home/bob/x"] = "ext4 /home", ["/home/ann b/x"] = "nfs4 /home/ann b",
      ["/homes/x"] = "tmpfs /homes", ["/hom"] = "ext4 /", ["/srv/x"] = "btrfs /srv" } do
      local at = 0
      local kind, where = mounts.of(path, function()
        at = at + 1
        return lines[at]
      end)
      assert.equal(expected, ("%s %s"):format(kind, where))
    end
    os.execute(("ln -s /proc %s/link"):format(home))
    local report = cli.decoded((sessile(("--json doctor --store %s/link/none"):format(home))))
    has(finding(report, "file system").text, "proc, on /proc")
  end)

  describe("of an endpoint", function()
    local function found(answer, ...)
      if not pcall(require, "socket") then
        return nil
      end
      local port, request = endpoints.serve { answer }
      own(('return { model = { endpoint = "http://127.0.0.1:%d/v1", name = "small" } }'):format(
        port))
      local report = cli.decoded((sessile("--json doctor" .. (... or ""))))
      return finding(report, "endpoint"), request
    end

    it("says whether it answers, and has the model", function()
      local one, request = found [[json(200, '{"data":[{"id":"small"}]}')]]
      if not one then
        return pending "the package lua-socket is not installed"
      end
      assert.same({ "ok", "GET /v1/models HTTP/1.1" }, { one.state, request(1):match "^[^\n]+" })
      has(one.text, "has the model small")
      one = found [[json(200, '{"data":[{"id":"large"}]}')]]
      assert.equal("warn", one.state)
      has(one.next, "large")
      assert.equal("ok", found([[json(404, '{}')]]).state)
      assert.equal("warn", found([[json(503, 'x')]]).state)
      one = found [[json(401, '{}')]]
      assert.equal("bad", one.state)
      has(one.text, "refuses the key")
    end)

    it("says that it does not, and asks nobody with --offline", function()
      own 'return { model = { endpoint = "http://127.0.0.1:1/v1", name = "small" } }'
      local out, _, code = sessile "doctor"
      assert.equal(1, code)
      has(out, "http://127.0.0.1:1/v1 does not answer")
      assert.equal("ok", finding(json "doctor --offline", "endpoint").state)
    end)
  end)

  it("says which policy of memories cannot be loaded", function()
    own [[return { memory = { policy = "memroy" }, agents = {
      coder = { memory = { policy = "remember_said" } } } }]]
    local out, _, code = sessile "doctor"
    assert.equal(1, code)
    assert.truthy(out:find "bad +memory +.-did you mean 'memory'", out)
    assert.truthy(out:find "ok +memory of coder +remember_said", out)
  end)

  it("knows a configuration that does not do", function()
    own "return { polcy = 1 }"
    local out, _, code = sessile "doctor"
    assert.equal(1, code)
    has(out, "did you mean 'policy'?")
    own "return { policy = 'nothing_like_it' }"
    assert.equal("bad", finding(decode((sessile "--json doctor")), "policy").state)
    own "return { policy = 'tiered', triggers = { share = 0.8 } }"
    assert.equal("warn", finding(json "doctor", "window").state)
    own "return { isolation = 'worker', worker = '/nowhere/at/all' }"
    has((sessile "doctor"), "/nowhere/at/all")
    assert.equal(1, (select(3, sessile "doctor")))
  end)

  it("sees a store that cannot be written", function()
    local report = decode((sessile "--json doctor --store /proc/x"))
    assert.equal("proc", finding(report, "file system").text:match "^%l+")
    assert.truthy(finding(report, "locks").state ~= "ok")
  end)

  it("takes no argument", function()
    fails(2, "doctor now", "too many arguments")
  end)
end)
