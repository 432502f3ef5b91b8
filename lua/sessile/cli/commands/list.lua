--- list: lists the sessions of a store.
--
-- Owns: the table. Must never hide a session that cannot be read: it is listed with the reason.

local common = require "sessile.cli.common"
local core = require "sessile.core"
local filters = require "sessile.cli.filters"
local hints = require "sessile.cli.hints"
local pager = require "sessile.cli.pager"
local render = require "sessile.cli.render"
local sessions = require "sessile.cli.sessions"
local speaker = require "sessile.speaker"
local terminal = require "sessile.cli.terminal"

local function as_json(app, rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = {
      id = row.id, agent = row.agent, user = row.user, title = row.title,
      created = row.created, modified = row.modified, entries = row.entries,
      messages = row.messages, bytes = row.bytes, status = row.status,
      message = row.message, labels = row.labels and app.array(row.labels) or nil,
      expires = row.expires, deleted = row.deleted,
    }
  end
  app:print_json(app.array(list))
end

local function differs(rows, field)
  for _, row in ipairs(rows) do
    if row[field] and row[field] ~= "" and row[field] ~= rows[1][field] then
      return true
    end
  end
  return false
end

-- The columns to leave out on a narrow terminal, in this order.
local NARROW = { "SIZE", "CREATED", "MESSAGES>", "USER", "AGENT", "MODIFIED" }

-- Sessions of which the first question is looked up, and messages in which it is looked for.
local MOST, FIRST = 200, 20

-- The first question of a session, on one line; nil: nobody asked anything, or it cannot be read.
local function question(store, row)
  local session = row.id and not row.message and store:resume {
    id = row.id, agent = row.agent, user = row.user ~= "" and row.user or nil,
  }
  if not session then
    return nil
  end
  local found
  for _, message in ipairs(session:messages { limit = FIRST } or {}) do
    local text = speaker.asks(message) and terminal.line(render.text(message):sub(1, 1000)) or ""
    if text ~= "" then
      found = terminal.cut(text, 60)
      break
    end
  end
  session:close()
  return found
end

-- What people know each row by: its title, else its first question.
local function names_of(store, rows)
  local names, looked = {}, 0
  for i, row in ipairs(rows) do
    names[i] = terminal.line(row.title or "")
    if names[i] == "" and looked < MOST then
      looked = looked + 1
      names[i] = question(store, row) or ""
    end
  end
  return names
end

local function print_table(app, store, rows, short, long)
  local now = app.now()
  local function time(ms)
    return long and terminal.exact(ms) or terminal.ago(ms, now)
  end
  local headings = { "ID", "AGENT", "MESSAGES>", "SIZE>", "CREATED", "MODIFIED", "STATUS", "TITLE" }
  local with_user = long or differs(rows, "user")
  if with_user then table.insert(headings, 3, "USER") end
  local lines, names = {}, names_of(store, rows)
  for i, row in ipairs(rows) do
    local ok = not row.message
    local cells = {
      long and terminal.line(row.id or "?") or short[row] or "?",
      terminal.line(row.agent or "?"),
      ok and terminal.number(row.messages) or "-",
      row.bytes and terminal.bytes(row.bytes) or "-",
      ok and time(row.created) or "-",
      ok and time(row.modified) or "-",
      terminal.line(row.status or "?"),
      names[i],
    }
    if with_user then table.insert(cells, 3, terminal.line(row.user or "")) end
    lines[i] = cells
  end
  app:print_table(headings, lines, NARROW)
end

-- The options as an argument of store:list.
local function asked_for(app, args)
  local asked = filters.asked(app, args)
  asked.search = args.title
  asked.sort = args.sort ~= "modified" and args.sort or nil
  return asked
end

local function is_narrow(args)
  return args.title or filters.are_narrow(args)
end

-- The records of sessions that were deleted permanently.
local function removed(app)
  local store = app:store_if_any()
  local rows = store and app.try(store:deletions()) or {}
  if app.json then
    return app:print_json(app.array(rows))
  elseif #rows == 0 then
    return app:note "No session was deleted permanently."
  end
  local cells = {}
  for i, row in ipairs(rows) do
    cells[i] = {
      row.id and terminal.line(row.id) or (row.id_hash or "?"):sub(1, 12),
      terminal.line(row.agent or ""), terminal.ago(row.time, app.now()),
      terminal.bytes(row.bytes), terminal.line(row.actor or ""), terminal.line(row.reason or ""),
    }
  end
  app:print_table({ "ID OR HASH", "AGENT", "REMOVED", "SIZE>", "ACTOR", "REASON" }, cells, true)
end

return {
  summary = "list sessions, newest first",
  usage = "list [AGENT] [--status WHAT] [--since WHEN] [--until WHEN] [--sort WHAT] [--limit N]",
  examples = [[
    sessile list                             all of them
    sessile list coder --limit 5             the newest five of one agent
    sessile list --since 7d --label release  from this week, with that label
    sessile list --status deleted            sessions that can be undeleted
    sessile list --removed                   what was deleted permanently, by whom and why]],
  arguments = {
    { "agent", "only sessions of this agent, as --agent", "?", field = "only", is = "agent" },
  },
  about = [[
    A session without a title is shown by its first question (of the first 200 such
    sessions); --title looks only at titles.]],
  options = {
    filters.options[1], filters.options[2], filters.options[3], filters.options[4],
    { "--title TEXT", "only sessions with this text in the title" },
    { "--removed", "list the records of permanently deleted sessions instead" },
    { "--long", "whole ids, exact times (UTC), users" },
    { "--sort WHAT", "the order: newest or largest first, titles from A",
      choices = core.sorts(), default = "modified" },
    { "--offset N", "skip the first N", integer = true },
    common.limit, pager.option,
  },
  run = function(app, args)
    if args.removed then
      return removed(app)
    end
    if args.only and args.agent and args.only ~= args.agent then
      return nil, ("two agents are named: '%s' and '%s'"):format(hints.shown(args.only),
        hints.shown(args.agent)), "EUSAGE"
    end
    args.agent = args.only or args.agent
    app:paged(args)
    local asked = asked_for(app, args)
    local store, message = app:store_if_any()
    -- Short ids must differ from those of all rows, so all are read; JSON has whole ids.
    if app.json then
      asked.limit, asked.offset = args.limit, args.offset
    end
    local rows = store and app.try(app:list(store, asked)) or {}
    local some = store and not app.json and (args.agent or is_narrow(args))
    local short, all = sessions.short_ids(rows, some and store:list {} or nil), #rows
    if not app.json then
      local first = (args.offset or 0) + 1
      local last = (args.limit or 0) > 0 and math.min(first + args.limit - 1, all) or all
      rows = table.move(rows, first, math.max(last, first - 1), 1, {})
    end
    if app.json then
      return as_json(app, rows)
    end
    if #rows == 0 then
      if all > 0 then
        app:note(("None of %d session%s is shown: --offset %d"):format(all,
          all == 1 and "" or "s", args.offset or 0))
      elseif store and is_narrow(args) then
        app:note "There are no such sessions. See all: sessile list"
      elseif store and app.globals.agent then
        app:note(("There are no sessions of the agent '%s'. Those of all: sessile list"):format(
          hints.shown(app.globals.agent)))
      else
        app:note("There are no sessions" .. (store and "" or " (" .. message .. ")")
          .. ". Make one: sessile new")
      end
      return
    end
    print_table(app, store, rows, short, args.long)
    app:flush()
    for _, row in ipairs(rows) do
      if row.message and row.message ~= "" then
        app:note(terminal.line(("%s: %s"):format(row.id or "a log", row.message)))
      end
    end
  end,
}
