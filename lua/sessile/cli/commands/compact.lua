--- compact: runs a policy on the context of a session.
--
-- Must never write anything with --dry-run.

local common = require "sessile.cli.common"
local diff = require "sessile.cli.diff"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local sessile = require "sessile"

local function verdict_json(app, result, id, changes, told)
  local policy = result.policy or {}
  local list
  for i, change in ipairs(changes or {}) do
    list = list or {}
    list[i] = {
      sign = change.sign, disposition = change.disposition, key = render.facts(change.message).key,
      role = change.message.role, tokens = render.facts(change.message).tokens,
    }
  end
  app:print_json {
    session = id,
    policy = policy.name, verdict = policy.verdict, law = policy.law, message = policy.message,
    fallback = common.fallback_json(policy.fallback),
    before = result.tokens.before, after = result.tokens.after,
    left = #(result.removals or {}), compaction = result.compaction,
    first_kept = result.first_kept, time = result.time,
    cannot_fit = result.cannot_fit, dry_run = changes ~= nil,
    changes = list and app.array(list), log = app.array(result.log or {}),
    model = told.missing,
  }
end

local function saved(tokens)
  if tokens.before <= 0 then return "" end
  return (" (%d %% less)"):format((tokens.before - tokens.after) * 100 // tokens.before)
end

local function run(app, args, session)
  local chosen = common.policy(app, args.policy, args.option)
  common.at_most_one(app, args, { "--defer", "--dry-run" })
  local ask, told = app.try(models.for_command(app, session, args.model))
  local given = {
    policy = chosen, window = args.window, reserve = args.reserve,
    fallback = args.fallback,
    instructions = #args.instructions > 0 and table.concat(args.instructions, " ") or nil,
    model = args.defer and function() return sessile.later end or ask,
  }
  local method = args.dry_run and session.plan or session.compact
  local result = app.try_or({
    EINVALID = not args.policy and not args.fallback
      and "Name a policy with --policy; see them: sessile policy list" or nil,
    ENOTFOUND = common.policy_steps(args.policy).ENOTFOUND,
    ECONFLICT = "Check, then repeat it: sessile show " .. hints.id(session.id),
  }, method(session, given))
  if result.status == "paused" then
    app:result({ session = session.id, verdict = "pending", pending_run = result.pending_run },
      result.pending_run .. "\n")
    if not app.json then
      app:note(("It waits for a model's answer: sessile answer %s"):format(hints.id(session.id)))
    end
    return
  end
  local policy = result.policy or { verdict = "unchanged" }
  local made = policy.fallback or policy
  local changes = args.dry_run and diff.compare(result.before, result.after, result.removals)
  if app.json then
    verdict_json(app, result, session.id, changes, told)
    return made.verdict == "stale" and 6 or made.refused and 1 or 0
  end
  for _, line in ipairs(result.log or {}) do
    app:note(terminal.line(line))
  end
  if policy.fallback then
    app:note(common.fallback_note(policy))
  end
  if made.refused then
    return nil, common.refusal(made), "EPOLICY", not policy.fallback
      and (told.missing and "Configure a model: sessile help chat. "
        or "Nothing has changed. Try again. ")
        .. "Or name what runs instead: --fallback sliding_window"
      or nil
  elseif made.verdict == "stale" then
    return nil, common.too_late(made), "ECONFLICT",
      "Repeat it: sessile compact " .. hints.id(session.id)
  end
  local tokens = result.tokens
  if changes then
    app:out(diff.text(changes, app.paint, terminal.columns()))
    io.stdout:flush()
  end
  if made.verdict ~= "applied" then
    app:note(("%s proposes nothing: the context stays at %s tokens"):format(
      made.name or "The policy", terminal.number(tokens.before)))
  else
    app:out(("%s%s, %s left the context\n"):format(terminal.change(tokens), saved(tokens),
      terminal.plural(#result.removals, "message")))
  end
  if result.cannot_fit then
    app:note(("It still does not fit: %s tokens too many"):format(
      terminal.number(result.cannot_fit)))
  end
  if args.dry_run then
    app:note "Nothing was written (--dry-run)."
  end
end

return {
  summary = "run a policy on what the model would get",
  usage = "compact ID [--policy P] [--option NAME=VALUE] [--fallback P] [--defer | --dry-run] "
    .. "[INSTRUCTIONS…]",
  examples = [[
    sessile compact last --policy edit_tools --dry-run  show what would leave; write nothing
    sessile compact bug-42 --policy sliding_window --window 8000
      for a window of 8000 tokens
    sessile compact bug-42 --policy ./mine.lua --option turns=4
      a policy of yours, with an option]],
  arguments = {
    common.session,
    { "instructions", "instructions for a policy that summarizes", "*" },
  },
  options = {
    { "--policy P", "a policy: its name, or a path with `/` or ending in .lua" },
    common.policy_option,
    { "--fallback P", "a policy to run if that one is refused (default: none)" },
    models.option,
    common.window, common.reserve,
    { "--defer", "if the policy asks a model, leave the question for `sessile answer`" },
    { "--dry-run", "show the difference, write nothing" },
  },
  about = [[
    Messages that leave the context stay in the session; `sessile show` prints them.
    summarize and tiered ask the configured model (tiered only if shorter tool output is
    not enough). If the model fails, nothing changes: try again, or name a policy with
    --fallback. A configured fallback runs after a turn, never here. With --defer the
    question becomes a pending run, and `sessile answer` continues it.]],
  run = function(app, args) return run(app, args, app:open(args.id)) end,
}
