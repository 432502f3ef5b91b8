--- fork: creates a session from another one, up to an entry.
--
-- Must never change the other session.

local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"

return {
  summary = "create a session from another one, up to an entry, and print its id",
  usage = "fork ID [ENTRY] [--id NEW] [--title TEXT]",
  examples = [[
    sessile fork bug-42                                              everything up to the head
    sessile fork bug-42 0000002a --id bug-42b --title 'Another way'  up to an entry
    sessile fork bug-42@2a                                           the same, as one word
    sessile fork last --to-agent critic                              for another agent]],
  arguments = {
    common.session_as { field = "session" },
    { "entry", "the last entry to copy (default: the head): its number or a label",
      "?" },
  },
  options = {
    { "--id NEW", "the fork's id: any text" },
    { "--title TEXT", "its title (default: the session's)" },
    { "--to-agent NAME", "its agent (default: the session's)" },
    { "--to-user NAME", "its user (default: the session's)" },
  },
  about = [[
    Entries keep their ids in the fork. Labels, title and settings are copied as they are
    now; a suspension is not. The two sessions are independent: either can be deleted.]],
  run = function(app, args)
    common.check_new_id(app, args.id)
    local session, at
    if args.entry then
      session, at = entries.open(app, args.session, args.entry)
    else
      session, at = entries.open_at(app, args.session)
    end
    local steps = entries.steps(session)
    steps.EEXISTS = "Choose another id, or leave --id out."
    local fork = app:keep(app.try_or(steps, session:fork(at, {
      id = args.id, agent = args.to_agent, user = args.to_user, title = args.title,
    })))
    app:result({ id = fork.id, agent = fork.agent, user = fork.user, title = fork.title,
      head = fork:head(), origin = fork.origin }, app.id_line(fork.id))
    if not app.json then
      io.stdout:flush()
      app:note(("Continue in it: %s"):format(hints.go_on(fork.id)))
    end
  end,
}
