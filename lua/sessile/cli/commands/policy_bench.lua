--- policy bench: what a turn costs under a policy.
--
-- Owns: the generated conversation, and the table.

local common = require "sessile.cli.common"
local generate = require "sessile.testing.generate"
local replay = require "sessile.replay"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local SIZES = { 100, 1000, 10000 }
local TURNS = 100

-- Makes a session of at least `entries` messages, then turns under the policy: sorted µs of each.
local function measure(app, policy, entries, args)
  local store = app.try_or(common.policy_steps(args.name), sessile.open("ram:", {
    key = false, policy = policy, window = args.window, reserve = args.reserve,
    model = replay.model,
  }))
  local session = assert(store:create {})
  local turn, seed = {}, 1
  while #turn < entries do
    for _, one in ipairs(generate.turns(seed, { turns = 40 })) do
      for _, made in ipairs(one) do
        turn[#turn + 1] = made
      end
    end
    seed = seed + 1
  end
  assert(session:turn(turn, { policy = false }))
  local policy_us, engine_us, applied = {}, {}, 0
  for i = 1, TURNS do
    local outcome = app.try_or(common.policy_steps(args.name), session:turn {
      { role = "user", content = "question " .. i }, { role = "assistant", content = "answer" } })
    policy_us[i] = outcome.policy_us
    engine_us[i] = outcome.engine_us - outcome.policy_us
    applied = applied + (outcome.policy.applied and 1 or 0)
  end
  table.sort(policy_us)
  table.sort(engine_us)
  store:close()
  return { entries = #turn, policy = policy_us, engine = engine_us, applied = applied }
end

local function at(list, share)
  return list[math.max(1, math.ceil(#list * share))]
end

return {
  summary = "measure what a turn costs under a policy",
  usage = "policy bench NAME [--option NAME=VALUE] [--window N]",
  examples = [[
    sessile policy bench sliding_window --window 20000  at 100, 1,000 and 10,000 messages]],
  arguments = { common.policy_name },
  options = {
    common.policy_option,
    common.window, common.reserve,
  },
  about = [[
    Each turn has two messages and stays in memory, so no disk is measured. POLICY is the
    time of the script, ENGINE the time of the laws and everything else. The first turn
    may compact; that is the MAX column.]],
  run = function(app, args)
    local chosen = common.policy(app, args.name, args.option)
    local rows, list = {}, {}
    for i, size in ipairs(SIZES) do
      local seen = measure(app, chosen, size, args)
      list[i] = {
        messages = seen.entries, applied = seen.applied,
        policy_us = at(seen.policy, 0.5), policy_us_p95 = at(seen.policy, 0.95),
        policy_us_max = seen.policy[#seen.policy],
        engine_us = at(seen.engine, 0.5), engine_us_p95 = at(seen.engine, 0.95),
      }
      rows[i] = { terminal.number(seen.entries), terminal.number(seen.applied),
        terminal.number(list[i].policy_us), terminal.number(list[i].policy_us_p95),
        terminal.number(list[i].policy_us_max), terminal.number(list[i].engine_us),
        terminal.number(list[i].engine_us_p95) }
    end
    if app.json then
      app:print_json { policy = args.name, turns = TURNS, rows = app.array(list) }
      return
    end
    app:print_table({ "MESSAGES>", "APPLIED>", "POLICY µs>", "p95>", "MAX>", "ENGINE µs>",
      "p95>" }, rows, nil, {})
  end,
}
