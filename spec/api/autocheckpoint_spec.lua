-- Checkpoints that turns make by themselves.

local sessile = require "sessile"
local lists = require "spec.support.lists"
local stores = require "spec.support.stores"

local store

after_each(stores.clean)

local function open(given)
  store = stores.open("ram:", given)
  return assert(store:create { id = "s" })
end

local function turn(s, given, text)
  return assert(s:turn({
    { role = "user", content = text or "a question" },
    { role = "assistant", content = "an answer" },
  }, given))
end

local function reasons(s)
  return lists.words(s:checkpoints(), "reason")
end

describe("a turn", function()
  it("makes none unless it is told when", function()
    local s = open {}
    assert.is_nil(turn(s, { state = { step = 1 } }).checkpoint)
    assert.equal("", reasons(s))
  end)

  it("makes one every N messages, with the state that came with it", function()
    local s = open { checkpoint = { messages = 4 } }
    assert.is_nil(turn(s, { state = { step = 1 } }).checkpoint)
    local outcome = turn(s, { state = { step = 2 } })
    assert.truthy(outcome.checkpoint)
    assert.is_nil(turn(s, { state = { step = 3 } }).checkpoint)
    assert.truthy(turn(s, { state = { step = 4 } }).checkpoint)
    assert.equal("periodic periodic", reasons(s))
    local restored = assert(s:restore(outcome.checkpoint))
    assert.same({ step = 2 }, restored.state)
    assert.equal(4, #s:messages())
    -- counted from the checkpoint that this branch has
    assert.is_nil(turn(s).checkpoint)
    assert.truthy(turn(s).checkpoint)
  end)

  it("counts from one that was made by hand", function()
    local s = open { checkpoint = { messages = 4 } }
    turn(s)
    assert(s:checkpoint { name = "mine" })
    assert.is_nil(turn(s).checkpoint)
    assert.truthy(turn(s).checkpoint)
  end)

  it("asks for the state when none came with it", function()
    local asked = 0
    local s = open { checkpoint = { messages = 2, state = function(session)
      asked = asked + 1
      return { head = session:head(), n = asked }
    end } }
    local outcome = turn(s)
    assert.equal(1, asked)
    local restored = assert(s:restore(outcome.checkpoint))
    assert.equal(1, restored.state.n)
    assert.equal(outcome.head, restored.state.head)
    -- and does without one that fails, or is no JSON
    local other = open { checkpoint = { messages = 2, state = function() error "no" end } }
    assert.is_nil(other:restore(turn(other).checkpoint).state)
    other = open { checkpoint = { messages = 2, state = function() return print end } }
    assert.is_nil(other:restore(turn(other).checkpoint).state)
    other = open { checkpoint = { messages = 2 } }
    assert.is_nil(other:restore(turn(other).checkpoint).state)
  end)

  it("makes one on an event that is listed", function()
    local s = open { checkpoint = { events = { "deploy" } } }
    assert.is_nil(turn(s, { event = "other" }).checkpoint)
    turn(s, { event = "deploy", state = 1 })
    local row = s:checkpoints()[1]
    assert.equal("event", row.reason)
    assert.equal("deploy", row.event)
  end)

  it("makes one when a share of the window is passed, once", function()
    local s = open { checkpoint = { share = 0.5 }, window = 2000 }
    local long = ("some words about it "):rep(100)
    local made = 0
    for _ = 1, 6 do
      made = made + (turn(s, nil, long).checkpoint and 1 or 0)
    end
    assert.equal(1, made)
    assert.equal("threshold", reasons(s))
  end)

  it("keeps at most N of those that the host makes as well", function()
    local s = open { checkpoint = { messages = 1000, keep = 2 } }
    turn(s)
    for i = 1, 4 do
      assert(s:checkpoint { state = i })
    end
    assert.equal(2, #assert(s:checkpoints()))
    assert(s:checkpoint { keep = 3 })
    assert.equal(3, #assert(s:checkpoints()))
  end)

  it("sees it passed by what came between turns, and again after a compaction", function()
    local s = open { checkpoint = { share = 0.5 }, window = 2000 }
    local long = ("some words about it "):rep(100)
    local function grow()
      for _ = 1, 3 do
        assert(s:append { role = "user", content = long })
      end
    end
    assert.is_nil(turn(s).checkpoint)
    grow()
    assert.is_string(turn(s).checkpoint)
    assert.is_nil(turn(s).checkpoint)
    assert.is_true(assert(s:compact { policy = {
      compact = function(state) state:keep_last(2) end,
    } }).policy.applied)
    assert.is_nil(turn(s).checkpoint)
    grow()
    assert.is_string(turn(s).checkpoint)
    assert.is_nil(turn(s).checkpoint)
    assert.equal(2, #s:checkpoints { reason = "threshold" })
  end)

  it("makes one in a loop whose messages are written one by one", function()
    local s = open { checkpoint = { share = 0.5 }, window = 2000 }
    local outcome = assert(s:send(("some words about it "):rep(300), {
      model = function() return "short" end,
    }))
    assert.equal("completed", outcome.status)
    assert.equal("threshold", s:checkpoints()[1].reason)
    assert(s:send("more", { model = function() return "short" end }))
    assert.equal(1, #s:checkpoints())
  end)

  it("makes one by an agent's rules, while it works and for an event at its end", function()
    store = stores.open "ram:"
    local s = assert(store:session "s")
    local done = 0
    local agent = sessile.agent {
      session = s, checkpoint = { messages = 3, events = { "built" },
        state = function(session)
          assert.equal(s, session)
          return { done = done }
        end },
      tools = { work = function() done = done + 1 return "done" end },
      model = function(request)
        local last = request.messages[#request.messages]
        if done == 2 or last.content == "again" then
          return "finished"
        end
        return { content = "", tool_calls = { { id = "c" .. done, name = "work",
          arguments = "{}" } } }
      end,
    }
    local outcome = assert(agent:run("go", { event = "built" }))
    assert.equal("completed", outcome.status)
    assert.equal("event periodic", reasons(s))
    assert.same({ done = 1 }, s:restore(s:checkpoints()[2].id).state)
    assert.equal(4, #s:messages()) -- after the second call was asked for
    assert.is_nil(assert(agent:run("again", { checkpoint = false })).checkpoint)
    assert.has_error(function() agent:run("x", { checkpoint = { every = 2 } }) end)
    assert.has_error(function()
      s:send("x", { checkpoint = 5, model = function() return "x" end })
    end)
  end)

  it("keeps at most N, and its own rules come before the session's", function()
    local s = open { checkpoint = { messages = 2, keep = 2 } }
    for _ = 1, 4 do
      turn(s)
    end
    assert.equal(2, #s:checkpoints())
    assert.is_nil(turn(s, { checkpoint = false }).checkpoint)
    assert.is_nil(turn(s, { checkpoint = { messages = 100 } }).checkpoint)
  end)

  it("stands where its policy left the context", function()
    local s = open { checkpoint = { messages = 2 }, policy = { "sliding_window", messages = 2 } }
    turn(s)
    local outcome = turn(s)
    assert.is_true(outcome.policy.applied)
    local row = s:checkpoints()[1]
    assert.equal(outcome.head, row.head)
    assert.equal(#s:context(), row.messages)
  end)

  it("refuses rules that make no sense, with their name", function()
    store = stores.open "ram:"
    assert.error_matches(function()
      sessile.open("ram:", { checkpoint = { keep = 0 } })
    end, "keep")
    assert.error_matches(function()
      sessile.open("ram:", { checkpoint = { every = 3 } })
    end, "every")
    assert.error_matches(function()
      sessile.open("ram:", { checkpoint = 5 })
    end, "checkpoint")
  end)
end)
