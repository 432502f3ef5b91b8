--- checkpoints: lists the checkpoints of a session, newest first.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

return {
  summary = "list the checkpoints of a session",
  usage = "checkpoints ID [--name NAME] [--reason R]",
  examples = [[
    sessile checkpoints last            newest first
    sessile checkpoints bug-42 --named  only those with a name]],
  arguments = { common.session },
  options = {
    { "--name NAME", "only those with this name" },
    { "--named", "only those with a name" },
    { "--reason R", "only those made for this reason",
      choices = { "manual", "periodic", "event", "threshold" } },
  },
  run = function(app, args)
    local session = app:open(args.id)
    local rows = app.try(session:checkpoints {
      name = args.name, named = args.named or nil, reason = args.reason,
    })
    if app.json then
      app:print_json { session = session.id, checkpoints = app.array(rows) }
      return
    elseif #rows == 0 then
      app:note(("None. Make one: sessile checkpoint %s"):format(hints.id(session.id)))
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
    app:print_table({ "ID", "NAME", "MADE", "STANDS AT", "MESSAGES>", "TOKENS>", "STATE>",
      "WHY" }, lines)
  end,
}
