--- audit tail, audit show: the events of a store's audit.
--
-- Owns: the table, the files of cursors. A cursor is written after the events before it are out, so
-- that none is lost when the command is interrupted.

local audit = require "sessile.audit"
local filters = require "sessile.cli.filters"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local own_files = require "sessile.cli.own_files"
local pager = require "sessile.cli.pager"
local terminal = require "sessile.cli.terminal"

local commands = {}

local TAIL = 10
local STEPS = {
  ENOTFOUND = "An audit begins with the first event, in a store with a guard",
  EDAMAGED = "Its logs are in the folder guard.audit: bring back a copy of them. Who removed them?",
}

local FILTERS = {
  { "--about USER", "only of what is this user's, whoever did it" },
  { "--since WHEN", "from a date (2026-02-01) or an age (24h, 7d) on" },
  { "--until WHEN", "before that" },
  { "--operation NAME", "only of this operation, as append or erase_user" },
  { "--outcome WHAT", "only with this outcome",
    choices = { "success", "failure", "intent", "unknown" } },
  { "--session ID", "only of this session" },
}

-- What the options ask store:audit for.
local function asked(app, args)
  local since, till = filters.moments(app, args)
  return { since = since, ["until"] = till, user = app.globals.user, agent = app.globals.agent,
    about = args.about, operation = args.operation, outcome = args.outcome, session = args.session }
end

local function open(app, filter)
  filter.on_damage = function(message, code)
    app.damaged, app.damage = code, terminal.line(message)
  end
  return app:keep(app.try_or(STEPS, app:need_store():audit(filter)))
end

-- ---------------------------------------------------------------- as a table

local HEADINGS = { "TIME", "USER", "OPERATION", "ON", "OUTCOME" }
local WIDTHS = { 19, 14, 16, 16 } -- of the columns but the last, when lines come one by one

-- Whom an event is of: a name, or a pseudonym, cut; the agent that acted for them.
local function who(event)
  local user = event.name or event.user and event.user:sub(1, 10) .. "…" or "host"
  return terminal.line(event.actor and user .. " by " .. event.actor or user)
end

local function outcome(event)
  local said = event.outcome or "?"
  if event.code then
    said = said .. ": " .. event.code
  end
  if event.rule then
    said = said .. " " .. event.rule
  end
  if event.count then
    said = ("%s (%d times)"):format(said, event.count)
  end
  return terminal.line(said)
end

-- What it is about: a session, with its entry; a user, as events name owners; what was given or
-- ended.
local function object(event)
  local details = type(event.details) == "table" and event.details or {}
  local words = { event.session or event.agent }
  if event.entry then
    words[1] = (words[1] or "") .. "@" .. event.entry
  elseif event.owner and not event.session then
    words[#words + 1] = event.owner:sub(1, 10) .. "…"
  end
  words[#words + 1] = details.role
  words[#words + 1] = details.access_key and "key " .. tostring(details.access_key)
  words[#words + 1] = details.grant and ("grant %x"):format(details.grant)
  words[#words + 1] = details.hold and ("hold %x"):format(details.hold)
  for i, word in ipairs(words) do words[i] = tostring(word) end
  return table.concat(words, " ")
end

local function cells(event)
  return { terminal.exact(event.time), who(event), terminal.line(event.operation or "?"),
    terminal.line(object(event)), outcome(event) }
end

-- ids: with the ids of the events.
local function print_rows(app, events, ids)
  local rows, headings = {}, table.move(HEADINGS, 1, #HEADINGS, 1, {})
  for i, event in ipairs(events) do
    rows[i] = cells(event)
    rows[i][2] = terminal.cut(rows[i][2], 24)
    rows[i][4] = terminal.cut(rows[i][4], 36)
    if ids then
      table.insert(rows[i], 1, event.id)
    end
  end
  if ids then
    table.insert(headings, 1, "ID")
  end
  app:print_table(headings, rows, { "ON" })
end

-- A row of its own, in columns of fixed widths.
local function print_row(app, event)
  local words = cells(event)
  for i, width in ipairs(WIDTHS) do
    local cell = terminal.cut(words[i], width)
    words[i] = cell .. (" "):rep(width - terminal.width(cell))
  end
  app:out((table.concat(words, "  "):gsub(" +$", "")) .. "\n")
end

-- ---------------------------------------------------------------- tail

-- The event as --json has it.
local function as_json(event)
  local made = {}
  for name, value in pairs(event) do
    made[name] = name ~= "json" and value or nil
  end
  return made
end

-- A function that prints one event.
local function printer(app, format)
  if format then
    return function(event) app:out(audit.export(event, format) .. "\n") end
  elseif app.json then
    return function(event) app:out(json.line(as_json(event)) .. "\n") end
  end
  return function(event) print_row(app, event) end
end

-- The newest `most` events (nil: all) that there are now.
local function newest(events, most)
  local ring, count = {}, 0
  for event in events do
    count = count + 1
    ring[most and (count - 1) % most + 1 or count] = event
  end
  if not most or count <= most then
    return ring
  end
  local first, list = count % most + 1, {}
  table.move(ring, first, most, 1, list)
  return table.move(ring, 1, first - 1, #list + 1, list)
end

local function read_cursor(app, path)
  local file, message = io.open(path, "rb")
  if not file then
    if message:find "No such file" then
      return nil -- it is written at the end
    end
    app.fail(("the cursor cannot be read: %s"):format(terminal.line(message)), "EIO")
  end
  local text = file:read(100000) or ""
  file:close()
  return (text:gsub("%s+$", ""))
end

local function keep_cursor(app, events, path)
  if path then
    io.stdout:flush()
    app.try(own_files.write(path, app.try(events:cursor()) .. "\n", true))
  end
end

-- Prints all events, and with --cursor where they ended every so often.
local function print_all(app, events, print, path)
  local since = 0
  for event in events do
    print(event)
    since = since + 1
    if since == 1000 then
      keep_cursor(app, events, path)
      since = 0
    end
  end
  keep_cursor(app, events, path)
end

local function tail(app, args)
  local filter = asked(app, args)
  local cursor = args.cursor and read_cursor(app, args.cursor)
  filter.cursor = cursor
  local events = open(app, filter)
  local most = args.lines or not args.cursor and not args.since and TAIL or nil
  local print = printer(app, args.format)
  if args.cursor and not args.lines then
    print_all(app, events, print, args.cursor)
  else
    local list = newest(events, most and math.max(most, 1))
    list = most == 0 and {} or list
    if app.json and not args.follow and not args.format then
      for i, event in ipairs(list) do list[i] = as_json(event) end
      app:print_json(app.array(list))
    elseif args.format or args.follow or app.json then
      for _, event in ipairs(list) do print(event) end
    elseif #list > 0 then
      print_rows(app, list)
    else
      app:note "There are no such events. See all: sessile audit show"
    end
    keep_cursor(app, events, args.cursor)
  end
  local ends = args["for"] and os.time() * 1000 + args["for"]
  while args.follow do
    io.stdout:flush()
    local left = ends and math.max(ends - os.time() * 1000, 0)
    local changed, message, code = events:wait(left and math.min(left, 1000) or 1000)
    if changed == nil then
      app.fail(message, code)
    end
    print_all(app, events, print, args.cursor)
    if left == 0 then
      break
    end
  end
end

commands["audit tail"] = {
  summary = "print the newest events of the audit, or send them on to another program",
  usage = "audit tail [-n N] [--follow] [--format F] [--cursor FILE] [--since WHEN] [--user USER]",
  examples = [[
    sessile audit tail                                  the newest ten
    sessile audit tail --follow                         and each new one, until Ctrl-C
    sessile audit tail --outcome failure --since 1d     what was refused today
    sessile audit tail --format ecs --cursor ecs.pos    all that came since the last time
    sessile audit tail --follow --format syslog --cursor siem.pos | nc siem.example 514
      to another machine]],
  options = {
    { "-n --lines N", "the newest N events (default: 10; with --since or --cursor all)",
      integer = true },
    { "--follow", "then print each new event, until Ctrl-C" },
    { "--for TIME", "with --follow: stop after this time: 90, 5m", time = true },
    { "--format F", "one line for each event, in the format of another program",
      choices = audit.formats },
    { "--cursor FILE", "go on behind the events that FILE says, and note in it where this ended" },
    FILTERS[1], FILTERS[2], FILTERS[3], FILTERS[4], FILTERS[5], FILTERS[6],
  },
  about = [[
    Formats: jsonl (events as they are), ecs (Elastic 8), ocsf (1.6), cef, syslog (RFC 5424
    around CEF). An event has a stable id: with --cursor one may come twice after an
    interruption, and none is lost. --user takes a name, or the pseudonym that events have
    of a user. With --follow --json each event is one line of JSON.]],
  run = function(app, args)
    if args["for"] and not args.follow then
      return nil, "--for goes with --follow", "EUSAGE"
    end
    return tail(app, args)
  end,
}

-- ---------------------------------------------------------------- show

-- Every member of an event, in an order for people.
local ORDER = { "id", "time", "operation", "outcome", "code", "rule", "name", "user", "actor",
  "agent", "role", "method", "key", "permission", "session", "owner", "entry", "count", "request",
  "source", "details" }

local function show_one(app, event)
  if app.json then
    return app:print_json(as_json(event))
  end
  for _, name in ipairs(ORDER) do
    local value = event[name]
    if name == "time" then
      value = terminal.exact(value)
    elseif type(value) == "table" then
      value = json.line(value)
    end
    if value ~= nil then
      app:out(("%-11s %s\n"):format(name, terminal.line(tostring(value))))
    end
  end
end

commands["audit show"] = {
  summary = "print the events of the audit, or all of one event",
  usage = "audit show [EVENT] [--since WHEN] [--user USER | --about USER] [--operation NAME]",
  examples = [[
    sessile audit show                          everything, oldest first
    sessile audit show --user ann --since 7d    what ann did this week
    sessile audit show --about ann              what was done to what is ann's
    sessile audit show --session bug-42         who did what to a session
    sessile audit show 00-000/0000002a          one event]],
  arguments = { { "event", "the id of an event", "?" } },
  options = { FILTERS[1], FILTERS[2], FILTERS[3], FILTERS[4], FILTERS[5],
    FILTERS[6], { "--limit N", "the first N (0: all)", integer = true }, pager.option },
  about = [[
    Users have their names as long as they are not forgotten, and then pseudonyms. Who
    something belongs to is a hash, o_…, which --about finds by the name. What is shown
    was not verified: sessile audit verify]],
  run = function(app, args)
    if not args.event then
      app:paged(args)
    end
    local filter = asked(app, args)
    filter.limit = args.limit
    local events = open(app, filter)
    if args.event then
      for event in events do
        if event.id == args.event then
          return show_one(app, event)
        end
      end
      return nil, ("there is no event %s"):format(hints.shown(args.event)), "ENOTFOUND",
        "Their ids: sessile audit tail --json"
    elseif app.json then
      local list = {}
      for event in events do list[#list + 1] = as_json(event) end
      return app:print_json(app.array(list))
    end
    local list = {}
    for event in events do list[#list + 1] = event end
    if #list == 0 then
      return app:note "There are no such events."
    end
    print_rows(app, list, true)
  end,
}

return commands
