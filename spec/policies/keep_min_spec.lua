-- keep_min_spec.lua: `keep_min` says how many of the newest messages every proposal keeps.
local sessile = require "sessile"
local temp = require "spec.support.temp"
local workers = require "spec.support.workers"

-- A policy that keeps the newest `n` messages.
local function newest(n)
  return { truncate = function(state)
    local list = {}
    for i = math.max(1, #state.messages - n + 1), #state.messages do
      list[#list + 1] = state.messages[i]
    end
    return { messages = list }
  end }
end

-- Answers of one agent only: the user's last message, which another law keeps, is not among them.
local function said(n)
  local list = { { role = "user", content = "begin" } }
  for i = 1, n do
    list[#list + 1] = { role = "assistant", content = "answer " .. i }
  end
  list[#list + 1] = { role = "user", content = "the end" }
  return list
end

local function compacted(store_options, session_options, run_options, n)
  store_options.key = false
  local store <close> = assert(sessile.open("ram:", store_options))
  local s <close> = assert(store:create(session_options))
  assert(s:turn(said(8), { policy = false }))
  run_options.policy = newest(n)
  local outcome = assert(s:compact(run_options))
  return outcome.policy, #s:context()
end

local function refused(count, policy, left)
  assert.equal("refused", policy.verdict)
  assert.equal(7, policy.law)
  assert.truthy(policy.refused:find(("one of the newest %d messages"):format(count), 1, true),
    policy.refused)
  assert.equal(10, left)
end

local function passes(n, policy, left)
  assert.equal("applied", policy.verdict)
  assert.equal(n, left)
end

describe("keep_min", function()
  local policy_file = temp.policies()

  it("is known to policies, of the host and in files, in every isolation", function()
    for given, known in pairs { [0] = 2, [5] = 5 } do
      local seen
      local policy = { truncate = function(state)
        seen = state.keep_min
        return newest(state.keep_min).truncate(state)
      end }
      local store <close> = assert(sessile.open("ram:", { key = false, keep_min = given }))
      local s <close> = assert(store:create())
      assert(s:turn(said(8), { policy = false }))
      assert.equal("applied", assert(s:compact { policy = policy }).policy.verdict)
      assert.equal(known, seen)
      assert.equal(known, #s:context())
    end
    for _, isolation in ipairs { "none", "worker" } do
      local store <close> = assert(workers.open { isolation = isolation })
      local s <close> = assert(store:create())
      assert(s:turn(said(8), { policy = false }))
      local outcome = assert(s:compact { keep_min = 4, policy = policy_file("newest", [[
        return { truncate = function(state) state:keep_last(state.keep_min, "messages") end }]]) })
      assert.equal("applied", outcome.policy.verdict)
      assert.equal(4, #s:context())
    end
  end)

  it("is 2 where nobody gives it, or gives 0", function()
    refused(2, compacted({}, {}, {}, 1))
    passes(2, compacted({}, {}, {}, 2))
    refused(2, compacted({ keep_min = 0 }, { keep_min = 0 }, { keep_min = 0 }, 1))
  end)

  it("is the store's, the agent's, the session's or the call's", function()
    refused(5, compacted({ keep_min = 5 }, {}, {}, 4))
    passes(5, compacted({ keep_min = 5 }, {}, {}, 5))
    refused(6, compacted({ keep_min = 5, agents = { main = { keep_min = 6 } } }, {}, {}, 5))
    refused(4, compacted({ keep_min = 2 }, { keep_min = 4 }, {}, 3))
    refused(7, compacted({ keep_min = 2 }, { keep_min = 4 }, { keep_min = 7 }, 4))
    passes(1, compacted({ keep_min = 5 }, {}, { keep_min = 1 }, 1))
  end)

  it("is a number of messages", function()
    assert.has_error(function() sessile.open("ram:", { keep_min = -1 }) end)
    assert.has_error(function() sessile.open("ram:", { keep_min = "few" }) end)
  end)
end)
