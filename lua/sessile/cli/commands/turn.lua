--- turn: adds messages to a session as a turn, after which the policy runs.
--
-- Must never lose a message because of a policy: the turn is written first.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local messages = require "sessile.cli.messages"
local models = require "sessile.cli.models"
local terminal = require "sessile.cli.terminal"

local sessile = require "sessile"

-- What the policy did, as a sentence.
local function told(app, outcome, session)
  local policy = outcome.policy or {}
  local made = policy.fallback or policy
  if outcome.status == "paused" then
    app:note(("The policy waits for a model's answer: sessile answer %s"):format(
      hints.id(session.id)))
    return
  end
  common.note_refusal(app, outcome.policy)
  if made.applied then
    app:note(("%s compacted the context: %s"):format(made.name or "The policy",
      terminal.change(outcome.tokens)))
  end
end

return {
  summary = "add messages to a session as a turn; the policy runs",
  usage = "turn ID [TEXT | -] [--role ROLE] [--defer]",
  examples = [[
    my-agent | sessile turn bug-42 -                a turn from a program: JSON, one message a line
    sessile turn last - --event deploy < turn.json  with an event for the triggers]],
  arguments = { common.session, messages.argument },
  options = {
    messages.option,
    { "--event NAME", "an event that triggers may name" },
    { "--policy P", "this policy instead of the configured one" },
    common.policy_option,
    models.option,
    common.window, common.reserve,
    { "--defer", "if the policy asks a model, leave the question for `sessile answer`" },
  },
  about = messages.about .. "\n" .. [[
    The messages are written in one commit before a policy runs. A policy that asks a model
    asks the configured one; with --defer the question becomes a pending run.]],
  run = function(app, args)
    local session = app:open(args.id)
    local list = messages.typed(app, args, "turn")
    local chosen = common.policy(app, args.policy, args.option)
    local ask, about = app.try(models.for_command(app, session, args.model))
    local outcome = app.try_or({
      ENOTFOUND = common.policy_steps(args.policy).ENOTFOUND,
      ECONFLICT = "Check, then repeat it: sessile show " .. hints.id(session.id),
    }, session:turn(list, {
      policy = chosen, event = args.event, window = args.window, reserve = args.reserve,
      model = args.defer and function() return sessile.later end or ask,
    }))
    local policy = outcome.policy or {}
    app:result({
      session = session.id, entries = app.array(outcome.ids), status = outcome.status,
      policy = policy.name, verdict = policy.verdict,
      fallback = common.fallback_json(policy.fallback), compaction = outcome.compaction,
      tokens = outcome.tokens and outcome.tokens.after, pending_run = outcome.pending_run,
      model = about.missing,
    }, table.concat(outcome.ids, "\n") .. "\n")
    if not app.json then
      told(app, outcome, session)
      if about.missing then
        app:note(about.missing .. ": the policy ran as if the model had failed. Configure one: "
          .. "sessile help chat")
      end
    end
  end,
}
