-- session:send: a message through hooks, model, tools, hooks, turn and policy.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local temp = dofile(here .. "/support/temp.lua")
local loops = dofile(here .. "/support/loops.lua")
local messages = dofile(here .. "/support/messages.lua")
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents
local call = loops.call

for kind, open in pairs(temp.stores()) do
  describe("send in " .. kind, function()
    local store, s

    before_each(function()
      store = open()
      s = assert(store:session "s")
    end)

    after_each(function()
      store:close()
      temp.clean()
    end)

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
        { tool_calls = { { id = "x" } } }, { tool_calls = { "x" } } } do
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
end

describe("hooks of send", function()
  local store, s

  before_each(function()
    store = assert(sessile.open "ram:")
    s = assert(store:session "s")
  end)

  after_each(function() store:close() end)

  it("before: see the history first and the new message last, and shape every request",
    function()
      assert(s:turn { user "one", assistant "two" })
      local seen
      local model = loops.model { call { "t", "c1" }, "four" }
      assert(s:send("three", {
        model = model, tools = { t = function() return "r" end },
        before = function(request, ctx)
          assert.equal(s, ctx.session)
          seen = contents(request.messages)
          table.insert(request.messages, 1, { role = "system", content = "be brief" })
        end,
      }))
      assert.same({ "one", "two", "three" }, seen)
      assert.same({ "system: be brief", "user: one", "assistant: two", "user: three" },
        loops.lines(model.requests[1].messages))
      assert.same({ "system: be brief", "user: one", "assistant: two", "user: three",
        "assistant:  [c1]", "tool: r" }, loops.lines(model.requests[2].messages))
      assert.equal("one", s:messages()[1].content)
    end)

  it("after: what they make of the reply is what is kept", function()
    local outcome = assert(s:send("a", {
      model = loops.model { "the password is 1234" },
      after = {
        function(reply) reply.content = reply.content:gsub("%d+", "****") end,
        function(reply) return { role = "assistant", content = reply.content .. "!" } end,
      },
    }))
    assert.equal("the password is ****!", outcome.text)
    assert.same({ "a", "the password is ****!" }, contents(s:messages()))
  end)

  it("run in the documented order", function()
    local order = {}
    local function note(text, value)
      return function() order[#order + 1] = text return value end
    end
    assert(s:send("a", {
      before = { note "before 1", note "before 2" }, after = note "after",
      model = note("model", "b"), policy = { merge = note "merge" },
      on_event = function(event) order[#order + 1] = "-" .. event.type end,
    }))
    assert.same({ "-start", "-message", "-context", "before 1", "before 2", "-model", "model",
      "after", "merge", "-message", "-turn", "-done" }, order)
  end)

  it("that raise or refuse fail the send; the message stays", function()
    local outcome = assert(s:send("a", { model = loops.model {},
      before = function() error "no" end }))
    assert.equal("failed", outcome.status)
    assert.matches("before generation raised", outcome.error)
    outcome = assert(s:send(nil, { model = loops.model { "b" },
      after = function() return nil, "not polite" end }))
    assert.equal("failed", outcome.status)
    assert.matches("refused: not polite", outcome.error)
    assert.same({ "a" }, contents(s:messages()))
  end)

  it("pause it: before, nothing was asked; after, the reply is kept", function()
    local outcome = assert(s:send("a", { model = loops.model {},
      before = function() return sessile.pause { reason = "budget", state = { left = 3 } } end }))
    assert.equal("paused", outcome.status)
    assert.equal("budget", outcome.reason)
    assert.same({ left = 3 }, outcome.state)
    assert.same({ "a" }, contents(s:messages()))
    outcome = assert(s:send(nil, { model = loops.model { "b" },
      after = function() return sessile.pause { reason = "look at this" } end }))
    assert.equal("paused", outcome.status)
    assert.same({ "a", "b" }, contents(s:messages()))
  end)
end)

describe("state of send", function()
  local dir

  before_each(function() dir = temp.dir() .. "/store" end)
  after_each(temp.clean)

  it("is empty, then holds the turn", function()
    local store <close> = assert(sessile.open "ram:")
    local s = assert(store:session "s")
    local state = assert(s:state())
    assert.same({}, state.messages)
    assert.is_nil(state.value)
    local outcome = assert(s:send("a", { model = loops.model { "b" } }))
    state = assert(s:state())
    assert.same({ "a", "b" }, contents(state.messages))
    assert.equal(outcome.leaf, state.head)
    assert.equal(outcome.tokens.after, state.tokens)
  end)

  it("is what the reducer made, also in a new process", function()
    local function reducer(state, events)
      local next_state = { sends = (state and state.sends or 0) + 1, tools = 0 }
      for _, event in ipairs(events) do
        next_state.tools = next_state.tools + (event.type == "tool_end" and 1 or 0)
      end
      return next_state
    end
    local function model(request)
      return request.messages[#request.messages].role == "user" and call { "t", "c" .. #request
        .messages } or "ok"
    end
    do
      local store <close> = assert(sessile.open(dir, { key = false, reducer = reducer,
        model = model, tools = { t = function() return "x" end } }))
      local s = assert(store:session "s")
      assert(s:send "a")
      assert.same({ sends = 1, tools = 1 }, s:state().value)
      assert(s:append(user "between"))
      assert.same({ sends = 1, tools = 1 }, s:state().value)
    end
    local store <close> = assert(sessile.open(dir, { key = false, reducer = reducer,
      model = model, tools = { t = function() return "x" end } }))
    local s = assert(store:resume "s")
    assert.same({ sends = 1, tools = 1 }, s:state().value)
    assert(s:send("b", { metadata = { trace = "t" } }))
    assert.same({ sends = 2, tools = 1 }, s:state().value)
    assert.equal("t", s:entry(s:head()).data.metadata.trace)
  end)

  it("stays what it was when the send is paused, fails, or the reducer does", function()
    local store <close> = assert(sessile.open("ram:", { reducer = function(state, events)
      if events[2].message.content == "bad" then
        error "cannot"
      elseif events[2].message.content == "worse" then
        return { f = print }
      end
      return (state or 0) + 1
    end }))
    local s = assert(store:session "s")
    assert(s:send("a", { model = loops.model { "ok" } }))
    assert.equal(1, s:state().value)
    assert(s:send("b", { model = function() return nil, "no" end }))
    assert.equal(1, s:state().value)
    assert(s:send("c", { model = loops.model {},
      before = function() return sessile.pause {} end }))
    assert.equal(1, s:state().value)
    local outcome = assert(s:send("bad", { model = loops.model { "ok" } }))
    assert.equal("completed", outcome.status)
    assert.matches("the reducer raised: .*cannot", outcome.log[1])
    outcome = assert(s:send("worse", { model = loops.model { "ok" } }))
    assert.matches("cannot be kept", outcome.log[1])
    assert.equal(1, s:state().value)
    assert(s:send("good", { model = loops.model { "ok" } }))
    assert.equal(2, s:state().value)
  end)
end)

describe("sending without a session", function()
  it("runs the whole loop and keeps nothing", function()
    local home = os.getenv "XDG_DATA_HOME"
    local before = home and temp.snapshot(home)
    local model = loops.model { call { "add", "c1", '{"a":1,"b":2}' }, "3" }
    local given = { user "what is 1+2?" }
    local outcome = assert(sessile.send {
      messages = given, model = model,
      tools = { add = function(args) return args.a + args.b end },
    })
    assert.equal("completed", outcome.status)
    assert.equal("3", outcome.text)
    assert.same({ "assistant:  [c1]", "tool: 3", "assistant: 3" }, loops.lines(outcome.messages))
    assert.same({ "user: what is 1+2?", "assistant:  [c1]", "tool: 3", "assistant: 3" },
      loops.lines(outcome.context))
    assert.equal(1, #given)
    assert.equal(before, home and temp.snapshot(home))
  end)

  it("needs messages and a model", function()
    assert.has_error(function() sessile.send { model = print } end,
      "sessile.send: messages expected")
    local outcome, message, code = sessile.send { messages = { user "a" } }
    assert.is_nil(outcome)
    assert.matches("no model", message)
    assert.equal("EINVALID", code)
  end)

  it("takes a session after all", function()
    local store <close> = assert(sessile.open "ram:")
    local s = assert(store:session "s")
    assert(sessile.send { session = s, message = "a", model = loops.model { "b" } })
    assert.same({ "a", "b" }, contents(s:messages()))
  end)
end)

describe("what send is given", function()
  local store, s

  before_each(function()
    store = assert(sessile.open "ram:")
    s = assert(store:session "s")
  end)
  after_each(function() store:close() end)

  it("comes from the call, else the session, else the store", function()
    local function model(name) return function() return name end end
    local other <close> = assert(sessile.open("ram:", { model = model "store",
      tools = { x = function() end }, before = function(request) request.from = "store" end }))
    local plain = assert(other:session "a")
    local own = assert(other:session { id = "b", model = model "session", before = {} })
    assert.equal("store", assert(plain:send "x").text)
    assert.equal("session", assert(own:send "x").text)
    local asked
    assert(plain:send("x", { model = function(request) asked = request return "call" end }))
    assert.equal("store", asked.from)
    assert.equal("x", asked.tools[1].name)
    assert(own:send("x", { model = function(request) asked = request return "call" end }))
    assert.is_nil(asked.from)
  end)

  it("is checked where it enters", function()
    local model = loops.model {}
    for wrong, given in pairs {
      ["unknown option 'modle', did you mean 'model'"] = { modle = model },
      ["tool 'x': run is missing"] = { tools = { x = {} } },
      ["tool 'x': unknown option 'repeatble', did you mean 'repeatable'"] =
        { tools = { x = { run = print, repeatble = true } } },
      ["option 'before': number 1 is no function"] = { before = { 1 } },
      ["'max_steps': at least 1"] = { max_steps = 0 },
      ["'commit': \"step\" or \"turn\""] = { commit = "never" },
    } do
      local ok, message = pcall(s.send, s, "a", given)
      assert.is_false(ok)
      assert.is_truthy(message:find(wrong, 1, true), message)
    end
    assert.has_error(function() s:send(42, { model = model }) end)
    assert.has_error(function() s:send({}, { model = model }) end)
    assert.same({}, s:messages())
  end)

  it("passes what a message has beside its text", function()
    local said = { role = "user", content = { { type = "text", text = "see" },
      { type = "image", url = "x" } }, author = "ann", timestamp = 5 }
    local reply = { content = { { type = "text", text = "I" }, { type = "text", text = "see" } },
      author = "bot", extra = { deep = { 1, 2 } } }
    local outcome = assert(s:send(said, { model = loops.model { reply } }))
    assert.equal("I\nsee", outcome.text)
    local list = s:messages()
    assert.equal("image", list[1].content[2].type)
    assert.equal("ann", list[1].author)
    assert.same({ 1, 2 }, list[2].extra.deep)
    assert.equal("assistant", list[2].role)
  end)
end)
