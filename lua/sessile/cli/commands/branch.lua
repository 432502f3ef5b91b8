--- branch: lets a session go on from an older entry.
--
-- Must never move the head of somebody's session unasked: --yes, or an answer.

local ask = require "sessile.cli.ask"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local options = require "sessile.cli.options"
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
  app:note(("Go on from there: %s"):format(hints.go_on(session.id)))
end

local function run(app, args, session, entry)
  local chosen, wrong = options.policy(args.policy, args.option)
  if wrong then
    return nil, wrong, "EUSAGE"
  elseif args.summary and args.summarize then
    return nil, "--summary and --summarize exclude each other", "EUSAGE"
  end
  local head = session:head()
  local ask_model, message, code, step = models.for_command(app, session, args.model)
  if not ask_model then
    return nil, message, code, step
  end
  local left
  left, message, code, step = entries.count_left(session, head, entry)
  if not left then
    return nil, message, code, step
  end
  local sure
  sure, message, code, step = ask.sure(app, args,
    ("Move the head of %s from %s to %s, leaving %s behind"):format(
      hints.shown(session.id), head, entry, terminal.plural(left, "message")))
  if sure == nil then
    return nil, message, code, step
  elseif not sure then
    return ask.no(app)
  end
  local result
  result, message, code = session:branch(entry, {
    summary = args.summary or args.summarize or nil, policy = chosen,
    instructions = args.instructions, base = head,
    model = ask_model,
  })
  if not result then
    if code == "ECONFLICT" then
      step = "Check, then repeat it: sessile tree " .. hints.id(session.id)
    end
    return nil, message, code, step or entries.step(code, session.id)
  end
  tell(app, session, result)
end

return {
  name = "branch",
  summary = "continue from an older entry; the other branch stays in the log",
  usage = "branch ID ENTRY [--summary TEXT | --summarize] [--yes]",
  examples = {
    { "sessile branch bug-42 0000002a", "asks, then moves the head" },
    { "sessile branch bug-42 before-deploy --yes", "to a label, without asking" },
    { "sessile branch last 12 --summary 'Caching did not help.'",
      "with a summary that the model sees" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "entry", "the entry to continue from: its number or a label" },
  },
  options = {
    { "--summary TEXT", "a summary of the branch that you leave" },
    { "--summarize", "ask the policy, or the model, for this summary" },
    models.option,
    { "--policy P", "a policy that has branch_summary: its name or a file" },
    { "--option NAME=VALUE", "an option of the policy; may be repeated", many = true },
    { "--instructions TEXT", "instructions for the summary" },
    ask.option,
  },
  about = "Prints the new head. To go back, branch to the old head: `sessile tree` shows it. If\n"
    .. "the summary fails, the branch is made without one.",
  run = function(app, args)
    local session, entry, code, step = entries.open(app, args.id, args.entry)
    if not session then
      return nil, entry, code, step
    end
    local _ <close> = app.closing(session)
    return run(app, args, session, entry)
  end,
}
