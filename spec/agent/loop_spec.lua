-- sessile.agent: observe, think, act; what is run, and in which order.

local loops = require "spec.support.loops"
local messages = require "spec.support.messages"
local stores = require "spec.support.stores"
local sessile = require "sessile"
local core = require "sessile.core"

local user, contents = messages.user, messages.contents
local call = loops.call

describe("an agent", function()
  local store, s

  stores.each_test(function() s, store = stores.session(stores.open "ram:", "s") end)

  it("sends the whole history with every request, in order", function()
    local model = loops.model {
      call { "look", "c1" }, call({ "look", "c2" }, { "look", "c3" }), "done", "again",
    }
    local agent = sessile.agent { session = s, model = model,
      tools = { look = function(_, ctx) return "seen " .. ctx.call end } }
    assert(agent:run "go")
    assert(agent:run "and now?")
    local all = loops.lines(s:messages())
    assert.same({ "user: go", "assistant:  [c1]", "tool: seen c1", "assistant:  [c2 c3]",
      "tool: seen c2", "tool: seen c3", "assistant: done", "user: and now?",
      "assistant: again" }, all)
    for i, count in ipairs { 1, 3, 6, 8 } do
      assert.same({ table.unpack(all, 1, count) }, loops.lines(model.requests[i].messages))
    end
  end)

  it("tells the model of its tools, by name, and tools of the session", function()
    local schema = { type = "object", properties = { path = { type = "string" } } }
    local model = loops.model { call { "read", "c1", '{"path":"a b"}' }, "ok" }
    local given, ctx
    local agent = sessile.agent { session = s, model = model, tools = {
      write = { run = print },
      read = { description = "read a file", parameters = schema,
        run = function(args, context) given, ctx = args, context return "text" end },
    } }
    assert(agent:run "go")
    assert.same({ { name = "read", description = "read a file", parameters = schema },
      { name = "write" } }, model.requests[1].tools)
    assert.same({ path = "a b" }, given)
    assert.equal(s, ctx.session)
    assert.equal("c1", ctx.call)
    assert.equal("read", ctx.tool)
    assert.equal(1, ctx.step)
    assert.is_false(ctx.cancelled())
  end)

  it("has one order of events", function()
    local function run()
      local list, on_event = loops.trace()
      local fresh = assert(store:create {})
      assert(sessile.agent { session = fresh, on_event = on_event,
        model = loops.model { call({ "a", "c1" }, { "b", "c2" }), "done" },
        tools = { a = function() return 1 end, b = function() return 2 end } }:run "go")
      return list
    end
    local expected = { "start", "message", "context", "model", "message", "tool_start c1",
      "tool_end c1", "tool_start c2", "tool_end c2", "context", "model", "message", "turn",
      "done" }
    assert.same(expected, run())
    assert.same(expected, run())
  end)

  it("keeps what a tool returned that is not UTF-8: text for the model, and its bytes", function()
    local results = {
      c1 = "caf\xE9 \u{10FF41} \0", c2 = { ["\xFFname"] = "\xFF", size = 2 },
      c3 = { { type = "text", text = "good" }, { type = "text", text = "\xC3" } },
    }
    local model = loops.model { call({ "get", "c1" }, { "get", "c2" }, { "get", "c3" },
      { "fail", "c4" }), "ok" }
    assert(sessile.agent { session = s, model = model, tools = {
      get = function(_, ctx) return results[ctx.call] end,
      fail = function() return nil, "no \xFE" end,
    } }:run "go")
    local list = s:messages()
    local function bytes(message)
      local all = {}
      for i, one in ipairs(message.metadata.bytes) do
        all[i] = one.at .. "=" .. core.base64_bytes(one.b64)
      end
      return table.concat(all, " ")
    end
    assert.equal("caf\u{FFFD} \u{10FF41} \0", list[3].content)
    assert.equal("/content=" .. results.c1, bytes(list[3]))
    assert.equal('{"size":2,"\u{FFFD}name":"\u{FFFD}"}', list[4].content)
    assert.equal('/content={"size":2,"\xFFname":"\xFF"}', bytes(list[4]))
    assert.equal("\u{FFFD}", list[5].content[2].text)
    assert.equal("/content/1/text=\xC3", bytes(list[5]))
    assert.equal("\xC3", results.c3[2].text) -- the tool's own table
    assert.equal("no \u{FFFD}", list[6].content)
    assert.is_true(list[6].metadata.error)
    assert.equal("/content=no \xFE", bytes(list[6]))
  end)

  it("continues when on_event raises, and says so", function()
    local outcome = assert(sessile.agent { session = s, model = loops.model { "ok" },
      on_event = function(event) if event.type == "model" then error "oops" end end }:run "go")
    assert.equal("completed", outcome.status)
    assert.matches("on_event raised: .*oops", outcome.log[1])
  end)

  it("tells the model what went wrong with a call", function()
    local model = loops.model {
      call({ "nope", "c1" }, { "ok", "c2", "{not json" }, { "ok", "c3", "[1" },
        { "raises", "c4" }, { "fails", "c5" }, { "odd", "c6" }, { "long", "c7" }), "done",
    }
    local outcome = assert(sessile.agent { session = s, model = model, tools = {
      ok = function() return "never" end,
      raises = function() error { code = 500 } end,
      fails = function() return nil, "no such file" end,
      odd = function() return { f = print } end,
      long = function() return ("x"):rep(9 << 20) end,
    } }:run "go")
    assert.equal("completed", outcome.status)
    local results = s:messages { role = "tool" }
    for i, pattern in ipairs { "no tool called 'nope'; there are: fails, long, odd, ok, raises",
      "arguments are not JSON", "arguments are not JSON", "the tool failed: ",
      "^no such file$", "result cannot be written", "result cannot be kept" } do
      assert.matches(pattern, results[i].content)
      assert.equal("c" .. i, results[i].tool_call_id)
      assert.is_true(results[i].metadata.error)
    end
  end)

  it("takes any JSON-able result", function()
    local values = { "text", 42, true, { a = { 1, 2 } },
      { { type = "text", text = "block" } }, sessile.array {} }
    local calls, tools = {}, {}
    for i, value in ipairs(values) do
      calls[i], tools["t" .. i] = { "t" .. i, "c" .. i }, function() return value end
    end
    calls[#calls + 1], tools.nothing = { "nothing", "c9" }, function() end
    assert(sessile.agent { session = s, tools = tools,
      model = loops.model { call(table.unpack(calls)), "done" } }:run "go")
    local results = s:messages { role = "tool" }
    assert.same({ "text", "42", "true", '{"a":[1,2]}' }, { results[1].content,
      results[2].content, results[3].content, results[4].content })
    assert.equal("block", results[5].content[1].text)
    assert.equal("[]", results[6].content)
    assert.equal("done", results[7].content)
  end)

  it("takes the calls of other providers", function()
    local model = loops.model {
      { content = "", tool_calls = { { type = "function", id = "c1",
        ["function"] = { name = "t", arguments = '{"n":1}' } } } },
      { content = { { type = "text", text = "so" },
        { type = "tool_use", id = "c2", name = "t", input = { n = 2 } } } },
      { content = "", tool_calls = { { name = "t", arguments = { n = 3 } } } },
      "done",
    }
    local got = {}
    assert(sessile.agent { session = s, model = model,
      tools = { t = function(args) got[#got + 1] = args.n end } }:run "go")
    assert.same({ 1, 2, 3 }, got)
    local list, info = s:context()
    assert.equal(0, info.unanswered)
    assert.equal(0, info.orphans)
    assert.same({ id = "c1", name = "t", arguments = '{"n":1}' }, list[2].tool_calls[1])
    assert.equal(list[6].tool_calls[1].id, list[7].tool_call_id)
  end)

  it("stops after max_steps, and continues from there", function()
    local agent = sessile.agent { session = s, max_steps = 2,
      model = loops.model { call { "t", "c1" }, call { "t", "c2" }, "done" },
      tools = { t = function() return "x" end } }
    local outcome = assert(agent:run "go")
    assert.equal("failed", outcome.status)
    assert.equal("ELIMIT", outcome.code)
    assert.equal(2, outcome.steps)
    outcome = assert(agent:run())
    assert.equal("completed", outcome.status)
    assert.same({ "user: go", "assistant:  [c1]", "tool: x", "assistant:  [c2]", "tool: x",
      "assistant: done" }, loops.lines(s:messages()))
  end)

  it("is cancelled between steps: no call is left open, none is started", function()
    local ran = 0
    local agent
    agent = sessile.agent { session = s,
      model = loops.model { call({ "t", "c1" }, { "t", "c2" }), "after" },
      tools = { t = function() ran = ran + 1 return "x" end },
      on_event = function(event)
        if event.type == "tool_end" then agent:cancel() end
      end }
    local outcome = assert(agent:run "go")
    assert.equal("failed", outcome.status)
    assert.equal("ECANCELLED", outcome.code)
    assert.equal(1, ran)
    assert.same({ "user: go", "assistant:  [c1 c2]", "tool: x",
      "tool: cancelled before it was run" }, loops.lines(s:messages()))
    assert.equal("after", assert(agent:run()).text)
  end)

  it("runs on the session of the call before its own", function()
    local other = assert(store:session "other")
    local agent = sessile.agent { session = s, store = store,
      model = function(request) return "you said " .. #request.messages end }
    assert(agent:run "a")
    assert(agent:run("b", { session = other }))
    assert(agent:run("c", { session = "third" }))
    assert(agent:run("d", { session = { session_id = "third" } }))
    assert.same({ "a", "you said 1" }, contents(s:messages()))
    assert.same({ "b", "you said 1" }, contents(other:messages()))
    assert.same({ "c", "you said 1", "d", "you said 3" },
      contents(assert(store:resume "third"):messages()))
    assert.equal(store, agent.store)
    assert.equal(s, agent.session)
    assert.has_error(function() agent:run("x", { session = 42 }) end)
    assert.has_error(function()
      sessile.agent { model = print, session = "id" }:run "x"
    end)
  end)

  it("needs no session, and then keeps nothing", function()
    local agent = sessile.agent { model = loops.model { "one", "two" } }
    local outcome = assert(agent:run "hi")
    assert.equal("one", outcome.text)
    outcome = assert(agent:run("hi again", { messages = outcome.context }))
    assert.same({ "hi", "one", "hi again", "two" }, contents(outcome.context))
    assert.same({}, s:messages())
    assert.equal(1, #store:list())
    assert.has_error(function() agent:run() end)
  end)

  it("is reported to be in use, by name", function()
    local agent <close> = sessile.agent { name = "coder", model = print }
    assert.equal("sessile.Agent: coder", tostring(agent))
    assert.equal("coder", agent.name)
  end)
end)

describe("an agent whose request is too long", function()
  local store, s

  local function halve()
    return { name = "halve", truncate = function() end,
      compact = function(state) state:keep_last(2, "messages") end }
  end

  stores.each_test(function()
    store = stores.open "ram:"
    s = assert(store:session "s")
    for i = 1, 6 do
      assert(s:turn { user("question " .. i), messages.assistant("answer " .. i) })
    end
  end)

  it("compacts once and asks once more", function()
    local list, on_event = loops.trace()
    local model = loops.model {
      function() return nil, "too much", "EOVERFLOW" end, "fine",
    }
    local outcome = assert(sessile.agent { session = s, policy = halve(), model = model,
      on_event = on_event }:run "go")
    assert.equal("completed", outcome.status)
    assert.equal(13, #model.requests[1].messages)
    assert.is_true(#model.requests[2].messages < 5)
    assert.same({ "start", "message", "context", "model", "overflow", "compact", "context",
      "model", "message", "turn", "done" }, list)
    assert.equal(14, #s:messages())
  end)

  it("knows what providers say, and gives up after the second time", function()
    for _, text in ipairs { "This model's maximum context length is 8192 tokens",
      "error: context_length_exceeded", "prompt is too long: 200001 tokens > 200000" } do
      local model = loops.model {
        function() return nil, text end, function() return nil, text end,
      }
      local outcome = assert(sessile.agent { session = s, policy = halve(), model = model }
        :run "go")
      assert.equal("failed", outcome.status)
      assert.equal("EOVERFLOW", outcome.code)
      assert.equal(text, outcome.error)
      assert.equal(2, model.calls)
      for i = 1, 3 do
        assert(s:append(user(("more "):rep(50) .. i)))
      end
    end
  end)

  it("fails when nothing can be taken out", function()
    local model = loops.model { function() return nil, "too much", "EOVERFLOW" end }
    local outcome = assert(sessile.agent { session = s, model = model }:run "go")
    assert.equal("failed", outcome.status)
    assert.equal("EOVERFLOW", outcome.code)
    assert.matches("^too much %(and the context could not be made shorter", outcome.error)
    assert.equal(1, model.calls)
  end)

  it("fails with the next step when automatic compaction is off", function()
    local function long() return nil, "too much", "EOVERFLOW" end
    local own = assert(store:create { triggers = false })
    assert(own:turn { user "one", messages.assistant "two" })
    assert(own:turn { user "three", messages.assistant "four" })
    for _, case in ipairs { { s, false }, { own, nil } } do
      local session, off = case[1], case[2]
      local model = loops.model { long, "fine" }
      local outcome = assert(session:send("go", { policy = halve(), model = model,
        triggers = off }))
      assert.equal("failed", outcome.status)
      assert.equal("EOVERFLOW", outcome.code)
      assert.equal("too much (and the context was not compacted, because triggers = false: "
        .. "compact it with session:compact(), then continue with session:send())",
        outcome.error)
      assert.equal(1, model.calls)
      assert.equal(0, #assert(session:log()))
      assert.is_true(assert(session:compact { policy = halve() }).policy.applied)
      assert.equal("fine", assert(session:send(nil, { model = model, triggers = off })).text)
    end
  end)

  it("is not taken for that when it fails otherwise", function()
    local model = loops.model { function() return nil, "quota exceeded" end }
    local outcome = assert(sessile.agent { session = s, policy = halve(), model = model }
      :run "go")
    assert.equal("quota exceeded", outcome.error)
    assert.is_nil(outcome.code)
    assert.equal(1, model.calls)
  end)
end)
