--- show: prints a session's messages, or one entry.
--
-- Owns: the choice of what to print. Must never show stored text as it is on a terminal:
-- render.lua makes it inert.

local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local span = require "sessile.import.span"
local terminal = require "sessile.cli.terminal"

-- JSON, a member a line, strings cut: for eyes, not for programs (those use --json).
local function outline(raw, columns)
  local members = span.object(raw)
  local lines = {}
  for i, member in ipairs(members or {}) do
    local value = span.string(member.raw) or member.raw
    lines[i] = ("  %-12s %s"):format(terminal.line(member.key),
      terminal.cut(terminal.line(value), math.max(columns - 15, 20)))
  end
  return table.concat(lines, "\n") .. "\n"
end

local function show_entry(app, session, id)
  local entry, message, code = session:entry(id)
  if not entry then
    if code == "ENOTFOUND" then
      message = ("session %s has no entry %s"):format(hints.shown(session.id), id)
    end
    return nil, message, code, "See the entries: sessile tree " .. hints.id(session.id)
  end
  local raw = render.facts(entry).json
  if app.json then
    app:print_json(app.raw(raw))
    return
  end
  local _, fields = span.object(raw)
  local columns = terminal.columns() or 100
  if span.string(fields.type) ~= "message" then
    app:out(outline(raw, columns) .. "\n" .. outline(fields.data or "{}", columns))
    return
  end
  for _, found in ipairs(session:messages { from = id, limit = 1 } or {}) do
    if render.facts(found).key == id then
      app:out(render.message(found, app.paint, app.now()))
      return
    end
  end
  app:out(outline(raw, columns)) -- on another branch
end

return {
  name = "show",
  summary = "print the messages of a session, or one entry",
  usage = "show ID[@ENTRY] [--last N]",
  examples = {
    { "sessile show last --last 3", "the newest three messages" },
    { "sessile show bug-42@2a", "one entry, by its number or a label" },
    { "sessile show bug-42 --json | jq '.[].message.role'", "for a program" },
  },
  arguments = {
    { "id", "a session, and perhaps one of its entries" },
  },
  options = {
    { "--last N", "only the newest N messages", integer = true },
  },
  about = "Every message from the first to the newest is shown, compacted or not. What the\n"
    .. "model would get is shown by `sessile context`.",
  run = function(app, args)
    local session, entry, code, step = entries.at(app, args.id)
    if not session then
      return nil, entry, code, step
    end
    local _ <close> = setmetatable({}, { __close = function() session:close() end })
    if type(entry) == "string" then
      return show_entry(app, session, entry)
    end
    local list, message
    list, message, code = session:messages { last = args.last }
    if not list then
      return nil, message, code
    end
    if app.json then
      local rows = {}
      for i, found in ipairs(list) do
        rows[i] = render.json(app, found)
      end
      app:print_json(app.array(rows))
      return
    end
    local now = app.now()
    for i, found in ipairs(list) do
      app:out((i > 1 and "\n" or "") .. render.message(found, app.paint, now))
    end
    if #list == 0 and not args.last then
      app:note("The session has no messages yet. Add one: sessile append "
        .. hints.id(session.id) .. " 'text'")
    end
  end,
}
