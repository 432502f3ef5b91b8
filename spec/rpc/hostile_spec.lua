-- `sessile rpc`: lines that are no requests. None ends the server or confuses it: the requests
-- between them are answered.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local rpc = require "spec.support.rpc"
local sessile = require "sessile"

local has = expect.has

local SOAK = os.getenv "SESSILE_SOAK" == "1"
local LINES = SOAK and 10000 or 1000

local client

after_each(function()
  client:stop()
end)

cli.each_test(function()
  client = rpc.start()
end)

-- The error that a line is answered with.
local function refused(line)
  client:raw(line)
  local message = client:line()
  assert(message.error, sessile.encode(message))
  return message.error, message.id
end

local GOOD = '{"jsonrpc":"2.0","id":%d,"method":"session/append","params":{"session":"s",'
  .. '"message":{"role":"user","content":"x%d"}}}'

-- A line that is wrong in some way.
local function broken(random, i)
  local good = GOOD:format(i + 1000000, i)
  local kind = random(9)
  if kind == 1 then
    return good:sub(1, random(#good - 1))
  elseif kind == 2 then
    local at = random(#good)
    return good:sub(1, at) .. string.char(random(0, 255)):gsub("\n", " ") .. good:sub(at + 1)
  elseif kind == 3 then
    return ("["):rep(random(3000))
  elseif kind == 4 then
    return "\0\1\2\255\254" .. good
  elseif kind == 5 then
    return '{"jsonrpc":"2.0","id":' .. ({ "{}", "[1]", "true", "null", "1e999", "-", '"\\ud800"' })
      [random(7)] .. ',"method":"store/list"}'
  elseif kind == 6 then
    return "[" .. good .. "," .. good .. "]"
  elseif kind == 7 then
    return '{"jsonrpc":"2.0","id":' .. i .. ',"result":' .. random(5) .. "}"
  elseif kind == 8 then
    local bytes = {}
    for k = 1, random(200) do
      bytes[k] = string.char(random(0, 255))
    end
    return (table.concat(bytes):gsub("\n", ""))
  end
  return '{"jsonrpc":"2.0","id":"o' .. i .. '","method":"session/turn","params":'
    .. ({ "[]", "3", '{"session":"s","messages":{}}', '{"session":{}}', '{"session":"s"}' })
      [random(5)] .. "}"
end

describe("a hostile line", function()
  it("is refused for what it is", function()
    assert.equal(-32700, refused("no json").code)
    assert.equal(-32700, refused('{"jsonrpc":"2.0","id":1,').code)
    assert.equal(-32700, refused('{"a":"\0"}').code)
    assert.equal(-32700, refused('{"a":"\255"}').code)
    assert.equal(-32700, refused(("["):rep(100000)).code)
    assert.equal(-32600, refused("[]").code)
    has(refused('[{"jsonrpc":"2.0","id":1,"method":"store/list"}]').message, "batches")
    assert.equal(-32600, refused("4").code)
    assert.equal(-32600, refused("{}").code)
    assert.equal(-32600, refused('{"id":1,"method":"store/list"}').code)
    assert.equal(-32600, refused('{"jsonrpc":"2.0","id":{},"method":"store/list"}').code)
    assert.equal(-32600, refused('{"jsonrpc":"2.0","id":null,"method":"store/list"}').code)
    assert.equal(-32600, refused('{"jsonrpc":"2.0","id":1,"method":4}').code)
    assert.equal(-32602,
      refused('{"jsonrpc":"2.0","id":1,"method":"store/list","params":[1]}').code)
    assert.same({}, client:call "store/list")
  end)

  it("with an id of any kind gets that id back, as it was written", function()
    for _, id in ipairs { "1", "-1", "1.50", "1e3", "9007199254740993", '"a"', '""', '"\\u00e9"',
      '"' .. ("x"):rep(10000) .. '"', '"\\u2028"' } do
      client:raw('{"jsonrpc":"2.0","id":' .. id .. ',"method":"store/count","params":{"text":"a"}}')
      local _, line = client:line()
      has(line, '"id":' .. id .. ",")
    end
  end)

  it("that ends before its newline is answered when the input ends", function()
    client.out:write('{"jsonrpc":"2.0","id":1,"method":"store/list"}\n{"jsonrpc":"2.0","id":2,')
    local code, rest = client:finish()
    assert.equal(0, code)
    has(rest, '"id":1,"result":[]')
    has(rest, "-32700")
  end)

  it("that is too long is told once, and the next is read", function()
    client.out:write('{"jsonrpc":"2.0","id":1,"method":"store/count","params":{"text":"')
    local piece = ("x"):rep(1 << 20)
    for _ = 1, 65 do
      client.out:write(piece)
    end
    client:raw '"}}'
    local message = client:line()
    assert.same({ 11, "LIMIT" }, { message.error.code, message.error.data.status })
    has(message.error.message, "rpc.message")
    assert.same({}, client:call "store/list")
  end)

  it("ends no line: what readers take for one is escaped", function()
    client:call("session/create", { id = "s", title = "a\u{2028}b\u{2029}c\u{85}d\u{e9}" })
    local _, line = client:call("session/info", { session = "s" })
    has(line, "a\\u2028b\\u2029c\\u0085d\u{e9}")
    local message = { role = "user", content = "\u{2028}" }
    client:call("session/append", { session = "s", message = message })
    local list, text = client:call("session/messages", { session = "s" })
    assert.equal("\u{2028}", list[1].message.content)
    has(text, "\\u2028")
  end)

  it("whose nesting an engine takes is taken", function()
    client:call("session/create", { id = "s" })
    local deep = ("["):rep(120) .. ("]"):rep(120)
    client:call("session/append",
      '{"session":"s","message":{"role":"user","content":"x","deep":' .. deep .. "}}")
    local _, line = client:call("session/messages", { session = "s" })
    has(line, deep)
    deep = ("["):rep(400) .. ("]"):rep(400)
    local _, failure = client:try("session/append",
      '{"session":"s","message":{"role":"user","content":"x","deep":' .. deep .. "}}")
    assert.equal("LIMIT", failure.data.status)
  end)

  it("names bytes that are not UTF-8", function()
    local name = { b64 = "/2E=" }
    client:call("session/open", { session = name, create = true })
    client:call("session/append", { session = name, message = { role = "user", content = "x" } })
    assert.same(name, client:call("store/list")[1].id)
    assert.equal(1, #client:call("session/messages", { session = name }))
  end)

  it(("among good ones costs nothing: %d of them"):format(LINES), function()
    local seed = os.time()
    print("# seed " .. seed)
    local state = seed
    local function random(a, b)
      state = (state * 6364136223846793005 + 1442695040888963407)
      local low, high = b and a or 1, b or a
      return low + (state >> 33) % (high - low + 1)
    end
    client:call("session/create", { id = "s" })
    local sent, answered = 0, 0
    for i = 1, LINES do
      client.out:write(broken(random, i), "\n")
      if i % 10 == 0 then
        sent = sent + 1
        client.out:write(GOOD:format(sent + 100, sent), "\n")
        client.out:flush()
        repeat
          local message = client:line()
          assert(message, "the server ended")
          if message.id == sent + 100 then
            assert(message.result, sessile.encode(message))
            answered = answered + 1
          end
        until message.id == sent + 100
      end
    end
    assert.equal(sent, answered)
    local messages = client:call("session/messages", { session = "s", limit = 0 })
    local good = 0
    for _, one in ipairs(messages) do
      good = good + (one.message.content == "x" .. good + 1 and 1 or 0)
    end
    assert.is_true(good > 0)
    local code, _, said = client:finish()
    assert.equal(0, code)
    assert.is_nil(said:find "defect", said)
  end)
end)
