-- JSON in is JSON out, byte for byte; and what is not JSON, or not a message, changes nothing.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local sessile = require "sessile"

local function fails(code, value, message, got)
  assert.is_nil(value)
  assert.is_string(message)
  assert.not_equal("", message)
  assert.equal(code, got)
end

describe("JSON text", function()
  local store, s

  stores.each_test(function()
    store = stores.open "ram:"
    s = assert(store:create "s")
  end)

  local function content(text)
    return '{"role":"user","content":' .. text .. "}"
  end

  for name, text in pairs {
    ["an integer beyond 2^53"] = '{"role":"user","content":"x","metadata":{"n":9007199254740993}}',
    ["a number beyond doubles"] = '{"role":"user","content":"x","metadata":{"n":1e400}}',
    ["numbers as they were written"] =
      '{"role":"user","content":"x","metadata":{"n":[1.0,1.10,1E2,-0,0.1e-7]}}',
    ["an escaped NUL"] = content [["a\u0000b"]],
    ["escapes as they were written"] = content [["\u0041\/\u00e9\n\ud83d\ude00\ud800"]],
    ["line and paragraph separators"] = content '"a\u{2028}b\u{2029}c"',
    ["characters beyond the first plane"] = content '"😀 é 漢"',
    ["200 KB of text"] = content('"' .. ("0123456789"):rep(20480) .. '"'),
    ["keys in their order"] = '{"zebra":1,"role":"user","content":"x","apple":{"b":1,"a":2}}',
    ["empty objects and arrays"] =
      '{"role":"user","content":"x","metadata":{"o":{},"a":[],"n":null,"s":""}}',
    ["blocks"] = content '[{"type":"text","text":"a"},{"type":"image","data":"AAAA"}]',
  } do
    it("keeps " .. name, function()
      local id = assert(s:append(sessile.json(text)))
      assert.equal(text, assert(s:messages { last = 1 })[1].json)
      assert.equal(text, assert(s:context())[1].json)
      assert.is_truthy(assert(s:entry(id)).json:find(text, 1, true))
    end)
  end

  it("loses its white space outside strings and nothing else", function()
    assert(s:append(sessile.json ' { "role" : "user" ,\n "content" : " a  b " } '))
    assert.equal('{"role":"user","content":" a  b "}', assert(s:messages())[1].json)
  end)

  it("is kept in turns, and survives the file", function()
    local url = "file:" .. temp.dir() .. "/store"
    local text = content [["a\u0000b 9007199254740993 \/"]]
    do
      local on_disk <close> = assert(sessile.open(url, { key = false }))
      assert(assert(on_disk:create "s"):turn { sessile.json(text) })
    end
    local on_disk <close> = assert(sessile.open(url, { key = false }))
    assert.equal(text, assert(assert(on_disk:resume "s"):messages())[1].json)
    temp.clean()
  end)

  it("becomes Lua values", function()
    assert(s:append(sessile.json
      [[{"role":"user","content":"a\u0000b","metadata":{"i":9007199254740993,"f":1.5,"n":null,
        "a":[],"o":{},"t":true}}]]))
    local m = assert(s:messages())[1]
    assert.equal("a\0b", m.content)
    assert.equal(9007199254740993, m.metadata.i)
    assert.equal("integer", math.type(m.metadata.i))
    assert.equal(1.5, m.metadata.f)
    assert.equal(sessile.null, m.metadata.n)
    assert.is_true(m.metadata.t)
  end)

  it("is made of tables: sorted keys, integers as integers, arrays as arrays", function()
    assert(s:append { role = "user", content = "x", metadata = {
      z = 1, a = 2.5, list = { 1, 2, 3 }, empty = sessile.array {}, object = {},
      null = sessile.null, big = math.maxinteger, whole = 2.0,
    } })
    local json = assert(s:messages())[1].json
    assert.equal('{"content":"x","metadata":{"a":2.5,"big":9223372036854775807,"empty":[],'
      .. '"list":[1,2,3],"null":null,"object":{},"whole":2.0,"z":1},"role":"user"}',
      (json:gsub('"whole":2,', '"whole":2.0,')))
  end)

  it("is the same after it went through Lua", function()
    local text = '{"content":[],"metadata":{"a":[],"b":{},"n":null},"role":"assistant"}'
    assert(s:append(sessile.json(text)))
    assert(s:append(assert(s:messages())[1]))
    assert.equal(text, assert(s:messages())[2].json)
  end)
end)

describe("what is not a message", function()
  local dir, store, s

  stores.each_test(function()
    dir = temp.dir()
    store = stores.open("file:" .. dir .. "/store", { key = false,
      limits = { message = 10000, depth = 20 } })
    s = assert(store:create "s")
    assert(s:append { role = "user", content = "first" })
  end)

  -- Every call must fail with the code and leave the store as it was.
  local function refused(code, ...)
    for _, message in ipairs { ... } do
      local before = temp.snapshot(dir)
      fails(code, s:append(message))
      fails(code, s:turn { { role = "user", content = "fine" }, message })
      assert.equal(before, temp.snapshot(dir))
      assert.equal(1, #assert(s:messages()))
    end
  end

  it("is INVALID as broken JSON", function()
    refused("EINVALID", sessile.json "", sessile.json "{", sessile.json '{"role":"user",}',
      sessile.json '{"role":"user","content":"a"} x', sessile.json '{"role":"user","content":01}',
      sessile.json "{'role':'user'}", sessile.json '{"role":"user","content":"a\nb"}',
      sessile.json '{"role":"user","content":NaN}')
  end)

  it("is INVALID as no object", function()
    refused("EINVALID", sessile.json "[]", sessile.json '"text"', sessile.json "null", { "a" })
  end)

  it("is INVALID as broken UTF-8", function()
    refused("EINVALID", { role = "user", content = "a\xff" },
      { role = "user", content = "\xc0\x80" },
      { role = "user", content = "\xed\xa0\x80" }, sessile.json '{"role":"user","content":"\xf8"}')
  end)

  it("is INVALID with an unknown role, or none", function()
    refused("EINVALID", { role = "nobody", content = "x" }, { content = "x" },
      { role = 1, content = "x" })
  end)

  it("is INVALID with a field of its own given twice", function()
    refused("EINVALID", sessile.json '{"role":"user","content":"a","content":"b"}',
      sessile.json '{"role":"user","role":"system","content":"a"}')
  end)

  it("is INVALID as a Lua value that JSON cannot say", function()
    local cycle = { role = "user" }
    cycle.metadata = cycle
    refused("EINVALID", { role = "user", content = 0 / 0 }, { role = "user", content = math.huge },
      { role = "user", content = print }, { role = "user", metadata = { 1, 2, x = 3 } },
      { role = "user", metadata = { [true] = 1 } }, cycle)
  end)

  it("is LIMIT when it is nested too deeply", function()
    refused("ELIMIT", sessile.json('{"role":"user","content":'
      .. ("["):rep(30) .. ("]"):rep(30) .. "}"))
  end)

  it("is nested as deep as the limit says, in texts and in tables", function()
    local function nested(depth)
      local value = { type = "text", text = "x" }
      for _ = 1, depth - 2 do value = { x = value } end -- a message is a level, and the leaf
      return { role = "user", content = "x", metadata = value }
    end
    for _, limit in ipairs { 3, 20, 128, 1000 } do
      local other <close> = assert(sessile.open("ram:", { limits = { depth = limit } }))
      local deep = assert(other:create())
      local id = assert(deep:append(nested(limit)))
      assert(deep:turn({ nested(limit) }, { policy = { truncate = function(state)
        assert.equal(2, #state.messages)
        state:replace(1, { content = state.messages[1].content })
      end } }))
      assert.same(nested(limit), deep:messages { last = 1 }[1])
      assert.same(nested(limit).metadata, deep:entry(id).data.metadata)
      assert.equal(2, #deep:context())
      for _, wrong in ipairs { nested(limit + 1),
        sessile.json(assert(sessile.encode(nested(limit + 1)))) } do
        local value, message, code = deep:append(wrong)
        fails("ELIMIT", value, message, code)
        assert.matches("depth", message)
      end
    end
  end)

  it("is LIMIT when it is too long, and names the limit", function()
    local value, message, code = s:append { role = "user", content = ("x"):rep(10001) }
    fails("ELIMIT", value, message, code)
    assert.matches("message", message)
    refused("ELIMIT", { role = "user", content = ("x"):rep(10001) })
  end)

  it("leaves the store when a session is unknown", function()
    temp.files_only "their bytes"
    local before = temp.snapshot(dir)
    fails("ENOTFOUND", store:resume "nobody")
    fails("ENOTFOUND", s:entry "0000ffff")
    assert.equal(before, temp.snapshot(dir))
  end)

  it("leaves the store when a log is none", function()
    temp.files_only "one that is no log"
    temp.write(dir .. "/store/agents/main/fake.jsonl", "this is no log\n", "600")
    local before = temp.snapshot(dir)
    local value, message, code = store:resume "fake"
    assert.is_nil(value)
    assert.is_true(code == "EDAMAGED" or code == "ESEALED", code)
    assert.matches("fake", message)
    assert.equal(before, temp.snapshot(dir))
    local rows = {}
    for _, row in ipairs(assert(store:list())) do
      rows[row.id or "?"] = row
    end
    assert.equal("active", rows.s.status)
  end)

  it("leaves the metadata of a session to be an object", function()
    fails("EINVALID", store:create { id = "x", metadata = sessile.json "[1]" })
    fails("EINVALID", store:create { id = "x", metadata = { f = print } })
    fails("ENOTFOUND", store:resume "x")
  end)
end)

describe("JSON of a host's own", function()
  it("is read and written by the rules of messages", function()
    local text = [[{"a":[1,null,{"x":"y"}],"e":[],"i":9007199254740993,"o":{}}]]
    local value = assert(sessile.decode(text))
    assert.equal("y", value.a[3].x)
    assert.equal(sessile.null, value.a[2])
    assert.equal(9007199254740993, value.i)
    assert.equal(text, sessile.encode(value))
    value.a[4] = "more" -- plain tables: they may be changed
    assert.equal('[1,null,{"x":"y"},"more"]', sessile.encode(value.a))
    assert.equal('"x"', sessile.encode "x")
    assert.is_false(sessile.decode " false ")
  end)

  it("is read with parts left as they are written", function()
    local message = '{"role":"user", "content":"x","n":[1.50,12345678901234567890,"\\u0041"]}'
    local value = assert(sessile.decode('{"id":7,"message":' .. message .. ',"more":{"message":1}}',
      { spans = { "message", "state" } }))
    assert.equal(7, value.id)
    assert.equal(1, value.more.message)
    assert.is_nil(value.state)
    assert.equal(message, sessile.encode(value.message))
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    assert(s:append(value.message))
    assert.equal((message:gsub(" ", "")), sessile.of(s:messages()[1]).json)
    assert.same({ 1 }, sessile.decode("[1]", { spans = { "message" } }))
    fails("EINVALID", sessile.decode('{"message":{}', { spans = { "message" } }))
  end)

  it("says what is none", function()
    for _, text in ipairs { "", "[1,2", "nul", "{'a':1}", '"\xff"', ("["):rep(1000) } do
      fails("EINVALID", sessile.decode(text))
    end
    fails("EINVALID", sessile.encode(0 / 0))
    fails("EINVALID", sessile.encode { f = print })
    assert.has_error(function() sessile.decode(1) end)
  end)
end)
