--- pop: takes the newest messages off the conversation.
--
-- Must never take off other messages than those that were asked about: they are popped on the head
-- that was read.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local function run(app, args, session)
  if args.last == 0 then
    return nil, "--last 0 takes nothing off", "EUSAGE", "sessile pop " .. hints.id(session.id)
  end
  local head = app.try(session:head())
  local list = app.try(session:messages { at = head, last = args.last or 1 })
  if #list == 0 then
    return nil, "the conversation has no messages", "ENOTFOUND",
      "See all entries: sessile tree " .. hints.id(session.id)
  end
  ask.must(app, args, ("Take the newest %s off %s, from %s on"):format(
    terminal.plural(#list, "message"), hints.shown(session.id), render.facts(list[1]).key))
  list = app.try_or({ ECONFLICT = "Check, then repeat it: sessile show " .. hints.id(session.id) },
    session:pop(#list, { base = head }))
  local now = app.try(session:head())
  if app.json then
    app:print_json {
      session = session.id, head = now, from = head, messages = render.list(app, list),
    }
    return
  end
  app:out(now .. "\n")
  io.stdout:flush()
  app:note(("They stay in the log. To go back: sessile branch %s %s"):format(
    hints.id(session.id), head))
end

return {
  summary = "take the newest messages off the conversation; they stay in the log",
  usage = "pop ID [--last N] [--yes]",
  examples = [[
    sessile pop bug-42               the newest message; asks first
    sessile pop last --last 2 --yes  the newest two, without asking]],
  arguments = {
    common.session,
  },
  options = {
    { "--last N", "how many messages (default: 1)", integer = true },
    ask.option,
  },
  about = [[
    Prints the new head, the entry before these messages. It fails if somebody writes to
    the session meanwhile.]],
  run = function(app, args) return run(app, args, app:open(args.id)) end,
}
