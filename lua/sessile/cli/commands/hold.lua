--- hold add, hold list, hold release: what must not be removed.

local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local commands = {}

local BY = { "--by NAME", "who wants it" }

commands["hold add"] = {
  summary = "keep a user's, an agent's or a session's data from being removed",
  usage = "hold add REASON [--user USER] [--agent AGENT] [--session ID] [--until WHEN] [--by NAME]",
  examples = [[
    sessile hold add "case 7" --user ann                      all of a user
    sessile hold add "case 7" --agent coder --session bug-42  one session
    sessile hold add "audit" --agent coder --until 90d        until it ends by itself]],
  arguments = { { "reason", "why it is kept" } },
  options = { { "--session ID", "this session alone, of the agent and of the user" },
    { "--until WHEN", "when the hold ends by itself: 90d, or 2027-01-01" }, BY },
  about = [[
    What is under a hold can be hidden (`sessile delete --soft`), but nothing removes it:
    not a deletion, a purge, `forget`, `user erase` or `memory erase`. The hold is kept in
    the store and binds whoever opens it.]],
  run = function(app, args)
    local when = args["until"]
    if when and not times.ms(when) and not times.moment(when, app.now()) then
      app.fail(("--until: a time expected, got %q"):format(when), "EUSAGE",
        "As: --until 90d, or --until 2027-01-01")
    end
    local id = app.try_or({ EINVALID = "Name what is held: --user, --agent or --session" },
      app:need_store(true):hold { reason = args.reason, user = app.globals.user,
        agent = app.globals.agent, session = args.session, ["until"] = when, by = args.by })
    app:result({ id = id }, id .. "\n")
  end,
}

commands["hold list"] = {
  summary = "list what must not be removed",
  usage = "hold list",
  examples = [[sessile hold list  the holds in force, oldest first]],
  about = [[
    Holds that were released, or have ended, are not shown.]],
  run = function(app)
    local rows = app.try(app:need_store():holds())
    if app.json then
      return app:print_json { holds = app.array(rows) }
    elseif #rows == 0 then
      return app:note "There is no hold."
    end
    local lines = {}
    for i, row in ipairs(rows) do
      lines[i] = { row.id, terminal.line(row.user or "-"), terminal.line(row.agent or "-"),
        terminal.line(row.session or "-"), times.day(row.time, 0),
        row["until"] and times.day(row["until"], 0) or "-", terminal.line(row.reason or "") }
    end
    app:print_table({ "HOLD", "USER", "AGENT", "SESSION", "SINCE", "UNTIL", "REASON" }, lines, true)
  end,
}

commands["hold release"] = {
  summary = "end a hold",
  usage = "hold release HOLD [--by NAME]",
  examples = [[sessile hold release 00000007  what was under it can be removed again]],
  arguments = { { "hold", "its id, as `sessile hold list` shows it" } },
  options = { { "--by NAME", "who decides" } },
  about = [[
    Nothing is removed by this; what was under the hold only can be again.]],
  run = function(app, args)
    local id = args.hold:match "^%x+$" and #args.hold <= 8
      and ("0"):rep(8 - #args.hold) .. args.hold:lower()
      or app.fail(("%s is no id of a hold"):format(hints.shown(args.hold)), "EUSAGE",
        "See: sessile hold list")
    app.try_or({ ENOTFOUND = "See: sessile hold list" },
      app:need_store():release(id, { by = args.by }))
    app:result({ released = id }, ("The hold %s is released\n"):format(id))
  end,
}

return commands
