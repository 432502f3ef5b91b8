--- branch: continues a session from an older entry.
--
-- Must never move the head without a confirmation.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local terminal = require "sessile.cli.terminal"

local function tell(app, session, result)
  local policy = result.policy
  local why = policy and not policy.applied and (policy.refused or policy.message)
  if app.json then
    app:print_json {
      session = session.id, head = result.head, from = result.from,
      branch_summary = result.branch_summary, summary = result.summary,
      verdict = policy and policy.verdict, message = why or nil,
    }
    return
  end
  for _, line in ipairs(result.log or {}) do
    app:note(terminal.line(line))
  end
  if why then
    app:note("There is no summary: " .. terminal.line(why))
  end
  app:out(result.head .. "\n")
  io.stdout:flush()
  app:note(("Continue from there: %s"):format(hints.go_on(session.id)))
end

local function run(app, args, session, entry)
  local chosen = common.policy(app, args.policy, args.option)
  common.at_most_one(app, args, { "--summary", "--summarize" })
  local head = session:head()
  local ask_model = app.try(models.for_command(app, session, args.model))
  local left = app.try(entries.count_left(session, head, entry))
  ask.must(app, args,
    ("Move the head of %s from %s to %s, leaving %s behind"):format(
      hints.shown(session.id), head, entry, terminal.plural(left, "message")))
  local result = app.try_or({
    ECONFLICT = "Check, then repeat it: sessile tree " .. hints.id(session.id),
    ENOTFOUND = common.policy_steps(args.policy).ENOTFOUND, -- the entry was found
  }, session:branch(entry, {
    summary = args.summary or args.summarize or nil, policy = chosen,
    instructions = args.instructions, base = head,
    model = ask_model,
  }))
  tell(app, session, result)
end

return {
  summary = "continue from an older entry; the other branch stays in the log",
  usage = "branch ID ENTRY [--summary TEXT | --summarize] [--yes]",
  examples = [[
    sessile branch bug-42 0000002a                            asks, then moves the head
    sessile branch bug-42 before-deploy --yes                 to a label, without asking
    sessile branch last 12 --summary 'Caching did not help.'  with a summary that the model sees]],
  arguments = {
    common.session,
    { "entry", "the entry to continue from: its number or a label" },
  },
  options = {
    { "--summary TEXT", "a summary of the branch that you leave" },
    { "--summarize", "ask the policy, or the model, for this summary" },
    models.option,
    { "--policy P", "a policy that has branch_summary: its name or a file" },
    common.policy_option,
    { "--instructions TEXT", "instructions for the summary" },
    ask.option,
  },
  about = [[
    Prints the new head. To go back, branch to the old head: `sessile tree` shows it. If
    the summary fails, the branch is made without one.]],
  run = function(app, args)
    return run(app, args, entries.open(app, args.id, args.entry))
  end,
}
