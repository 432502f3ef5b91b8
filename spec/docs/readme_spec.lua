--- The README's snippets, run as they stand there.
-- Files only: what is read there is a folder.

local root = os.getenv "SESSILE_ROOT" or "."
local build = os.getenv "SESSILE_BUILD" or "build"

local function read(path)
  local f = assert(io.open(path, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

--- The fenced blocks of a language, in order.
local function blocks(language)
  local found = {}
  for block in read(root .. "/README.md"):gmatch("\n```" .. language .. "\n(.-)\n```") do
    found[#found + 1] = block
  end
  return found
end

local function run(command)
  local p = assert(io.popen("( " .. command .. " ) 2>&1", "r"))
  local text = p:read "a"
  local ok = p:close()
  return text, ok == true
end

local function temporary()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir -m 700 '" .. name .. "'"))
  return name
end

local function write(path, text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

describe("the README", function()
  local folder
  setup(function() folder = temporary() end)
  teardown(function() os.execute("rm -rf '" .. folder .. "'") end)

  it("shows a Lua program that runs", function()
    local path = folder .. "/ten.lua"
    write(path, blocks("lua")[1])
    local text, ok = run(("'%s' run '%s'"):format(
      os.getenv "SESSILE_BIN" or build .. "/bin/sessile", path))
    assert.is_true(ok, text)
    assert.matches("6%s+messages are kept,%s+%d%s+are what the model sees next", text)
  end)

  it("shows a C program that compiles and runs", function()
    local path = folder .. "/few.c"
    write(path, blocks("c")[1])
    -- What the archive needs is what pkg-config says of it.
    local needs = assert(read(build .. "/sessile.pc"):match "\nLibs%.private: ([^\n]+)")
    local text, ok = run(([[
      ${CC:-cc} -std=c99 -pedantic -Wall -Werror -I'%s/engine/include' '%s' -o '%s/few' \
        '%s/libsessile.a' %s %s && '%s/few'
    ]]):format(root, path, folder, build,
               os.getenv "TEST_ASAN" and "-fsanitize=address,undefined" or "", needs, folder))
    assert.is_true(ok, text)
    assert.matches("message 00000001", text)
  end)

  it("shows a policy that loads and does what it says", function()
    local sessile = require "sessile"
    local path = folder .. "/keep_last.lua"
    write(path, blocks("lua")[2])
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
    local bin = os.getenv "SESSILE_BIN" or build .. "/bin/sessile"
    write(folder .. "/keep_last.lua", blocks("lua")[2])
    write(folder .. "/keep_last_spec.lua", blocks("lua")[3])
    local recording = assert(io.popen("readlink -f '" .. root .. "/examples/demo-session.jsonl'"))
    write(folder .. "/recorded.jsonl", read(recording:read "l"))
    recording:close()
    local where = assert(io.popen("readlink -f '" .. bin .. "'"))
    local text, ok = run(("cd '%s' && '%s' policy test keep_last_spec.lua"):format(
      folder, where:read "l"))
    where:close()
    assert.is_true(ok, text)
    assert.matches("14 successes / 0 failures", text, 1, true)
  end)

  it("shows a configuration that loads", function()
    local bin = os.getenv "SESSILE_BIN" or build .. "/bin/sessile"
    write(folder .. "/config.lua", blocks("lua")[4])
    local text, ok = run(("'%s' config show --config '%s/config.lua'"):format(bin, folder))
    assert.is_true(ok, text)
    assert.matches("window%s+128000", text)
    assert.matches("llama3.2", text, 1, true)
  end)

  it("links to files that are there", function()
    for path in read(root .. "/README.md"):gmatch "%]%(([%w_./-]+)[#%w-]*%)" do
      local f = io.open(root .. "/" .. path, "rb")
      assert.is_truthy(f, path)
      f:close()
    end
  end)
end)
