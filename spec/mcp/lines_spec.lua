-- Lines that are broken, hostile or too long cost an error each; the requests between them are
-- answered as ever.

local cli = require "spec.support.cli"
local json_schema = require "spec.support.json_schema"
local mcp = require "spec.support.mcp"
local sessile = require "sessile"

cli.each_test(function()
  cli.done "new --id talk"
end)

local ANSWER = { type = "object", additionalProperties = false, required = { "jsonrpc" },
  properties = { jsonrpc = { const = "2.0" }, id = {}, result = { type = "object" },
    error = { type = "object", additionalProperties = false, required = { "code", "message" },
      properties = { code = { type = "integer" }, message = { type = "string" },
        data = { type = "object" } } } } }

local function check(answers)
  for _, answer in ipairs(answers) do
    assert.equal(nil, json_schema.wrong(answer, ANSWER))
    assert.is_true((answer.result == nil) ~= (answer.error == nil))
  end
end

describe("an id", function()
  it("goes back as it was written", function()
    local ids = { "0", "-1", "1.50", "1e3", "123456789012345678901234567890", '"a"', '"\\u0061"',
      '""', '"\\ud83d\\ude00"', '"id\\n\\u202e"' }
    local lines = {}
    for i, id in ipairs(ids) do
      lines[i] = ('{"jsonrpc":"2.0","id":%s,"method":"ping"}'):format(id)
    end
    local _, raw = mcp.run(lines)
    for i, id in ipairs(ids) do
      assert.equal(('{"jsonrpc":"2.0","id":%s,"result":{}}'):format(id), raw[i])
    end
  end)

  it("is a text or a number", function()
    for _, id in ipairs { "null", "true", "{}", "[1]", '"' .. ("x"):rep(300) .. '"' } do
      local answers = mcp.run { ('{"jsonrpc":"2.0","id":%s,"method":"ping"}'):format(id) }
      assert.equal(-32600, answers[1].error.code, id)
      assert.equal(nil, answers[1].id)
    end
  end)
end)

describe("a line", function()
  it("that is no request is an error of its kind", function()
    for line, code in pairs {
      ["nonsense"] = -32700, ["{"] = -32700, ['{"a":1}{"b":2}'] = -32700, ["\0"] = -32700,
      ['{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff"}'] = -32700,
      ["[]"] = -32600, ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]'] = -32600, ["1"] = -32600,
      ['"x"'] = -32600, ["null"] = -32600, ["true"] = -32600, ["{}"] = -32600,
      ['{"id":1,"method":"ping"}'] = -32600, ['{"jsonrpc":"2.0","id":1,"method":5}'] = -32600,
      ['{"jsonrpc":"1.0","id":1,"method":"ping"}'] = -32600,
      ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}'] = -32602,
      ['{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}'] = -32602,
      ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"session_list",'
        .. '"arguments":[1]}}'] = -32602,
      ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}'] = -32602,
      ['{"jsonrpc":"2.0","id":1,"method":"x\\u0000y"}'] = -32601,
    } do
      local answers = mcp.run { line, mcp.request(7, "ping") }
      assert.equal(code, answers[1].error.code, line)
      assert.equal(7, answers[2].id)
      check(answers)
    end
  end)

  it("may end as on Windows, be empty, or be the last without an end", function()
    local out = cli.done("mcp", "\r\n\n  \n" .. mcp.request(1, "ping") .. "\r\n"
      .. mcp.request(2, "ping"))
    assert.equal('{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"result":{}}\n',
      out)
  end)

  it("that is too long is refused, and the next one is read", function()
    local most = 4 * 1024 * 1024
    local head = '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
    local fits = head .. ("x"):rep(most - #head - 3) .. '"}}'
    local answers = mcp.run { fits, fits .. " ", ("x"):rep(most + 9), mcp.request(2, "ping") }
    assert.equal(4, #answers)
    assert.same({}, answers[1].result)
    assert.equal(-32600, answers[2].error.code)
    assert.equal(-32600, answers[3].error.code)
    assert.equal(2, answers[4].id)
  end)

  it("may be nested without end", function()
    for _, line in ipairs { ("["):rep(100000), ('{"a":'):rep(50000), ("["):rep(100000)
      .. ("]"):rep(100000), '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":'
      .. ("["):rep(100000) .. ("]"):rep(100000) .. "}}" } do
      local answers = mcp.run { line, mcp.request(2, "ping") }
      assert.equal(2, answers[#answers].id)
      check(answers)
    end
  end)
end)

-- ---------------------------------------------------------------- random lines

local SEEDS = {
  mcp.request(0, "initialize", { protocolVersion = "2025-11-25" }),
  mcp.request(0, "tools/list", nil, true), mcp.request(0, "server/discover", nil, true),
  mcp.call_line(0, "session_read", { session = "main/talk", entry = "1+", bytes = 500 }, true),
  mcp.call_line(0, "session_search", { text = "x", role = "user", limit = 3 }),
  mcp.call_line(0, "session_list", { search = "x", limit = 1, offset = 2 }),
  mcp.call_line(0, "session_why", { session = "sessile://main/talk?user=x", entry = "1.1" }),
  mcp.call_line(0, "memory_search", { query = "x", agent = "main" }),
  mcp.request(0, "resources/list", { cursor = "50" }),
  mcp.request(0, "resources/read", { uri = "sessile://main/~0123456789abcdef" }),
  mcp.request(0, "prompts/get", { name = "continue", arguments = { session = "talk" } }, true),
  mcp.request(0, "completion/complete", { ref = { type = "ref/prompt", name = "continue" },
    argument = { name = "session", value = "t" } }),
}

local PIECES = { '"', "{", "}", "[", "]", ",", ":", "\\", "\\u0000", "\\ud800", "null", "true",
  "-1", "1e999", "9007199254740993", "\xff", "\xc3", "\0", "%00", "%", "~", "/", "@", "+", "?user=",
  "{}", "[]", '"id":2,', '"method":"ping",', "\u{202E}", "\u{2028}", "\27[2J" }

-- The line with a few changes.
local function changed(line, random)
  for _ = 1, random(4) do
    local at = random(#line + 1)
    local kind = random(5)
    if kind == 1 then
      line = line:sub(1, at - 1) .. PIECES[random(#PIECES)] .. line:sub(at)
    elseif kind == 2 then
      line = line:sub(1, at - 1) .. line:sub(at + random(8))
    elseif kind == 3 then
      line = line:sub(1, at - 1) .. string.char(random(256) - 1) .. line:sub(at + 1)
    elseif kind == 4 then
      local piece = PIECES[random(#PIECES)]
      line = line:gsub('("[%w_]+":)"[^"]*"', function(name) return name .. piece end, 1)
    else
      line = line:sub(1, at - 1) .. line:sub(at):rep(2)
    end
  end
  return (line:gsub("\n", " "))
end

describe("random lines", function()
  it("never end or confuse the server", function()
    local seed = os.time()
    print("# seed: " .. seed)
    math.randomseed(seed)
    local count = os.getenv "SESSILE_SOAK" and 100000 or 1500
    local lines, good = {}, 0
    for i = 1, count do
      lines[#lines + 1] = changed(SEEDS[math.random(#SEEDS)], math.random)
      if i % 40 == 0 then
        good = good + 1
        lines[#lines + 1] = mcp.call_line("good " .. good, "session_list", {}, i % 80 == 0)
      end
    end
    local out, err, code = cli.sessile("mcp", table.concat(lines, "\n") .. "\n")
    assert.equal(0, code, err)
    assert.equal("", err)
    local seen = 0
    for line in out:gmatch "([^\n]*)\n" do
      assert.is_nil(line:find "[\0-\31\127]", line)
      local answer = assert(sessile.decode(line), line)
      check { answer }
      if type(answer.id) == "string" and answer.id:find "^good " then
        seen = seen + 1
        assert.equal("good " .. seen, answer.id)
        assert.equal("main/talk", answer.result.structuredContent.sessions[1].session)
      elseif answer.error then
        assert.not_equal(-32603, answer.error.code, line)
      end
    end
    assert.equal(good, seen)
  end)
end)
