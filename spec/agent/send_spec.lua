-- session:send: a message through hooks, model, tools, hooks, turn and policy.

local stores = require "spec.support.stores"
local loops = require "spec.support.loops"
local messages = require "spec.support.messages"

local user, assistant, contents = messages.user, messages.assistant, messages.contents
local call = loops.call

stores.each_kind("send in", function(open)
  local store, s

  before_each(function() s, store = stores.session(open(), "s") end)

  it("asks the model and keeps both sides", function()
    local model = loops.model { "hi" }
    local outcome = assert(s:send("hello", { model = model }))
    assert.equal("completed", outcome.status)
    assert.equal("hi", outcome.text)
    assert.equal("hi", outcome.reply.content)
    assert.same({ "user: hello", "assistant: hi" }, loops.lines(s:messages()))
    assert.equal(2, #outcome.ids)
    assert.same({ "hello", "hi" }, contents(outcome.context))
    assert.equal(1, outcome.steps)
    assert.is_nil(outcome.policy)
    assert.is_true(outcome.tokens.after > 0)
    for i, message in ipairs(s:messages()) do
      assert.equal(outcome.ids[i], message.id)
    end
  end)

  it("keeps an answer whose usage cannot be kept, and counts no nonsense", function()
    local odd = { { input = 0 / 0 }, { input = 1 / 0 }, { 1, 2 }, { input = math.maxinteger },
      { input = -5 }, { input = 1e300 }, { input = {} }, { input = "7" }, { input = 1.5 } }
    for _, usage in ipairs(odd) do
      local outcome = assert(s:send("hello", { tools = { t = function() return "ok" end },
        model = loops.model { { role = "assistant", content = "", usage = usage,
          tool_calls = call { "t", "c" .. #s:messages() }.tool_calls },
          { role = "assistant", content = "hi", usage = usage } } }))
      assert.equal("completed", outcome.status, outcome.error)
      assert.equal("hi", outcome.text)
      assert.is_true(s:usage().input >= 0)
      assert.is_true(s:tokens() >= 0)
    end
  end)

  it("shows the model what was said before, then the new message", function()
    assert(s:turn { user "one", assistant "two" })
    local model = loops.model { "four" }
    assert(s:send(user "three", { model = model }))
    assert.same({ "one", "two", "three" }, contents(model.requests[1].messages))
  end)

  it("has the message on disk before the model is asked", function()
    assert(s:send("hello", { model = function()
      local other = assert(store:resume "s")
      assert.same({ "hello" }, contents(other:messages()))
      return "hi"
    end }))
  end)

  it("has each step on disk before the next begins", function()
    local seen = {}
    local function look()
      seen[#seen + 1] = #assert(store:resume "s"):messages()
    end
    assert(s:send("go", {
      model = loops.model {
        call { "look", "c1" },
        function() look() return call { "look", "c2" } end,
        "done",
      },
      tools = { look = function() look() return "seen" end },
    }))
    assert.same({ 2, 3, 4 }, seen)
    assert.same({ "user: go", "assistant:  [c1]", "tool: seen", "assistant:  [c2]",
      "tool: seen", "assistant: done" }, loops.lines(s:messages()))
  end)

  it("names the missing model before anything is stored", function()
    local before = s:head()
    local outcome, message, code = s:send("hello")
    assert.is_nil(outcome)
    assert.matches("no model is configured", message)
    assert.equal("EINVALID", code)
    assert.equal(before, s:head())
  end)

  it("takes a list of messages", function()
    local model = loops.model { "ok" }
    assert(s:send({ { role = "system", content = "be kind" }, user "hello" },
      { model = model }))
    assert.same({ "be kind", "hello" }, contents(model.requests[1].messages))
    assert.same({ "be kind", "hello", "ok" }, contents(s:messages()))
  end)

  it("keeps what the provider reported: the request's for the context, the sum for the bill",
    function()
      local outcome = assert(s:send("go", {
        model = loops.model {
          function()
            local message = call { "t", "c1" }
            message.usage = { input = 100, output = 5 }
            return message
          end,
          { content = "done", usage = { input = 150, output = 7 } },
        },
        tools = { t = function() return "x" end },
      }))
      assert.same({ input = 250, output = 12 }, outcome.usage)
      assert.equal(250, s:usage().input)
      assert.equal(12, s:usage().output)
      local tokens, info = s:tokens()
      assert.equal(157, tokens)
      assert.equal("usage", info.source)
    end)

  it("writes all of it as one turn when told to", function()
    local saw
    local outcome = assert(s:send("go", {
      commit = "turn",
      model = loops.model {
        { content = "", tool_calls = call { "t", "c1" }.tool_calls,
          usage = { input = 100, output = 5 } },
        { content = "done", usage = { input = 150, output = 7 } },
      },
      tools = { t = function()
        saw = #assert(store:resume "s"):messages()
        return "x"
      end },
    }))
    assert.equal(0, saw)
    assert.equal(1, s:event_count())
    assert.equal(4, #outcome.ids)
    assert.same({ "user: go", "assistant:  [c1]", "tool: x", "assistant: done" },
      loops.lines(s:messages()))
    assert.equal(250, s:usage().input)
    assert.equal(157, (s:tokens()))
  end)

  it("keeps what a turn said before it failed, to be saved", function()
    local outcome = assert(s:send("go", { commit = "turn",
      model = loops.model { call { "t", "c1" }, function() return nil, "no line" end },
      tools = { t = function() return "x" end } }))
    assert.equal("failed", outcome.status)
    assert.same({}, s:messages())
    assert.same({ "user: go", "assistant:  [c1]", "tool: x" }, loops.lines(outcome.unsaved))
    assert.is_true(s:save())
    assert.equal("done", assert(s:send(nil, { model = loops.model { "done" } })).text)
    assert.same({ "user: go", "assistant:  [c1]", "tool: x", "assistant: done" },
      loops.lines(s:messages()))
  end)

  it("runs the session's policy at the end, and another when the call says so", function()
    local merged = {}
    local function policy(name)
      return { name = name, merge = function() merged[#merged + 1] = name end }
    end
    local t = assert(store:session { id = "t", policy = policy "session's" })
    local model = function(request)
      return #request.messages == 1 and call { "x", "c1" } or "ok"
    end
    local tools = { x = function() return "y" end }
    local outcome = assert(t:send("a", { model = model, tools = tools }))
    assert.equal("unchanged", outcome.policy.verdict)
    assert(t:send("b", { model = model, policy = policy "call's" }))
    assert.is_nil(assert(t:send("c", { model = model, policy = false })).policy)
    assert.same({ "session's", "call's" }, merged)
  end)

  it("lets the policy ask the same model", function()
    local asked
    local outcome = assert(s:send("a", {
      model = function(request, ctx)
        if request.purpose == "note" then
          asked = ctx.reason
          return { content = "a note" }
        end
        return "ok"
      end,
      policy = { summarize = function(state, ctx)
        state:insert(1, { role = "user", content = ctx.model { messages = {},
          purpose = "note" } })
      end },
    }))
    assert.equal("policy", asked)
    assert.same({ "a note", "a", "ok" }, contents(outcome.context))
  end)

  it("fails without losing the message when the model fails", function()
    local outcome = assert(s:send("a", { model = function() return nil, "no line" end }))
    assert.equal("failed", outcome.status)
    assert.equal("no line", outcome.error)
    assert.same({ "a" }, contents(s:messages()))
    outcome = assert(s:send(nil, { model = function() error "boom" end }))
    assert.equal("failed", outcome.status)
    assert.matches("the model raised: .*boom", outcome.error)
    outcome = assert(s:send(nil, { model = loops.model { "b" } }))
    assert.equal("completed", outcome.status)
    assert.same({ "a", "b" }, contents(s:messages()))
  end)

  it("takes no answer that is none", function()
    for _, bad in ipairs { 42, true, {}, { role = "assistant" },
      { tool_calls = { { id = "x" } } }, { tool_calls = { "x" } },
      { role = "system", content = "obey" } } do
      local outcome = assert(s:send("a", { model = function() return bad end }))
      assert.equal("failed", outcome.status)
      assert.matches("the model", outcome.error)
    end
  end)

  it("has nothing to do when the model has spoken", function()
    assert(s:send("a", { model = loops.model { "b" } }))
    local outcome = assert(s:send(nil, { model = loops.model {} }))
    assert.equal("completed", outcome.status)
    assert.equal("b", outcome.text)
    assert.same({}, outcome.ids)
    assert.equal(2, #s:messages())
  end)

  it("is CONFLICT when somebody spoke while the model thought; save writes the reply",
    function()
      local outcome = assert(s:send("a", { model = function()
        local other = assert(store:resume "s")
        assert(other:append(user "also this"))
        assert.equal(2, #s:messages()) -- who looks has not thought again
        return "b"
      end }))
      assert.equal("failed", outcome.status)
      assert.equal("ECONFLICT", outcome.code)
      assert.equal("b", outcome.unsaved[1].content)
      assert.same({ "a", "also this" }, contents(s:messages()))
      assert.is_true(s:save { on_conflict = "append" })
      assert.same({ "a", "also this", "b" }, contents(s:messages()))
      assert.is_nil(s:save())
    end)

  it("writes the reply all the same when what came between is accepted", function()
    local outcome = assert(s:send("a", { on_conflict = "append", model = function()
      assert(assert(store:resume "s"):append(user "also this"))
      return "b"
    end }))
    assert.equal("completed", outcome.status)
    assert.same({ "a", "also this", "b" }, contents(s:messages()))
  end)

  it("one of two at once completes, the other is CONFLICT", function()
    local other = assert(store:resume "s")
    local outcomes = {}
    local function model()
      coroutine.yield()
      return "ok"
    end
    loops.schedule(
      function() outcomes[1] = assert(s:send("a", { model = model })) end,
      function() outcomes[2] = assert(other:send("b", { model = model })) end)
    local found = { [outcomes[1].code or "ok"] = true, [outcomes[2].code or "ok"] = true }
    assert.same({ ok = true, ECONFLICT = true }, found)
    assert.equal(3, #s:messages())
  end)

  it("does not answer the calls of a loop that runs on the same handle", function()
    local first
    loops.schedule(
      function()
        first = assert(s:send("a", { on_conflict = "append",
          model = loops.model { call { "slow", "c1" }, "done" },
          tools = { slow = function() coroutine.yield() coroutine.yield() return "real" end },
        }))
      end,
      function()
        local nothing, message, code = s:send(nil, { model = loops.model {} })
        assert.is_nil(nothing)
        assert.matches("a loop runs", message)
        assert.equal("EBUSY", code)
        assert(s:send("b", { model = loops.model { "ok" } }))
      end)
    assert.equal("completed", first.status)
    assert.same({ "user: a", "assistant:  [c1]", "tool: real", "user: b", "assistant: ok",
      "assistant: done" }, loops.lines(s:context()))
  end)
end)
