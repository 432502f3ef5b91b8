--- search: searches all sessions for a text.
--
-- Owns: the output; hits are printed as they are found. Must never print unsafe text, nor stop
-- because a session cannot be searched.

local filters = require "sessile.cli.filters"
local hints = require "sessile.cli.hints"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"

local plural = terminal.plural

local ROLES = { "user", "assistant", "system", "developer", "tool", "function", "model" }
local FEWEST = 20 -- columns for a text, however narrow the terminal

-- A text on one line. Spaces at its ends are kept, since they adjoin the hit.
local function inert(text)
  return (terminal.safe(text):gsub("%s+", " "))
end

-- The end of safe text that fits into `columns`.
local function cut_front(text, columns)
  while terminal.width(text) > columns do
    text = text:sub(utf8.offset(text, 2) or #text + 1)
  end
  return text
end

-- The text of a hit, cut to `columns`, with the match in bold.
local function snippet(app, hit, columns)
  local before = inert(hit.text:sub(1, hit.first - 1)):gsub("^ ", "")
  local found = terminal.cut(inert(hit.text:sub(hit.first, hit.last)), columns)
  local after = inert(hit.text:sub(hit.last + 1)):gsub(" $", "")
  local room = math.max(columns - terminal.width(found), 0)
  local lead = cut_front(before, math.max(room // 3, room - terminal.width(after) - 1))
  if lead ~= before or hit.cut_before then
    lead = "…" .. cut_front(lead, math.max(terminal.width(lead) - 1, 0))
  end
  after = after .. (hit.cut_after and "…" or "")
  room = room - terminal.width(lead)
  after = room > 0 and terminal.cut(after, room) or ""
  return lead .. app.paint(found, "bold") .. after
end

-- The line above the hits of a session.
local function heading(app, hit)
  local words = { app.paint(terminal.line(hit.session or "?"), "cyan") }
  for _, name in ipairs { "agent", "user" } do
    if hit[name] and hit[name] ~= "" and not (name == "agent" and hit[name] == "main") then
      words[#words + 1] = app.paint(("%s %s"):format(name, terminal.line(hit[name])), "dim")
    end
  end
  if hit.title and hit.kind ~= "title" then
    words[#words + 1] = terminal.cut(terminal.line(hit.title), 60)
  end
  return table.concat(words, "  ") .. "\n"
end

local function line(app, hit, columns)
  local what = hit.kind == "message" and hit.role or hit.kind
  local left = ("  %s  %-10s"):format(hit.entry or (" "):rep(8), terminal.cut(what, 10))
  local right = "  " .. terminal.ago(hit.time, app.now())
  local room = math.max(columns - #left - #right - 1, FEWEST)
  return app.paint(left, "dim") .. " " .. snippet(app, hit, room) .. app.paint(right, "dim")
    .. "\n"
end

local function as_json(hit)
  return {
    kind = hit.kind, session = hit.session, agent = hit.agent, user = hit.user,
    title = hit.title, entry = hit.entry, role = hit.role, field = hit.field, time = hit.time,
    text = hit.text, first = hit.first, last = hit.last, code = hit.code, message = hit.message,
  }
end

-- Reports sessions that could not be searched.
local function tell_unread(app, unread)
  for _, hit in ipairs(unread) do
    app:note(terminal.line(("%s: %s"):format(hit.session or "a log", hit.message)))
  end
end

-- Prints hits as they are found; with --json all at the end.
local function show(app, store, text, asked)
  local bar, finish = progress.bar(app, "searching")
  local columns, at = terminal.columns() or 100, nil
  local list, unread, hits, sessions = {}, {}, 0, 0
  asked.on_step = function(step)
    bar(step.index - 1, step.total)
  end
  for hit in app.try(store:search(text, asked)) do
    if app.json then
      list[#list + 1] = as_json(hit)
    elseif hit.kind == "unread" then
      unread[#unread + 1] = hit
    else
      finish()
      local key = ("%s\0%s\0%s"):format(hit.session, hit.agent, hit.user)
      if key ~= at then
        app:out((at and "\n" or "") .. heading(app, hit))
        at, sessions = key, sessions + 1
      end
      hits = hits + 1
      app:out(line(app, hit, columns))
      io.stdout:flush()
    end
  end
  finish()
  if app.json then
    app:print_json(app.array(list))
    return
  end
  tell_unread(app, unread)
  if hits == 0 then
    app:note(("'%s' was not found."):format(hints.shown(text)))
  elseif asked.limit and hits >= asked.limit then
    app:note(("The first %s: --limit N for more."):format(plural(hits, "hit")))
  else
    app:note(("%s in %s."):format(plural(hits, "hit"), plural(sessions, "session")))
  end
end

return {
  summary = "search all sessions for a text, newest first",
  usage = "search QUERY [--agent NAME] [--role ROLE] [--since WHEN] [--limit N]",
  examples = [[
    sessile search 'connection refused'                 in titles, labels and messages
    sessile search --role user deadline                 only what users said
    sessile search TODO --exact --since 7d              match case; only this week
    sessile search refund --json | jq -r '.[].session'  for a program]],
  arguments = { { "query", "the text to look for; ASCII case is ignored" } },
  options = {
    { "--role ROLE", "only messages of this role", many = true, choices = ROLES },
    { "--exact", "match case" },
    { "--head", "only messages on the path to the head" },
    filters.options[1], filters.options[2], filters.options[3], filters.options[4],
    filters.options[5],
    { "--limit N", "at most N hits", integer = true },
  },
  about = [[
    Every log is opened and read; there is no index. Hits are printed as they are found.
    A session that cannot be read is named at the end. To see a whole message: sessile
    show ID@ENTRY]],
  run = function(app, args)
    local asked = filters.asked(app, args)
    local store = app:need_store()
    asked.agent, asked.limit, asked.exact = app.globals.agent, args.limit, args.exact
    asked.head_only = args.head
    asked.roles = args.role and #args.role > 0 and args.role or nil
    return show(app, store, args.query, asked)
  end,
}
