-- The test kit itself: what it plays, what its assertions say, goldens, faults, shrinking.

local T = require "sessile.testing"
local asserts = require("sessile.testing.asserts").all
local generate = require "sessile.testing.generate"
local report = require "sessile.testing.report"
local shrink = require "sessile.testing.shrink"

local chat = {
  { role = "system", content = "You are a test." },
  { role = "user", content = "first" }, { role = "assistant", content = "one" },
  { role = "user", content = "second" }, { role = "assistant", content = "two" },
  { role = "user", content = "third" }, { role = "assistant", content = "three" },
}

describe("a policy under test", function()
  it("plays messages turn by turn and shows what is left of them", function()
    local r = T.load("examples/keep_last.lua", { turns = 2 }):run(chat)
    assert.equal(3, #r.outcomes)
    assert.equal(7, #r.messages)
    assert.equal(5, #r.context)
    assert.equal(1, r.applied)
    assert.lawful(r)
    assert.tool_pairs(r)
    assert.keeps(r, { "system", "last_user", "second" })
  end)

  it("has the triggers, the events and the fallback that a host would give it", function()
    local lazy = T.load { name = "lazy", compact = function(state) state:keep_last(1, "turns") end }
    assert.same({}, lazy:run(chat).fired)
    local r = lazy:run(chat, { triggers = { messages = 4 } })
    assert.same({ { turn = 2, reason = "threshold" } }, r.fired)
    r = lazy:run(chat, { triggers = { events = { "deploy" } }, event = { [3] = "deploy" } })
    assert.same({ { turn = 3, reason = "event" } }, r.fired)
    assert.equal(1, r.applied)
    assert.same({}, lazy:run(chat, { triggers = { events = { "deploy" } }, event = "other" }).fired)

    local broken = T.load { name = "broken", truncate = function() error "no" end }
    r = broken:run(chat, { fallback = { "examples/keep_last.lua", turns = 1 } })
    assert.equal(3, #r.refusals)
    assert.equal(2, r.applied)
    assert.equal(3, #r.context)
  end)

  it("says what the engine says of one that does not load", function()
    local ok, why = pcall(T.load, "no_such_policy")
    assert.is_false(ok)
    assert.truthy(why:find("no_such_policy", 1, true))
    ok, why = pcall(T.load, "examples/keep_last.lua", { turn = 3 })
    assert.is_false(ok)
    assert.truthy(why:find("turns", 1, true)) -- the nearest right name
  end)

  it("may be a table of hooks", function()
    local own = { name = "own" }
    function own.truncate(state)
      state:keep_last(2, "messages")
    end
    local r = T.load(own):run(chat)
    assert.lawful(r)
    assert.is_true(#r.context < 7)
  end)

  it("asks a scripted model, which counts", function()
    local model = T.model { "In short: three questions." }
    local r = T.load("summarize", { preserve_recent = 2 }):run(chat, { model = model,
      compact = true, instructions = "briefly" })
    assert.equal(1, model.calls)
    assert.truthy(model.requests[1].messages)
    assert.lawful(r)
  end)

  describe("with a recorded model", function()
    local path
    before_each(function()
      path = os.tmpname()
      os.remove(path)
    end)
    after_each(function() os.remove(path) end)

    local function summarize(model)
      return T.load("summarize", { preserve_recent = 2 }):run(chat, { model = model,
        compact = true })
    end

    it("plays back what was kept, and asks nobody", function()
      local file = assert(io.open(path, "w"))
      local request
      summarize(function(asked) request = asked return "x" end)
      file:write(('{"request":%s,"answer":"Three \\"questions\\"."}\n'):format(
        require("sessile.core").text(request)))
      file:close()
      local model = T.recorded(path, function() error "nobody is asked" end)
      local r = summarize(model)
      assert.equal(1, model.calls)
      assert.keeps(r, { "Three" })
      assert.equal('Three "questions".', r.context[2].content)
    end)

    it("fails the test, not the policy, when an answer is missing", function()
      local ok, why = pcall(summarize, T.recorded(path))
      assert.is_false(ok)
      assert.truthy(why:find("RECORD=1", 1, true))
      assert.is_nil(io.open(path))
    end)

    it("keeps what it asked with RECORD=1", function()
      local getenv = os.getenv
      os.getenv = function(name) return name == "RECORD" and "1" or getenv(name) end -- luacheck: ignore
      local ok, why = pcall(summarize, T.recorded(path, function() return "A real answer." end))
      os.getenv = getenv -- luacheck: ignore
      assert.is_true(ok, why)
      local r = summarize(T.recorded(path))
      assert.equal("A real answer.", r.context[2].content)
    end)
  end)

  it("plays what a recording holds", function()
    local fixture = T.fixture "examples/demo-session.jsonl"
    assert.equal("demo-session", fixture.name)
    local r = T.load("sliding_window"):run(fixture, { window = 12000 })
    assert.equal(90, #r.messages)
    assert.within_budget(r)
  end)
end)

describe("an assertion", function()
  local r
  before_each(function()
    r = T.load("examples/keep_last.lua", { turns = 1 }):run(chat)
  end)

  it("names the message that is missing", function()
    local ok, why = asserts.keeps(r, { "first" })
    assert.is_false(ok)
    assert.truthy(why:find("00000002", 1, true))
  end)

  it("does not take what is in no message for kept", function()
    local ok, why = asserts.keeps(r, { "sytem" })
    assert.is_false(ok)
    assert.truthy(why:find("'sytem' is in no message", 1, true))
    assert.is_true((asserts.keeps(r, { "errors", "system" })))
  end)

  it("fails with its sentence, and not with the whole result", function()
    local ok, failure = pcall(assert.keeps, r, { "first" })
    assert.is_false(ok)
    local text = tostring(type(failure) == "table" and failure.message or failure)
    assert.truthy(text:find("is not in the context", 1, true))
    assert.is_nil(text:find("table:", 1, true))
    assert.is_true(#text < 200)
  end)

  it("says that a refused proposal is not lawful, and why", function()
    local bad = T.load("spec/mistakes/drops_the_system.lua"):run(chat)
    local ok, why = asserts.lawful(bad)
    assert.is_false(ok)
    assert.truthy(why:find("law 5", 1, true))
  end)

  it("says by how much a context does not fit", function()
    local big = T.load("examples/keep_last.lua", { turns = 9 }):run({
      { role = "user", content = ("word "):rep(200) } }, { window = 50 })
    local ok, why = asserts.within_budget(big)
    assert.is_false(ok)
    assert.truthy(why:find("tokens too large", 1, true))
    assert.is_false((asserts.within_budget(r))) -- no window: nothing was shown
  end)
end)

describe("a golden", function()
  local folder
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(require("lfs").mkdir(folder))
  end)
  after_each(function()
    os.execute("rm -r '" .. folder .. "'")
  end)

  it("is missing, is kept, is compared", function()
    local policy = T.load("examples/keep_last.lua", { turns = 1 })
    local ok, why = asserts.golden(policy:run(chat), folder)
    assert.is_false(ok)
    assert.truthy(why:find("UPDATE_GOLDEN=1", 1, true))
    local file <close> = assert(io.open(folder .. "/keep_last-messages.txt", "w"))
    file:write(why:match "\n(.*)$")
    file:close()
    assert.is_true((asserts.golden(policy:run(chat), folder)))
    local other = T.load("examples/keep_last.lua", { turns = 2 })
    ok, why = asserts.golden(other:run(chat), folder)
    assert.is_false(ok)
    assert.truthy(why:find("line 1 was", 1, true))
  end)
end)

describe("generated conversations", function()
  it("come back from their seed", function()
    assert.same(generate.turns(11), generate.turns(11))
    assert.not_same(generate.turns(11), generate.turns(12))
  end)

  it("have what real ones have", function()
    local seen = { parallel = 0, unanswered = 0, errors = 0, long = 0, blocks = 0, words = 0 }
    for seed = 1, 60 do
      local waiting = {}
      for _, turn in ipairs(generate.turns(seed)) do
        for _, m in ipairs(turn) do
          seen.parallel = seen.parallel + (m.tool_calls and #m.tool_calls > 1 and 1 or 0)
          seen.errors = seen.errors + (m.is_error and 1 or 0)
          seen.long = seen.long + (#tostring(m.content) > 2000 and 1 or 0)
          seen.blocks = seen.blocks + (type(m.content) == "table" and 1 or 0)
          seen.words = seen.words + (tostring(m.content):find "[\xe0-\xff]" and 1 or 0)
          for _, call in ipairs(m.tool_calls or {}) do
            waiting[call.id] = true
          end
          if m.tool_call_id then
            waiting[m.tool_call_id] = nil
          end
        end
      end
      seen.unanswered = seen.unanswered + (next(waiting) and 1 or 0)
    end
    for what, count in pairs(seen) do
      assert.is_true(count > 0, what)
    end
  end)
end)

describe("shrinking", function()
  it("leaves what fails and nothing else", function()
    local turns = generate.turns(3, { turns = 12 })
    table.insert(turns[#turns], { role = "user", content = "the culprit" .. (" word"):rep(90) })
    local function fails(list)
      for _, turn in ipairs(list) do
        for _, m in ipairs(turn) do
          if type(m.content) == "string" and m.content:find("culprit", 1, true) then
            return true
          end
        end
      end
      return false
    end
    local least = shrink.turns(turns, fails)
    assert.equal(1, #least)
    assert.equal(1, #least[1])
    assert.is_true(#least[1][1].content < 30)
  end)

  it("reaches into blocks", function()
    local block = { type = "text", text = ("word "):rep(50) .. "culprit" }
    local function fails(list)
      local last = list[#list][#list[#list]]
      return type(last.content) == "table" and last.content[2].text:find("culprit", 1, true) ~= nil
    end
    local least = shrink.turns({ { { role = "user", content = {
      { type = "text", text = ("other "):rep(50) }, block } } } }, fails)
    assert.is_true(#least[1][1].content[1].text <= 6)
    assert.truthy(least[1][1].content[2].text:find "culprit")
    assert.equal(257, #block.text) -- what was given is as it was
  end)

  it("cuts a recording to the few messages that show it", function()
    local broken, played = T.check(T.load "spec/mistakes/cut_anywhere.lua",
      { runs = 0, windows = { 4000 }, fixtures = { "examples/demo-session.jsonl" } })
    assert.equal(1, played)
    assert.truthy(broken[1]:find("lost its call", 1, true))
    assert.truthy(broken[1]:find("cut from the recording demo-session", 1, true))
    local _, lines = broken[1]:gsub("\n", "")
    assert.is_true(lines <= 12, broken[1])
    assert.is_true(#broken[1] < 1500, broken[1])
  end)

  it("shows nothing that a terminal obeys", function()
    local text = report.turns { { { role = "user", content = "\27[2Jred\7\xff" } } }
    assert.is_nil(text:find "[\1-\9\11-\31\127]")
    assert.truthy(text:find("red", 1, true))
  end)
end)

describe("the policies that ship", function()
  for _, name in ipairs { "sliding_window", "edit_tools", "key_messages", "merge_dedupe",
    "summarize", "tiered", "token_budget" } do
    describe(name, function()
      local policy = T.load(name)
      T.laws(policy, { runs = 20 })
      T.faults(policy)
    end)
  end
end)
