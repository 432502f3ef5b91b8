--- why: explains why a message is in the context or not.
--
-- Must never say more than the engine does.

local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

-- A row of `sessile log` for JSON.
local function compaction_json(app, of)
  local row = {}
  for name, value in pairs(of) do
    row[name] = value
  end
  row.policies = of.kind == "compaction" and app.array(of.policies or {}) or nil
  return row
end

local function as_json(app, id, why)
  local steps = {}
  for i, step in ipairs(why.steps) do
    local row = {}
    for name, value in pairs(step) do
      row[name] = value
    end
    row.recalled = step.recalled and app.array(step.recalled)
    row.stands_for = step.stands_for and app.array(step.stands_for)
    row.compaction = step.compaction and compaction_json(app, step.compaction)
    steps[i] = row
  end
  app:print_json {
    session = id, key = why.key, in_context = why.in_context, shown = why.shown,
    verdict = why.verdict, steps = app.array(steps),
  }
end

-- Prints the role and the beginning of the message, if the entry is one.
local function heading(app, session, key, columns)
  local entry = not key:find(".", 1, true) and session:entry(key)
  if not entry or entry.type ~= "message" or type(entry.data) ~= "table" then
    return
  end
  local role = render.role(entry.data)
  app:out(("%s  %s  %s\n"):format(app.paint(key, "dim"),
    app.paint(role, render.colour(entry.data)),
    render.brief(entry.data, math.max(columns - #key - terminal.width(role) - 4, 20))))
end

-- An entry, or "16.1": the first message that compaction 16 wrote.
local function find(session, text)
  local digits, n = text:match "^(%x+)%.([1-9]%d*)$"
  if digits and #digits <= 8 then
    return ("%s%s.%s"):format(("0"):rep(8 - #digits), digits:lower(), n)
  end
  return entries.find(session, text)
end

local function run(app, args, session)
  local key = app.try(find(session, args.entry))
  local why = app.try_or(entries.steps(session), session:why(key))
  if app.json then
    return as_json(app, session.id, why)
  end
  local columns = terminal.columns() or 100
  heading(app, session, key, columns)
  local told = {}
  local room = terminal.columns() and math.max(terminal.columns() - 2, 20)
  for _, happened in ipairs(why.steps) do
    app:out("- " .. terminal.wrap(terminal.line(happened.text), room, "  ") .. "\n")
    local of = happened.compaction
    if of and of.summary and not told[of.id] then
      told[of.id] = true
      app:out("  Its summary: "
        .. terminal.cut(terminal.line(of.summary), math.max(columns - 16, 40)) .. "\n")
    end
  end
  app:out(app.paint(why.verdict, "bold") .. "\n")
end

return {
  summary = "explain why a message is in the context or not",
  usage = "why ID ENTRY",
  examples = [[
    sessile why last 2a      what happened to that message
    sessile why bug-42 16.1  a message that compaction 16 wrote]],
  arguments = { common.session, common.entry },
  about = [[
    Shows what happened to the message, oldest first: which compaction removed it, when,
    by which policy, and what replaced it; then what happened to the replacement.]],
  run = function(app, args) return run(app, args, app:open(args.id)) end,
}
