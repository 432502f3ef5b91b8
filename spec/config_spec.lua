-- The configuration: what its files may say, which word holds, and whose files are believed.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local cli = dofile(here .. "/support/cli.lua")
local write, quote = cli.write, cli.quote
local home, project

-- The user's own file, or ./sessile.lua of the project, with that mode.
local function own(text, mode)
  os.execute(("mkdir -p %s/config/sessile"):format(quote(home)))
  local path = home .. "/config/sessile/config.lua"
  write(path, text)
  os.execute(("chmod %s %s"):format(mode or "600", quote(path)))
  return path
end

local function of_project(text, mode)
  local path = project .. "/sessile.lua"
  write(path, text)
  os.execute(("chmod %s %s"):format(mode or "644", quote(path)))
  return path
end

-- The command in the project's folder.
local function sessile(words, before, input)
  return cli.sessile(words, input, ("env -C %s %s"):format(quote(project), before or ""))
end

local function done(words, before, input)
  local out, err, code = sessile(words, before, input)
  assert(code == 0, words .. "\n" .. err)
  return out, err
end

local function fails(code, words, before)
  local out, err, got = sessile(words, before)
  assert.equal(code, got, words .. ": " .. out .. err)
  cli.no_traceback(err:gsub("%.lua:%d+: ", ": "))
  return err
end

local function has(text, what)
  assert.truthy(text:find(what, 1, true), ("%q\nis not in\n%s"):format(what, text))
end

local function exists(path)
  return os.execute("test -e " .. quote(path)) ~= nil
end

before_each(function()
  home = cli.begin()
  project = home .. "/project"
  os.execute("mkdir " .. quote(project))
end)

after_each(cli.finish)

describe("which file holds", function()
  it("is the project's over the user's own, the environment over both, an option over all",
    function()
      own 'return { store = "$HOME/mine", agent = "smith" }'
      done "new --id a"
      assert.is_true(exists(home .. "/mine/agents/smith"))
      of_project 'return { store = "./theirs" }'
      done "new --id b"
      assert.is_true(exists(project .. "/theirs/agents/smith"))
      done("new --id c", ("env SESSILE_STORE=%s/env"):format(home))
      assert.is_true(exists(home .. "/env/agents/smith"))
      done(("new --id d --agent jones --store %s/typed"):format(home),
        ("env SESSILE_STORE=%s/env"):format(home))
      assert.is_true(exists(home .. "/typed/agents/jones"))
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
    has(fails(2, "list", "env SESSILE_CONFIG=nowhere.lua"), "SESSILE_CONFIG")
  end)

  it("gives a script what it gives the command line", function()
    own [[return { store = "~/mine", key = false, policy = { "sliding_window", messages = 3 },
      agents = { coder = { policy = false } } }]]
    write(project .. "/script.lua", [[
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
