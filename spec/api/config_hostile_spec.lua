-- Configurations that mean harm, or that somebody else may have written.
-- Files only: the default folder.

local cli = require "spec.support.cli"
local project = require "spec.support.project"
local own, of_project, exists = cli.configure, project.configure, cli.exists
local sessile, done, fails = project.sessile, project.done, project.fails
local write, quote = cli.write, cli.quote
local home, folder

project.each_test(function(path, inside) home, folder = path, inside end)

-- What ends in a sentence, and which.
local HARM = {
  { "while true do end", "it does not end within a million steps" },
  { "while true do pcall(function() while true do end end) end", "a million steps" },
  { "local s = 'x' while true do s = s .. s end", "" },
  { "local t = {} while true do t[#t + 1] = t end", "" },
  { "return { agent = ('x'):rep(1 << 40) }", "" },
  { "return { agent = (('a'):rep(9999)):find(('a-'):rep(40) .. 'b') }", "a million steps" },
  { "return { agent = os.getenv 'HOME' }", "global 'os'" },
  { "return { agent = io.open('/etc/passwd'):read 'a' }", "global 'io'" },
  { "io.popen 'touch PLACE/pwned' return {}", "global 'io'" },
  { "os.execute 'touch PLACE/pwned' return {}", "global 'os'" },
  { "return require 'os'", "global 'require'" },
  { "return load 'return 1' ()", "global 'load'" },
  { "return dofile 'x.lua'", "global 'dofile'" },
  { "return debug.getregistry()", "global 'debug'" },
  { "return { agent = ('').dump(error) }", "'dump'" },
  { "_ENV = nil", "_ENV cannot be used" },
  { "return setmetatable({}, { __index = function() end, __pairs = error })", "__pairs" },
  { "return setmetatable({}, { __gc = function() end })", "__gc" },
  { "local t = {} t.agents = t return t", "nested too deep, or in a circle" },
  { "local t = {} for i = 1, 20000 do t[i] = i end return { policy_path = t }", "too many values" },
  { "return { [1.5] = 2 }", "neither a name nor a whole number" },
  { "return { [true] = 2 }", "neither a name nor a whole number" },
  { "return { window = 0 / 0 }", "no finite number" },
  { "return { window = math.huge }", "no finite number" },
  { "return { 'store' }", "there is no such key" },
  { "return 'store'", "it returns string, not its settings" },
  { "store = 'x'", "it returns nothing, not its settings" },
  { "error {}", "it raised a table" },
  { "error '\27[31mred'", "red" },
  { "return { agent = coroutine.create(print) }", "global 'coroutine'" },
  { "this is no Lua", "syntax error" },
  { "\27LuaT\0\25", "not text" },
  { "return { store = 'a\\0b' }", "a text expected" },
  { ("-- x\n"):rep(60000), "larger than" },
  -- values that took hours to read, or gigabytes
  { "return { timeout_ms = ('1'):rep(500000) .. '!' }", "milliseconds, or a time" },
  { "return { triggers = { interval = ('1'):rep(500000) .. '!' } }", "a time of a second" },
  { "return { [('a'):rep(700000)] = 1 }", "there is no such key" },
  { "return { [('.'):rep(500000)] = 1 }", "there is no such key" },
  { "return { agents = { [('.'):rep(500000)] = { window = 1 } } }", "too long" },
  { "return { store = 'a?' .. ('pass'):rep(200000) }", "too long" },
  -- policies that are none
  { "return { policy = {} }", "a policy's name expected first" },
  { "return { policy = {{{ 'tiered' }}} }", "a policy's name expected first" },
  { "return { policy = { { 'tiered', { 'x' } } } }", "options have names, got 2" },
}

describe("a configuration that means harm", function()
  for _, which in ipairs { "own", "project" } do
    it("ends in a sentence with its place, and nothing happened: " .. which, function()
      for _, case in ipairs(HARM) do
        local text = case[1]:gsub("PLACE", home)
        ;(which == "own" and own or of_project)(text)
        local out, err, code = sessile "list"
        assert.equal("", out, text:sub(1, 80))
        assert.equal(1, code, text:sub(1, 80) .. err)
        assert.truthy(err:find(case[2], 1, true), text:sub(1, 80) .. "\n" .. err)
        assert.truthy(err:find(which == "own" and "config.lua" or "sessile.lua", 1, true), err)
        assert.is_nil(err:find("\27", 1, true))
        assert.is_nil(err:find("traceback", 1, true), err)
      end
      assert.is_false(exists(home .. "/pwned"))
    end)
  end

  it("reads what a table holds, and not what its metatable says it holds", function()
    own [[return setmetatable({ agent = "own" }, { __index = { agent = "other" } })]]
    assert.equal("own", cli.json("config").values[4].value)
  end)
end)

describe("a file that others may have written", function()
  it("is refused when the group or all may write it", function()
    for _, mode in ipairs { "620", "664", "602", "666" } do
      own "return {}"
      os.execute(("chmod %s %s/config/sessile/config.lua"):format(mode, home))
      fails(7, "list", "can be written by others: chmod go-w it")
      os.remove(home .. "/config/sessile/config.lua")
      of_project "return {}"
      os.execute(("chmod %s %s/sessile.lua"):format(mode, folder))
      fails(7, "list", "can be written by others: chmod go-w it")
      fails(7, "config trust --yes", "can be written by others")
      write(home .. "/named.lua", "return {}")
      os.execute(("chmod %s %s/named.lua"):format(mode, home))
      fails(7, ("--config %s/named.lua list"):format(home), "can be written by others")
      os.execute(("chmod 644 %s/sessile.lua"):format(folder))
      done "list"
      os.remove(folder .. "/sessile.lua")
    end
  end)

  it("is refused when it is a link, a folder or a FIFO, which holds nobody", function()
    write(home .. "/elsewhere.lua", "return {}")
    os.execute(("ln -s %s/elsewhere.lua %s/sessile.lua"):format(home, folder))
    fails(7, "list", "sessile.lua")
    done "--config /dev/null list"
    os.remove(folder .. "/sessile.lua")
    os.execute(("mkdir %s/sessile.lua"):format(folder))
    fails(7, "list", "is no regular file")
    os.execute(("rmdir %s/sessile.lua; mkfifo %s/sessile.lua"):format(folder, folder))
    fails(7, "list", "is no regular file")
  end)

  it("is refused when it is another user's", function()
    if not cli.is_root() then
      return pending "only root can make a file of another user's"
    end
    of_project "return {}"
    os.execute(("chown 65534 %s/sessile.lua"):format(folder))
    local err = fails(7, "list", "belongs to another user")
    assert.truthy(err:find("--config /dev/null", 1, true), err)
  end)
end)

describe("a project's file that nobody trusts", function()
  -- What it may not say, each refused by the name of its key.
  local refused = {
    { "store", "'/tmp/elsewhere'" }, { "store", "'../elsewhere'" }, { "store", "'a/../../b'" },
    { "store", "'~/x'" }, { "store", "'file:/tmp/x'" }, { "store", "'postgres://evil/x'" },
    { "store", "'$HOME'" }, { "store", "'postgres'" }, { "store", "'ram:'" },
    { "store", "'sqlite:/tmp/x.db'" }, { "store", "'sqlite:../x.db'" },
    { "store", "'sqlite:~/x.db'" }, { "store", "'sqlite:link/x.db'" },
    { "store", "'link'" }, { "store", "'folder/../link/x'" }, { "store", "'folder/link/x/y'" },
    { "store", "'nowhere/x'" }, { "key", "false" },
    { "key", "{ command = { 'touch', 'pwned' } }" }, { "key", "{ env = 'HOME' }" },
    { "user", "'x'" }, { "durability", "'none'" }, { "network", "true" },
    { "isolation", "'none'" }, { "worker", "'./evil'" }, { "suite", "'aes-256-gcm'" },
    { "policy", "'./evil.lua'" }, { "policy", "'evil.lua'" }, { "policy", "{ './evil.lua' }" },
    { "policy", "{ 'tiered', './evil.lua' }" }, { "policy", "{ truncate = function() end }" },
    { "fallback", "'./evil.lua'" }, { "policy_path", "{ '.' }" }, { "ttl", "'1s'" },
    { "retention", "'1s'" }, { "limits.message", "1" }, { "models.a", "{ command = { 'evil' } }" },
    { "model", "{ command = { 'evil' } }" }, { "model", "function() end" },
    { "model", "{ endpoint = 'http://evil/v1', name = 'x' }" },
    { "model", "{ lua = './evil.lua' }" },
    { "agents.main.model", "{ command = { 'evil' } }" }, { "agents.main.ttl", "'1s'" },
    { "agents.main.policy", "'./evil.lua'" }, { "encoding", "'./evil.json'" },
    { "agents.main.enabled", "false" }, { "limits.sessions_per_agent", "1" },
    { "prices.x", "{ input = 0 }" }, { "checkpoint", "{ keep = 1 }" },
    { "agents.main.checkpoint", "{ messages = 1, keep = 1 }" },
    { "encoding", "'evil.tiktoken'" }, { "encoding_path", "'.'" },
  }

  local function text_of(key, value)
    local text = value
    for name in (key:reverse() .. "."):gmatch "(.-)%." do
      text = ("{ %s = %s }"):format(name:reverse(), text)
    end
    return "return " .. text
  end

  it("may name no program, key, place or function, and may make nothing less safe", function()
    write(folder .. "/evil.lua", "return {}")
    os.execute(("cd %s && mkdir folder && ln -s /tmp link && ln -s /tmp folder/link && "
      .. "ln -s ../missing nowhere"):format(quote(folder)))
    own "return { models = { mine = { command = { 'true' } } } }"
    for _, case in ipairs(refused) do
      of_project(text_of(case[1], case[2]))
      local out, err, code = sessile "list"
      assert.equal(7, code, text_of(case[1], case[2]) .. out .. err)
      assert.truthy(err:find("'" .. case[1]:match "^[^.]*", 1, true), err)
      assert.truthy(err:find("your own configuration", 1, true), err)
      assert.truthy(err:find("sessile config trust", 1, true), err)
    end
    assert.is_false(exists(folder .. "/pwned"))
  end)

  it("costs no more memory than its size, whatever its names", function()
    if os.getenv "TEST_ASAN" then
      pending "AddressSanitizer wants more address space than this leaves"
      return
    end
    local fields = {}
    for i = 1, 20000 do
      fields[i] = "b" .. i .. "=1"
    end
    of_project(("local function f() return { x = { %s = { %s } } } end return {}"):format(
      ("a"):rep(60000), table.concat(fields, ",")))
    local out, err, code = cli.sessile("list", nil,
      ("env -C %s sh -c 'ulimit -v 600000; exec \"$@\"' sh"):format(quote(folder)))
    assert.equal(0, code, out .. err)
  end)

  it("may name a database below it", function()
    for _, path in ipairs { "s.db", "./data/s.db" } do
      of_project(("return { store = 'sqlite:%s' }"):format(path))
      done "new --id a"
      assert.is_true(exists(folder .. "/" .. path))
      done "show a"
    end
  end)

  it("may choose among what is there", function()
    own "return { models = { mine = { command = { 'true' } } } }"
    of_project [[return { store = "./data/here", agent = "team", window = 1000, reserve = 10,
      policy = { "tiered", preserve_recent = 3 }, fallback = "sliding_window", model = "mine",
      triggers = { share = 0.5 }, checkpoint = { interval = "5m" }, timeout_ms = "9s",
      encoding = "o200k_base",
      agents = { coder = { policy = "edit_tools", window = 99 } } }]]
    done "new --id a"
    assert.is_true(exists(folder .. "/data/here/agents/team"))
    fails(1, "--config sessile.lua list", "there is no model 'mine'") -- that is one's own
  end)

  it("may say everything once it is trusted, as it stands and where it stands", function()
    of_project "return { key = false, model = function() return 'x' end }"
    fails(7, "list", "'key': it is taken from your own configuration only")
    done "config trust --yes"
    done "new --id a --store ./plain"
    done "show a --plain --store ./plain"
    assert.truthy(os.execute(("test $(stat -c %%a %s/config/sessile/trusted/*) = 600"):format(
      home)))
    -- another text
    of_project "return { key = false, timeout_ms = 1 }"
    fails(7, "list", "It has changed since you trusted it")
    -- the same text elsewhere
    of_project "return { key = false, model = function() return 'x' end }"
    done "list"
    os.execute(("cp -r %s %s/copy"):format(folder, home))
    project.enter(home .. "/copy")
    fails(7, "list", "sessile config trust")
    project.enter(folder)
    done "config trust --remove"
    fails(7, "list", "sessile config trust")
  end)

  it("is not trusted by the record of another place", function()
    of_project "return { key = false }"
    done "config trust --yes"
    local records = ("%s/config/sessile/trusted"):format(home)
    os.execute(("cp -r %s %s/copy && mv %s %s/of-project"):format(folder, home, records, home))
    project.enter(home .. "/copy")
    done "config trust --yes"
    done "list"
    os.execute(("cat %s/of-project/* | tee %s/*"):format(home, records))
    fails(7, "list", "sessile config trust")
  end)

  it("is not trusted by a record that others may write", function()
    of_project "return { key = false }"
    done "config trust --yes"
    done "list"
    os.execute(("chmod 666 %s/config/sessile/trusted/*"):format(home))
    fails(7, "list", "sessile config trust")
  end)
end)
