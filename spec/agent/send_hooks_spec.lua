-- What a send may be given: hooks, a reducer, options from three places, and no session.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local loops = require "spec.support.loops"
local messages = require "spec.support.messages"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents
local call = loops.call

describe("hooks of send", function()
  local s

  stores.each_test(function() s = stores.session(stores.open "ram:", "s") end)

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
    local again = assert(s:send(nil, { model = loops.model {} }))
    assert.equal("paused", again.status)
    assert.same({ left = 3 }, again.state)
    assert(s:resume_with())
    outcome = assert(s:send(nil, { model = loops.model { "b" },
      after = function() return sessile.pause { reason = "look at this" } end }))
    assert.equal("paused", outcome.status)
    assert.same({ "a", "b" }, contents(s:messages()))
  end)
end)

describe("state of send", function()
  local dir

  temp.each_test(function(path) dir = path .. "/store" end)

  it("is empty, then holds the turn", function()
    local store <close> = assert(sessile.open "ram:")
    local s = assert(store:session "s")
    local state = assert(s:state())
    assert.same({}, state.messages)
    assert.is_nil(state.value)
    local outcome = assert(s:send("a", { model = loops.model { "b" } }))
    state = assert(s:state())
    assert.same({ "a", "b" }, contents(state.messages))
    assert.equal(outcome.head, state.head)
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
      for _, event in ipairs(events) do
        if event.message and event.message.content == "bad" then
          error "cannot"
        elseif event.message and event.message.content == "worse" then
          return { f = print }
        end
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
    assert(s:resume_with())
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

describe("a reducer", function()
  local dir

  temp.each_test(function(path) dir = path end)

  -- What was said, in order: its state is a text.
  local function reducer(_, events)
    local words = {}
    for _, event in ipairs(events) do
      if event.type == "message" then
        words[#words + 1] = event.message.content
      elseif event.type == "tool_end" then
        words[#words + 1] = "<" .. event.message.content .. ">"
      end
    end
    return table.concat(words, " ")
  end

  it("sees the model's reply, and only what came since it was called", function()
    local store <close> = assert(sessile.open("ram:", { reducer = reducer }))
    local s = assert(store:session "s")
    assert(s:send("a", { model = loops.model { "ok" } }))
    assert.equal("a ok", s:state().value)
    assert(s:send("b", { model = loops.model { "fine" } }))
    assert.equal("b fine", s:state().value)
  end)

  for _, commit in ipairs { "step", "turn" } do
    it("sees what was before a pause, in this process and in another: " .. commit, function()
      for _, same in ipairs { true, false } do
        local path = dir .. "/" .. commit .. tostring(same)
        local given = { key = false, reducer = reducer, commit = commit, tools = {
          t = function() return "x" end,
          ask = function() return sessile.pause { reason = "may I?" } end,
        } }
        local store = assert(sessile.open(path, given))
        local s = assert(store:session "s")
        local first = loops.model { call { "t", "c1" }, call { "ask", "c2" } }
        assert.equal("paused", assert(s:send("a", { model = first })).status)
        if not same then
          store:close()
          store = assert(sessile.open(path, given))
          s = assert(store:resume "s")
        end
        assert(s:resume_with { role = "tool", tool_call_id = "c2", content = "yes" })
        assert.equal("completed", assert(s:send(nil, { model = loops.model { "done" } })).status)
        local seen = s:state().value
        assert.matches("^a ", seen)
        assert.matches("yes", seen)
        assert.matches("done$", seen)
        assert.equal(same, seen:find("<x>", 1, true) ~= nil)
        store:close()
      end
    end)
  end

  for _, commit in ipairs { "step", "turn" } do
    it("sees an answer that came later, and the turn is ended: " .. commit, function()
      for _, same in ipairs { true, false } do
        local path = dir .. "/" .. commit .. tostring(same)
        local given = { key = false, reducer = reducer, commit = commit,
          policy = { "sliding_window", messages = 2 } }
        local store = assert(sessile.open(path, given))
        local s = assert(store:session "s")
        assert(s:send("a", { model = loops.model { "b" } }))
        local outcome = assert(s:send("c", { model = loops.model { sessile.later } }))
        assert.equal("paused", outcome.status)
        assert.equal("a b", s:state().value)
        if not same then
          store:close()
          store = assert(sessile.open(path, given))
          s = assert(store:resume "s")
        end
        assert(s:resume_with { role = "assistant", content = "late" })
        outcome = assert(s:send(nil, { model = loops.model {} }))
        assert.equal("completed", outcome.status)
        assert.equal("late", outcome.text)
        assert.same({}, outcome.ids)
        assert.equal("c late", s:state().value)
        assert.is_true(outcome.policy.applied)
        assert.equal("turn", s:entry(outcome.turn).type)
        local head = s:head()
        assert.equal("late", assert(s:send(nil, { model = loops.model {} })).text)
        assert.equal(head, s:head()) -- it has ended
        assert.equal("c late", s:state().value)
        store:close()
      end
    end)
  end

  it("sees what came after a pause before the next question", function()
    local store <close> = assert(sessile.open("ram:", { reducer = reducer }))
    local s = assert(store:session "s")
    assert(s:send("a", { model = loops.model { sessile.later } }))
    assert(s:resume_with { role = "assistant", content = "late" })
    assert(s:send("b", { model = loops.model { "ok" } }))
    assert.equal("a late b ok", s:state().value)
    assert(s:append(user "between"))
    assert(s:send("c", { model = loops.model { "fine" } }))
    assert.equal("between c fine", s:state().value)
  end)
end)

describe("a tool that ran", function()
  it("is the event 'tool' of the turn that follows", function()
    local store <close> = assert(sessile.open("ram:", { tools = { t = function() return "x" end },
      checkpoint = { strategy = "event", events = { "tool" }, state = function() return 1 end } }))
    local s = assert(store:session "s")
    assert(s:send("a", { model = loops.model { "no tool" } }))
    assert.equal(0, #s:checkpoints())
    local outcome = assert(s:send("b", { model = loops.model { call { "t", "c1" }, "ok" } }))
    assert.truthy(outcome.checkpoint)
    assert.equal(1, #s:checkpoints())
    assert.equal("event", s:checkpoints()[1].reason)
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
  local s

  stores.each_test(function() s = stores.session(stores.open "ram:", "s") end)

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
      ["'max_steps': whole number from 1 expected, got 0"] = { max_steps = 0 },
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

describe("what the store does not take", function()
  it("is kept aside; a tool's result that is too long becomes one that says so", function()
    local store <close> = assert(sessile.open("ram:", { limits = { message = 400 } }))
    local s = assert(store:session "s")
    local long = ("x"):rep(500)
    local outcome = assert(s:send("go", {
      model = loops.model { call { "t", "c1" }, long },
      tools = { t = function() return long end },
    }))
    assert.equal("failed", outcome.status)
    assert.equal("ELIMIT", outcome.code)
    assert.equal(long, outcome.unsaved[1].content)
    assert.matches("cannot be kept: .*400", s:messages { role = "tool" }[1].content)
    local nothing, _, code = s:save()
    assert.is_nil(nothing)
    assert.equal("ELIMIT", code)
    nothing, _, code = s:send(long, { model = loops.model {} })
    assert.is_nil(nothing)
    assert.equal("ELIMIT", code)
    assert.equal(3, #s:messages())
  end)
end)
