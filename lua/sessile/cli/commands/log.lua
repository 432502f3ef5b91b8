--- log: what compactions did to a session, and which were refused.
--
-- Owns: the table. Must never compute what the engine does not say.

local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local number = terminal.number

local function as_json(app, rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = row
    row.policies = row.kind == "compaction" and app.array(row.policies or {}) or nil
  end
  app:print_json(app.array(list))
end

-- "3 covered, 1 lost"
local function fates(row)
  local parts = {}
  for _, name in ipairs { "covered", "replaced", "lost", "undone", "written", "restored" } do
    if row[name] > 0 then
      parts[#parts + 1] = ("%s %s"):format(number(row[name]), name)
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing"
end

local function what(row)
  if row.uncompacts then
    return "takes " .. row.uncompacts .. " back"
  end
  return terminal.line(row.policy or "-")
end

local function refusal(row)
  local law = row.law and ("law %d%s: "):format(row.law,
    row.law_name and " (" .. terminal.line(row.law_name) .. ")" or "") or ""
  local again = row.repeated > 0 and (" (%s more)"):format(row.repeated == 1 and "once"
    or number(row.repeated) .. " times") or ""
  return law .. terminal.line(row.message or "") .. again
end

local HEADINGS = {
  "ENTRY", "WHEN", "POLICY", "REASON", "BEFORE>", "AFTER>", "LEFT>", "KEPT>", "IN FORCE", "WHAT",
}

local function cells(row, now)
  local reason = terminal.line(row.reason or "-")
  if row.kind == "refusal" then
    return { row.id, terminal.ago(row.time, now), what(row), reason, "-", "-", "-", "-",
      "refused", refusal(row) }
  end
  local tokens = row.tokens
  return {
    row.id, terminal.ago(row.time, now), what(row), reason,
    tokens and number(tokens.before) or "-", tokens and number(tokens.after) or "-",
    number(row.lost + row.covered + row.replaced + row.undone), number(row.kept), row.in_force,
    fates(row),
  }
end

return {
  name = "log",
  summary = "what compactions did to a session, and which were refused",
  usage = "log ID",
  examples = {
    { "sessile log last", "a line each, oldest first" },
    { "sessile log bug-42 --json | jq '.[] | select(.kind == \"refusal\") | .message'",
      "for a program" },
  },
  arguments = {
    { "id", "a session's id, a beginning of it, its title, or `last`" },
  },
  about = "Of the path to the head. A compaction is in force as far as what it did is so to this\n"
    .. "day: take it back with `sessile uncompact`; ask for one message with `sessile why`.",
  run = function(app, args)
    local session, message, code, step = app:session(args.id)
    if not session then
      return nil, message, code, step
    end
    local _ <close> = setmetatable({}, { __close = function() session:close() end })
    local rows
    rows, message, code = session:log()
    if not rows then
      return nil, message, code
    elseif app.json then
      return as_json(app, rows)
    elseif #rows == 0 then
      app:note("Nothing was compacted here. To do so: sessile compact " .. hints.id(session.id)
        .. " --policy sliding_window --dry-run")
      return
    end
    local lines, now = {}, app.now()
    for i, row in ipairs(rows) do
      lines[i] = cells(row, now)
    end
    app:out(terminal.table(HEADINGS, lines, function(cell, column, heading)
      if heading then return app.paint(cell, "bold") end
      return column == 1 and app.paint(cell, "cyan") or cell
    end))
  end,
}
