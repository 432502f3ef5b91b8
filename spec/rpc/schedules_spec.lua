-- `sessile rpc`: fifty runs at once, whose questions are answered in any order: in time, late,
-- wrongly, twice, or not before they are cancelled. Each request is answered once, and says what
-- became of its question; nothing of one run reaches another.

local cli = require "spec.support.cli"
local rpc = require "spec.support.rpc"
local sessile = require "sessile"

local SOAK = os.getenv "SESSILE_SOAK" == "1"
local ROUNDS, RUNS = SOAK and 40 or 1, 50

cli.each_test()

local state

local function random(most)
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 33) % most + 1
end

local POLICY = { name = "summarize", options = { preserve_recent = 2 } }

-- What is done with a question: what the outcome of its run must say.
local ways = {
  function(client, asked, name)
    client:raw(sessile.encode { jsonrpc = "2.0", id = asked.id,
      result = { text = "a summary of " .. name } })
    return "applied", "a summary of " .. name
  end,
  function(client, asked)
    client:raw(sessile.encode { jsonrpc = "2.0", id = asked.id, result = { nothing = 1 } })
    return "refused", "nothing"
  end,
  function(client, asked, name)
    local line = sessile.encode { jsonrpc = "2.0", id = asked.id,
      result = { failed = "no " .. name } }
    client:raw(line)
    client:raw(line)
    return "refused", "no " .. name
  end,
  function(client, asked)
    client:raw(sessile.encode { jsonrpc = "2.0", method = "rpc/cancel",
      params = { id = asked.params.run } })
    client:raw(sessile.encode { jsonrpc = "2.0", id = asked.id, result = { text = "too late" } })
    return "refused", "cancelled"
  end,
}

local function fill(client, name)
  local list = {}
  for i = 1, 8 do
    list[i] = { role = "user", content = (name .. " says much "):rep(12) .. i }
  end
  client:call("session/create", { id = name })
  client:call("session/turn", { session = name, messages = list })
end

local function round(client, number)
  local waiting, expected, answered = {}, {}, {}
  for i = 1, RUNS do
    fill(client, ("r%d-%d"):format(number, i))
  end
  for i = 1, RUNS do
    local name = ("r%d-%d"):format(number, i)
    client:send("session/compact", { session = name, policy = POLICY }, name)
  end
  local left = RUNS
  while left > 0 do
    if #waiting > 0 and random(3) > 1 or #waiting == RUNS then
      local asked = table.remove(waiting, random(#waiting))
      local name = asked.params.session
      expected[name] = { ways[random(#ways)](client, asked, name) }
    end
    if #waiting == 0 or random(2) == 1 then
      local message = client:line()
      if message.method == "ask/model" then
        assert.equal(message.params.run, message.params.session)
        waiting[#waiting + 1] = message
      else
        local name = message.id
        assert.is_nil(answered[name], name)
        answered[name] = true
        left = left - 1
        local policy = message.result.policy
        assert.equal(expected[name][1], policy.verdict, name)
        if policy.message then
          assert.truthy(policy.message:find(expected[name][2], 1, true), policy.message)
        end
      end
    end
  end
  for name, want in pairs(expected) do
    local _, line = client:call("session/context", { session = name })
    local at = line:find("a summary of " .. name, 1, true)
    assert.equal(want[1] == "applied", at ~= nil, name)
  end
end

describe("many runs at once", function()
  it("get their own answers, whatever the order", function()
    state = os.time()
    print("# seed " .. state)
    local client = rpc.start()
    client:call("rpc/hello", { asks = { "model" } })
    for number = 1, ROUNDS do
      round(client, number)
    end
    assert.equal(0, (client:finish()))
  end)
end)
