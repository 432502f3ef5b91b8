--- show: prints the messages of a session, also new ones as they arrive, or one entry.
--
-- Must never print unsafe text: render.lua makes it safe.

local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local pager = require "sessile.cli.pager"
local render = require "sessile.cli.render"
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"

-- An object for people: one member on each line, long strings cut.
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
    app.fail(message, code, "See the entries: sessile tree " .. hints.id(session.id))
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
      app:out(render.message(found, app.paint, app.now(), terminal.columns()))
      return
    end
  end
  app:out(outline(raw, columns)) -- on another branch
end

-- The longest wait between two looks at the clock, in ms.
local WAIT_MS = 60000

-- Prints messages. first: no message was printed before.
local function show_messages(app, list, first)
  local now, columns = app.now(), terminal.columns()
  for i, found in ipairs(list) do
    if app.json then
      app:out(json.line(render.json(app, found)) .. "\n")
    else
      app:out((first and i == 1 and "" or "\n") .. render.message(found,
        app.paint, now, columns))
    end
  end
end

-- The messages after the entry `seen`, and the newest entry that was looked at. While `newest` is
-- asked for, more may come: they would take the places of those before them.
local function newer(app, session, seen, newest)
  local from, upto = tonumber(seen, 16), tonumber(newest, 16)
  local list, last
  repeat
    upto = math.max(upto, last or 0)
    -- there are at most as many new messages as new entries
    list = app.try(session:messages { last = upto - from })
    last = #list > 0 and tonumber(render.facts(list[#list]).key:sub(1, #seen), 16) or 0
  until last <= upto
  local new = {}
  for _, found in ipairs(list) do
    if render.facts(found).key:sub(1, #seen) > seen then
      new[#new + 1] = found
    end
  end
  return new, ("%08x"):format(upto)
end

-- Prints the messages that others write after the entry `seen`, for `timeout_ms` (nil: for ever).
local function follow(app, session, seen, timeout_ms, empty)
  local ends = timeout_ms and os.time() * 1000 + timeout_ms
  while true do
    io.stdout:flush()
    local left = ends and math.max(ends - os.time() * 1000, 0)
    local changed, newest, code = session:watch { after = seen,
      timeout_ms = left and math.min(left, WAIT_MS, timeout_ms) }
    if changed == nil then
      return nil, newest, code
    elseif changed then
      local new
      new, seen = newer(app, session, seen, newest)
      show_messages(app, new, empty)
      empty = empty and #new == 0
    elseif ends and os.time() * 1000 >= ends or timeout_ms == 0 then
      return
    end
  end
end

return {
  summary = "print the messages of a session, or one entry",
  usage = "show ID[@ENTRY] [--last N] [--follow [--for TIME]]",
  examples = [[
    sessile show last --last 3                          the newest three messages
    sessile show bug-42@2a                              one entry, by its number or a label
    sessile show last --follow                          and new messages, until Ctrl-C
    sessile show bug-42 --json | jq '.[].message.role'  for a program]],
  arguments = {
    { "id", "a session, optionally with one of its entries" },
  },
  options = {
    { "--last N", "only the newest N messages", integer = true },
    { "--follow", "then print each new message, until Ctrl-C" },
    { "--for TIME", "with --follow: stop after this time: 90, 5m", time = true },
    pager.option,
  },
  about = [[
    Prints every message from the first to the newest, also those that were compacted
    away. To see what the model would get, use `sessile context`. With --follow --json
    each message is one line of JSON.]],
  run = function(app, args)
    local session, entry = entries.open_at(app, args.id)
    if entry and args.follow then
      return nil, "--follow is for a whole session, and an entry never changes", "EUSAGE",
        "sessile show " .. hints.id(session.id) .. " --follow"
    elseif args["for"] and not args.follow then
      return nil, "--for goes with --follow", "EUSAGE"
    end
    if not args.follow then
      app:paged(args)
    end
    if entry then
      return show_entry(app, session, entry)
    end
    local changed, seen, code
    if args.follow then -- before the messages are read, so that none is missed
      changed, seen, code = session:watch { timeout_ms = 0 }
      if changed == nil then
        return nil, seen, code
      end
    end
    local list = app.try(session:messages { last = args.last })
    if args.follow then
      show_messages(app, list, true)
      for i = #list, 1, -1 do -- some may be newer than `seen`
        local id = render.facts(list[i]).key:sub(1, #seen)
        seen = id > seen and id or seen
      end
      return follow(app, session, seen, args["for"], #list == 0)
    elseif app.json then
      app:print_json(render.list(app, list))
      return
    end
    show_messages(app, list, true)
    if #list == 0 and not args.last then
      app:note("The session has no messages yet. Add one: sessile append "
        .. hints.id(session.id) .. " 'text'")
    end
  end,
}
