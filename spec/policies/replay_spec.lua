-- replay: a recording under a policy, the same every time.

local jsonl = require "sessile.import.jsonl"
local replay = require "sessile.replay"
local sessile = require "sessile"

local function recording(turns)
  local list = { '{"role":"system","content":"be brief"}' }
  for n = 1, turns do
    list[#list + 1] = ('{"role":"user","content":"question %d"}'):format(n)
    list[#list + 1] = ('{"role":"assistant","content":"reading","tool_calls":'
      .. '[{"id":"c%d","name":"read","arguments":"{}"}]}'):format(n)
    list[#list + 1] = ('{"role":"tool","tool_call_id":"c%d","content":"%s"}'):format(n,
      ("some words of output "):rep(60))
    list[#list + 1] = ('{"role":"assistant","content":"answer %d",'
      .. '"usage":{"input":99999,"output":1}}'):format(n)
  end
  local i = 0
  return jsonl.records(function()
    i = i + 1
    return list[i]
  end)
end

-- Without what the clock says.
local function timeless(ledger)
  ledger.engine_us, ledger.policy_us, ledger.bytes = nil, nil, nil
  return ledger
end

describe("replay", function()
  it("leaves out what providers had reported of another context", function()
    local ledger = assert(replay.run(recording(5), {}))
    assert.equal(ledger.all, ledger.tokens)
    assert.is_true(ledger.tokens < 99999)
  end)

  it("without a policy appends, and that is all", function()
    local ledger = assert(replay.run(recording(5), {}))
    assert.equal(6, ledger.turns)
    assert.equal(21, ledger.messages)
    assert.same({}, ledger.compactions)
    assert.same({}, ledger.refusals)
    assert.equal(21, ledger.context)
    assert.equal(ledger.all, ledger.tokens)
    assert.is_true(ledger.bytes > 0)
  end)

  it("shows each compaction, with tokens before and after", function()
    local ledger = assert(replay.run(recording(30), {
      policy = "sliding_window", window = 4000, reserve = 200,
    }))
    assert.is_true(#ledger.compactions >= 2)
    for _, compaction in ipairs(ledger.compactions) do
      assert.is_true(compaction.after < compaction.before)
      assert.is_true(compaction.dropped > 0)
      assert.is_string(compaction.policy)
    end
    assert.same({}, ledger.cannot_fit)
    assert.same({}, ledger.refusals)
    assert.is_true(ledger.tokens <= 3800)
    assert.is_true(ledger.tokens < ledger.all)
  end)

  it("is the same every time", function()
    local options = { policy = "tiered", window = 4000, reserve = 200 }
    local first = timeless(assert(replay.run(recording(30), options)))
    assert.same(first, timeless(assert(replay.run(recording(30), options))))
    assert.is_true(#first.compactions > 0)
  end)

  it("says where a policy was refused, and continues", function()
    local ledger = assert(replay.run(recording(4), {
      policy = { name = "greedy", truncate = function(state) state:drop(1, #state.messages) end },
    }))
    assert.is_true(#ledger.refusals > 0)
    assert.equal("greedy", ledger.refusals[1].policy)
    assert.is_number(ledger.refusals[1].law)
    assert.equal(17, ledger.messages)
  end)

  it("leaves the session in a store that is given", function()
    local store = assert(sessile.open("ram:", { key = false }))
    local ledger, session = assert(replay.run(recording(3), { store = store, id = "kept" }))
    assert.equal("kept", session.id)
    assert.equal(ledger.messages, #session:messages())
    session:close()
    store:close()
  end)

  it("names a policy that is not there", function()
    local none, message, code = replay.run(recording(1), { policy = "no_such_policy" })
    assert.is_nil(none)
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find("no_such_policy", 1, true))
  end)

  it("has a model that answers from the request alone", function()
    local request = { messages = {
      { role = "user", content = "please look at the start" },
      { role = "assistant", content = { { type = "text", text = "I did" } } },
    } }
    assert.equal(replay.model(request), replay.model(request))
    assert.truthy(replay.model(request):find("2 messages", 1, true))
    assert.truthy(replay.model(request):find("please look at the start", 1, true))
    assert.is_string(replay.model {})
  end)
end)
