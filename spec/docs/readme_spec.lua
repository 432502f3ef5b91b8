--- The snippets of the README, and of the command line's page, run as they stand there.
-- Files only: what is read there is a folder.

local built = require "spec.support.built"
local guides = require "spec.support.guides"
local shell = require "spec.support.shell"
local temp = require "spec.support.temp"

local build, root, write = built.folder, built.root, temp.write
local readme = guides.read "README.md"

--- The fenced blocks of a language, in order.
local function blocks(language)
  return guides.blocks(readme, language)
end

local function run(command)
  return shell.output("( " .. command .. " ) 2>&1")
end

describe("the README", function()
  local folder
  setup(function() folder = temp.dir() end)
  teardown(temp.clean)

  it("shows a Lua program that runs", function()
    local path = folder .. "/ten.lua"
    write(path, blocks("lua")[1])
    local text, ok = run(("'%s' run '%s'"):format(built.binary, path))
    assert.is_true(ok, text)
    assert.matches("6%s+messages are kept,%s+%d%s+are what the model sees next", text)
  end)

  it("shows a memory of a user, recalled in the next session", function()
    local path = folder .. "/memory.lua"
    write(path, blocks("lua")[2])
    local text, ok = run(("'%s' run '%s'"):format(built.binary, path))
    assert.is_true(ok, text)
    assert.matches('%- %[%x+, [%d-]+, user, fact%] "Remember that I use Vim for Lua"\n$', text)
  end)

  it("shows a C program that compiles and runs", function()
    local path = folder .. "/few.c"
    write(path, blocks("c")[1])
    -- What the archive needs is what pkg-config says of it.
    local needs = assert(temp.read(build .. "/sessile.pc"):match "\nLibs%.private: ([^\n]+)")
    local text, ok = run(([[
      ${CC:-cc} -std=c99 -pedantic -Wall -Werror -I'%s/engine/include' '%s' -o '%s/few' \
        '%s/libsessile.a' %s %s && '%s/few'
    ]]):format(root, path, folder, build,
               os.getenv "TEST_ASAN" and "-fsanitize=address,undefined" or "", needs, folder))
    assert.is_true(ok, text)
    assert.matches("message 00000001", text)
  end)

  -- Runs a program beside a client that `sessile rpc` writes, in a home of its own.
  local function client(name, file, code, line)
    local program = line:match "^%S+"
    if not select(2, run("command -v " .. program)) then
      return pending(program .. " is not installed: the program for " .. name .. " was not run")
    end
    local place = folder .. "/" .. name
    assert(os.execute(("mkdir -p '%s/.config/nvim/lua'"):format(place)))
    write(place .. "/" .. file, code)
    local text, ok = run(("cd '%s' && export HOME='%s' PATH='%s/bin':\"$PATH\" && " ..
      "unset XDG_CONFIG_HOME XDG_DATA_HOME && %s\n%s"):format(place, place, build,
      blocks("sh")[3], line))
    assert.is_true(ok, text)
    return text
  end

  it("shows a program in Node", function()
    local text = client("node", "one.mjs", blocks("js")[1], "node one.mjs")
    assert.matches("\n1 is what the model sees next\n$", text)
  end)

  it("shows a program in Python", function()
    local text = client("python", "one.py", blocks("python")[1], "/usr/bin/python3 one.py")
    assert.matches("\n1 is what the model sees next\n$", text)
  end)

  it("shows a command of Neovim", function()
    local text = client("neovim", ".config/nvim/init.lua", blocks("lua")[3],
      "nvim --headless -i NONE -c 'Remember buy milk' -c 'qall!' && sessile show notes")
    assert.matches("buy milk", text)
  end)

  it("shows a policy that loads and does what it says", function()
    local sessile = require "sessile"
    local path = folder .. "/keep_last.lua"
    write(path, blocks("lua")[4])
    local store = assert(sessile.open("ram:", { policy = { path, turns = 2 } }))
    local s = assert(store:create {})
    for i = 1, 5 do
      assert(s:turn { { role = "user", content = "question " .. i },
                      { role = "assistant", content = "answer " .. i } })
    end
    assert.equal(4, #s:context())
    assert.equal(10, #s:messages())
    store:close()
  end)

  it("shows the spec of that policy, which passes", function()
    write(folder .. "/keep_last.lua", blocks("lua")[4])
    write(folder .. "/keep_last_spec.lua", blocks("lua")[5])
    write(folder .. "/recorded.jsonl", guides.read "examples/demo-session.jsonl")
    local text, ok = run(("cd '%s' && '%s' policy test keep_last_spec.lua"):format(folder,
      built.binary))
    assert.is_true(ok, text)
    assert.matches("14 successes / 0 failures", text, 1, true)
  end)

  it("links to files that are there", function()
    for path in readme:gmatch "%]%(([%w_./-]+)[#%w-]*%)" do
      local f = io.open(root .. "/" .. path, "rb")
      assert.is_truthy(f, path)
      f:close()
    end
  end)
end)

describe("the page of the command line", function()
  local folder
  setup(function() folder = temp.dir() end)
  teardown(temp.clean)

  it("shows a configuration that loads", function()
    local page = guides.read "lua/sessile/cli/README.md"
    write(folder .. "/config.lua", guides.blocks(page, "lua")[1])
    local text, ok = run(("'%s' config show --config '%s/config.lua'"):format(built.binary, folder))
    assert.is_true(ok, text)
    assert.matches("window%s+128000", text)
    assert.matches("llama3.2", text, 1, true)
  end)
end)
