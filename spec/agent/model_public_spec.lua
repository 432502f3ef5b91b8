-- sessile.model with public_only: which addresses an endpoint is connected to. The endpoint here is
-- a process of ours on 127.0.0.1, so that it is reached only where that is allowed.

local core = require "sessile.core"
local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local sessile = require "sessile"
local has = expect.has

local has_http = pcall(require, "socket")

local hello = { messages = { { role = "user", content = "hello" } } }
local plain = [==[json(200, [[{"choices":[{"message":{"role":"assistant","content":"yes"},
  "finish_reason":"stop"}]}]])]==]

local function http(name, test)
  it(name, function()
    if not has_http then
      return pending "the package lua-socket is not installed"
    end
    test()
  end)
end

local function model_at(host, port, more)
  local spec = { endpoint = ("http://%s:%d/v1"):format(host, port), name = "m" }
  for name, value in pairs(more) do
    spec[name] = value
  end
  return sessile.model(spec)
end

-- All that a request brought: the text; nil, message, code.
local function fetched(url, more)
  more.headers, more.idle_ms, more.whole_ms, more.most = {}, 5000, 5000, 1000
  local wire <close> = assert(core.request(url, more))
  local parts = {}
  while true do
    local piece, message, code = wire:read(1000)
    if piece == nil then
      return message == nil and table.concat(parts) or nil, message, code
    end
    parts[#parts + 1] = piece
  end
end

describe("a model with public_only", function()
  http("is not connected to a private address", function()
    local port, requests = endpoints.serve { plain }
    local url = ("http://127.0.0.1:%d/v1"):format(port)
    local text, message, code = fetched(url, { public_only = true })
    assert.is_nil(text)
    has(message, "a loopback address (127.0.0.0/8)")
    assert.equal("EDENIED", code)
    assert.is_false(pcall(requests, 1))
    assert.truthy(fetched(url, {})) -- it is there
    assert.truthy(requests(1))
  end)

  http("judges what a name leads to, not the name", function()
    local port, requests = endpoints.serve { plain }
    local text, message, code = fetched(("http://localhost:%d/"):format(port),
      { public_only = true, allow = { "10.0.0.0/8" } })
    assert.is_nil(text)
    has(message, "[loopback]")
    assert.equal("EDENIED", code)
    assert.is_false(pcall(requests, 1))
    assert.truthy(fetched(("http://localhost:%d/"):format(port),
      { public_only = true, allow = { "localhost:" .. port } }))
  end)

  http("is connected to what is allowed", function()
    local port = endpoints.serve { plain }
    local model = assert(model_at("127.0.0.1", port,
      { public_only = true, allow = { "127.0.0.1:" .. port } }))
    assert.equal("yes", assert(model(hello)).content)
  end)

  http("does not follow a redirect inwards", function()
    local inner, requests = endpoints.serve { plain }
    local port = endpoints.serve {
      ([[send "HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:%d/\r\n]]):format(inner)
      .. [[content-length: 0\r\n\r\n"]] }
    local model = assert(model_at("127.0.0.1", port,
      { public_only = true, allow = { "127.0.0.1:" .. port } }))
    local _, message, code = model(hello)
    has(message, "sends us elsewhere (307)")
    assert.equal("EDENIED", code)
    assert.is_false(pcall(requests, 1))
    -- a host that follows it by itself meets the same check
    local text, why = fetched(("http://127.0.0.1:%d/"):format(inner),
      { public_only = true, allow = { "127.0.0.1:" .. port } })
    assert.is_nil(text)
    has(why, "[loopback]")
    assert.is_false(pcall(requests, 1))
  end)

  it("is not made for a URL that leads inwards", function()
    local model, message, code = model_at("127.0.0.1", 80, { public_only = true })
    assert.is_nil(model)
    has(message, "sessile.model: endpoint: the URL at byte 0")
    assert.equal("EDENIED", code)
    model, message = model_at("llm", 80, { public_only = true })
    assert.is_nil(model)
    has(message, "[one-label]")
    assert.truthy(model_at("127.0.0.1", 80, {}))
    assert.truthy(model_at("llm.example.org", 80, { public_only = true }))
  end)

  it("takes allow with public_only only", function()
    assert.has_error(function() model_at("example.org", 80, { allow = { "localhost" } }) end)
    assert.has_error(function()
      model_at("example.org", 80, { public_only = true, allow = "localhost" })
    end)
  end)
end)
