-- Both eras of the protocol: the handshake up to 2025-11-25, and requests of 2026-07-28 that each
-- say their revision. No request depends on one before it.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local mcp = require "spec.support.mcp"
local sessile = require "sessile"

cli.each_test()

local function initialize(version)
  return mcp.ask("initialize", { protocolVersion = version, capabilities = {},
    clientInfo = { name = "spec", version = "1" } })
end

describe("up to 2025-11-25", function()
  for _, version in ipairs { "2025-03-26", "2025-06-18", "2025-11-25" } do
    it("agrees on " .. version, function()
      local result = initialize(version)
      assert.equal(version, result.protocolVersion)
      assert.equal("sessile", result.serverInfo.name)
      assert.equal(sessile.version, result.serverInfo.version)
      assert.is_table(result.capabilities.tools)
      expect.has(result.instructions, "never instructions")
      assert.equal(nil, result.resultType)
    end)
  end

  it("offers its newest revision to a client that names another", function()
    assert.equal("2025-11-25", initialize("2024-11-05").protocolVersion)
    assert.equal("2025-11-25", initialize("2999-01-01").protocolVersion)
  end)

  it("wants to be told a revision", function()
    local _, wrong = mcp.ask("initialize", {})
    assert.equal(-32602, wrong.code)
    expect.has(wrong.message, "protocolVersion")
  end)

  it("answers pings, and requests before a handshake", function()
    local answers = mcp.run { mcp.request(1, "ping"), mcp.request(2, "tools/list") }
    assert.same({}, answers[1].result)
    assert.is_true(#answers[2].result.tools > 3)
  end)

  it("does not answer notifications, nor answers", function()
    local answers = mcp.run {
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
      '{"jsonrpc":"2.0","method":"notifications/nobody"}',
      '{"jsonrpc":"2.0","id":9,"result":{}}', '{"jsonrpc":"2.0","id":9,"error":{}}',
      mcp.request(1, "ping"),
    }
    assert.equal(1, #answers)
    assert.equal(1, answers[1].id)
  end)
end)

describe("2026-07-28", function()
  it("is discovered, also by a probe that says nothing of itself", function()
    for _, modern in ipairs { true, false } do
      local result = mcp.ask("server/discover", nil, nil, modern)
      assert.equal("2026-07-28", result.supportedVersions[1])
      assert.equal("complete", result.resultType)
      assert.equal("sessile", result._meta["io.modelcontextprotocol/serverInfo"].name)
      assert.equal("private", result.cacheScope)
      assert.is_true(result.ttlMs > 0)
      expect.has(result.instructions, "never instructions")
    end
  end)

  it("says of each result what it is, and whose", function()
    local answers = mcp.run { mcp.request(1, "tools/list", nil, true),
      mcp.call_line(2, "session_list", nil, true) }
    for _, answer in ipairs(answers) do
      assert.equal("complete", answer.result.resultType)
      assert.equal("sessile", answer.result._meta["io.modelcontextprotocol/serverInfo"].name)
    end
    assert.equal("private", answers[1].result.cacheScope)
    assert.equal(nil, answers[2].result.ttlMs)
  end)

  it("refuses a revision that it does not speak, and names those that it does", function()
    for _, version in ipairs { "2027-01-01", "1", 7 } do
      local answers = mcp.run { sessile.encode { jsonrpc = "2.0", id = 1, method = "tools/list",
        params = { _meta = mcp.meta(version) } } }
      assert.equal(-32022, answers[1].error.code)
      assert.equal("2026-07-28", answers[1].error.data.supported[1])
      assert.is_string(answers[1].error.data.requested)
    end
  end)

  it("wants the capabilities of the client with each request", function()
    local answers = mcp.run { sessile.encode { jsonrpc = "2.0", id = 1, method = "tools/list",
      params = { _meta = { ["io.modelcontextprotocol/protocolVersion"] = "2026-07-28" } } } }
    assert.equal(-32602, answers[1].error.code)
    expect.has(answers[1].error.message, "clientCapabilities")
  end)

  it("has no handshake and no ping", function()
    for _, method in ipairs { "initialize", "ping", "subscriptions/listen" } do
      local _, wrong = mcp.ask(method, nil, nil, true)
      assert.equal(-32601, wrong.code, method)
    end
  end)
end)

describe("either era", function()
  it("may change from one request to the next", function()
    local answers = mcp.run { mcp.request(1, "tools/list", nil, true), mcp.request(2, "tools/list"),
      mcp.request(3, "tools/list", nil, true) }
    assert.equal("complete", answers[1].result.resultType)
    assert.equal(nil, answers[2].result.resultType)
    assert.same(answers[1].result, answers[3].result)
    assert.same(answers[1].result.tools, answers[2].result.tools)
  end)

  it("treats a request that names an older revision as one of that", function()
    local answers = mcp.run { sessile.encode { jsonrpc = "2.0", id = 1, method = "ping",
      params = { _meta = mcp.meta("2025-11-25") } } }
    assert.same({}, answers[1].result)
  end)

  it("suggests the method that was meant", function()
    local _, wrong = mcp.ask("tool/list")
    assert.equal(-32601, wrong.code)
    expect.has(wrong.message, "tools/list")
  end)

  it("answers while its input is still open", function()
    local home = cli.home()
    cli.write(home .. "/one", mcp.request(1, "ping") .. "\n")
    cli.write(home .. "/two", mcp.request(2, "ping") .. "\n")
    local command = ("(cat one; until [ -s out ]; do sleep 0.02; done; cat two) | %s timeout 60 %s "
      .. "mcp >out"):format(cli.env(), cli.quote(cli.binary))
    assert(os.execute(("cd %s && %s"):format(cli.quote(home), command)))
    assert.equal(2, select(2, cli.read(home .. "/out"):gsub("\n", "")))
  end)
end)

describe("the command", function()
  it("begins without a store, and makes none", function()
    assert.same({}, mcp.tool("session_list").sessions)
    assert.same({}, mcp.tool("session_search", { text = "x" }).hits)
    assert.equal("NOTFOUND", mcp.refused("session_read", { session = "main/x" }).status)
    assert.is_false(cli.exists(cli.home() .. "/data"))
  end)

  it("sees a store that comes later, and what others write while it runs", function()
    local place = cli.home()
    cli.write(place .. "/one", mcp.call_line(1, "session_list") .. "\n")
    cli.write(place .. "/two", mcp.call_line(2, "session_read", { session = "late" }) .. "\n")
    local script = ([[
      cd PLACE && : >out
      answers() { until [ "$(wc -l <out)" = "$1" ]; do sleep 0.02; done; }
      { cat one; answers 1
        RUN new --id late >said 2>&1; RUN append late hello >>said 2>&1; cat two; answers 2
        RUN append late hello >>said 2>&1; cat two
      } | timeout 60 RUN mcp >>out]]):gsub("%u%u%u+", { PLACE = cli.quote(place),
        RUN = cli.env() .. " " .. cli.quote(cli.binary) })
    assert(os.execute(script))
    local totals = {}
    for line in cli.read(place .. "/out"):gmatch "[^\n]+" do
      totals[#totals + 1] = cli.decoded(line).result.structuredContent.total or "none"
    end
    assert.same({ "none", 1, 2 }, totals)
  end)

  it("fails at once when the key is wrong", function()
    cli.done "new --id talk"
    local out, err, code = cli.sessile("mcp", mcp.request(1, "ping") .. "\n",
      "env SESSILE_KEY=" .. ("ab"):rep(32))
    assert.equal("", out)
    assert.equal(7, code, err)
  end)
end)
