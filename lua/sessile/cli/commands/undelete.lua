--- undelete: restores a session that was deleted softly.

local hints = require "sessile.cli.hints"
local sessions = require "sessile.cli.sessions"

return {
  summary = "restore a session that was deleted softly",
  usage = "undelete ID [--user NAME]",
  examples = [[
    sessile list --status deleted  list deleted sessions
    sessile undelete bug-42        restore one]],
  arguments = { { "id", "the session's id, a beginning of it, or its title",
    is = "deleted session" } },
  options = {
    { "--actor NAME", "who restores it, kept in the log" },
  },
  run = function(app, args)
    local store = app:need_store()
    local rows = app.try(app:list(store, { status = "deleted" }))
    local row, message, code, step = sessions.find(rows, args.id)
    local others = not row and code == "ENOTFOUND" and app:list(store)
    local other = others and sessions.find(others, args.id)
    if other then
      return nil, ("session %s is not deleted"):format(hints.shown(other.id)), code,
        "Read it: sessile show " .. hints.id(other.id)
    end
    app.try_or({ ENOTFOUND = "See those: sessile list --status deleted" }, row, message, code, step)
    app.try(store:undelete({ id = row.id, agent = row.agent, user = row.user },
      { actor = args.actor }))
    if app.json then
      app:print_json { id = row.id, agent = row.agent }
    else
      app:note(("Session %s is restored: sessile show %s"):format(hints.shown(row.id),
        hints.id(row.id)))
    end
  end,
}
