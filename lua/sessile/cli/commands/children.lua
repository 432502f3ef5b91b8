--- children: lists the sessions that a session began for other agents.
--
-- Owns: the walk through children of children. Must never open a session twice.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local INDENT = "  "

-- Appends the rows of a session's children; deep: also of their children, if they can be opened.
local function gather(store, session, deep, depth, rows, seen)
  local children, message, code = session:subsessions()
  if not children then
    return nil, message, code
  end
  for _, child in ipairs(children) do
    local key = ("%s\0%s\0%s"):format(child.id, child.agent, child.user)
    child.depth, child.parent = depth, session.id
    rows[#rows + 1] = child
    if deep and not seen[key] then
      seen[key] = true
      local opened = store:resume {
        id = child.id, agent = child.agent, user = child.user ~= "" and child.user or nil,
      }
      if opened then
        child.title, child.messages = opened.title, #(opened:messages() or {})
        local ok
        ok, message, code = gather(store, opened, deep, depth + 1, rows, seen)
        opened:close()
        if not ok then
          return nil, message, code
        end
      else
        child.gone = true
      end
    end
  end
  return rows
end

local function as_json(app, session, rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = {
      id = row.id, agent = row.agent, user = row.user, entry = row.entry, time = row.time,
      state = row.state, merged = row.merged, parent = row.parent, depth = row.depth,
      title = row.title, messages = row.messages, gone = row.gone,
    }
  end
  app:print_json { session = session.id, parent = session.parent, children = app.array(list) }
end

local function print_rows(app, session, rows)
  if session.parent then
    app:out(("child of %s (agent %s) at %s\n"):format(terminal.line(session.parent.id),
      terminal.line(session.parent.agent), session.parent.entry))
  end
  if #rows == 0 then
    io.stdout:flush()
    app:note(("Session %s has no children. To see what it was made from: sessile info %s"):format(
      hints.shown(session.id), hints.id(session.id)))
    return
  end
  local now, lines = app.now(), {}
  for i, row in ipairs(rows) do
    lines[i] = {
      INDENT:rep(row.depth) .. terminal.line(row.id), terminal.line(row.agent), row.entry,
      row.gone and "gone" or row.state, terminal.ago(row.time, now),
      terminal.line(row.title or ""),
    }
  end
  app:print_table({ "ID", "AGENT", "BEGUN AT", "STATE", "WHEN", "TITLE" }, lines,
    { "BEGUN AT", "WHEN", "AGENT" })
end

return {
  summary = "list the sub-agent sessions of a session, and its parent",
  usage = "children ID [--direct]",
  examples = [[
    sessile children last  sessions of sub-agents, at every depth
    sessile children bug-42 --json | jq '.children[] | select(.state == "open")'
      the sessions not merged yet]],
  arguments = { common.session },
  options = { { "--direct", "only direct children" } },
  about = [[
    STATE is `open`, `merged` or `discarded`. `gone` means that its log cannot be opened
    any more.]],
  run = function(app, args)
    local session = app:open(args.id)
    local rows = app.try(gather(app:store(), session, not args.direct, 0, {}, {}));
    (app.json and as_json or print_rows)(app, session, rows)
  end,
}
