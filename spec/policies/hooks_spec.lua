-- Policies injected by a host: order, optional hooks, priority, functions that wait, and
-- what happens when they fail.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

local function fill(s, turns)
  for i = 1, turns do
    assert(s:turn({ user("question " .. i), assistant("answer " .. i) }, { policy = false }))
  end
end

-- A new session with these turns.
local function filled(store, turns)
  local s = assert(store:create())
  fill(s, turns)
  return s
end

-- Runs f in a coroutine, answering each yield with answer(...); returns what f returned
-- and how often it yielded.
local function drive(f, answer)
  local co = coroutine.create(f)
  local yields = 0
  local result = table.pack(coroutine.resume(co))
  while coroutine.status(co) == "suspended" do
    yields = yields + 1
    result = table.pack(coroutine.resume(co, answer(table.unpack(result, 2, result.n))))
  end
  assert(result[1], result[2])
  return result[2], yields
end

-- A policy that covers everything before the last turn with what the model says.
local summarizer = {
  name = "summarizer",
  summarize = function(state, ctx)
    local cut = #state.messages - 2
    local text, reason = ctx.model { messages = { { role = "user", content = "summarize" } },
      max_tokens = 100, purpose = "summary" }
    if not text then
      error(reason)
    end
    state:insert(1, { role = "user", content = text, metadata = { kind = "summary" } },
      { covers = { 1, cut } })
  end,
}

stores.each_kind("host functions as a policy in", function(open)
  local store, s

  before_each(function()
    store = open()
    s = assert(store:create "s")
  end)

  it("run after the turn as merge, summarize, truncate", function()
    local order = {}
    local policy = {
      truncate = function() order[#order + 1] = "truncate" end,
      summarize = function() order[#order + 1] = "summarize" end,
      merge = function(_, next) order[#order + 1] = "merge" return next end,
    }
    assert(s:turn({ user "a" }, { policy = policy }))
    assert.same({ "merge", "summarize", "truncate" }, order)
  end)

  it("go on to flush and compact when should_compact says so", function()
    for _, wanted in ipairs { false, true } do
      local order = {}
      assert(s:turn({ user "a" }, { policy = {
        compact = function() order[#order + 1] = "compact" end,
        flush = function() order[#order + 1] = "flush" end,
        should_compact = function() order[#order + 1] = "should" return wanted end,
        truncate = function() order[#order + 1] = "truncate" end,
      } }))
      assert.same(wanted and { "truncate", "should", "flush", "compact" }
        or { "truncate", "should" }, order)
    end
  end)

  -- All eight subsets of the three hooks.
  for bits = 0, 7 do
    local names = {}
    for i, name in ipairs { "merge", "summarize", "truncate" } do
      if bits & (1 << (i - 1)) ~= 0 then
        names[#names + 1] = name
      end
    end
    it("may have " .. (#names > 0 and table.concat(names, ", ") or "no hook at all"), function()
      local order = {}
      local policy = {}
      for _, name in ipairs(names) do
        policy[name] = function() order[#order + 1] = name end
      end
      local outcome = assert(s:turn({ user "a" }, { policy = policy }))
      assert.same(names, order)
      assert.equal("unchanged", outcome.policy.verdict)
      assert.is_false(outcome.policy.applied)
      assert.same({ "a" }, contents(outcome.context))
    end)
  end

  it("may be left out of a table that has a name, as of a file", function()
    for _, policy in ipairs { { name = "idle" }, { options = { n = 1 }, about = "nothing" },
      { { name = "idle" }, { name = "idler", truncate = function() end } } } do
      local outcome = assert(s:turn({ user "a" }, { policy = policy }))
      assert.equal("unchanged", outcome.policy.verdict)
      assert.equal("unchanged", assert(s:compact { policy = policy }).policy.verdict)
    end
  end)

  it("give merge what was there before, which is nil at first", function()
    local before = {}
    local policy = { merge = function(previous, next)
      before[#before + 1] = previous and #previous or "nothing"
      assert(#next.messages >= 1)
      return next
    end }
    assert(s:turn({ user "a", assistant "b" }, { policy = policy }))
    assert(s:turn({ user "c" }, { policy = policy }))
    assert.same({ "nothing", 2 }, before)
  end)

  it("edit the context, never the log", function()
    fill(s, 4)
    local outcome = assert(s:turn({ user "last" }, {
      policy = { truncate = function(state) state:drop(1, 6) end } }))
    assert.is_true(outcome.policy.applied)
    assert.equal(6, outcome.policy.dropped)
    assert.same({ "question 4", "answer 4", "last" }, contents(outcome.context))
    assert.equal(9, #assert(s:messages()))
  end)

  it("may return the list that is to stay", function()
    fill(s, 3)
    local outcome = assert(s:turn({ user "last" }, {
      policy = { truncate = function(state)
        local keep = {}
        for i = 5, #state.messages do
          keep[#keep + 1] = state.messages[i]
        end
        return keep
      end } }))
    assert.is_true(outcome.policy.applied)
    assert.same({ "question 3", "answer 3", "last" }, contents(outcome.context))
  end)

  it("see options, session, reason, now and their helpers in ctx", function()
    local seen
    s.title = "A title"
    assert(s:turn({ user "a" }, { policy = {
      name = "looker", options = { turns = 3 },
      truncate = function(state, ctx)
        seen = {
          turns = ctx.options.turns, id = ctx.session.id, agent = ctx.session.agent,
          title = ctx.session.title, reason = ctx.reason, now = ctx.now,
          count = ctx.count "some words to count", random = ctx.random(10),
          tokens = state.tokens, window = state.window,
        }
        local keys = {}
        for key in ctx.sorted_pairs { b = 1, a = 2, [3] = 3 } do
          keys[#keys + 1] = key
        end
        seen.keys = keys
        ctx.log("looked at", #state.messages)
      end } }))
    assert.equal(3, seen.turns)
    assert.equal("s", seen.id)
    assert.equal("main", seen.agent)
    assert.equal("A title", seen.title)
    assert.equal("turn", seen.reason)
    assert.is_true(seen.now > 1600000000000)
    assert.is_true(seen.count > 0)
    assert.is_true(seen.random >= 1 and seen.random <= 10)
    assert.is_true(seen.tokens > 0)
    assert.equal(math.huge, seen.window)
    assert.same({ 3, "a", "b" }, seen.keys)
  end)

  it("say things with ctx.log that the outcome carries", function()
    local outcome = assert(s:turn({ user "a" }, { policy = { name = "talker",
      truncate = function(_, ctx) ctx.log("kept", 1) end } }))
    assert.same({ "talker: kept 1" }, outcome.log)
  end)

  it("are told what the person typed", function()
    fill(s, 3)
    local seen
    assert(s:compact { instructions = "keep file names", policy = {
      compact = function(_, ctx) seen = { ctx.instructions, ctx.reason } end } })
    assert.same({ "keep file names", "manual" }, seen)
  end)

  it("keep notes from turn to turn", function()
    local seen = {}
    local policy = { name = "counter", truncate = function(state)
      seen[#seen + 1] = state.vars.n or 0
      state.vars.n = (state.vars.n or 0) + 1
    end }
    for i = 1, 3 do
      assert(s:turn({ user("a" .. i) }, { policy = policy }))
    end
    assert.same({ 0, 1, 2 }, seen)
  end)

  it("run one after the other in a chain", function()
    fill(s, 5)
    local seen = {}
    local outcome = assert(s:turn({ user "last" }, { policy = {
      { name = "first", truncate = function(state)
        seen[1] = #state.messages
        state:keep_last(3, "turns")
      end },
      { name = "second", truncate = function(state)
        seen[2] = #state.messages
        state:keep_last(2, "turns")
      end },
    } }))
    assert.same({ 11, 5 }, seen)
    assert.same({ "question 5", "answer 5", "last" }, contents(outcome.context))
  end)

  it("raise for what is no policy", function()
    for _, policy in ipairs { 1, { sumarize = print }, { 1, 2 }, { merge = 1 } } do
      assert.has_error(function() s:turn({ user "a" }, { policy = policy }) end)
    end
    assert.same({}, assert(s:messages()))
    local twice = { name = "x", merge = function() end }
    local value, _, code = s:turn({ user "a" }, { policy = { twice, twice } })
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    local found, message, missing = s:turn({ user "a" }, { policy = "no_such_policy" })
    assert.is_nil(found)
    assert.equal("ENOTFOUND", missing)
    assert.matches("no_such_policy", message)
    assert.same({}, assert(s:messages()))
  end)
end)

stores.each_kind("a model in", function(open)
  local s

  before_each(function() s = filled(open(), 4) end)

  it("that answers at once is asked without yielding", function()
    local asked
    local outcome, yields = drive(function()
      return assert(s:turn({ user "last" }, { policy = summarizer,
        model = function(request) asked = request return "a summary" end }))
    end, error)
    assert.equal(0, yields)
    assert.equal("summarize", asked.messages[1].content)
    assert.equal(100, asked.max_tokens)
    assert.is_true(outcome.policy.applied)
    assert.equal("a summary", outcome.context[1].content)
    assert.equal("summary", outcome.context[1].metadata.kind)
    assert.equal("a summary", outcome.summary)
    assert.equal("covered", outcome.policy.removals[1].disposition)
  end)

  it("may yield, and gives the same context", function()
    local outcome, yields = drive(function()
      return assert(s:turn({ user "last" }, { policy = summarizer,
        model = function(request) return coroutine.yield(request) end }))
    end, function(request)
      assert.equal("summary", request.purpose)
      return "a summary"
    end)
    assert.equal(1, yields)
    assert.is_true(outcome.policy.applied)
    assert.equal("a summary", outcome.context[1].content)
  end)

  it("may be awaited in a hook as well", function()
    local outcome, yields = drive(function()
      return assert(s:turn({ user "last" }, { policy = { truncate = function(state)
        state:drop(1, coroutine.yield())
      end } }))
    end, function() return 2 end)
    assert.equal(1, yields)
    assert.equal(2, outcome.policy.dropped)
  end)

  it("is taken from the call, else the session, else the store", function()
    local function model(name)
      return function() return name end
    end
    local url = "ram:"
    local two <close> = assert(sessile.open(url, { model = model "store", policy = summarizer }))
    local plain = assert(two:create())
    local own = assert(two:create { model = model "session" })
    fill(plain, 3)
    fill(own, 3)
    assert.equal("store", assert(plain:turn { user "x" }).summary)
    assert.equal("session", assert(own:turn { user "x" }).summary)
    assert.equal("call", assert(own:turn({ user "y" }, { model = model "call" })).summary)
  end)

  it("is sent plain tables, also of what the state shows", function()
    assert(s:turn({ { role = "assistant", content = { { type = "text", text = "block" } } } },
      { policy = false }))
    local asked
    assert(s:turn({ user "last" }, { model = function(request) asked = request return "x" end,
      policy = { truncate = function(state, ctx) ctx.model { messages = state.messages } end } }))
    assert.equal(10, #asked.messages)
    assert.same(user "question 1", asked.messages[1])
    assert.same({ role = "assistant", content = { { type = "text", text = "block" } } },
      asked.messages[9])
  end)

  it("that fails costs the compaction and nothing else", function()
    local before = #s:messages()
    for reason, model in pairs {
      ["the line is dead"] = function() return nil, "the line is dead" end,
      ["the model raised"] = function() error "boom" end,
      ["the model raised: an error"] = function()
        error(setmetatable({}, { __tostring = function() error "no" end }))
      end,
      ["a number"] = function() return 42 end,
      ["a table"] = function() return {} end,
      ["no answer"] = function() end,
      ["no model is configured"] = false,
    } do
      local outcome = assert(s:turn({ user "x" },
        { policy = summarizer, model = model or nil }))
      before = before + 1
      assert.equal("completed", outcome.status)
      assert.is_false(outcome.policy.applied)
      assert.matches(reason, outcome.policy.refused, 1, true)
      assert.equal(before, #outcome.context)
      assert.equal(before, #s:messages())
    end
  end)

  it("may use the session while it is asked", function()
    local outcome = assert(s:turn({ user "last" }, { policy = summarizer,
      model = function()
        assert(s:append(user "meanwhile"))
        return "a summary"
      end }))
    assert.equal("completed", outcome.status)
    local list = contents(assert(s:context()))
    assert.equal("meanwhile", list[#list])
    assert.equal(10, #s:messages())
  end)

  it("that never comes back leaves the turn", function()
    do
      local co = coroutine.create(function()
        s:turn({ user "last" }, { policy = summarizer, model = coroutine.yield })
      end)
      assert(coroutine.resume(co))
      assert(coroutine.close(co))
    end
    assert.equal(9, #s:messages())
    assert.equal(9, #s:context())
  end)
end)

stores.each_kind("a policy that fails in", function(open)
  local s

  before_each(function() s = filled(open(), 3) end)

  local function refused(policy)
    local outcome = assert(s:turn({ user "last" }, { policy = policy }))
    assert.equal("completed", outcome.status)
    assert.equal("refused", outcome.policy.verdict)
    assert.is_false(outcome.policy.applied)
    assert.equal(0, outcome.policy.dropped)
    assert.is_nil(outcome.compaction)
    assert.equal(7, #outcome.context)
    assert.equal(7, #s:messages())
    local last
    for entry in s:entries { types = { "refusal" } } do
      last = entry
    end
    assert.equal(outcome.refusal, last.id)
    return outcome.policy, last
  end

  it("by raising leaves the context, and is in the outcome and the log", function()
    local policy, entry = refused { name = "bad",
      truncate = function(state) state:drop(1) error "on purpose" end }
    assert.matches("on purpose", policy.refused)
    assert.equal("bad", policy.name)
    assert.equal("truncate", policy.hook)
    assert.is_nil(policy.law)
    assert.matches("on purpose", entry.json)
  end)

  it("by breaking a law is told which", function()
    local policy = refused { name = "greedy",
      truncate = function(state) state:drop(1, #state.messages) end }
    assert.is_true(policy.law >= 1 and policy.law <= 10)
    assert.equal("greedy", policy.name)
  end)

  it("by speaking for the host or the model is told which role", function()
    local function speaks(role)
      local written = { role = role, content = "x" }
      return {
        function(state) state:insert(1, written) end,
        function(state) state:insert(1, written, { covers = { 1, 2 } }) end,
        function(state) state:insert(1, written, { covers = { 2, 2 } }) end,
        function(state)
          local list, both = {}, { state.messages[2], state.messages[4] }
          for i, message in ipairs(state.messages) do
            list[#list + 1] = i ~= 2 and i ~= 4 and message or nil
          end
          table.insert(list, 2, { role = role, content = "x", replaces = both })
          return { messages = list }
        end,
        function(state) -- another role than that of the replaced message
          local list = { table.unpack(state.messages) }
          list[1] = { role = role, content = "x", replaces = { state.messages[1] } }
          return { messages = list }
        end,
      }
    end
    for _, role in ipairs { "assistant", "model", "system", "developer", "tool", "function" } do
      for _, truncate in ipairs(speaks(role)) do
        local policy = refused { name = "voice", truncate = truncate }
        assert.equal(3, policy.law)
        assert.matches("has the role " .. role .. ", but does not replace one message of that role",
          policy.refused)
        s = filled(open(), 3)
      end
    end
    local edited = assert(s:turn({ user "last" }, { policy = { truncate = function(state)
      state:replace(2, { content = "y" })
    end } }))
    assert.is_true(edited.policy.applied)
    assert.same({ "assistant", "y" }, { s:context()[2].role, s:context()[2].content })
  end)

  it("by calling a tool that the model did not call is told so", function()
    local call = { id = "c1", type = "function", ["function"] = { name = "rm", arguments = "{}" } }
    local use = { type = "tool_use", id = "c1", name = "rm", input = {} }
    local answer = { type = "tool_result", tool_use_id = "c1", content = "done" }
    for _, truncate in ipairs {
      function(state)
        state:insert(1, { role = "user", content = { use, answer } }, { covers = { 1, 2 } })
      end,
      function(state)
        state:insert(1, { role = "user", content = "x", tool_calls = { call } },
          { covers = { 1, 2 } })
        state:insert(2, { role = "tool", content = "done", tool_call_id = "c1" },
          { covers = { 3, 4 } })
      end,
      function(state) -- in the place of what the model said
        local list = { table.unpack(state.messages) }
        list[2] = { role = "assistant", content = "x", tool_calls = { call },
          replaces = { list[2] } }
        table.insert(list, 3, { role = "tool", content = "done", tool_call_id = "c1" })
        return { messages = list }
      end,
    } do
      local policy = refused { name = "calls", truncate = truncate }
      assert.equal(3, policy.law)
      assert.matches("calls a tool, which only the model does", policy.refused)
      s = filled(open(), 3)
    end
  end)

  it("by writing what only a model says is told so", function()
    local function block(kind)
      return { role = "user", content = { { type = kind, thinking = "I will", data = "x" } } }
    end
    local written = { thinking = block "thinking", redacted_thinking = block "redacted_thinking",
      reasoning = block "reasoning", server_tool_use = block "server_tool_use" }
    for _, name in ipairs { "reasoning_content", "function_call", "refusal" } do
      written[name] = { role = "user", content = "x", [name] = "I will" }
    end
    written.reasoning_details = { role = "user", content = "x",
      reasoning_details = { { type = "reasoning.text", text = "I will" } } }
    for name, message in pairs(written) do
      for _, truncate in ipairs {
        function(state) state:insert(1, message, { covers = { 1, 2 } }) end,
        function(state) state:replace(1, { content = message.content, [name] = message[name] }) end,
        function(state) -- what the model said, in other words
          state:replace(2, { content = "y" })
          state:replace(2, { content = message.content, [name] = message[name] })
        end,
      } do
        local policy = refused { name = "thinks", truncate = truncate }
        assert.equal(3, policy.law)
        assert.matches('has "' .. name .. '", which only the model writes', policy.refused, 1, true)
        s = filled(open(), 3)
      end
    end
  end)

  it("edits what the model thought, and leaves it empty", function()
    assert(s:append { role = "assistant", reasoning_content = "long",
      content = { { type = "thinking", thinking = "longer" }, { type = "text", text = "so" } } })
    local at = #s:context()
    local done = assert(s:turn({ user "more", { role = "assistant", content = "ok" }, user "last" },
      { keep_min = 1, policy = { truncate = function(state)
        state:replace(at, { content = { { type = "thinking", thinking = "l" } },
          reasoning_content = "l" })
        state:replace(1, { reasoning_content = "", content = "why?" })
      end } }))
    assert.is_true(done.policy.applied, done.policy.refused)
    assert.equal("l", s:context()[at].reasoning_content)
  end)

  it("by returning nonsense is refused", function()
    for _, value in ipairs { 42, "text", { messages = 1 }, { { content = 1 } } } do
      local outcome = assert(s:turn({ user "x" },
        { policy = { summarize = function() return value end } }))
      assert.equal("refused", outcome.policy.verdict)
    end
  end)

  it("may not use the state after its hook", function()
    local kept
    assert(s:turn({ user "x" }, { policy = { truncate = function(state) kept = state end } }))
    assert.has_error(function() return kept.tokens end)
    assert.has_error(function() kept:drop(1) end)
    assert.has_error(function() return kept.messages[1].content end)
  end)

  it("in a chain takes the whole chain back", function()
    refused { { name = "good", truncate = function(state) state:drop(1, 2) end },
      { name = "bad", truncate = function() error "no" end } }
  end)
end)

describe("the policy of a turn", function()
  local function marks(name, seen)
    return { name = name, truncate = function() seen[#seen + 1] = name end }
  end

  it("is the call's, else the session's, else the store's", function()
    local seen = {}
    local store <close> = assert(sessile.open("ram:", { policy = marks("store", seen) }))
    local plain = assert(store:create())
    local own = assert(store:create { policy = marks("session", seen) })
    local none = assert(store:create { policy = false })
    assert(plain:turn { user "a" })
    assert(own:turn { user "a" })
    assert(own:turn({ user "b" }, { policy = marks("call", seen) }))
    assert.is_nil(assert(own:turn({ user "c" }, { policy = false })).policy)
    assert.is_nil(assert(none:turn { user "d" }).policy)
    assert.same({ "store", "session", "call" }, seen)
  end)

  it("may be a file, with options, looked up or by its path", function()
    local dir = temp.dir()
    temp.write(dir .. "/newest.lua", [[
      return {
        name = "newest", version = 1,
        options = { turns = { type = "integer", default = 2, min = 1 } },
        truncate = function(state, ctx) state:keep_last(ctx.options.turns, "turns") end,
      }
    ]], "644")
    local store <close> = assert(sessile.open("ram:", { policy_path = dir, policy = "newest" }))
    local s = assert(store:create())
    fill(s, 4)
    assert.same({ "question 4", "answer 4", "last" },
      contents(assert(s:turn { user "last" }).context))
    local by_path = assert(s:turn({ user "more", assistant "and more" },
      { policy = { dir .. "/newest.lua", turns = 1 } }))
    assert.same({ "more", "and more" }, contents(by_path.context))
    local value, message, code = s:turn({ user "x" }, { policy = { "newest", trns = 1 } })
    assert.is_nil(value)
    assert.equal("EINVALID", code)
    assert.matches("turns", message)
    temp.clean()
  end)

  it("may mix files and functions", function()
    local dir = temp.dir()
    temp.write(dir .. "/newest.lua",
      'return { name = "newest", truncate = function(state) state:keep_last(2, "turns") end }',
      "644")
    local store <close> = assert(sessile.open("ram:", { policy_path = { dir } }))
    local s = assert(store:create())
    fill(s, 4)
    local seen
    local outcome = assert(s:turn({ user "last" }, { policy = { "newest",
      { name = "mine", truncate = function(state) seen = #state.messages end } } }))
    assert.equal(3, seen)
    assert.equal(3, #outcome.context)
    temp.clean()
  end)

  it("may be stepped by hand", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    fill(s, 4)
    local run <close> = assert(sessile.step(s, "turn", { user "last" }, { policy = summarizer }))
    assert.equal(9, #s:messages())
    local need = assert(run:step())
    assert.equal("hook", need.kind)
    assert.equal("summarize", need.hook)
    assert.equal("summarizer", need.policy)
    need.state:drop(1, 2)
    assert(run:reply())
    assert.is_true(run:step())
    local outcome = assert(run:outcome())
    assert.equal(2, outcome.policy.dropped)
    assert.equal(7, #outcome.context)
  end)
end)
