-- Agents whose models and tools wait: in coroutines, several at once, and outside.

local lists = require "spec.support.lists"
local loops = require "spec.support.loops"
local stores = require "spec.support.stores"
local sessile = require "sessile"

local call = loops.call

describe("an agent in coroutines", function()
  local store

  stores.each_test(function() store = stores.open "ram:" end)

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
    assert.same({ "c1", "c2", "c3" }, lists.field(s:messages { role = "tool" }, "content"))
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
