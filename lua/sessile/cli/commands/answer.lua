--- answer: answers a suspended session or a pending run.
--
-- Must never take nothing for an answer: without a text it only shows what is asked.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local models = require "sessile.cli.models"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local sessile = require "sessile"

-- The text of the answer; nil if none was given.
local function text_of(app, args)
  return args.text == "-" and common.typed_text(app) or args.text
end

-- Shows the questions of pending runs.
local function show(app, session, rows)
  if app.json then
    app:print_json { session = session.id, pending_runs = app.array(rows) }
    return
  end
  for _, row in ipairs(rows) do
    app:out(("%s  %s asks its model, %s\n"):format(row.id, terminal.line(row.policy),
      terminal.ago(row.time, app.now())))
    for _, message in ipairs(row.request and row.request.messages or {}) do
      app:out(("\n%s\n%s\n"):format(app.paint(terminal.line(message.role or "?"), "bold"),
        terminal.safe(render.text(message))))
    end
  end
  app:note(("Answer it: … | sessile answer %s -"):format(hints.id(session.id)))
end

-- Shows what a suspended session waits for.
local function show_pause(app, session, pause)
  local state = pause.state ~= nil and sessile.encode(pause.state) or nil
  if app.json then
    app:print_json { session = session.id, suspension = { id = pause.id, time = pause.time,
      reason = pause.reason, state = state and app.raw(state) } }
    return
  end
  app:out(("%s  %s, %s\n"):format(pause.id, pause.reason ~= ""
    and terminal.line(pause.reason) or "no reason given", terminal.ago(pause.time, app.now())))
  if state then
    app:out(terminal.safe(state) .. "\n")
  end
  app:note(("Answer it: sessile answer %s TEXT"):format(hints.id(session.id)))
end

-- Ends the suspension with the text as a message.
local function end_pause(app, session, pause, text, call)
  if not text then
    return show_pause(app, session, pause)
  end
  local ids = app.try(session:resume_with { role = call and "tool" or "user",
    content = text, tool_call_id = call })
  app:result({ session = session.id, entry = ids[1] }, ids[1] .. "\n")
end

-- Reports the result of the run, which may be pending again with another question.
local function report(app, session, result)
  local policy = result.policy or {}
  local made = policy.fallback or policy
  if app.json then
    app:print_json {
      session = session.id, status = result.status, pending_run = result.pending_run,
      verdict = policy.verdict, message = policy.message,
      fallback = common.fallback_json(policy.fallback), compaction = result.compaction,
      before = result.tokens and result.tokens.before,
      after = result.tokens and result.tokens.after,
    }
    return made.refused and 1 or 0
  end
  if result.status == "paused" then
    app:note(("It asks another question now: sessile answer %s"):format(hints.id(session.id)))
    return
  end
  if policy.fallback then
    app:note(common.fallback_note(policy))
  end
  if made.refused then
    return nil, common.refusal(made), "EPOLICY",
      ("The answer is kept. Give another one, or correct the policy, then: sessile answer %s "
        .. "--again"):format(hints.id(session.id))
  elseif made.verdict == "applied" then
    app:out(("%s, %s left the context\n"):format(terminal.change(result.tokens),
      terminal.plural(#result.removals, "message")))
  elseif made.verdict == "stale" then
    app:note(common.too_late(made))
  else
    app:note "It proposes nothing: the context does not change."
  end
end

local function run(app, args, session)
  args.ask = args.ask or args.model ~= nil
  local rows = app.try(session:pending_runs())
  local about_run = args.ask or args.run or args.fail or args.again or args.policy
    or args.fallback
  local pause, message, code = nil, nil, nil
  if not about_run then
    pause, message, code = session:suspended()
  end
  if pause then
    return end_pause(app, session, pause, text_of(app, args), args.call)
  elseif message then
    return nil, message, code
  elseif #rows == 0 then
    return nil, ("session %s is not suspended and has no pending run: there is nothing to answer")
      :format(hints.shown(session.id)), "ENOTFOUND",
      "See its status: sessile info " .. hints.id(session.id)
  end
  local text = text_of(app, args)
  if args.ask and (text or args.fail or args.again) then
    return nil, "--ask and --model exclude an answer, --fail and --again", "EUSAGE"
  elseif not text and not args.fail and not args.again and not args.ask then
    return show(app, session, rows)
  end
  local model = args.ask and app.try(models.of_session(app, session, args.model))
  local chosen = common.policy(app, args.policy, args.option)
  local result = app.try(session:answer(text, {
    pending_run = args.run, failed = not text and args.fail or nil, policy = chosen,
    fallback = args.fallback,
    model = model and model.ask or function() return sessile.later end,
  }))
  return report(app, session, result)
end

return {
  summary = "answer a suspended session or a pending run",
  usage = "answer ID [TEXT | - | --ask | --model NAME] [--call ID] [--run ENTRY] "
    .. "[--fail REASON | --again] [--policy P] [--fallback P]",
  examples = [[
    sessile answer last                      show what is asked
    sessile answer bug-42 'go ahead'         end a suspension with a user message
    my-model < request | sessile answer bug-42 -
      answer with standard input
    sessile answer bug-42 --ask              ask the configured model now
    sessile answer bug-42 --fail 'no quota'  there is no answer: the policy is told]],
  arguments = {
    { common.newest[1], common.newest[2] },
    { "text", "the answer; `-`: standard input, without its last newline", "?" },
  },
  options = {
    { "--call ID", "for a suspended session: answer that tool call" },
    { "--run ENTRY", "the pending run to answer (default: the newest)" },
    { "--ask", "ask the configured model" },
    models.option,
    { "--again", "use the answer again that a refused policy was given" },
    { "--fail REASON", "say that there is no answer, and why" },
    { "--policy P", "use another policy than that of the pending run" },
    common.that_policy_option,
    { "--fallback P", "a policy to run if that one is refused" },
  },
  about = [[
    The answer to a suspended session is added as a message, and the session continues.
    For a pending run the policy runs again from its start. The log answers the questions
    that it asked before. If it asks another question, the run is pending again.]],
  run = function(app, args) return run(app, args, app:open(args.id)) end,
}
