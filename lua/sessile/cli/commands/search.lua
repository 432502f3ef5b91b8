--- search: searches all sessions for a text.
--
-- Owns: the output, and its order. Must never print unsafe text, nor stop because a session cannot
-- be searched.

local filters = require "sessile.cli.filters"
local hints = require "sessile.cli.hints"
local pager = require "sessile.cli.pager"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"

local plural = terminal.plural

local ROLES = { "user", "assistant", "system", "developer", "tool", "function", "model" }
local FEWEST = 20 -- columns for a text, however narrow the terminal
local LIMIT, ALL = 50, 1 << 53 -- hits that are printed; with --json

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

-- The hits by session, {hit, …}, in the order in which they are found, and the unread.
local function found_by(app, store, text, asked)
  local bar, finish = progress.bar(app, "searching")
  local sessions, unread, at = {}, {}, nil
  asked.on_step = function(step)
    bar(step.index - 1, step.total)
  end
  for hit in app.try(store:search(text, asked)) do
    local key = ("%s\0%s\0%s"):format(hit.session, hit.agent, hit.user)
    if hit.kind == "unread" then
      unread[#unread + 1] = hit
    elseif key ~= at then
      sessions[#sessions + 1], at = { hit }, key
    else
      table.insert(sessions[#sessions], hit)
    end
  end
  finish()
  return sessions, unread
end

-- Those with the most hits first; of the same number, the newest.
local function by_hits(sessions)
  local place = {}
  for i, session in ipairs(sessions) do
    place[session] = i
  end
  table.sort(sessions, function(a, b)
    return #a > #b or #a == #b and place[a] < place[b]
  end)
end

-- At most `limit` hits. Returns how many there are.
local function cut(sessions, limit)
  local hits = 0
  for i, session in ipairs(sessions) do
    if hits >= limit then
      sessions[i] = nil
    end
    for n = limit - hits + 1, #session do
      session[n] = nil
    end
    hits = hits + #session
  end
  return hits
end

local function print_json(app, sessions, unread)
  local list = {}
  for _, session in ipairs(sessions) do
    for _, hit in ipairs(session) do
      list[#list + 1] = as_json(hit)
    end
  end
  for _, hit in ipairs(unread) do
    list[#list + 1] = as_json(hit)
  end
  app:print_json(app.array(list))
end

local function show(app, store, text, asked, sort)
  local limit = asked.limit or not app.json and LIMIT or ALL
  limit = limit > 0 and limit or ALL
  -- One more than is printed shows that there are more.
  asked.limit = sort == "newest" and limit < ALL and limit + 1 or nil
  local sessions, unread = found_by(app, store, text, asked)
  if sort == "hits" then
    by_hits(sessions)
  end
  local more = cut(sessions, limit + 1) > limit
  local hits = cut(sessions, limit)
  if app.json then
    return print_json(app, sessions, unread)
  end
  local columns = terminal.columns() or 100
  for i, session in ipairs(sessions) do
    app:out((i > 1 and "\n" or "") .. heading(app, session[1]))
    for _, hit in ipairs(session) do
      app:out(line(app, hit, columns))
    end
  end
  app:flush()
  tell_unread(app, unread)
  if more then
    app:note(("The first %s. For more: --limit N; for fewer: --role, --since, --agent."):format(
      plural(hits, "hit")))
  elseif hits == 0 then
    app:note(("'%s' was not found."):format(hints.shown(text)))
  else
    app:note(("%s in %s."):format(plural(hits, "hit"), plural(#sessions, "session")))
  end
end

return {
  summary = "search all sessions for a text",
  usage = "search QUERY [--agent NAME] [--role ROLE] [--since WHEN] [--sort WHAT] [--limit N]",
  examples = [[
    sessile search 'connection refused'                 in titles, labels and messages
    sessile search --role user deadline                 only what users said
    sessile search ENOSPC --exact --since 7d            match case; only this week
    sessile search refund --json | jq -r '.[].session'  for a program]],
  arguments = { { "query", "the text to look for; ASCII case is ignored" } },
  options = {
    { "--role ROLE", "only messages of this role", many = true, choices = ROLES },
    { "--exact", "match case" },
    { "--head", "only messages on the path to the head" },
    filters.options[1], filters.options[2], filters.options[3], filters.options[4],
    { "--sort WHAT", "the order of sessions: newest first, or most hits first",
      choices = { "newest", "hits" }, default = "newest" },
    { "--limit N", "at most N hits (0: all; else 50, with --json all)", integer = true },
    pager.option,
  },
  about = [[
    Sessions are ordered by their newest message, or with --sort hits by the number of
    hits; hits of one session are in the order of its log. Every log is opened and read;
    there is no index. Signatures, encrypted content and terminal escapes are not searched.
    A session that cannot be read is named at the end. To see a whole message: sessile
    show ID@ENTRY]],
  run = function(app, args)
    local asked = filters.asked(app, args)
    local store = app:need_store()
    asked.agent, asked.limit, asked.exact = app.globals.agent, args.limit, args.exact
    asked.head_only = args.head
    asked.roles = args.role and #args.role > 0 and args.role or nil
    app:paged(args)
    return show(app, store, args.query, asked, args.sort)
  end,
}
