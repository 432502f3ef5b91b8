-- Triggers, fallbacks and flush, as a host in Lua configures them and as policy files see them.

local guarded = require "spec.support.guarded"
local sessile = require "sessile"
local stores = require "spec.support.stores"
local workers = require "spec.support.workers"


local function user(text)
  return { role = "user", content = text }
end

local function pair(text)
  return { user(text), { role = "assistant", content = "yes: " .. text } }
end

-- A policy of the host's own that compacts to the newest turn and notes why it ran.
local function keeper(reasons)
  return {
    name = "keeper",
    compact = function(state, ctx)
      reasons[#reasons + 1] = ctx.reason
      state:keep_last(1, "turns")
    end,
  }
end

local function file(text)
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".lua"
  local out <close> = assert(io.open(path, "w"))
  out:write(text)
  return path
end

local function entries(s, kind)
  local found = {}
  for entry in assert(s:entries { types = { kind } }) do
    found[#found + 1] = entry
  end
  return found
end

describe("a trigger", function()
  local reasons, store

  stores.each_test(function()
    reasons = {}
  end)

  local function open(options)
    options.policy = options.policy or keeper(reasons)
    options.key = false
    store = stores.open("ram:", options)
    return store
  end

  it("fires every N messages, and the outcome says why", function()
    local s = assert(open { triggers = { messages = 4 } }:create())
    assert.is_nil(assert(s:turn(pair "one")).compaction)
    local outcome = assert(s:turn(pair "two"))
    assert.equal("threshold", outcome.policy.reason)
    assert.is_true(outcome.policy.applied)
    assert.equal("threshold", s:entry(outcome.compaction).data.reason)
    assert.same({ "threshold" }, reasons)
  end)

  it("is a send's and an agent's to give, with the event", function()
    local function model() return "yes" end
    local s = assert(open { triggers = { messages = 1 } }:create())
    local outcome = assert(s:send("one", { model = model, triggers = { events = { "deploy" } } }))
    assert.equal("turn", outcome.policy.reason)
    outcome = assert(s:send("two", { model = model, triggers = { events = { "deploy" } },
      event = "deploy" }))
    assert.equal("event", outcome.policy.reason)
    local agent = sessile.agent { model = model, session = s, triggers = { events = { "night" } },
      event = "night" }
    assert.equal("event", assert(agent:run "three").policy.reason)
    assert.equal("turn", assert(agent:run("four", { event = "day" })).policy.reason)
    assert.same({ "event", "event" }, reasons)
    local asked = false
    assert.error_matches(function()
      s:send("five", { model = function() asked = true return "yes" end,
        triggers = { mesages = 3 } })
    end, "session:send: trigger")
    assert.is_false(asked)
  end)

  it("leaves a send its own fallback", function()
    local s = assert(open { policy = { name = "broken", truncate = function() error "no" end } }
      :create())
    local outcome = assert(s:send("one", { model = function() return "yes" end,
      fallback = { name = "spare", truncate = function() end } }))
    assert.truthy(outcome.policy.refused)
    assert.equal("unchanged", outcome.policy.fallback.verdict)
  end)

  it("is the call's, else the session's, else the store's, as a whole", function()
    open { triggers = { messages = 2 } }
    local plain = assert(store:create())
    local own = assert(store:create { triggers = { events = { "deploy" } } })
    local none = assert(store:create { triggers = false })
    assert(plain:turn(pair "one"))
    assert.same({ "threshold" }, reasons)
    assert(own:turn(pair "one"))
    assert(none:turn(pair "one"))
    assert(plain:turn(pair "two", { triggers = false }))
    assert(plain:turn(pair "three", { triggers = { messages = 50 } }))
    assert.same({ "threshold" }, reasons)
    assert(own:turn(pair "two", { event = "deploy" }))
    assert(own:turn(pair "three", { event = "lunch" }))
    assert.same({ "threshold", "event" }, reasons)
    assert.equal("deploy", entries(own, "compaction")[1].data.event)
  end)

  it("of false turns everything off that policies do by themselves, and nothing else", function()
    local eager = { name = "eager", should_compact = function() return true end }
    for _, hook in ipairs { "merge", "summarize", "truncate", "flush", "compact" } do
      eager[hook] = function(first, second)
        local state = hook == "merge" and second or first
        reasons[#reasons + 1] = hook
        state:keep_last(1, "turns")
      end
    end
    open { policy = eager, window = 100, fallback = "sliding_window" }
    for _, off in ipairs { false, {}, { overflow = false }, { events = {} } } do
      local s = assert(store:create { triggers = off })
      for i = 1, 10 do
        local outcome = assert(s:turn(pair(("word "):rep(20) .. i), { event = "deploy" }))
        assert.is_nil(outcome.policy)
        assert.is_nil(outcome.compaction)
      end
      assert.equal(20, #s:context())
      assert.same({}, reasons)
      assert.is_true(assert(s:compact()).policy.applied)
      assert.same({ "flush", "compact" }, reasons)
      reasons = {}
    end
    local s = assert(store:create())
    assert(s:turn(pair "one"))
    assert(s:turn(pair "two", { triggers = false }))
    assert.same({ "merge", "summarize", "truncate", "flush", "compact" }, reasons)
  end)

  it("of the turn after one that had none counts the messages of both", function()
    local s = assert(open { triggers = { messages = 4 } }:create())
    assert(s:turn(pair "one"))
    assert(s:turn(pair "two", { triggers = false }))
    assert.same({}, reasons)
    assert(s:turn(pair "three"))
    assert.same({ "threshold" }, reasons)
  end)

  it("is taken by each way to a session", function()
    open {}
    assert(store:create { id = "s", triggers = { messages = 2 } }):close()
    for _, kind in ipairs { "resume", "session" } do
      local s <close> = assert(store[kind](store, { id = "s", triggers = { messages = 2 } }))
      assert(s:turn(pair(kind)))
    end
    assert.same({ "threshold", "threshold" }, reasons)
  end)

  it("fires at a share of the window", function()
    local s = assert(open { triggers = { share = 0.5 }, window = 240, reserve = 40 }:create())
    local fired
    for i = 1, 20 do
      local outcome = assert(s:turn(pair("a question of some length, number " .. i)))
      if outcome.compaction then
        assert.is_true(outcome.tokens.before >= 100)
        fired = true
        break
      end
      assert.is_true(outcome.tokens.after < 100)
    end
    assert.is_true(fired)
  end)

  it("fires on overflow once, and saves even a little", function()
    local s = assert(open {
      triggers = { overflow = true }, window = 4000,
      policy = { name = "thrifty", compact = function(state, ctx)
        reasons[#reasons + 1] = ctx.reason
        state:drop(1)
      end },
    }:create())
    for _ = 1, 3 do
      assert(s:append(user(("word "):rep(700))))
    end
    assert(s:append(user "small"))
    assert.same({}, reasons)
    local outcome = assert(s:turn(pair(("word "):rep(1800))))
    assert.same({ "overflow" }, reasons)
    assert.is_true(outcome.policy.applied)
    assert.is_true(outcome.cannot_fit > 0)
  end)

  it("fires when an interval has passed, which may be written with a unit", function()
    local s = assert(open { triggers = { interval = "1s" } }:create())
    os.execute "sleep 1.1"
    local outcome = assert(s:turn(pair "one"))
    assert.equal("timer", outcome.policy.reason)
    for text, fires in pairs { ["10m"] = false, ["2h"] = false, ["1d"] = false, ["1"] = true } do
      local other = assert(store:create { triggers = { interval = text } })
      os.execute "sleep 1.1"
      assert.equal(fires and "timer" or "turn", assert(other:turn(pair "one")).policy.reason, text)
    end
  end)

  it("that is wrong raises on the caller's line, with the nearest name", function()
    guarded.unguarded_only "stores are opened on another line"
    open {}
    local s = assert(store:create())
    for _, case in ipairs {
      { { mesages = 4 }, "did you mean 'messages'" },
      { { messages = 0 }, "above 0" },
      { { messages = 1.5 }, "whole number expected, got 1.5" },
      { { messages = 1e300 }, "whole number expected" },
      { { events = { "de\0ploy" } }, "event 1: a name expected" },
      { { share = 80 }, "a share of the window" },
      { { share = "most" }, "a share of the window" },
      { { interval = "10 min" }, "seconds" },
      { { interval = 0 }, "seconds" },
      { { events = "deploy" }, "table expected" },
      { { events = { 7 } }, "event 1" },
      { { events = { deploy = true } }, "a list of names" },
      { { events = { "a", nil, "b" } }, "event 2: a name expected" },
      { { events = { "\xff" } }, "event 1: a name expected" },
      { 50, "table or false expected, got 50" },
    } do
      for _, call in ipairs {
        function() sessile.open("ram:", { triggers = case[1] }) end,
        function() store:create { triggers = case[1] } end,
        function() s:turn(pair "x", { triggers = case[1] }) end,
      } do
        local ok, message = pcall(call)
        assert.is_false(ok)
        assert.truthy(message:find(case[2], 1, true), message)
        assert.truthy(message:find("trigger_spec.lua:", 1, true), message)
      end
    end
    assert.same({}, assert(s:messages()))
  end)

  it("runs every policy of a chain that compacts, and asks none of them whether", function()
    local calls = {}
    local function noting(name, hooks)
      local made = { name = name }
      for _, hook in ipairs(hooks) do
        made[hook] = function(_, ctx)
          calls[#calls + 1] = ("%s.%s:%s"):format(name, hook, ctx.reason)
          return hook == "should_compact" and false or nil
        end
      end
      return made
    end
    local s = assert(open { triggers = { messages = 4 }, policy = {
      noting("a", { "should_compact", "flush", "compact" }),
      noting("b", { "truncate" }),
      noting("c", { "compact" }),
    } }:create())
    assert(s:turn(pair "one"))
    assert(s:turn(pair "two"))
    assert.same({ "b.truncate:turn", "a.should_compact:threshold",
      "b.truncate:turn", "a.flush:threshold", "a.compact:threshold", "c.compact:threshold" }, calls)
  end)
end)

-- Policy files, here and in a process of their own.
for _, isolation in ipairs { "none", "worker" } do
  describe("with isolation = " .. isolation, function()
    local store
    local paths

    before_each(function() paths = {} end)
    after_each(function()
      store:close()
      for _, path in ipairs(paths) do os.remove(path) end
    end)

    local function policy(text)
      paths[#paths + 1] = file(text)
      return paths[#paths]
    end

    local function open(options)
      options.key, options.isolation = false, isolation
      options.worker = workers.path
      options.policy_path = "policies"
      store = stores.open("ram:", options)
      return assert(store:create { id = "s" })
    end

    it("flush runs before compact, asks the model, keeps notes, may edit; it has no memory",
      function()
        local s = open {
          triggers = { messages = 6 },
          model = function(request) return "saved for " .. request.purpose end,
          policy = policy [[
            return { name = "careful",
              flush = function(state, ctx)
                ctx.log("flush", ctx.reason, tostring(ctx.memory))
                state.vars.saved = ctx.model { messages = {}, purpose = "flush" }
                state:drop(1)
              end,
              compact = function(state, ctx)
                ctx.log("compact", ctx.reason, state.vars.saved, #state.messages)
                state:keep_last(1, "turns")
              end }
          ]],
        }
        assert(s:turn(pair "one"))
        assert(s:turn(pair "two"))
        local outcome = assert(s:turn(pair "three"))
        assert.same({ "flush threshold nil",
          "compact threshold saved for flush 5" }, outcome.log)
        assert.equal(4, outcome.policy.dropped)
        assert.same({ saved = "saved for flush" },
          s:entry(outcome.compaction).data.vars.careful)
      end)

    it("an edit of flush is judged like any other", function()
      local s = open {
        triggers = { messages = 2 },
        policy = policy [[
          return { name = "rash",
            flush = function(state) state:drop(#state.messages - 1) end,
            compact = function() error("never reached", 0) end }
        ]],
      }
      local outcome = assert(s:turn(pair "one"))
      assert.equal(5, outcome.policy.law)
      assert.equal("flush", outcome.policy.hook)
    end)

    it("instructions and reason reach flush and compact", function()
      local s = open {
        policy = policy [[
          local function tell(state, ctx) ctx.log(ctx.reason, ctx.instructions) end
          return { name = "telling", flush = tell, compact = tell }
        ]],
      }
      assert(s:turn(pair "one"))
      local outcome = assert(s:compact { instructions = "keep the names" })
      assert.same({ "manual keep the names", "manual keep the names" },
        outcome.log)
      assert.equal("manual", outcome.policy.reason)
      outcome = assert(s:compact { reason = "overflow" })
      assert.same({ "overflow nil", "overflow nil" }, outcome.log)
    end)

    for what, case in pairs {
      ["breaks a law"] = { "state:drop(#state.messages - 1)", law = 5 },
      ["raises"] = { "error('out of ideas', 0)" },
      ["spends its budget"] = { "state.vars.n = 1 while true do end", law = 10 },
    } do
      it("the fallback runs when the policy " .. what, function()
        local s = open {
          limits = { policy_ms = 200 },
          policy = policy(("return { name = 'unlucky', truncate = function(state, ctx) "
            .. "ctx.log('here') if #state.messages >= 6 then %s end end }"):format(case[1])),
          fallback = { "sliding_window", messages = 2 },
        }
        assert(s:turn(pair "one"))
        assert.is_nil(assert(s:turn(pair "two")).policy.fallback)
        local outcome = assert(s:turn(pair "three"))
        local told = outcome.policy
        assert.equal("unlucky", told.name)
        assert.is_string(told.refused)
        assert.is_false(told.applied)
        assert.equal(0, told.dropped)
        assert.equal(case.law, told.law)
        assert.equal("sliding_window", told.fallback.name)
        assert.is_true(told.fallback.applied)
        assert.equal("applied", told.fallback.verdict)
        assert.equal(4, told.fallback.dropped)
        assert.equal(4, #outcome.removals)
        assert.same({ "here" }, outcome.log)
        assert.equal(2, #outcome.context)
        assert.equal(2, #s:context())
        assert.truthy(tostring(outcome):find("refused, fallback applied", 1, true))
        assert.equal("unlucky", entries(s, "refusal")[1].data.policy)
        local data = s:entry(outcome.compaction).data
        assert.equal("sliding_window", data.policy[1].name)
        assert.equal("unlucky", data.fallback_of)
        assert.is_nil(data.vars and data.vars.unlucky)
        -- and goes on so
        assert(s:turn(pair "four"))
        outcome = assert(s:turn(pair "five"))
        assert.is_true(outcome.policy.fallback.applied)
      end)
    end

    it("a fallback that fails is told as well", function()
      local s = open {
        policy = policy "return { name = 'a', truncate = function() error('first', 0) end }",
        fallback = policy "return { name = 'b', truncate = function() error('second', 0) end }",
      }
      for i = 1, 3 do
        local outcome = assert(s:turn(pair("n" .. i)))
        assert.truthy(outcome.policy.refused:find("first", 1, true))
        assert.truthy(outcome.policy.fallback.refused:find("second", 1, true))
        assert.is_nil(outcome.policy.fallback.law)
        assert.equal(i > 1 and i - 1 or nil, outcome.policy.fallback.repeated)
      end
      assert.equal(2, #entries(s, "refusal"))
      assert.equal(6, #s:context())
    end)

    it("the fallback has notes of its own, and the policy keeps none of a run that was refused",
      function()
        local s = open {
          policy = policy [[return { name = "first", truncate = function(state)
            state.vars.n = (state.vars.n or 0) + 1
            if state.vars.n >= 2 then error("twice", 0) end end }]],
          fallback = policy [[return { name = "second", truncate = function(state, ctx)
            ctx.log(state.vars.n or "none")
            state.vars.n = 10 end }]],
        }
        assert(s:turn(pair "one"))
        assert.same({ "none" }, assert(s:turn(pair "two")).log)
        assert.same({ "10" }, assert(s:turn(pair "three")).log)
      end)
  end)
end

describe("a fallback", function()
  local broken = { name = "broken", truncate = function() error("no", 0) end,
    compact = function() error("no", 0) end }
  local function cutter(name)
    local function cut(state) state:keep_last(1, "turns") end
    return { name = name, truncate = cut, compact = cut }
  end

  it("is the call's, else the session's, else the store's; false is none", function()
    local store <close> = assert(sessile.open("ram:", { key = false, policy = broken,
      fallback = cutter "of the store" }))
    local s = assert(store:create())
    local own = assert(store:create { fallback = cutter "of the session" })
    local none = assert(store:create { fallback = false })
    for _, session in ipairs { s, own, none } do
      assert(session:turn(pair "one"))
    end
    assert.equal("of the store", assert(s:turn(pair "two")).policy.fallback.name)
    assert.equal("of the session", assert(own:turn(pair "two")).policy.fallback.name)
    assert.is_nil(assert(none:turn(pair "two")).policy.fallback)
    assert.equal("of the call",
      assert(none:turn(pair "x", { fallback = cutter "of the call" })).policy.fallback.name)
    assert.is_nil(assert(s:turn(pair "x", { fallback = false })).policy.fallback)
    assert.equal("of the store", assert(s:compact { reason = "timer" }).policy.fallback.name)
  end)

  it("is in a plan, and in what a person asks for, when the call names it", function()
    local store <close> = assert(sessile.open("ram:", { key = false, policy = broken }))
    local spare = { fallback = cutter "spare" }
    local s = assert(store:create())
    for i = 1, 3 do
      assert(s:turn(pair("n" .. i), { policy = false }))
    end
    local plan = assert(s:plan(spare))
    assert.truthy(plan.policy.refused)
    assert.is_true(plan.policy.fallback.applied)
    assert.equal(2, #plan.after)
    assert.equal(4, #plan.removals)
    assert.equal(6, #s:context())
    assert.equal(2, #assert(s:compact(spare)).context)
  end)

  it("may yield, and be stepped by hand", function()
    local store <close> = assert(sessile.open("ram:", { key = false, policy = broken,
      fallback = { name = "slow", truncate = function() coroutine.yield "waiting" end } }))
    local s = assert(store:create())
    local turn = coroutine.wrap(function() return assert(s:turn(pair "one")) end)
    assert.equal("waiting", turn())
    assert.equal("unchanged", turn().policy.fallback.verdict)

    local run <close> = assert(sessile.step(s, "turn", pair "two"))
    local asked = {}
    local need = assert(run:step())
    while need ~= true do
      asked[#asked + 1] = ("%s %s"):format(need.policy, need.fallback)
      assert(run:fail "by hand")
      need = assert(run:step())
    end
    assert.same({ "broken nil", "slow true" }, asked)
    assert.equal("by hand", assert(run:outcome()).policy.fallback.refused)
  end)

  it("that cannot be loaded is told where it is configured", function()
    local store <close> = assert(sessile.open("ram:", { key = false, policy_path = "policies" }))
    local s, message, code = store:create { fallback = "sliding_windw" }
    assert.is_nil(s)
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find("sliding_window", 1, true))
    local other
    other, message, code = sessile.open("ram:", { key = false, fallback = "./nothing.lua" })
    assert.is_nil(other)
    assert.equal("ENOTFOUND", code)
    assert.is_string(message)
  end)
end)

describe("a run that is pending", function()
  local folder, store, path
  local ASKER = [[return { name = "asker", compact = function(state, ctx)
    local text = ctx.model { messages = {}, purpose = "summary" }
    ctx.log(ctx.reason)
    state:insert(1, { content = text }, { covers = { 1, #state.messages - 2 } })
  end }]]

  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    path = file(ASKER)
  end)

  after_each(function()
    stores.clean()
    os.execute(("rm -rf '%s' '%s'"):format(folder, path))
  end)

  local function open(options)
    options.key = false
    store = stores.open(folder, options)
    return assert(store:session "s")
  end

  it("by a trigger continues for the same reason where no trigger is configured", function()
    local s = open { policy = path, triggers = { messages = 99, events = { "deploy" } },
      model = function() return sessile.later end }
    assert(s:turn(pair "one"))
    assert(s:turn(pair(("two "):rep(50))))
    local outcome = assert(s:turn(pair "three", { event = "deploy" }))
    assert.equal("paused", outcome.status)
    store:close()

    s = open {}
    outcome = assert(s:answer "what was said")
    assert.is_true(outcome.policy.applied)
    assert.equal("event", outcome.policy.reason)
    assert.same({ "event" }, outcome.log)
    local data = s:entry(outcome.compaction).data
    assert.equal("event", data.reason)
    assert.equal("deploy", data.event)
    assert.equal("what was said", s:context()[1].content)
    store:close()
  end)

  it("as a fallback continues as one", function()
    local broken = { name = "broken", compact = function() error("out of ideas", 0) end }
    local s = open { policy = broken, model = function() return sessile.later end }
    assert(s:turn(pair(("one "):rep(50))))
    assert(s:turn(pair "two"))
    local outcome = assert(s:compact { fallback = path })
    assert.equal("paused", outcome.status)
    assert.truthy(outcome.policy.refused:find("out of ideas", 1, true))
    assert.equal("pending", outcome.policy.fallback.verdict)
    store:close()

    s = open { policy = broken }
    outcome = assert(s:answer "what was said")
    assert.equal("completed", outcome.status)
    assert.equal("broken", outcome.policy.name)
    assert.truthy(outcome.policy.refused:find("out of ideas", 1, true))
    assert.is_true(outcome.policy.fallback.applied)
    assert.equal("broken", s:entry(outcome.compaction).data.fallback_of)
    assert.equal("what was said", s:context()[1].content)
    assert.same({}, assert(s:pending_runs()))
    store:close()
  end)

  it("and refused when it continues has its fallback", function()
    local out <close> = assert(io.open(path, "w"))
    out:write [[return { name = "asker", compact = function(_, ctx)
      error(ctx.model { messages = {} }, 0) end }]]
    out:close()
    local s = open { policy = path, model = function() return sessile.later end }
    assert(s:turn(pair "one"))
    assert(s:turn(pair "two"))
    assert.equal("paused", assert(s:compact()).status)
    store:close()

    s = open {}
    local outcome = assert(s:answer("no use", {
      fallback = { name = "spare", compact = function(state) state:keep_last(1, "turns") end },
    }))
    assert.truthy(outcome.policy.refused:find("no use", 1, true))
    assert.is_true(outcome.policy.fallback.applied)
    assert.equal(2, #s:context())
    assert.same({}, assert(s:pending_runs()))
    store:close()
  end)
end)

describe("a worker that is killed", function()
  it("has its fallback in a new one", function()
    local path = file "return { name = 'a', truncate = function() while true do end end }"
    local store <close> = assert(sessile.open("ram:", { key = false, isolation = "worker",
      worker = workers.path, policy_path = "policies",
      limits = { policy_ms = 50, policy_gas = 1 << 40 },
      policy = path, fallback = { "sliding_window", messages = 2 } }))
    local s = assert(store:create())
    for i = 1, 3 do
      local outcome = assert(s:turn(pair("n" .. i)))
      assert.truthy(outcome.policy.refused)
      assert.is_nil(outcome.policy.fallback.refused)
    end
    os.remove(path)
    assert.equal(2, #s:context())
  end)
end)
