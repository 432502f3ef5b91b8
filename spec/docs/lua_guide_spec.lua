-- lua/README.md: its programs, run as they stand there.
-- Files only: what is read there is a folder.

local built = require "spec.support.built"
local example = require "spec.support.example"
local guides = require "spec.support.guides"
local sessile = require "sessile"
local temp = require "spec.support.temp"

-- The n-th Lua program under a heading, as a file.
local function program(heading, n)
  local guide = guides.read "lua/README.md"
  local section = assert(guide:match("\n## " .. heading .. "\n(.*)$"))
  local path, number = temp.dir() .. "/program.lua", 0
  for text in section:gmatch "\n```lua\n(.-)\n```" do
    number = number + 1
    if number == n then
      temp.write(path, text)
      return path
    end
  end
  error("there is no program " .. n .. " under " .. heading)
end

-- Standard output, standard error and exit status of the first Lua program under a heading.
local function run(heading)
  return example.shell(("%s run %s"):format(example.command, program(heading, 1)))
end

-- Whether a program and the module for LuaJIT are there; otherwise the test is pending.
local function has_luajit(host)
  local file = io.open(built.folder .. "/luajit/sessile/core.so")
  if not file then
    pending "the module for LuaJIT is not built"
    return false
  end
  file:close()
  if not os.execute(("command -v %s >/dev/null"):format(host)) then
    pending(host .. " is not installed")
    return false
  end
  return true
end

describe("lua/README.md", function()
  teardown(temp.clean)

  it("shows a store of the host's that keeps a turn", function()
    local out, err, status = run "A store of your own"
    assert.equal("", err)
    assert.equal(0, status)
    assert.equal("true\n3\t0\n", out)
  end)

  it("shows URLs that are refused, and allowed", function()
    local out, err, status = run "URLs from elsewhere"
    assert.equal(0, status, err)
    assert.equal("EDENIED\tloopback\thttp://0x7f.1:6379\ntrue\n", out:match "^[^\n]*\n[^\n]*\n")
    assert.matches("\nnil\t.*%[not%-allowed%].*\tEDENIED\t", out)
  end)

  it("shows a store with a guard", function()
    local out, err, status = run "Who may do what"
    assert.equal(0, status, err)
    assert.equal("", out)
  end)

  it("shows a memory that finds, and is undone", function()
    local out, err, status = run "Long%-term memory"
    assert.equal(0, status, err)
    assert.equal("00000003\tprefers emacs now\t1.0\nlive\tprefers emacs now\n" ..
      "replaced\tprefers vim\n", out)
  end)

  it("shows an agent that runs", function()
    local out, err, status = run "Sending messages, and agents"
    assert.equal(0, status, err)
    assert.equal("completed\tThere are 3.\n4\n", out)
    local events = {}
    for event in err:gmatch "%d (%S+)\n" do
      events[#events + 1] = event
    end
    assert.same({ "start", "message", "context", "model", "message", "tool_start", "tool_end",
      "context", "model", "message", "turn", "done" }, events)
  end)

  it("shows a policy that Lua 5.4 and LuaJIT run alike", function()
    local path = program("LuaJIT and Neovim", 1)
    local out, err, status = example.shell(("%s run %s"):format(example.command, path))
    assert.equal(0, status, err)
    assert.equal("5\nquestion 1\nquestion 2\nquestion 3\nquestion 4\nquestion 5\ntrue\t2\n", out)
    if has_luajit "luajit" then
      local root = built.root
      local same = { example.shell(("luajit %s"):format(path),
        ("LUA_PATH='%s/lua/?.lua;%s/lua/?/init.lua' LUA_CPATH='%s/luajit/?.so'"):format(root, root,
          built.folder)) }
      assert.same({ out, "", 0 }, same)
    end
  end)

  it("shows a command of Neovim that appends to a session", function()
    if not has_luajit "nvim" then
      return
    end
    local home = temp.dir()
    assert(os.execute(("cd %s && mkdir -p .local/share/lua/5.1 .local/lib/lua/5.1 && "
      .. "ln -s %s/lua/sessile .local/share/lua/5.1 && ln -s %s/luajit/sessile .local/lib/lua/5.1")
      :format(home, built.root, built.folder)))
    local out, err, status = example.shell(("nvim --headless -u NONE -i NONE -c 'luafile %s' "
      .. "-c 'Remember buy milk' -c 'qall!'"):format(program("LuaJIT and Neovim", 2)),
      ("HOME=%s XDG_DATA_HOME=%s/data NOTES_KEY=passphrase-of-a-test"):format(home, home))
    assert.same({ "", "", 0 }, { out, err, status })
    local store = assert(sessile.open(home .. "/data/nvim/sessions",
      { key = sessile.key.secret "passphrase-of-a-test" }))
    assert.equal("buy milk", assert(store:resume "notes"):context()[1].content)
    store:close()
  end)
end)
