--- new: creates a session and prints its id.
--
-- Must never open an existing session.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"

return {
  summary = "create a session and print its id",
  usage = "new [--id ID] [--title TEXT] [--agent NAME] [--user NAME] [--uuid-v4]",
  examples = [[
    sessile new                                   with a generated id (a UUIDv7)
    sessile new --id bug-42 --title 'Slow start'  with an id that you can type]],
  options = {
    { "--id ID", "the session's id: any text" },
    { "--title TEXT", "the title" },
    { "--ttl TIME", "expire this long after the newest entry: 30d; see `sessile purge`",
      time = true },
    { "--uuid-v4", "generate a UUID of version 4 instead of 7" },
  },
  run = function(app, args)
    common.check_new_id(app, args.id)
    local session = app:keep(app.try_or({
      EEXISTS = "Choose another id, or use that session: sessile show "
        .. hints.id(args.id or ""),
    }, app:need_store(true):create {
      id = args.id, title = args.title, agent = app.globals.agent, user = args.user,
      uuid = args.uuid_v4 and "v4" or nil, ttl = args.ttl and args.ttl .. "ms" or nil,
    }))
    app:result({ id = session.id, agent = session.agent, user = args.user, title = args.title },
      app.id_line(session.id))
  end,
}
