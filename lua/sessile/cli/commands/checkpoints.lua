--- checkpoints: those that a session keeps, newest first.

local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

return {
  name = "checkpoints",
  summary = "list the checkpoints of a session",
  usage = "checkpoints ID [--name NAME] [--reason R]",
  examples = {
    { "sessile checkpoints last", "newest first" },
    { "sessile checkpoints bug-42 --named", "only those with a name" },
  },
  arguments = { { "id", "a session: its id, a prefix of it, its title, a label, or `last`" } },
  options = {
    { "--name NAME", "only those with this name" },
    { "--named", "only those with a name" },
    { "--reason R", "only those made for this reason",
      choices = { "manual", "periodic", "event", "threshold" } },
  },
  run = function(app, args)
    return app:with_session(args.id, function(session)
      local rows, message, code = session:checkpoints {
        name = args.name, named = args.named or nil, reason = args.reason,
      }
      local id = session.id
      if not rows then
        return nil, message, code
      elseif app.json then
        app:print_json { session = id, checkpoints = app.array(rows) }
        return
      elseif #rows == 0 then
        app:note(("None. Make one: sessile checkpoint %s"):format(hints.id(id)))
        return
      end
      local now, lines = app.now(), {}
      for i, row in ipairs(rows) do
        local why = row.event or row.reason
        lines[i] = {
          row.id, terminal.line(row.name or ""), terminal.ago(row.time, now), row.head,
          terminal.number(row.messages), terminal.number(row.tokens),
          row.state_bytes > 0 and terminal.bytes(row.state_bytes) or "",
          row.sound and terminal.line(why) or "DAMAGED",
        }
      end
      app:out(terminal.table({ "ID", "NAME", "MADE", "STANDS AT", "MESSAGES>", "TOKENS>", "STATE>",
        "WHY" }, lines, function(cell, column, heading)
        if heading then return app.paint(cell, "bold") end
        return column == 1 and app.paint(cell, "cyan") or cell
      end))
    end)
  end,
}
