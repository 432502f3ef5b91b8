-- month.lua: a month of chat: 10,000 messages in a window of 8,000 tokens. The context is compacted
-- at 80 % of it, decisions are saved as notes before, and the log keeps every message.
--
--     build/bin/sessile run examples/month.lua [MESSAGES]   # 1,000 or more
--
-- A script writes the summaries unless an endpoint is configured: see model.lua.
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

local MESSAGES, WINDOW, RESERVE = tonumber(arg[1] or 10000), 8000, 1000
local DAY, START = 24 * 60 * 60 * 1000, 1767225600000 -- in ms; 2026-01-01
local folder, session = io.popen("mktemp -d"):read "l", nil

-- ------------------------------------------------------------------ the notes

-- A policy that only takes notes: before a compaction it saves the decisions that are in the
-- context. vars belong to the policy and are saved; custom entries are for the host.
local notes = {
  name = "notes", compact = function() end, -- flush runs before it, and not without it
  flush = function(state)
    for _, message in ipairs(state.messages) do
      local number = message.role == "user" and type(message.content) == "string"
        and tonumber(message.content:match "^Decision (%d+):")
      if number and number > (state.vars.newest or 0) then
        state.vars.newest = number
        assert(session:custom { note = message.content, message = message.id })
      end
    end
  end,
}

-- ------------------------------------------------------------------ the conversation

local ask = model.choose(function()
  return "Summary of the conversation so far: small talk, and decisions, which are in the notes."
end)

-- The messages of turn n. Every fifth turn has a call, every twenty-fifth a decision.
local function turn(n, time)
  local list = { { role = "user", content = ("What about part %d of the plan?"):format(n) } }
  if n % 25 == 0 then
    list[1].content = ("Decision %d: part %d as in plan B."):format(n // 25, n)
  end
  if n % 5 == 0 then
    local id = "call_" .. n
    list[2] = { role = "assistant", content = "", tool_calls = {
      { id = id, name = "look_up", arguments = ('{"part":%d}'):format(n) } } }
    list[3] = { role = "tool", tool_call_id = id, content = ("a row of the table, "):rep(40) }
  end
  list[#list + 1] = { role = "assistant", content = ("Part %d is fine. "):format(n):rep(6) }
  for _, message in ipairs(list) do
    message.timestamp = time
  end
  return list
end

local function open()
  local store = assert(sessile.open(folder, {
    key = false, durability = "none", -- a month in seconds: the disk is not waited for
    policy = { notes, "tiered" }, triggers = { share = 0.8 }, fallback = "sliding_window",
    model = ask, window = WINDOW, reserve = RESERVE,
  }))
  session = assert(store:session "january")
  return store
end

-- The CPU time of opening the session, in ms: the best of five.
local function opening()
  local best = math.huge
  for _ = 1, 5 do
    local began = os.clock()
    local again = open()
    assert(session:context())
    again:close()
    best = math.min(best, 1000 * (os.clock() - began))
  end
  return best
end

-- ------------------------------------------------------------------ the month

local store = open()
assert(session:append { role = "system", content = "You help to plan a house." })
local said, n, compactions, opened = 1, 0, 0, nil
while said < MESSAGES do
  n = n + 1
  local messages = turn(n, START + 30 * DAY * said // MESSAGES)
  local outcome = assert(session:turn(messages))
  assert(not outcome.policy.refused, outcome.policy.message) -- every law is kept
  assert(outcome.tokens.after <= WINDOW - RESERVE)
  compactions = compactions + (outcome.compaction and 1 or 0)
  said = said + #messages
  if said >= 1000 and not opened then
    store:close()
    opened = opening()
    store = open()
  end
end
store:close()
local last = opening()
store = open()

local context, info = session:context()
local all = assert(session:messages())
for i = 0, 9 do -- the newest are as they were said
  assert(sessile.of(context[#context - i]).json == sessile.of(all[#all - i]).json)
end
assert(context[1].role == "system" and info.orphans == 0 and info.unanswered == 0)
local noted = 0
for _ in assert(session:entries { types = { "custom" } }) do noted = noted + 1 end
print(("%d messages in %d days, %d compactions"):format(#all,
  (all[#all].timestamp - START) // DAY + 1, compactions))
print(("the model is shown %d messages, %d tokens of %d"):format(#context, info.tokens, WINDOW))
print(("%d decisions, %d noted before they went"):format(n // 25, noted))
print(("opened in %.1f ms with 1,000 messages, in %.1f ms with %d: %.1f times"):format(opened,
  last, #all, last / opened))
store:close()
assert(os.execute(("rm -r '%s'"):format(folder)))
