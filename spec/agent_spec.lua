-- sessile.agent: observe, think, act; what is run, in which order, and how it goes on after
-- it was interrupted.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local temp = dofile(here .. "/support/temp.lua")
local loops = dofile(here .. "/support/loops.lua")
local messages = dofile(here .. "/support/messages.lua")
local sessile = require "sessile"

local user, contents = messages.user, messages.contents
local call = loops.call

describe("an agent", function()
  local store, s

  before_each(function()
    store = assert(sessile.open "ram:")
    s = assert(store:session "s")
  end)
  after_each(function() store:close() end)

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

  it("goes on when on_event raises, and says so", function()
    local outcome = assert(sessile.agent { session = s, model = loops.model { "ok" },
      on_event = function(event) if event.type == "model" then error "oops" end end }:run "go")
    assert.equal("completed", outcome.status)
    assert.matches("on_event raised: .*oops", outcome.log[1])
  end)

  it("tells the model what went wrong with a call", function()
    local model = loops.model {
      call({ "nope", "c1" }, { "ok", "c2", "{not json" }, { "ok", "c3", "[1" },
        { "raises", "c4" }, { "fails", "c5" }, { "odd", "c6" }, { "bytes", "c7" }), "done",
    }
    local outcome = assert(sessile.agent { session = s, model = model, tools = {
      ok = function() return "never" end,
      raises = function() error { code = 500 } end,
      fails = function() return nil, "no such file" end,
      odd = function() return { f = print } end,
      bytes = function() return "\xff\xfe" end,
    } }:run "go")
    assert.equal("completed", outcome.status)
    local results = s:messages { role = "tool" }
    for i, pattern in ipairs { "no tool called 'nope'; there are: bytes, fails, odd, ok, raises",
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

  it("stops after max_steps, and goes on from there", function()
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

  before_each(function()
    store = assert(sessile.open "ram:")
    s = assert(store:session "s")
    for i = 1, 6 do
      assert(s:turn { user("question " .. i), messages.assistant("answer " .. i) })
    end
  end)
  after_each(function() store:close() end)

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

  it("is not taken for that when it fails otherwise", function()
    local model = loops.model { function() return nil, "quota exceeded" end }
    local outcome = assert(sessile.agent { session = s, policy = halve(), model = model }
      :run "go")
    assert.equal("quota exceeded", outcome.error)
    assert.is_nil(outcome.code)
    assert.equal(1, model.calls)
  end)
end)

describe("an agent in coroutines", function()
  local store

  before_each(function() store = assert(sessile.open "ram:") end)
  after_each(function() store:close() end)

  -- The same conversation, with a model and tools that wait before they answer, or do not.
  local function talk(wait)
    local s = assert(store:create {})
    local list, on_event = loops.trace()
    local step = 0
    local outcome = assert(sessile.agent { session = s, on_event = on_event,
      model = function()
        step = step + 1
        wait()
        return step == 1 and call({ "t", "c1" }, { "t", "c2" }) or "done"
      end,
      tools = { t = function(_, ctx) return ctx.call end },
      before = function() wait() end, after = function() wait() end,
    }:run "go")
    return { outcome.status, outcome.text, loops.lines(s:messages()), list }
  end

  it("gives what it gives outside of one", function()
    local inside
    local turns = loops.schedule(function() inside = talk(coroutine.yield) end)
    assert.same(talk(function() end), inside)
    assert.is_true(turns[1] > 4)
  end)

  it("never yields when nothing waits", function()
    local turns = loops.schedule(function() talk(function() end) end)
    assert.same({ 1 }, turns)
  end)

  it("does not mix two sessions that wait in turns", function()
    local one, two = assert(store:session "one"), assert(store:session "two")
    local agent = sessile.agent {
      model = function(request)
        coroutine.yield()
        local last = request.messages[#request.messages]
        return last.role == "user" and call { "t", "c1" } or "done " .. last.content
      end,
      tools = { t = function(_, ctx) coroutine.yield() return ctx.session.id end },
    }
    local order = {}
    local function on_event(name)
      return function(event) order[#order + 1] = name .. event.type end
    end
    loops.schedule(
      function() assert(agent:run("1", { session = one, on_event = on_event "1 " })) end,
      function() assert(agent:run("2", { session = two, on_event = on_event "2 " })) end)
    assert.same({ "user: 1", "assistant:  [c1]", "tool: one", "assistant: done one" },
      loops.lines(one:messages()))
    assert.same({ "user: 2", "assistant:  [c1]", "tool: two", "assistant: done two" },
      loops.lines(two:messages()))
    assert.equal("2 start", order[5]) -- the first waited for its model by then
  end)

  -- Three calls; the first takes longest. Returns what happened, in order.
  local function three(s, parallel)
    local happened = {}
    local function note(text) happened[#happened + 1] = text end
    local waits = { c1 = 3, c2 = 1, c3 = 0 }
    local outcome = assert(sessile.agent { session = s, parallel = parallel,
      model = loops.model { call({ "t", "c1" }, { "t", "c2" }, { "t", "c3" }), "done" },
      tools = { t = function(_, ctx)
        note("begin " .. ctx.call)
        for _ = 1, waits[ctx.call] do
          if coroutine.isyieldable() then coroutine.yield() end
        end
        note("end " .. ctx.call)
        return ctx.call
      end },
      on_event = function(event)
        if event.type:find "^tool" then note(event.type .. " " .. event.call.id) end
      end }:run "go")
    assert.equal("completed", outcome.status)
    local results = {}
    for i, message in ipairs(s:messages { role = "tool" }) do
      results[i] = message.content
    end
    assert.same({ "c1", "c2", "c3" }, results)
    return happened
  end

  it("runs the calls of one message at once, results in their order", function()
    local happened
    loops.schedule(function() happened = three(assert(store:create {})) end)
    assert.same({ "tool_start c1", "begin c1", "tool_start c2", "begin c2", "tool_start c3",
      "begin c3", "end c3", "end c2", "end c1", "tool_end c1", "tool_end c2", "tool_end c3" },
      happened)
  end)

  it("runs them one after the other outside, or when told to", function()
    local expected = { "tool_start c1", "begin c1", "end c1", "tool_end c1", "tool_start c2",
      "begin c2", "end c2", "tool_end c2", "tool_start c3", "begin c3", "end c3", "tool_end c3" }
    assert.same(expected, three(assert(store:create {})))
    local happened
    loops.schedule(function() happened = three(assert(store:create {}), false) end)
    assert.same(expected, happened)
  end)

  it("lets the host run them", function()
    local s = assert(store:create {})
    local happened = three(s, function(tasks)
      for i = #tasks, 1, -1 do
        tasks[i]()
      end
    end)
    assert.same({ "begin c3", "begin c2", "begin c1" },
      { happened[2], happened[5], happened[8] })
    local outcome = assert(sessile.agent { session = assert(store:create {}),
      parallel = function() end, tools = { t = print },
      model = loops.model { call({ "t", "c1" }, { "t", "c2" }) } }:run "go")
    assert.equal("failed", outcome.status)
    assert.matches("before every tool had ended", outcome.error)
  end)

  it("is cancelled while tools wait; each call is answered", function()
    local s = assert(store:create {})
    local closed = 0
    local agent = sessile.agent { session = s,
      model = loops.model { call({ "t", "c1" }, { "t", "c2" }) },
      tools = { t = function()
        local guard <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
        while true do coroutine.yield(guard) end
      end } }
    local outcome
    loops.schedule(function() outcome = assert(agent:run "go") end,
      function() for _ = 1, 5 do coroutine.yield() end agent:cancel() end)
    assert.equal("ECANCELLED", outcome.code)
    assert.equal(2, closed)
    assert.equal(4, #s:messages())
    local _, info = s:context()
    assert.equal(0, info.unanswered)
  end)
end)

for kind, open in pairs(temp.stores()) do
  describe("an interrupted agent in " .. kind, function()
    local store, s

    before_each(function()
      store = open()
      s = assert(store:session "s")
    end)

    after_each(function()
      store:close()
      temp.clean()
    end)

    -- What is there after a process died: the messages, and the facts behind them.
    local function wreck(reply, facts)
      local outcome = assert(s:turn({ user "go", reply }, { policy = false }))
      for _, fact in ipairs(facts or {}) do
        fact.message = outcome.ids[2]
        assert(s:custom(fact, "agent"))
      end
      s = assert(store:resume "s")
    end

    it("runs calls that were never started", function()
      wreck(call { "t", "c1" })
      local list, on_event = loops.trace()
      local outcome = assert(sessile.agent { session = s, on_event = on_event,
        model = loops.model { "done" }, tools = { t = function() return "late" end } }:run())
      assert.equal("completed", outcome.status)
      assert.same({ "user: go", "assistant:  [c1]", "tool: late", "assistant: done" },
        loops.lines(s:messages()))
      assert.same({ "start", "tool_start c1", "tool_end c1", "context", "model", "message",
        "turn", "done" }, list)
    end)

    it("reports what was started and not finished, and does not run it again", function()
      wreck(call({ "once", "c1" }, { "once", "c2" }),
        { { kind = "tool_start", call = "c1", tool = "once", attempt = 1 } })
      local ran = {}
      local list, on_event = loops.trace()
      assert(sessile.agent { session = s, on_event = on_event, model = loops.model { "done" },
        tools = { once = function(_, ctx) ran[#ran + 1] = ctx.call return "ran" end } }:run())
      assert.same({ "c2" }, ran)
      assert.same({ "start", "interrupted c1", "tool_end c1", "tool_start c2", "tool_end c2",
        "context", "model", "message", "turn", "done" }, list)
      local results = s:messages { role = "tool" }
      assert.matches("^interrupted: ", results[1].content)
      assert.is_true(results[1].metadata.error)
      assert.equal("ran", results[2].content)
    end)

    it("runs it again when it is repeatable", function()
      wreck(call { "t", "c1" }, { { kind = "tool_start", call = "c1", tool = "t", attempt = 1 } })
      local attempt
      local interrupted
      assert(sessile.agent { session = s, model = loops.model { "done" },
        on_event = function(event)
          if event.type == "interrupted" then interrupted = event.repeatable end
        end,
        tools = { t = { repeatable = true, run = function(_, ctx)
          attempt = ctx.attempt
          return "again"
        end } } }:run())
      assert.equal(2, attempt)
      assert.is_true(interrupted)
      assert.equal("again", s:messages { role = "tool" }[1].content)
    end)

    it("uses results that were recorded", function()
      wreck(call({ "t", "c1" }, { "t", "c2" }), {
        { kind = "tool_start", call = "c2", tool = "t", attempt = 1 },
        { kind = "tool_done", call = "c2", result = { role = "tool", tool_call_id = "c2",
          content = "early" } },
      })
      local ran = {}
      assert(sessile.agent { session = s, model = loops.model { "done" },
        tools = { t = function(_, ctx) ran[#ran + 1] = ctx.call return "now" end } }:run())
      assert.same({ "c1" }, ran)
      assert.same({ "now", "early" }, contents(s:messages { role = "tool" }))
    end)

    it("goes on behind the results that are there", function()
      wreck(call({ "t", "c1" }, { "t", "c2" }))
      assert(s:append { role = "tool", tool_call_id = "c1", content = "first" })
      s = assert(store:resume "s")
      assert(s:send(nil, { model = loops.model { "done" },
        tools = { t = function(_, ctx) return "ran " .. ctx.call end } }))
      assert.same({ "first", "ran c2" }, contents(s:messages { role = "tool" }))
    end)

    it("finds calls behind very many results", function()
      local calls = {}
      for i = 1, 40 do calls[i] = { "t", "c" .. i } end
      wreck(call(table.unpack(calls)))
      for i = 1, 39 do
        assert(s:append { role = "tool", tool_call_id = "c" .. i, content = tostring(i) })
      end
      local ran = {}
      assert(s:send(nil, { model = loops.model { "done" },
        tools = { t = function(_, ctx) ran[#ran + 1] = ctx.call return "x" end } }))
      assert.same({ "c40" }, ran)
    end)

    it("asks the model when all was answered, or nothing was", function()
      assert(s:append(user "go"))
      s = assert(store:resume "s")
      assert.equal("hi", assert(s:send(nil, { model = loops.model { "hi" } })).text)
    end)

    it("runs nothing when something new is said, and says what is known", function()
      wreck(call({ "t", "c1" }, { "t", "c2" }, { "t", "c3" }), {
        { kind = "tool_start", call = "c1", tool = "t", attempt = 1 },
        { kind = "tool_done", call = "c2", result = { role = "tool", tool_call_id = "c2",
          content = "early" } },
      })
      assert(s:send("stop that", { model = loops.model { "ok" },
        tools = { t = { repeatable = true, run = function() error "never" end } } }))
      local results = s:messages { role = "tool" }
      assert.matches("^interrupted: ", results[1].content)
      assert.equal("early", results[2].content)
      assert.matches("^not run: ", results[3].content)
      assert.same({ "stop that", "ok" }, contents(s:messages { last = 2 }))
      local _, info = s:context()
      assert.equal(0, info.unanswered)
      assert.equal(0, info.orphans)
    end)

    it("lets one of two that go on at once run the tool", function()
      wreck(call({ "nobody", "c1" }, { "t", "c2" }))
      local other = assert(store:resume "s")
      local ran, outcomes = 0, {}
      local given = {
        model = function() coroutine.yield() return "done" end,
        tools = { t = function() ran = ran + 1 coroutine.yield() return "x" end },
        -- Both have read the log before either starts the tool.
        on_event = function(event)
          if event.type == "tool_start" and event.call.id == "c1" then coroutine.yield() end
        end,
        parallel = false,
      }
      loops.schedule(function() outcomes[1] = assert(s:send(nil, given)) end,
        function() outcomes[2] = assert(other:send(nil, given)) end)
      assert.equal(1, ran)
      assert.equal("completed", outcomes[1].status)
      assert.equal("failed", outcomes[2].status)
      assert.equal("ECONFLICT", outcomes[2].code)
    end)

    it("waits for an answer when a tool pauses; the others' results are kept", function()
      local agent = sessile.agent { session = s,
        model = loops.model { call({ "ask", "c1" }, { "t", "c2" }), "done" },
        tools = {
          ask = function() return sessile.pause { reason = "approval", state = { cmd = "rm" } } end,
          t = function() return "ready" end,
        } }
      local outcome = assert(agent:run "go")
      assert.equal("paused", outcome.status)
      assert.equal("approval", outcome.reason)
      assert.same({ cmd = "rm" }, outcome.state)
      assert.same({}, s:messages { role = "tool" })
      s = assert(store:resume "s")
      outcome = assert(agent:run(nil, { session = s })) -- nobody answered yet
      assert.equal("paused", outcome.status)
      assert.same({ cmd = "rm" }, outcome.state)
      local nothing, message, code = agent:run("hello?", { session = s })
      assert.is_nil(nothing)
      assert.matches("paused %(approval%)", message)
      assert.equal("ESUSPENDED", code)
      assert(s:append { role = "tool", tool_call_id = "c1", content = "denied" })
      outcome = assert(agent:run(nil, { session = s }))
      assert.equal("completed", outcome.status)
      assert.same({ "user: go", "assistant:  [c1 c2]", "tool: denied", "tool: ready",
        "assistant: done" }, loops.lines(s:messages()))
    end)
  end)
end
