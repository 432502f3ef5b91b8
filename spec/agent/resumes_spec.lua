-- Agents that were interrupted: what an earlier loop left in the log, and how the next one continues.

local stores = require "spec.support.stores"
local loops = require "spec.support.loops"
local messages = require "spec.support.messages"
local sessile = require "sessile"

local user, contents = messages.user, messages.contents
local call = loops.call

stores.each_kind("an interrupted agent in", function(open)
  local store, s

  before_each(function() s, store = stores.session(open(), "s") end)

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

  it("continues behind the results that are there", function()
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
    assert.equal(s:suspended().id, outcome.suspension)
    local nothing, message, code = agent:run("hello?", { session = s })
    assert.is_nil(nothing)
    assert.matches("suspended %(approval%)", message)
    assert.equal("ESUSPENDED", code)
    assert(s:resume_with { role = "tool", tool_call_id = "c1", content = "denied" })
    outcome = assert(agent:run(nil, { session = s }))
    assert.equal("completed", outcome.status)
    assert.same({ "user: go", "assistant:  [c1 c2]", "tool: denied", "tool: ready",
      "assistant: done" }, loops.lines(s:messages()))
  end)

  it("waits for a model that answers later, elsewhere", function()
    local agent = sessile.agent { tools = { t = function() return "ready" end },
      model = loops.model { sessile.later, "done" } }
    local outcome = assert(agent:run("go", { session = s }))
    assert.equal("paused", outcome.status)
    s = assert(store:resume "s")
    assert(s:resume_with(call { "t", "c1" }))
    outcome = assert(agent:run(nil, { session = s }))
    assert.equal("completed", outcome.status)
    assert.same({ "user: go", "assistant:  [c1]", "tool: ready", "assistant: done" },
      loops.lines(s:messages()))
  end)

  for _, commit in ipairs { "step", "turn" } do
    it("runs no paused call again when the pause is cancelled, commit = " .. commit,
      function()
        local asked = 0
        local agent = sessile.agent { commit = commit, tools = {
          ask = function()
            asked = asked + 1
            return sessile.pause { reason = "approval" }
          end,
          t = function() coroutine.yield() return "ready" end,
        }, model = loops.model { call({ "ask", "c1" }, { "t", "c2" }), "done" } }
        local outcome
        loops.schedule(function() outcome = assert(agent:run("go", { session = s })) end)
        assert.equal("paused", outcome.status)
        assert.equal(commit == "turn" and 3 or 2, #outcome.ids)
        s = assert(store:resume "s")
        assert(s:cancel())
        outcome = assert(agent:run(nil, { session = s }))
        assert.equal("completed", outcome.status)
        assert.equal(1, asked)
        local results = {}
        for _, message in ipairs(s:context()) do
          if message.role == "tool" then
            results[message.tool_call_id] = message.content
          end
        end
        assert.matches("^cancelled: ", results.c1)
        assert.equal("ready", results.c2)
      end)
  end
end)
