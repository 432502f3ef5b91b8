--- state: archive, cancel, rename, suspend: commands that change the status or the title of a
--- session.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local sessile = require "sessile"

local commands = {}

-- The reason: the last argument, or --reason.
local reason_option = { "--reason TEXT", "the same as REASON" }
local function reason_of(app, args)
  local given = args.because
  if given and args.reason then
    app.fail("REASON and --reason exclude each other", "EUSAGE")
  end
  return given or args.reason
end

-- archive and cancel print nothing; with --json the new status.
local function print_status(app, session)
  local life = app.json and session:life()
  app:result { session = session.id, status = life and life.status or nil }
end

commands.archive = {
  summary = "mark a session as archived",
  usage = "archive ID [--undo]",
  examples = [[
    sessile archive bug-42         then: sessile list --status archived
    sessile archive bug-42 --undo  active again]],
  arguments = { common.session },
  options = { { "--undo", "make it active again" } },
  run = function(app, args)
    local session = app:open(args.id)
    app.try(session:archive(not args.undo))
    print_status(app, session)
  end,
}

commands.cancel = {
  summary = "end a suspension and cancel pending runs, without an answer",
  usage = "cancel ID [REASON]",
  examples = [[sessile cancel bug-42 'nobody answered'  the session continues where it was]],
  arguments = { common.session, { "reason", "the reason", "?", field = "because" } },
  options = { reason_option },
  run = function(app, args)
    local session = app:open(args.id)
    app.try_or({ ENOTFOUND = "See its status: sessile info " .. hints.id(session.id) },
      session:cancel(reason_of(app, args)))
    print_status(app, session)
  end,
}

commands.rename = {
  summary = "change the title of a session",
  usage = "rename ID TITLE",
  examples = [[
    sessile rename bug-42 'Slow start'  then: sessile show 'Slow start'
    sessile rename bug-42 ''            remove the title]],
  arguments = { common.session, { "title", "the new title; the id does not change" } },
  run = function(app, args)
    local session = app:open(args.id)
    app.try(session:set_title(args.title))
    app:result { session = session.id, title = args.title }
  end,
}

commands.suspend = {
  summary = "suspend a session until somebody answers",
  usage = "suspend ID [REASON] [--state JSON]",
  examples = [[
    sessile suspend bug-42 'approval by ann'    then: sessile answer bug-42 'go ahead'
    sessile suspend last --state '{"step": 3}'  with state for whoever continues]],
  arguments = { common.session, { "reason", "what the session waits for", "?",
    field = "because" } },
  options = { reason_option, { "--state JSON", "a value to keep with the suspension" } },
  about = [[
    Reading, labels and settings work as before. Adding to the conversation fails until
    the suspension ends. `sessile info` shows what the session waits for.]],
  run = function(app, args)
    local session = app:open(args.id)
    local _, wrong = sessile.decode(args.state or "null")
    if wrong then
      app.fail("--state: " .. wrong:gsub("^sessile%.decode: ", ""), "EUSAGE")
    end
    local reason = reason_of(app, args)
    local outcome = app.try(session:suspend {
      reason = reason, state = args.state and sessile.json(args.state),
    })
    app:result({ session = session.id, entry = outcome.suspension, reason = reason },
      outcome.suspension .. "\n")
    if not app.json then
      local id = hints.id(session.id)
      app:note(("The session is suspended. To continue: sessile answer %s TEXT, or sessile "
        .. "cancel %s"):format(id, id))
    end
  end,
}

return commands
