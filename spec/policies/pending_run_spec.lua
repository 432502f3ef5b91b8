-- A run that waits for a model: deferred here, answered there.

local cli = require "spec.support.cli"
local run, done, json, write = cli.sessile, cli.done, cli.json, cli.write
local sessile = require "sessile"

local ASKER = [[
return {
  name = "asker", version = 1,
  compact = function(state, ctx)
    local text, why = ctx.model{ messages = {{ role = "user", content = "Sum it up." }},
      purpose = "summary" }
    if not text then
      ctx.log("no answer: " .. why)
      return
    end
    if text == "more" then
      text = ctx.model{ messages = {{ role = "user", content = "More, please." }} } or "none"
    end
    state:insert(1, { content = text }, { covers = { 1, #state.messages - 2 } })
  end,
}
]]

local home

cli.each_test(function(path)
  home = path
  write(home .. "/asker.lua", ASKER)
end)

local LONG = ("a long answer that is worth a summary "):rep(20)

local function fill(session)
  for i = 1, 4 do
    assert(session:append { role = "user", content = "question " .. i })
    assert(session:append { role = "assistant", content = LONG })
  end
end

describe("in Lua", function()
  local store, session

  before_each(function()
    store = assert(sessile.open("ram:", { policy = home .. "/asker.lua" }))
    session = assert(store:create { id = "s" })
    fill(session)
  end)

  after_each(function()
    session:close()
    store:close()
  end)

  local function later()
    return sessile.later
  end

  it("is judged by the keep_min that it began with", function()
    assert(session:compact { model = later, keep_min = 3 })
    local outcome = assert(session:answer "What was said.")
    assert.equal(7, outcome.policy.law)
    assert.truthy(outcome.policy.refused:find("one of the newest 3 messages", 1, true))
  end)

  it("is pending when the model says later, and continues with the answer", function()
    local outcome = assert(session:compact { model = later })
    assert.equal("paused", outcome.status)
    assert.equal("pending", outcome.policy.verdict)
    local pending_runs = assert(session:pending_runs())
    assert.equal(1, #pending_runs)
    assert.equal(outcome.pending_run, pending_runs[1].id)
    assert.equal("asker", pending_runs[1].policy)
    assert.equal("summary", pending_runs[1].request.purpose)
    assert.equal("Sum it up.", pending_runs[1].request.messages[1].content)

    -- nobody is held up
    assert(session:append { role = "user", content = "meanwhile" })
    outcome = assert(session:answer "What was said.")
    assert.equal("completed", outcome.status)
    assert.is_true(outcome.policy.applied)
    local context = session:context()
    assert.equal("What was said.", context[1].content)
    assert.equal("meanwhile", context[#context].content)
    assert.same({}, session:pending_runs())
    local none, message, code = session:answer "again"
    assert.is_nil(none)
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find("no run of it waits", 1, true))
  end)

  it("may be pending again, and asked again", function()
    local first = assert(session:compact { model = later }).pending_run
    local outcome = assert(session:answer("more", { pending_run = first, model = later }))
    assert.equal("paused", outcome.status)
    assert.are_not.equal(first, outcome.pending_run)
    assert.equal(1, #session:pending_runs())
    local asked = {}
    outcome = assert(session:answer(nil, { model = function(request)
      asked[#asked + 1] = request.messages[1].content
      return "All of it."
    end }))
    -- the first question was answered before it was pending
    assert.same({ "More, please." }, asked)
    assert.is_true(outcome.policy.applied)
    assert.equal("All of it.", session:context()[1].content)
  end)

  it("takes a failure for an answer", function()
    assert(session:compact { model = later })
    local outcome = assert(session:answer(nil, { failed = "no quota" }))
    assert.equal("unchanged", outcome.policy.verdict)
    assert.same({ "no answer: no quota" }, outcome.log)
    assert.same({}, session:pending_runs())
  end)

  it("comes to nothing when it is cancelled while its answer is taken in", function()
    assert(session:compact { model = later })
    local before = #session:context()
    local outcome = assert(session:answer("more", { model = function()
      assert(session:cancel "changed my mind")
      return "All of it."
    end }))
    assert.equal("stale", outcome.policy.verdict)
    assert.matches("cancelled meanwhile", outcome.policy.message, 1, true)
    assert.equal(before, #session:context())
  end)

  it("is cancelled by hand, step by step", function()
    local step <close> = assert(sessile.step(session, "compact"))
    assert.equal("model", assert(step:step()).kind)
    local pending_run = assert(step:defer())
    assert.equal(pending_run, session:pending_runs()[1].id)
    assert.equal("paused", step:outcome().status)
  end)
end)

describe("on the command line", function()
  before_each(function()
    done "new --id s"
    for i = 1, 4 do
      done(("append s 'question %d'"):format(i))
      done(("append s '%s' --role assistant"):format(LONG))
    end
  end)

  it("asks in one process and is answered in another", function()
    local pending_run = done(("compact s --policy %s/asker.lua --defer"):format(home)):match "%x+"
    local out, err = done "answer s"
    assert.truthy(out:find("asker asks its model", 1, true), out)
    assert.truthy(out:find("Sum it up.", 1, true), out)
    assert.truthy(err:find("sessile answer s -", 1, true), err)
    assert.equal(pending_run, json("answer s").pending_runs[1].id)
    assert.equal(pending_run, json("info s").pending_runs[1].entry)
    assert.truthy(done("info s"):find("asker asks its model", 1, true))
    -- shown is not answered
    done "append s 'meanwhile'"
    out = done "answer s 'What was said.'"
    assert.truthy(out:find("messages left the context", 1, true), out)
    assert.truthy(done("context s"):find("What was said.", 1, true))
    local _, message, status = run "answer s 'Too late.'"
    assert.equal(3, status)
    assert.truthy(message:find("session s is not suspended and has no pending run", 1, true),
                  message)
  end)

  it("keeps the answer of a policy that is refused", function()
    done(("compact s --policy %s/asker.lua --defer"):format(home))
    write(home .. "/asker.lua", (ASKER:gsub("state:insert", "error 'oh' state:insert")))
    local _, message, status = run "answer s 'What was said.'"
    assert.equal(1, status)
    assert.truthy(message:find("sessile answer s --again", 1, true), message)
    assert.is_true(json("answer s").pending_runs[1].refused)
    write(home .. "/asker.lua", ASKER)
    done "answer s --again"
    assert.truthy(done("context s"):find("What was said.", 1, true))
  end)

  it("says when the policy cannot be found any more", function()
    done(("compact s --policy %s/asker.lua --defer"):format(home))
    os.remove(home .. "/asker.lua")
    local _, message, status = run "answer s 'An answer.'"
    assert.equal(3, status)
    assert.truthy(message:find("asker", 1, true), message)
    -- and nothing is lost
    write(home .. "/other.lua", ASKER)
    done(("answer s 'An answer.' --policy %s/other.lua"):format(home))
  end)
end)
