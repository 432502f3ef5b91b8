--- stats: charts how a session, or the store, grew.
--
-- Owns: the bars of turns or days, with marks for compactions and checkpoints. Must never count a
-- message twice, nor leave out rows that do not fit: they are combined.

local chart = require "sessile.cli.chart"
local common = require "sessile.cli.common"
local filters = require "sessile.cli.filters"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local speaker = require "sessile.speaker"
local terminal = require "sessile.cli.terminal"

local plural = terminal.plural

local number = terminal.number

local ROWS = 30

-- Where a number of tokens comes from, in words; other sources are words already.
local SOURCES = { usage = "reported by the provider", fitted = "fitted to reported usage" }

-- ---------------------------------------------------------------- one session

-- The turns on the path to the head, or the days: {label, entry, time, messages, tokens, marks}. A
-- turn begins with a message of the user.
local function rows_of(app, session, by, since, till)
  local messages = app.try(session:messages())
  local rows, row, turns = {}, nil, 0
  for _, one in ipairs(messages) do
    local facts = render.facts(one)
    local day = terminal.day(facts.time)
    local begins = speaker.asks(one) or not row
    turns = turns + (begins and 1 or 0)
    if (not since or facts.time >= since) and (not till or facts.time < till) then
      if by == "day" and (not row or row.label ~= day) or by == "turn" and (begins or not row) then
        row = {
          label = by == "day" and day or ("%d"):format(turns), entry = facts.key,
          time = facts.time, messages = 0, tokens = 0, marks = {},
        }
        rows[#rows + 1] = row
      end
      row.messages, row.tokens = row.messages + 1, row.tokens + (facts.tokens or 0)
    end
  end
  return rows
end

-- The row of the entry with this id: the last one that begins before it.
local function row_before(rows, id)
  for i = #rows, 1, -1 do
    if rows[i].entry <= id then
      return rows[i]
    end
  end
end

local function mark(rows, kind, id, text)
  local row = row_before(rows, id)
  if row then
    row.marks[#row.marks + 1] = { kind = kind, id = id, text = text }
  end
end

local function add_marks(app, session, rows)
  local log = app.try(session:log())
  for _, one in ipairs(log) do
    local tokens = one.tokens
    if one.kind == "compaction" then
      mark(rows, one.uncompacts and "uncompaction" or "compaction", one.id, tokens
        and terminal.change(tokens) or "")
    end
  end
  local checkpoints = app.try(session:checkpoints())
  for i = #checkpoints, 1, -1 do
    mark(rows, "checkpoint", checkpoints[i].id, checkpoints[i].name or "")
  end
end

-- Combines neighbours, so that there are at most `most` rows.
local function fewer(rows, most)
  local list = {}
  for i, group in ipairs(chart.groups(rows, most)) do
    local first, last = group[1], group[#group]
    local sum = {
      label = first == last and first.label or first.label .. "–" .. last.label,
      entry = first.entry, time = first.time, messages = 0, tokens = 0, marks = {},
    }
    for _, row in ipairs(group) do
      sum.messages, sum.tokens = sum.messages + row.messages, sum.tokens + row.tokens
      table.move(row.marks, 1, #row.marks, #sum.marks + 1, sum.marks)
    end
    list[i] = sum
  end
  return list
end

local SIGN = { compaction = "▼", uncompaction = "▲", checkpoint = "◆" }

-- The first mark of each kind, and how many more there are.
local function marks_text(marks)
  local parts, count = {}, {}
  for _, one in ipairs(marks) do
    count[one.kind] = (count[one.kind] or 0) + 1
    if count[one.kind] == 1 then
      parts[#parts + 1] = one
    end
  end
  for i, one in ipairs(parts) do
    local more = count[one.kind] > 1 and (" and %d more"):format(count[one.kind] - 1) or ""
    parts[i] = ("%s %s%s"):format(SIGN[one.kind], terminal.line(
      one.text ~= "" and one.text or one.id), more)
  end
  return table.concat(parts, "  ")
end

local function draw(app, by, rows)
  local most, columns = 1, terminal.columns() or 100
  for _, row in ipairs(rows) do
    most = math.max(most, row.tokens)
  end
  local width = math.max(8, math.min(40, columns - 50))
  local cells = {}
  for i, row in ipairs(rows) do
    cells[i] = {
      row.label, number(row.messages), number(row.tokens), chart.bar(row.tokens, most, width),
      marks_text(row.marks),
    }
  end
  app:print_table({ by == "day" and "DAY" or "TURN", "MESSAGES>", "TOKENS>", "", "" }, cells,
    { "MESSAGES" }, { [4] = "cyan", [5] = "yellow" })
end

local function of_session(app, args, since, till)
  local session = app:open(args.id)
  local by = args.by or "turn"
  local rows = rows_of(app, session, by, since, till)
  add_marks(app, session, rows)
  local usage = app.try(session:usage())
  local _, about = app.try(session:context())
  local tokens, messages, count = 0, 0, {}
  for _, row in ipairs(rows) do
    tokens, messages = tokens + row.tokens, messages + row.messages
    for _, one in ipairs(row.marks) do
      count[one.kind] = (count[one.kind] or 0) + 1
    end
  end
  if app.json then
    for _, row in ipairs(rows) do
      row.marks = app.array(row.marks)
    end
    app:print_json {
      session = session.id, by = by, rows = app.array(rows), messages = messages,
      tokens = tokens, context = about.tokens, usage = usage,
    }
    return
  elseif #rows == 0 then
    app:note(("Session %s has no messages%s."):format(hints.shown(session.id),
      (since or till) and " of that time" or " yet"))
    return
  end
  draw(app, by, fewer(rows, args.rows or ROWS))
  app:out(("\n%s of %s tokens; the context now: %s (%s)\n"):format(plural(messages, "message"),
    number(tokens), number(about.tokens),
    SOURCES[about.source] or about.source))
  app:out(("%s %s   %s %s\n"):format(SIGN.compaction, plural(count.compaction or 0, "compaction"),
    SIGN.checkpoint, plural(count.checkpoint or 0, "checkpoint")))
end

-- ---------------------------------------------------------------- a store

-- Sessions, messages and bytes by the day on which the sessions were created.
local function days_of(rows)
  local days, by_day = {}, {}
  for _, row in ipairs(rows) do
    local label = row.created and terminal.day(row.created)
    local day = label and by_day[label]
    if label and not day then
      day = { label = label, time = row.created, sessions = 0, messages = 0, bytes = 0 }
      by_day[label], days[#days + 1] = day, day
    end
    if day then
      day.sessions = day.sessions + 1
      day.messages, day.bytes = day.messages + (row.messages or 0), day.bytes + (row.bytes or 0)
    end
  end
  table.sort(days, function(a, b) return a.label < b.label end)
  return days
end

local function sum_of(rows)
  local sum = { sessions = #rows, messages = 0, entries = 0, bytes = 0, status = {}, agents = {} }
  for _, row in ipairs(rows) do
    for _, name in ipairs { "messages", "entries", "bytes" } do
      sum[name] = sum[name] + (row[name] or 0)
    end
    local status, agent = row.status or "?", row.agent or "?"
    sum.status[status] = (sum.status[status] or 0) + 1
    sum.agents[agent] = (sum.agents[agent] or 0) + 1
  end
  return sum
end

-- {name = n, …} as "3 active, 1 archived", the largest first.
local function counted(counts)
  local names = {}
  for name in pairs(counts) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  local parts = {}
  for i = 1, math.min(#names, 6) do
    parts[i] = ("%s %s"):format(number(counts[names[i]]), terminal.line(names[i]))
  end
  return table.concat(parts, ", ") .. (#names > 6 and (", %d more"):format(#names - 6) or "")
end

local function fewer_days(days, most)
  local list = {}
  for i, group in ipairs(chart.groups(days, most)) do
    local first, last = group[1], group[#group]
    local sum = { label = first.label, sessions = 0, messages = 0, bytes = 0 }
    if first ~= last then sum.label = first.label .. "–" .. last.label end
    for _, day in ipairs(group) do
      for _, name in ipairs { "sessions", "messages", "bytes" } do
        sum[name] = sum[name] + day[name]
      end
    end
    list[i] = sum
  end
  return list
end

local function of_store(app, args, since, till)
  local rows = app.try(app:list(app:need_store(), { since = since, ["until"] = till }))
  local sum, days = sum_of(rows), days_of(rows)
  if app.json then
    sum.days = app.array(days)
    app:print_json(sum)
    return
  elseif #rows == 0 then
    app:note "There are no such sessions. Make one: sessile new"
    return
  end
  local list, most, cells = fewer_days(days, args.rows or ROWS), 1, {}
  for _, day in ipairs(list) do most = math.max(most, day.messages) end
  local width = math.max(8, math.min(40, (terminal.columns() or 100) - 46))
  for i, day in ipairs(list) do
    cells[i] = { day.label, number(day.sessions), number(day.messages), terminal.bytes(day.bytes),
      chart.bar(day.messages, most, width) }
  end
  app:print_table({ "DAY", "SESSIONS>", "MESSAGES>", "SIZE>", "" }, cells, { "SIZE", "SESSIONS" },
    { [5] = "cyan" })
  app:out(("\n%s, %s, %s: %s\n"):format(plural(sum.sessions, "session"),
    plural(sum.messages, "message"), terminal.bytes(sum.bytes), counted(sum.status)))
  app:out(("of agents: %s\n"):format(counted(sum.agents)))
end

return {
  summary = "chart how a session grew, turn by turn, or the whole store",
  usage = "stats [ID] [--by turn|day] [--since WHEN] [--until WHEN]",
  examples = [[
    sessile stats last  tokens of each turn; ▼ is a compaction, ◆ a checkpoint
    sessile stats bug-42 --by day --since 30d
      day by day
    sessile stats       the store: sessions, messages, bytes by day]],
  arguments = {
    common.session_as { more = "; default: the store", count = "?" },
  },
  options = {
    { "--by WHAT", "for one session: one bar for each", choices = { "turn", "day" } },
    { "--rows N", "at most N bars (default 30): more are combined", integer = true },
    { "--since WHEN", "from a date (2026-02-01) or an age (24h, 7d)" },
    { "--until WHEN", "before that" },
  },
  about = [[
    A turn starts with a message of the user. Its tokens are those of its messages, as
    the engine counts them. `sessile usage` shows what providers reported. Days are in
    UTC.]],
  run = function(app, args)
    local since, till = filters.moments(app, args)
    if args.by and not args.id then
      return nil, "--by is for one session: name it", "EUSAGE"
    elseif args.rows == 0 then
      return nil, "--rows: at least one", "EUSAGE"
    end
    local of = args.id and of_session or of_store
    return of(app, args, since, till)
  end,
}
