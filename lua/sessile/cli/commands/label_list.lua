--- label list: the labels of a session.
--
-- Owns: the table of labels.

local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

-- What the entry is: its first words, or its type.
local function about(session, id)
  local entry = session:entry(id)
  if not entry then
    return ""
  elseif entry.type == "message" and type(entry.data) == "table" then
    return ("%s: %s"):format(render.role(entry.data), render.brief(entry.data, 50))
  end
  return terminal.line(tostring(entry.type))
end

return {
  name = "label list",
  summary = "list the labels and pins of a session",
  usage = "label list ID",
  examples = { { "sessile label list bug-42", "by entry" } },
  arguments = { { "id", "a session: its id, a prefix of it, its title, a label, or `last`" } },
  run = function(app, args)
    return app:with_session(args.id, function(session)
      local labels, message, code = session:labels()
      if not labels then
        return nil, message, code
      elseif app.json then
        local list = {}
        for i, label in ipairs(labels) do
          list[i] = { entry = label.id, label = label.name, time = label.time }
        end
        app:print_json(app.array(list))
        return
      elseif #labels == 0 then
        app:note(("No entry has a label. Give one: sessile label %s head NAME"):format(
          hints.id(session.id)))
        return
      end
      local now, rows = app.now(), {}
      for i, label in ipairs(labels) do
        rows[i] = { label.id, terminal.cut(terminal.line(label.name), 40),
          terminal.ago(label.time, now), about(session, label.id) }
      end
      app:out(terminal.table({ "ENTRY", "LABEL", "SINCE", "WHAT" }, rows, function(cell, at, head)
        return head and app.paint(cell, "bold") or at == 1 and app.paint(cell, "cyan") or cell
      end))
    end)
  end,
}
