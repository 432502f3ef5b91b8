--- log: lists the compactions of a session, also the refused ones, and other events.
--
-- Owns: the table. Must never compute a figure that the engine does not give.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local number = terminal.number

local function as_json(app, rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = row
    row.policies = row.kind == "compaction" and app.array(row.policies or {}) or nil
  end
  app:print_json(app.array(list))
end

-- "3 covered, 1 dropped"
local function did(row)
  local text = render.dispositions(row)
  return text ~= "" and text or "nothing"
end

local function what(row)
  if row.uncompacts then
    return "undoes " .. row.uncompacts
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
  "ENTRY", "WHEN", "POLICY", "REASON", "BEFORE>", "AFTER>", "REMOVED>", "KEPT>", "IN FORCE", "WHAT",
}

-- On a narrower terminal the table has fewer columns.
local WIDE = 110
local NARROW = { "ENTRY", "WHEN", "IN FORCE", "WHAT" }

local SHORT = { "ENTRY", "WHEN", "KIND", "WHAT" }

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
    did(row),
  }
end

-- ---------------------------------------------------------------- --all

-- The timestamp of an entry in ms.
local function time_of(timestamp)
  local year, month, day, hour, minute, second, ms =
    timestamp:match "^(%d%d%d%d)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d)%.?(%d*)"
  local date = year and times.date(math.tointeger(year), math.tointeger(month),
    math.tointeger(day))
  return date and date + ((hour * 60 + minute) * 60 + second) * 1000
    + (math.tointeger(tonumber(ms)) or 0)
end

-- For each type of entry that --all lists: the kind in the table, and its text.
local says = {}

function says.suspend(data)
  if data.off then
    return data.cancelled and "cancelled" or "resumed", data.reason
  end
  return "suspended", data.reason
end

function says.pending_run(data)
  if data.off then
    return "pending closed", type(data.pending_run) == "string" and data.pending_run or nil
  end
  return "pending", type(data.asks) == "table" and data.asks.policy or nil
end

function says.head(data)
  local to = "to " .. tostring(data.head)
  if data.restored then
    return "restored", ("checkpoint %s, %s"):format(data.restored, to)
  end
  return "head moved", to
end

function says.checkpoint(data)
  return "checkpoint", data.name
end

function says.compaction(data)
  return data.context and "compaction" or nil, "on another branch"
end

-- The events of the session that are not among the known rows, in the order of the log.
local function events(app, session, known)
  local rows, there = {}, {}
  for _, row in ipairs(known) do
    there[row.id] = true
  end
  local types = {}
  for name in pairs(says) do
    types[#types + 1] = name
  end
  local iterator = app.try(session:entries { types = types })
  for entry in iterator do
    local data = type(entry.data) == "table" and entry.data or {}
    local kind, text = says[entry.type](data)
    if kind and not there[entry.id] then
      rows[#rows + 1] = { id = entry.id, kind = kind, time = time_of(entry.timestamp),
        text = type(text) == "string" and text or nil,
        reason = type(data.reason) == "string" and data.reason or nil }
    end
  end
  return rows
end

local function merged(rows, more)
  local list = table.move(more, 1, #more, #rows + 1, table.move(rows, 1, #rows, 1, {}))
  table.sort(list, function(a, b) return a.id < b.id end)
  return list
end

-- A compaction or a refusal as text.
local function told(row)
  if row.kind == "refusal" then
    return what(row) .. ": " .. refusal(row)
  end
  local tokens = row.tokens and terminal.change(row.tokens) .. ", " or ""
  return what(row) .. ": " .. tokens .. did(row)
end

-- A row of --all.
local function short(row, now)
  local text = row.text and terminal.line(row.text) or ""
  if row.kind == "refusal" or row.kind == "compaction" and not row.text then
    text = told(row)
  end
  return { row.id, row.time and terminal.ago(row.time, now) or "-", row.kind, text }
end

-- A row for a narrow terminal.
local function narrow(row, now)
  return { row.id, terminal.ago(row.time, now),
    row.kind == "refusal" and "refused" or row.in_force, told(row) }
end

return {
  summary = "list the compactions of a session, also the refused ones",
  usage = "log ID [--all]",
  examples = [[
    sessile log last        one line each, oldest first
    sessile log last --all  also suspensions, checkpoints and moves of the head
    sessile log bug-42 --json | jq '.[] | select(.kind == "refusal") | .message'
      for a program]],
  arguments = { common.session },
  options = {
    { "--all", "also show suspensions, pending runs, checkpoints and moves of the head" },
  },
  about = [[
    Lists the compactions on the path to the head. A compaction is in force as long as
    the context still shows what it did. To undo one, use `sessile uncompact`; to ask
    about one message, `sessile why`. --all adds entries of the whole log, other branches
    included.]],
  run = function(app, args)
    local session = app:open(args.id)
    local rows = app.try(session:log())
    if args.all then
      rows = merged(rows, events(app, session, rows))
    end
    if app.json then
      return as_json(app, rows)
    elseif #rows == 0 and args.all then
      app:note "Nothing happened to this session except its messages."
      return
    elseif #rows == 0 then
      app:note("Nothing was compacted here. To do so: sessile compact " .. hints.id(session.id)
        .. " --policy sliding_window --dry-run")
      return
    end
    local columns = terminal.columns()
    local headings, cells_of = HEADINGS, cells
    if args.all then
      headings, cells_of = SHORT, short
    elseif columns and columns < WIDE then
      headings, cells_of = NARROW, narrow
    end
    local lines, now = {}, app.now()
    for i, row in ipairs(rows) do
      lines[i] = cells_of(row, now)
    end
    app:print_table(headings, lines, true)
  end,
}
