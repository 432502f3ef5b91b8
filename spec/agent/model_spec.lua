-- sessile.model: what may stand for a model, and what each kind makes of what it gets. The endpoint
-- here is a process of ours, told for each request how to misbehave.

local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local temp = require "spec.support.temp"
local sessile = require "sessile"
local has = expect.has

-- What the endpoint here is made of.
local has_http = pcall(require, "socket")
local has_tls = pcall(require, "ssl") and os.execute "openssl version >/dev/null 2>&1"

require "sessile.model.http".pause = 0.02 -- nobody waits for the tries here

local hello = { messages = { { role = "user", content = "hello" } } }

local function http(name, test)
  it(name, function()
    if not has_http then
      return pending "the package lua-socket is not installed"
    end
    test()
  end)
end

local serve = endpoints.serve

-- Asks an endpoint that answers so. Returns the answer, message, code, the texts that were told,
-- and what serve() has for requests.
local function ask(chunks, more, request, on_text)
  local port, requests = serve(chunks)
  local spec = { endpoint = ("http://127.0.0.1:%d/v1/"):format(port), name = "m" }
  for name, value in pairs(more or {}) do
    spec[name] = value
  end
  local told = {}
  local model = assert(sessile.model(spec))
  local answer, message, code = model(request or hello, on_text or function(text)
    told[#told + 1] = text
  end)
  return answer, message, code, told, requests
end

local said = [[{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],
  "usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}]]
local plain = ("json(200, [==[%s]==])"):format(said)

local function piece(text)
  return ('event [==[{"choices":[{"delta":{"content":%s}}]}]==]'):format(sessile.encode(text))
end

local function model_at(port, more)
  local spec = { endpoint = ("http://127.0.0.1:%d"):format(port), name = "m" }
  for name, value in pairs(more or {}) do
    spec[name] = value
  end
  return assert(sessile.model(spec))
end

describe("sessile.model", function()
  teardown(temp.clean)

  it("takes a function as it is, and names of models", function()
    local function mine() return "hi" end
    assert.equal(mine, sessile.model(mine))
    local models = { fast = "small", small = mine, round = "trip", trip = "round" }
    assert.equal(mine, sessile.model("fast", { models = models }))
    local none, message, code = sessile.model("fsat", { models = models })
    assert.is_nil(none)
    assert.equal("ENOTFOUND", code)
    has(message, "there is no model 'fsat', did you mean 'fast'?")
    none, message, code = sessile.model("round", { models = models })
    assert.is_nil(none)
    assert.equal("EINVALID", code)
    has(message, "is a name for itself")
  end)

  it("takes a file that returns a function", function()
    local path = temp.write(temp.dir() .. "/mine.lua",
      "return function(request) return 'heard ' .. request.messages[1].content end")
    assert.equal("heard hello", assert(sessile.model { lua = path })(hello))
    temp.write(path, "return 3")
    local _, message, code = sessile.model { lua = path }
    has(message, "returns no function")
    assert.equal("EINVALID", code)
    _, _, code = sessile.model { lua = path .. ".not" }
    assert.equal("ENOTFOUND", code)
  end)

  it("raises for what is no model", function()
    for _, wrong in ipairs {
      { 7, "a function, a table with command=, endpoint= or lua=" },
      { {}, "one of command=, endpoint= and lua= expected" },
      { { lua = "a", command = { "b" } }, "one of command=" },
      { { endpoint = "ftp://x", name = "m" }, "http://… or https://… is wanted" },
      { { endpoint = "http://u:p@x", name = "m" }, "do not belong in it" },
      { { endpoint = "http://x" }, "name: say which" },
      { { endpoint = "http://x", name = "m", key = "sk-secret" }, "sessile.key.env" },
      { { endpoint = "http://x", name = "m", nmae = 1 }, "did you mean 'name'?" },
      { { endpoint = "http://x", name = "m", timeout_ms = "soon" },
        "option 'timeout_ms': milliseconds" },
      { { endpoint = "http://x", name = "m", headers = { ["a b"] = "c" } }, "headers: names" },
      { { command = "prog" }, "list of strings expected" },
      { { command = {} }, "the program first" },
    } do
      local ok, message = pcall(sessile.model, wrong[1])
      assert.is_false(ok)
      has(message, wrong[2])
      assert.is_nil(message:find("sk-secret", 1, true))
    end
  end)

  http("asks an endpoint and reads a whole answer", function()
    local answer, _, _, told, requests = ask({ plain }, {
      key = sessile.key.secret "sk-1", max_tokens = 7, headers = { ["x-team"] = "blue" },
    })
    assert.same({ role = "assistant", content = "yes",
      usage = { input = 5, output = 2, cache_read = 4 } }, answer)
    assert.same({ "yes" }, told)
    local text = requests(1)
    assert.matches("^POST /v1/chat/completions HTTP/1.1\n", text)
    has(text, "authorization: Bearer sk-1\n")
    has(text, "x-team: blue\n")
    local body = sessile.decode(text:match "\n\n(.*)$")
    assert.same({ model = "m", max_tokens = 7, stream = true,
      stream_options = { include_usage = true },
      messages = { { role = "user", content = "hello" } } }, body)
  end)

  http("keeps the reasoning, and sends it back with the calls that it led to", function()
    local function told_by(chunks, request)
      local port, requests = serve(chunks)
      local told = {}
      local function note(kind)
        return function(text) told[#told + 1] = kind .. text end
      end
      local answer = assert(model_at(port)(request or hello, { on_text = note "text ",
        on_reasoning = note "reasoning " }))
      return answer, told, requests
    end
    local answer, told = told_by { [[json(200, '{"choices":[{"message":{"role":"assistant",'
      .. '"content":"4","reasoning_content":"2 and 2"},"finish_reason":"stop"}]}')]] }
    assert.same({ role = "assistant", content = "4", reasoning_content = "2 and 2" }, answer)
    assert.same({ "reasoning 2 and 2", "text 4" }, told)

    answer, told = told_by { [[sse()
      event '{"choices":[{"delta":{"reasoning":"Two "}}]}'
      event '{"choices":[{"delta":{"reasoning":"and two","content":null}}]}'
      event '{"choices":[{"delta":{"content":"4","reasoning":7}}]}'
      event '[DONE]']] }
    assert.same({ role = "assistant", content = "4", reasoning = "Two and two" }, answer)
    assert.same({ "reasoning Two ", "reasoning and two", "text 4" }, told)

    answer = told_by { [[sse() -- empty reasoning is kept with a call: it has to go back
      event('{"choices":[{"delta":{"reasoning_content":"","tool_calls":[{"index":0,"id":"a",'
        .. '"function":{"name":"run","arguments":"{}"}}]}}]}')
      event '[DONE]']] }
    assert.equal("", answer.reasoning_content)
    local _, _, requests = told_by({ plain }, { messages = {
      { role = "user", content = "go" }, answer,
      { role = "tool", tool_call_id = "a", content = "done" },
      { role = "assistant", content = "fine", reasoning_content = "not sent back" },
      { role = "user", content = "and now?" } } })
    local sent = sessile.decode(requests(1):match "\n\n(.*)$").messages
    assert.equal("", sent[2].reasoning_content)
    assert.equal("run", sent[2].tool_calls[1]["function"].name)
    assert.is_nil(sent[4].reasoning_content)
  end)

  http("keeps signed and encrypted reasoning as it came, and sends it back", function()
    local function told_by(chunks, request)
      local port, requests = serve(chunks)
      local told = {}
      local answer = assert(model_at(port)(request or hello, {
        on_reasoning = function(text) told[#told + 1] = text end }))
      return answer, told, requests
    end
    local answer = told_by { [[json(200, '{"choices":[{"message":{"role":"assistant","content":"4",'
      .. '"reasoning_details":[{"type":"reasoning.text","text":"2 and 2","signature":"s1",'
      .. '"id":null,"format":"anthropic-claude-v1","index":0}]},"finish_reason":"stop"}]}')]] }
    assert.same({ { type = "reasoning.text", text = "2 and 2", signature = "s1", id = sessile.null,
      format = "anthropic-claude-v1", index = 0 } }, answer.reasoning_details)

    local told
    answer, told = told_by { [[sse()
      local function details(text)
        event('{"choices":[{"delta":{"content":"","reasoning_details":[' .. text .. ']}}]}')
      end
      details '{"type":"reasoning.text","text":"Two ","signature":null,"index":0}'
      details '{"type":"reasoning.summary","summary":"It ","index":1}'
      details '{"type":"reasoning.text","text":"and two","index":0}'
      details '{"type":"reasoning.summary","summary":"adds","index":1},7'
      details '{"type":"reasoning.text","signature":"s1","index":0}'
      details '{"type":"reasoning.text","text":"Again","index":0}'
      details '{"type":"reasoning.encrypted","data":"AA==","id":"e1","index":0}'
      details '{"type":"reasoning.encrypted","data":"BB==","id":"e2","index":0}'
      details '{"type":"reasoning.summary","summary":"Done","index":0}'
      event '{"choices":[{"delta":{"content":"4"}}]}'
      event '[DONE]']] }
    assert.equal("Two It and twoaddsAgainDone", table.concat(told))
    assert.same({
      { type = "reasoning.text", text = "Two and two", signature = "s1", index = 0 },
      { type = "reasoning.summary", summary = "It adds", index = 1 },
      { type = "reasoning.text", text = "Again", index = 0 },
      { type = "reasoning.encrypted", data = "AA==", id = "e1", index = 0 },
      { type = "reasoning.encrypted", data = "BB==", id = "e2", index = 0 },
      { type = "reasoning.summary", summary = "Done", index = 0 },
    }, answer.reasoning_details)

    local store <close> = assert(sessile.open "ram:")
    local s = assert(store:session "s")
    assert(s:turn { { role = "user", content = "2 and 2?" }, answer })
    assert(s:append { role = "user", content = "and 3?" })
    local _, _, requests = told_by({ plain }, { messages = s:context() })
    local sent = sessile.decode(requests(1):match "\n\n(.*)$").messages
    assert.same(answer.reasoning_details, sent[2].reasoning_details)
    assert.is_nil(sent[3].reasoning_details)
  end)

  http("puts a stream together, however it is cut", function()
    local events = table.concat({
      ": a comment\r\n\r\n",
      'event: x\r\ndata: {"choices":[{"delta":{"role":"assistant","content":null}}]}\r\n\r\n',
      'data: {"choices":[{"delta":{"content":"grü"}}]}\n\n',
      'data: {"choices":[{"delta":{"content":"ße 🚀"}}]}\n\n',
      'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function",',
      '"function":{"name":"read","arguments":""}}]}}]}\n\n',
      'data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b",',
      '"function":{"name":"run"}}]}}]}\n\n',
      'data: {"choices":[{"delta":{"tool_calls":[{"index":0,',
      '"function":{"arguments":"{\\"p\\":"}}]}}]}\n\n',
      'data: {"choices":[{"delta":{"tool_calls":[{"index":0,',
      '"function":{"arguments":"1}"}}]}}]}\n\n',
      'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\n',
      'data: {"choices":[],\r\ndata: "usage":{"prompt_tokens":3,"completion_tokens":4}}\r\r',
      "data: [DONE]\n\n",
    })
    for _, size in ipairs { 1, 3, 7, 100000 } do
      local chunk = ([[
        send "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
        send "Content-Type: text/event-stream; charset=x\r\n"
        send "Transfer-Encoding: chunked\r\n\r\n"
        local all, size = %q, %d
        for at = 1, #all, size do
          local part = all:sub(at, at + size - 1)
          send(("%%x;ext=1\r\n"):format(#part))
          send(part)
          send "\r\n"
        end
        send "0\r\nx-trailer: 1\r\n\r\n"]]):format(events, size)
      local answer, message, _, told = ask { chunk }
      assert.is_nil(message)
      assert.same({ role = "assistant", content = "grüße 🚀",
        tool_calls = { { id = "a", name = "read", arguments = '{"p":1}' },
          { id = "b", name = "run", arguments = "{}" } },
        usage = { input = 3, output = 4 } }, answer)
      assert.same({ "grü", "ße 🚀" }, told)
    end
  end)

  http("says that an answer was cut by the model's limit", function()
    local answer = ask { "sse()" .. piece "and so" .. [[
      event '{"choices":[{"delta":{},"finish_reason":"length"}]}' event "[DONE]"]] }
    assert.same({ finish_reason = "length" }, answer.metadata)
  end)

  http("tries again when it may: a full endpoint, a dropped connection", function()
    local answer, message, _, told, requests = ask {
      "json(429, '{\"error\":{\"message\":\"slow down\"}}', 'retry-after: 0\\r\\n')",
      "client:close()",
      "sse() " .. 'event [[{"choices":[{"delta":{"role":"assistant"}}]}]]',
      plain,
    }
    assert.is_nil(message)
    assert.equal("yes", answer.content)
    assert.same({ "yes" }, told)
    assert.equal(requests(1), requests(4))
  end)

  http("never asks again once something was shown", function()
    local answer, message, code, told = ask { "sse() " .. piece "half of", plain }
    assert.is_nil(answer)
    has(message, "ended in the middle of the answer")
    assert.equal("EIO", code)
    assert.same({ "half of" }, told)
  end)

  http("gives up after a few tries, and says what was said", function()
    local full = "json(503, '{\"error\":{\"message\":\"no room\"}}', 'retry-after: 0\\r\\n')"
    local _, message, code = ask { full, full, full, full, plain }
    has(message, "the endpoint answered 503: no room")
    assert.equal("EIO", code)
    _, message, code = ask {
      'json(429, [[{"error":{"message":"no money","code":"insufficient_quota"}}]])', plain }
    has(message, "429: no money")
    assert.equal("ELIMIT", code)
    _, message = ask { "json(429, '', 'retry-after: 3600\\r\\n')", plain }
    has(message, "429")
  end)

  http("never shows a key, nor sends it elsewhere", function()
    local _, message, code = ask({
      [[json(401, '{"error":{"message":"sk-77 and sk-77 is no key"}}')]] },
      { key = sessile.key.secret "sk-77" })
    has(message, "401: … and … is no key")
    assert.is_nil(message:find("sk-77", 1, true))
    assert.equal("EDENIED", code)
    local key = "sk-" .. ("77"):rep(50)
    local repeated = [[json(401, '{"error":{"message":"%s%s"}}')]]
    _, message = ask({ repeated:format(("x"):rep(450), key) }, { key = sessile.key.secret(key) })
    has(message, "401: x")
    assert.is_nil(message:find("sk-", 1, true)) -- nor a part of it, where a sentence is cut
    local port, requests = serve { plain }
    _, message, code = ask({
      ([[send "HTTP/1.1 307 X\r\nlocation: http://127.0.0.1:%d/\r\n]]):format(port)
      .. [[content-length: 0\r\n\r\n"]] }, { key = sessile.key.secret "sk-77" })
    has(message, "sends us elsewhere (307)")
    assert.equal("EDENIED", code)
    assert.is_false(pcall(requests, 1))
    local model = assert(sessile.model { endpoint = "http://192.0.2.1/v1", name = "m",
      key = sessile.key.secret "sk-77" })
    _, message, code = model(hello)
    has(message, "anybody can read: use https")
    assert.equal("EDENIED", code)
    model = assert(sessile.model { endpoint = "http://127.0.0.1:1", name = "m",
      key = sessile.key.env "NO_SUCH_VARIABLE_HERE" })
    _, message, code = model(hello)
    has(message, "the variable NO_SUCH_VARIABLE_HERE holds no usable key")
    assert.equal("EDENIED", code)
  end)

  http("knows when the request was too long, and lets the session recover", function()
    local too_long = [[json(400,
      '{"error":{"message":"maximum context length is 10","code":"context_length_exceeded"}}')]]
    local _, _, code = ask { too_long }
    assert.equal("EOVERFLOW", code)
    _, _, code = ask { 'sse() event [[{"error":{"message":"prompt is too long"}}]]' }
    assert.equal("EOVERFLOW", code)
    local port = serve { too_long, plain }
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create {})
    for i = 1, 20 do
      assert(s:append { role = i % 2 == 1 and "user" or "assistant", content = "word " .. i })
    end
    local events = {}
    local outcome = assert(s:send("and now?", {
      model = model_at(port),
      policy = { "sliding_window", messages = 4 },
      on_event = function(event) events[#events + 1] = event.type end,
    }))
    assert.equal("completed", outcome.status, outcome.error)
    assert.equal("yes", outcome.text)
    has(table.concat(events, " "), "model overflow compact context model text message turn done")
  end)

  http("leaves out what an endpoint does not know, once and for all", function()
    local port, requests = serve {
      [[json(400, '{"error":{"message":"Unsupported parameter","param":"max_tokens"}}')]],
      [[json(400, '{"error":{"message":"stream_options is not permitted"}}')]],
      plain, plain,
    }
    local model = model_at(port, { max_tokens = 5 })
    assert.equal("yes", assert(model(hello)).content)
    assert.equal("yes", assert(model(hello)).content)
    for _, n in ipairs { 3, 4 } do
      local body = sessile.decode(requests(n):match "\n\n(.*)$")
      assert.equal(5, body.max_completion_tokens)
      assert.is_nil(body.max_tokens)
      assert.is_nil(body.stream_options)
    end
  end)

  http("does not wait for ever, nor read without end", function()
    local _, message, code = ask({ "sse() " .. piece "a" .. " sleep(5)" }, { timeout_ms = 300 })
    has(message, "nothing came for 0.3 seconds")
    assert.equal("EIO", code)
    _, message = ask({ "sse() while true do if not " .. piece "a"
      .. " then break end sleep(0.01) end" }, { timeout_ms = 200 })
    has(message, "timed out after")
    _, message = ask { "sse() local big = ('x'):rep(65536) while send(big) do end" }
    has(message, "a piece of the answer is longer than 4194304 bytes")
    _, message, code = ask { [[send "HTTP/1.1 200 OK\r\n" while send(("x"):rep(1000)) do end]] }
    has(message, "a header of the answer is too long")
    assert.equal("ELIMIT", code)
    _, message = ask { [[send "HTTP/1.1 200 OK\r\n" while send "a: b\r\n" do end]] }
    has(message, "too many headers")
    _, message = ask { [[while send "HTTP/1.1 100 Continue\r\n\r\n" do end]] }
    has(message, "too many headers")
    _, message = ask { [[send "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"]] }
    has(message, "the answer is too long")
    _, message = ask { "send 'HTTP/1.1 200 OK\\r\\n\\r\\n' local big = ('x'):rep(65536) "
      .. "while send(big) do end" }
    has(message, "the answer is too long")
  end)

  http("stops when it is told to", function()
    local port = serve { "sse() " .. piece "one" .. " sleep(20)" }
    local model = model_at(port)
    local began, told = os.time(), false
    local answer, message, code = model(hello, {
      on_text = function() told = true end, cancelled = function() return told end,
    })
    assert.is_nil(answer)
    assert.equal("stopped", message)
    assert.equal("ECANCELLED", code)
    assert.is_true(os.time() - began < 15)
  end)

  http("yields through wait=, so that others continue meanwhile", function()
    local port = serve { "sleep(0.3) " .. plain }
    local model = model_at(port, { wait = coroutine.yield })
    local turns = 0
    local thread = coroutine.create(function() return assert(model(hello)).content end)
    local ok, value
    repeat
      ok, value = coroutine.resume(thread)
      assert.is_true(ok, value)
      turns = turns + 1
    until coroutine.status(thread) == "dead"
    assert.equal("yes", value)
    assert.is_true(turns > 3)
  end)

  http("makes of any garbage a sentence", function()
    for _, garbage in ipairs {
      "send 'hello'", "send '\\0\\1\\2'", "json(200, '')", "json(200, 'null')", "json(200, '[]')",
      [[json(200, '{"choices":7}')]], [[json(200, '{"choices":[{"message":3}]}')]],
      [[json(200, '{"choices":[{"message":{"tool_calls":[{}]}}]}')]],
      "sse() event 'not json'", "sse() event '[]' event '3'", "sse() event '{\"choices\":[3]}'",
      [[sse() event '{"choices":[{"delta":{"tool_calls":[7,{"function":3}]},"finish_reason":"x"}]}'
      ]],
      [[send "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"]],
      [[send "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabcd\r\n"]],
      [[send "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n"]],
      [[send "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"]],
      [[json(500, '\27[2J\27]0;x\7', 'retry-after: 99\r\n')]],
    } do
      -- Said to have been shown already, it is not asked again.
      local answer, message, code = ask({ garbage, garbage, garbage, garbage },
        { timeout_ms = "5s" })
      assert.is_nil(answer, garbage)
      assert.is_string(message, garbage)
      assert.is_string(code, garbage)
      assert.is_nil(message:find "%c", garbage)
    end
  end)

  http("is told what cannot be reached", function()
    local server = require "socket".bind("127.0.0.1", 0)
    local _, port = server:getsockname()
    server:close()
    local model = model_at(port)
    local _, message, code = model(hello)
    has(message, ("http://127.0.0.1:%d/chat/completions: cannot connect: Connection refused")
      :format(port))
    assert.equal("EIO", code)
    model = assert(sessile.model { endpoint = "http://no-such-host.invalid", name = "m" })
    _, message = model(hello)
    has(message, "the host is not known")
  end)

  http("says that an answer was cut in the middle", function()
    for _, cut in ipairs {
      { [[send "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"]], "7 bytes remaining" },
      { [[send "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"]],
        "outstanding read data" },
      { [[send "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
          send "transfer-encoding: chunked\r\n\r\n"]] .. [[
          local text = 'data: {"choices":[{"delta":{"content":"half of"}}]}\n\n'
          send(("%x\r\n%s\r\n"):format(#text, text))]], "outstanding read data", "half of" },
    } do
      local answer, message, code, told = ask { cut[1], cut[1], cut[1], cut[1] }
      assert.is_nil(answer)
      has(message, cut[2])
      assert.equal("EIO", code)
      assert.same({ cut[3] }, told) -- what was shown is not asked for again
    end
  end)

  http("waits for a slow endpoint as long as something comes", function()
    local parts = { "sse()" }
    for i = 1, 6 do
      parts[#parts + 1] = piece(tostring(i)) .. " sleep(0.2)"
    end
    parts[#parts + 1] = "event '[DONE]'"
    local answer, message, _, told = ask({ table.concat(parts, " ") }, { timeout_ms = 600 })
    assert.is_nil(message)
    assert.equal("123456", answer.content)
    assert.same({ "1", "2", "3", "4", "5", "6" }, told)
  end)

  http("reads why a request was refused before all of it was sent", function()
    local long = { messages = { { role = "user", content = ("word "):rep(4000000) } } }
    local folder = temp.dir()
    temp.write(folder .. "/early", "")
    local port = serve({ [[json(413, '{"error":{"message":"too large by far"}}')
      repeat until not client:receive(65536)]] }, folder)
    local _, message, code = model_at(port)(long)
    has(message, "the endpoint answered 413: too large by far")
    assert.equal("EOVERFLOW", code)
  end)

  http("ends a request wherever it is", function()
    local core = require "sessile.core"
    local folder = temp.dir()
    local port = serve({ "sse() " .. piece "a" .. " sleep(2)", plain }, folder)
    local function post()
      return assert(core.request(("http://127.0.0.1:%d/"):format(port), { headers = {}, body = "{}",
        idle_ms = 5000, whole_ms = 5000, most = 1000 }))
    end
    local one <close>, none = post(), post()
    assert.equal(0, none:status())
    assert.is_nil(none:header "content-type")
    none:close()
    none:close()
    local _, message, code = none:read(0)
    assert.equal("the request is closed: nothing was done", message)
    assert.equal("ECLOSED", code)
    assert.equal(0, none:status())
    repeat until one:read(100) ~= ""
    assert.equal("text/event-stream", one:header "Content-Type")
    post():read(0)
    collectgarbage() -- the one that began just now
    assert.equal("", post():read(0))
    for _, wrong in ipairs { {}, { headers = 1 }, { headers = {}, body = {} },
      { headers = {}, idle_ms = "soon" }, { headers = {}, ca = "a\0b" } } do
      assert.is_false(pcall(core.request, "http://127.0.0.1/", wrong))
    end
  end)

  -- The same in a process of its own, with that environment.
  local function ask_in(environment, spec)
    local path = temp.write(temp.dir() .. "/ask.lua", ([[
      local sessile = require "sessile"
      require "sessile.model.http".pause = 0.02
      local answer, message = assert(sessile.model { %s, name = "m" }) {
        messages = { { role = "user", content = "hello" } } }
      io.write(answer and answer.content or message)]]):format(spec))
    local file = assert(io.popen(("%s lua5.4 %s 2>&1"):format(environment, path)))
    local answer = file:read "a"
    file:close()
    return answer
  end

  http("uses no proxy, and no file with passwords, that it happens to find", function()
    local port, requests = serve { plain }
    local home = temp.dir()
    temp.write(home .. "/.netrc", "machine 127.0.0.1 login me password pw\n")
    assert.equal("yes", ask_in("HOME=" .. home .. " http_proxy=http://127.0.0.1:1 "
      .. "all_proxy=http://127.0.0.1:1", ('endpoint = "http://127.0.0.1:%d"'):format(port)))
    assert.is_nil(requests(1):lower():find("authorization", 1, true))
  end)

  local function tls(name, test)
    it(name, function()
      if not has_http or not has_tls then
        return pending "the package lua-socket or lua-sec, or openssl, is not installed"
      end
      test()
    end)
  end

  local function certified(names)
    local folder = temp.dir()
    assert(os.execute(("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 "
      .. "-addext 'subjectAltName=%s' -keyout %s/key.pem -out %s/cert.pem 2>/dev/null")
      :format(names, folder, folder)))
    return folder
  end

  local function asked(host, port, ca)
    return assert(sessile.model { endpoint = ("https://%s:%d"):format(host, port),
      name = "m", ca = ca, key = sessile.key.secret "sk-1" })(hello)
  end

  tls("asks over TLS when the certificate is of the host", function()
    local folder = certified "DNS:localhost,IP:127.0.0.1"
    local port = serve({ plain, plain, "sse() " .. piece "a" .. piece "b" .. " event '[DONE]'",
      plain }, folder)
    local ca = folder .. "/cert.pem"
    assert.equal("yes", assert(asked("127.0.0.1", port, ca)).content)
    assert.equal("yes", assert(asked("localhost", port, ca)).content)
    assert.equal("ab", assert(asked("localhost", port, ca)).content)
    assert.equal("yes", ask_in("SSL_CERT_FILE=" .. ca,
      ('endpoint = "https://localhost:%d"'):format(port)))
  end)

  tls("goes on when a server closes a connection amid the request", function()
    local folder = certified "IP:127.0.0.1"
    temp.write(folder .. "/early", "")
    local close = "client:close()"
    local port = serve({ close, close, close, close }, folder)
    local _, message, code = assert(sessile.model { endpoint = "https://127.0.0.1:" .. port,
      name = "m", ca = folder .. "/cert.pem" }) {
        messages = { { role = "user", content = ("word "):rep(4000000) } } }
    assert.is_string(message)
    assert.equal("EIO", code)
  end)

  tls("sends nothing to whom no authority has signed, or whose name is another", function()
    local mine, wild = certified "DNS:localhost,IP:127.0.0.1", certified "DNS:*.example.com"
    for _, wrong in ipairs {
      { mine, nil, "certificate" }, -- nobody known has signed it
      { certified "IP:127.0.0.1", wild .. "/cert.pem", "certificate" }, -- others than were named
      { wild, wild .. "/cert.pem", "host name '127.0.0.1'" },
    } do
      local port, requests = serve({ plain }, wrong[1])
      local _, message, code = asked("127.0.0.1", port, wrong[2])
      has(message, "no safe connection: ")
      has(message, wrong[3])
      assert.equal("EDENIED", code)
      assert.is_false(pcall(requests, 1))
    end
    local port = serve({ plain }, certified "IP:127.0.0.1")
    local _, message, code = asked("127.0.0.1", port, "/no/such/file")
    has(message, "no file of authorities: install ca-certificates, or give ca=")
    assert.equal("ENOTFOUND", code)
  end)

  http("does not wait for ever for a server that speaks no TLS", function()
    local port = serve { plain, plain, plain, plain }
    local _, message, code = assert(sessile.model { endpoint = "https://127.0.0.1:" .. port,
      name = "m", timeout_ms = 200 })(hello)
    assert.matches("timed? ?out", message) -- libcurl has several sentences for it
    assert.equal("EIO", code)
  end)
end)

describe("what endpoints are sent", function()
  local openai = require "sessile.model.openai"

  it("are messages in their shape, from every shape that is kept", function()
    local text = assert(openai.encode({
      messages = {
        { role = "developer", content = "be brief" },
        { role = "user", content = { { type = "text", text = "see" },
          { type = "image",
            source = { type = "base64", media_type = "image/png", data = "AA" } } } },
        { role = "assistant", content = { { type = "thinking", thinking = "hm" },
          { type = "text", text = "I look" },
          { type = "tool_use", id = "t", name = "f", input = { a = 1 } } } },
        { role = "user", content = { { type = "tool_result", tool_use_id = "t",
          content = { { type = "text", text = "r" } } } } },
        { role = "model", content = sessile.null, metadata = { x = 1 },
          tool_calls = { { id = "c", name = "g", arguments = "{}" } } },
        { role = "function", tool_call_id = "c", content = "s" },
      },
    }, "m"))
    assert.same({ model = "m", messages = {
      { role = "system", content = "be brief" },
      { role = "user", content = { { type = "text", text = "see" },
        { type = "image_url", image_url = { url = "data:image/png;base64,AA" } } } },
      { role = "assistant", content = "I look", tool_calls = { { id = "t", type = "function",
        ["function"] = { name = "f", arguments = '{"a":1}' } } } },
      { role = "tool", tool_call_id = "t", content = "r" },
      { role = "assistant", content = "", tool_calls = { { id = "c", type = "function",
        ["function"] = { name = "g", arguments = "{}" } } } },
      { role = "tool", tool_call_id = "c", content = "s" },
    } }, sessile.decode(text))
  end)
end)

describe("events in pieces", function()
  local events = require "sessile.model.events"

  it("are the same, however they are cut and however lines end", function()
    local text = ": c\r\n\r\ndata: a\r\n\ndata:b\n\r\ndata: c\rdata\r\rdata: d\n\ndata: e"
    for cut = 1, #text do
      local got = {}
      local reader = events.reader(function(data) got[#got + 1] = data end, 100)
      for at = 1, #text, cut do
        assert.is_true(reader:feed(text:sub(at, at + cut - 1)))
      end
      reader:finish()
      assert.same({ "a", "b", "c\n", "d", "e" }, got, tostring(cut))
    end
  end)

  it("are no longer than they may be, whatever they are made of", function()
    for _, piece_of in ipairs { "x", "data:\n", "data\r", "data: x\r\n" } do
      local reader = events.reader(print, 1000)
      local fed = 0
      while fed < 5000 and reader:feed(piece_of) do
        fed = fed + 1
      end
      assert.is_true(fed <= 1000, piece_of)
    end
  end)

  it("that are empty cost what they are long", function()
    local reader = events.reader(print, 1000)
    local piece_of = ("\r"):rep(1000000) -- looked for line by line to its end, this took hours
    for _ = 1, 4 do
      assert.is_true(reader:feed(piece_of))
    end
  end)
end)
