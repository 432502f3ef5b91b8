--- new: makes a session and prints its id.
--
-- Owns: the options of a new session. Must never open one that exists.

local hints = require "sessile.cli.hints"

return {
  name = "new",
  summary = "create a session and print its id",
  usage = "new [--id ID] [--title TEXT] [--agent NAME] [--uuid-v4]",
  examples = {
    { "sessile new", "with a generated id (a UUIDv7)" },
    { "sessile new --id bug-42 --title 'Slow start'", "with an id that you can type" },
  },
  options = {
    { "--id ID", "the session's id: any text" },
    { "--title TEXT", "the title" },
    { "--ttl TIME", "expire this long after the newest entry: 30d; see `sessile purge`",
      time = true },
    { "--uuid-v4", "generate a UUID of version 4 instead of 7" },
  },
  run = function(app, args)
    if args.id == "last" then
      return nil, "the id 'last' is taken: it always means the newest session", "EUSAGE"
    end
    local store, message, code, step = app:store(true)
    if not store then
      return nil, message, code, step
    end
    local session
    session, message, code = store:create {
      id = args.id, title = args.title, agent = app.globals.agent,
      uuid = args.uuid_v4 and "v4" or nil, ttl = args.ttl and args.ttl .. "ms" or nil,
    }
    if not session then
      return nil, message, code, code == "EEXISTS" and ("Choose another id, or go on with that "
        .. "session: sessile show %s"):format(hints.id(args.id)) or nil
    end
    local id, agent = session.id, session.agent
    session:close()
    if app.json then
      app:print_json { id = id, agent = agent, title = args.title }
    else
      app:out_id(id)
    end
  end,
}
