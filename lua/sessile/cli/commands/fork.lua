--- fork: makes a new session of everything in another one, up to an entry.
--
-- Must never change the session that is forked.

local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"

local function run(app, args, session, at)
  local entry, message, code, step = at
  if args.entry then
    entry, message, code, step = entries.find(session, args.entry)
    if not entry then
      return nil, message, code, step
    end
  end
  local fork
  fork, message, code = session:fork(entry, {
    id = args.id, agent = args.to_agent, user = args.to_user, title = args.title,
  })
  if not fork then
    if code == "EEXISTS" then
      step = "Choose another id, or leave --id out."
    elseif code == "ENOTFOUND" then
      step = "See the entries: sessile tree " .. hints.id(session.id)
    end
    return nil, message, code, step
  end
  local id, origin = fork.id, fork.origin
  if app.json then
    app:print_json { id = id, agent = fork.agent, user = fork.user, title = fork.title,
      head = fork:head(), origin = origin }
  else
    app:out_id(id)
    io.stdout:flush()
    app:note(("Go on in it: %s"):format(hints.go_on(id)))
  end
  fork:close()
end

return {
  name = "fork",
  summary = "create a session from another one, up to an entry, and print its id",
  usage = "fork SESSION [ENTRY] [--id NEW] [--title TEXT]",
  examples = {
    { "sessile fork bug-42", "everything up to the head" },
    { "sessile fork bug-42 0000002a --id bug-42b --title 'Another way'", "up to an entry" },
    { "sessile fork bug-42@2a", "the same, as one word" },
    { "sessile fork last --to-agent critic", "for another agent" },
  },
  arguments = {
    { "session", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "entry", "the last entry to copy (default: the head): its number or a label",
      "?" },
  },
  options = {
    { "--id NEW", "the fork's id: any text" },
    { "--title TEXT", "its title (default: the session's)" },
    { "--to-agent NAME", "its agent (default: the session's)" },
    { "--to-user NAME", "its user (default: the session's)" },
  },
  about = "Entries keep their ids in the fork. Labels, title and settings are copied as they are\n"
    .. "now; a pause is not. The two sessions are independent: either can be deleted.",
  run = function(app, args)
    if args.id == "last" then
      return nil, "the id 'last' is taken: it always means the newest session", "EUSAGE"
    end
    local open = args.entry and app.session or entries.at
    local session, message, code, step = open(app, args.session)
    if not session then
      return nil, message, code, step
    end
    local _ <close> = app.closing(session)
    return run(app, args, session, not args.entry and message or nil)
  end,
}
