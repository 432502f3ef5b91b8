-- What stands in for Lua 5.4 in LuaJIT: utf8 does what Lua's own does, and both write the same
-- bytes.
-- Files only: what is written is compared as text.

local built = require "spec.support.built"
local dialect = require "sessile.dialect"
local example = require "spec.support.example"
local ours = require "sessile.dialect_utf8"
local temp = require "spec.support.temp"

-- Every result, or that it raised.
local function results(call, ...)
  local all = table.pack(pcall(call, ...))
  return all[1] and table.pack(table.unpack(all, 2, all.n)) or "raised"
end

describe("the stand-ins for LuaJIT", function()
  teardown(temp.clean)

  it("count, find and name the characters of any bytes as utf8 does", function()
    math.randomseed(7)
    local parts = { "a", "bc", "\0", "\u{E9}", "\u{20AC}", "\u{1F600}", "\x80", "\xC3", "\xE2\x82",
      "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80", "\xFF", "\xF0\x9F\x98", "\u{10FFFF}" }
    for _ = 1, 4000 do
      local text = {}
      for i = 1, math.random(0, 6) do
        text[i] = parts[math.random(#parts)]
      end
      text = table.concat(text)
      local from, to = math.random(-8, 9), math.random(-8, 9)
      assert.same(results(utf8.len, text), results(ours.len, text))
      for name, arguments in pairs {
        len = { text, from, to }, codepoint = { text, from, to }, offset = { text, to, from },
      } do
        assert.same(results(utf8[name], table.unpack(arguments)),
          results(ours[name], table.unpack(arguments)),
          ("%s %q %d %d"):format(name, text, from, to))
      end
    end
    for _, code in ipairs { 0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF } do
      assert.equal(utf8.char(code, 65), ours.char(code, 65))
    end
  end)

  it("close a value after a body returned, raised, or was abandoned", function()
    local function closed(body)
      local said = {}
      local value = setmetatable({}, {
        __close = function(_, why) said[#said + 1] = why or "closed" end,
      })
      return said, table.pack(pcall(dialect.closing, value, body, 1, nil))
    end
    local said, got = closed(function(_, one, two) return one, two, "end" end)
    assert.same({ "closed" }, said)
    assert.same({ true, 1, nil, "end", n = 4 }, got)
    said, got = closed(function() error("no", 0) end)
    assert.same({ { "no" }, { false, "no", n = 2 } }, { said, got })
  end)

  it("write the bytes that Lua 5.4 writes", function()
    local jit = built.folder .. "/luajit/sessile/core.so"
    if not os.execute(("command -v luajit >/dev/null && test -e %s"):format(jit)) then
      pending "luajit, or the module for it, is not here"
      return
    end
    local program = temp.dir() .. "/program.lua"
    temp.write(program, [[
      local sessile = require "sessile"
      local store = assert(sessile.open(arg[1], { key = false,
        policy = { "sliding_window", messages = 3 } }))
      local s = assert(store:create { id = "s", title = "A title" })
      for turn = 1, 4 do
        assert(s:turn { { role = "user", content = "question " .. turn, metadata = { n = turn,
          half = 0.5, list = { 1, { a = sessile.null } }, none = sessile.array {},
          big = sessile.json "9007199254740993" } },
          sessile.json '{"role":"assistant", "content":"\\u00e9", "x":12345678901234567890}' })
      end
      assert(s:custom { kind = "step", n = 3, at = { 1.25, 1e300, -7 } })
      assert(s:checkpoint { name = "c", state = { step = 2 } })
      local random = require "sessile.core".random "a seed"
      local function model(request) return #request.messages .. request.messages[1].content end
      assert(s:compact { model = model, policy = { name = "mine", compact = function(state, ctx)
        state:insert(1, { role = "user", content = ("%.17g %d %s"):format(random(), random(1000000),
          ctx.model { messages = state.messages }) })
        state:keep_last(2, "messages")
      end } })
      for entry in s:entries() do
        local json = entry.json:gsub('"timestamp":"[^"]*"', ""):gsub('"created":"[^"]*"', "")
        print((json:gsub('"nonce":"%x+"', ""):gsub('"duration_ms":%d+', "")))
      end]])
    local lua54 = { example.shell(("lua5.4 %s %s"):format(program, temp.dir() .. "/a")) }
    local luajit = { example.shell(("luajit %s %s"):format(program, temp.dir() .. "/b"),
      ("LUA_PATH='%s/lua/?.lua;%s/lua/?/init.lua' LUA_CPATH='%s/luajit/?.so'"):format(built.root,
        built.root, built.folder)) }
    assert.equal("", lua54[2])
    assert.is_true(#lua54[1] > 1000)
    assert.same(lua54, luajit)
  end)
end)
