--- policy try: shows what a policy would do to a session now.
--
-- Owns: the difference and the token ledger. Must never write anything.

local common = require "sessile.cli.common"
local diff = require "sessile.cli.diff"
local memory_policies = require "sessile.cli.memory_policies"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local number = terminal.number

local function signed(n)
  return (n < 0 and "-" or "+") .. number(math.abs(n))
end

-- A ledger of the tokens: one row for each of kept, replaced, covered, dropped and inserted
-- messages, and one for what the provider counted beside the messages (system prompt, tools).
local function ledger(result, changes)
  local sums, order = {}, { "kept", "replaced", "covered", "lost", "inserted", "beside" }
  for _, name in ipairs(order) do
    sums[name] = { messages = 0, before = 0, after = 0 }
  end
  for _, change in ipairs(changes) do
    local facts = render.facts(change.message)
    -- what the engine adds for a call without an answer counts as 0
    local is_inserted = change.sign == "+" or change.sign == "~"
    local tokens = (facts.key or is_inserted) and facts.tokens or 0
    local was = change.was and render.facts(change.was).tokens or 0
    local row
    if change.sign == "=" then
      row, was = sums.kept, tokens
    elseif change.sign == "~" then
      row = sums.replaced
    elseif change.sign == "+" then
      row = sums.inserted
    else
      row, was, tokens = sums[change.disposition or "lost"] or sums.lost, tokens, 0
    end
    row.messages = row.messages + 1
    row.before, row.after = row.before + was, row.after + tokens
  end
  local before, after = result.tokens.before, result.tokens.after
  for _, row in pairs(sums) do
    before, after = before - row.before, after - row.after
  end
  sums.beside.before, sums.beside.after = before, after -- includes rounding
  local rows = {}
  for _, name in ipairs(order) do
    local row = sums[name]
    if row.messages > 0 or row.before ~= 0 or row.after ~= 0 then
      local word = name == "lost" and "dropped" or name
      rows[#rows + 1] = { word, name == "beside" and "" or number(row.messages),
        number(row.before), number(row.after), signed(row.after - row.before) }
    end
  end
  rows[#rows + 1] = { "in all", "", number(result.tokens.before), number(result.tokens.after),
    signed(result.tokens.after - result.tokens.before) }
  return sums, rows
end

return {
  summary = "show what a policy would do to a session; writes nothing",
  usage = "policy try NAME ID [--option NAME=VALUE] [--window N] [--answer TEXT]",
  examples = [[
    sessile policy try edit_tools last                       the difference, and where the tokens go
    sessile policy try ./mine.lua bug-42 --window 8000       a policy of yours
    sessile policy try summarize last --answer 'A summary.'  with an answer for the model]],
  arguments = {
    common.policy_name,
    common.session,
  },
  options = {
    common.policy_option,
    common.window, common.reserve,
    { "--answer TEXT", "the answer of the model (default: the model fails)" },
  },
  run = function(app, args)
    local chosen = common.policy(app, args.name, args.option)
    if memory_policies.is_one(chosen) then
      return memory_policies.try(app, args, chosen, common.policy_steps(args.name))
    end
    local session = app:open(args.id)
    local asked = 0
    local result = app.try_or(common.policy_steps(args.name), session:plan {
      policy = chosen, window = args.window, reserve = args.reserve,
      model = function()
        asked = asked + 1
        return args.answer, "`policy try` asks no model"
      end,
    })
    local policy = result.policy or { verdict = "unchanged" }
    local changes = diff.compare(result.before, result.after, result.removals)
    local sums, rows = ledger(result, changes)
    if app.json then
      app:print_json {
        policy = policy.name or args.name, verdict = policy.verdict, law = policy.law,
        message = policy.message, before = result.tokens.before, after = result.tokens.after,
        ledger = sums, cannot_fit = result.cannot_fit, model_calls = asked,
        log = app.array(result.log or {}),
      }
      return policy.refused and 1 or 0
    end
    for _, line in ipairs(result.log or {}) do
      app:note(terminal.line(line))
    end
    if policy.refused then
      return nil, common.refusal(policy), "EPOLICY", asked > 0 and not args.answer
          and "Nothing was written. To play the model: --answer 'A summary.'"
          or "Nothing was written."
    end
    app:out(diff.text(changes, app.paint, terminal.columns()))
    app:out "\n"
    app:print_table({ "", "MESSAGES>", "BEFORE>", "AFTER>", "TOKENS>" }, rows, nil, {})
    if sums.beside.before ~= 0 or sums.beside.after ~= 0 then
      app:note "beside: the system prompt and tools that the provider counted, and rounding"
    end
    if asked > 0 and not args.answer then
      app:note("No model was asked: the policy ran as if the model had failed. "
        .. "To play the model: --answer TEXT")
    end
    if result.cannot_fit then
      app:note(("It still does not fit: %s tokens too many"):format(number(result.cannot_fit)))
    end
    app:note "Nothing was written."
  end,
}
