-- sessions.lua: the tools that find sessions: session_list and session_search.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"
local facts = require "sessile.facts"
local page = require "sessile.mcp.page"
local place = require "sessile.mcp.place"
local schema = require "sessile.mcp.schema"

local text, whole, list = schema.text, schema.whole, schema.list

local AGENT = text()

local tools = {}

-- ---------------------------------------------------------------- session_list

tools[1] = {
  name = "session_list", title = "List sessions",
  about = "List stored agent sessions, newest first.",
  input = schema.object {
    search = text "words of the title", agent = AGENT,
    limit = whole(1, 200, "default 20"), offset = whole(0, 1000000),
  },
  output = schema.object({
    sessions = list({ session = text(), agent = text(), title = text(), user = text(),
      modified = text(), entries = whole(0, math.maxinteger), status = text() },
      { "session", "agent" }),
    more = { type = "boolean" }, notice = text(),
  }, { "sessions", "more", "notice" }),
}

-- A row of the list for a model. One that cannot be opened has the reason as its status.
local function session_row(redaction, row)
  local title = row.title and row.title ~= "" and redaction:line(row.title) or nil
  local status = row.status
  if status and status:find "^E%u+$" then
    status = status:sub(2)
  end
  return {
    session = place.name(row), agent = redaction:line(row.agent), title = title,
    user = row.user and row.user ~= "" and redaction:line(row.user) or nil,
    modified = page.time(row.modified), entries = row.entries, status = status,
  }
end

tools[1].run = function(server, args)
  local agent, message, code, step = server.scope:of_agent(args.agent)
  if agent == false then
    return nil, message, code, step
  end
  local limit = args.limit or 20
  local store = server:store()
  local rows = {}
  if store then
    rows, message, code = store:list { agent = agent, user = server.scope.user,
      search = args.search, limit = limit + 1, offset = args.offset }
    if not rows then
      return nil, message, code
    end
  end
  local found, redaction = core.array {}, clean.new()
  for i = 1, math.min(limit, #rows) do
    if rows[i].id then
      found[#found + 1] = session_row(redaction, rows[i])
    end
  end
  return { sessions = found, more = #rows > limit }
end

-- ---------------------------------------------------------------- session_search

local WORDS, MOST_UNREAD = 240, 20 -- bytes around an occurrence, sessions that are named

tools[2] = {
  name = "session_search", title = "Search sessions",
  about = "Find a text in all stored sessions (case is ignored). What was said, decided, tried "
    .. "before? Read around a hit with session_read.",
  input = schema.object({
    text = text(), role = text(nil, { "user", "assistant", "system", "tool" }), agent = AGENT,
    limit = whole(1, 50, "default 10"),
  }, { "text" }),
  output = schema.object({
    hits = list({ session = text(), title = text(), kind = text(), entry = text(), role = text(),
      time = text(), text = text() }, { "session", "kind", "text" }),
    more = { type = "boolean" }, unread = list({ session = text(), why = text() }), notice = text(),
  }, { "hits", "more", "notice" }),
}

-- The words around an occurrence in redacted text. If it is not in there, it was taken out.
local function around(shown, wanted)
  local first, last = shown:lower():find(wanted:lower(), 1, true)
  if not first then
    return page.cut(shown, WORDS) .. (#shown > WORDS and "…" or "")
  end
  local from = math.max(first - WORDS // 2, 1)
  from = from > 1 and utf8.offset(shown, 0, from) or 1
  local words = page.cut(shown:sub(from), last - from + 1 + WORDS // 2)
  return (from > 1 and "…" or "") .. words .. (from + #words <= #shown and "…" or "")
end

-- The text of a hit: of a message all of it, so that no secret is cut in two before it is found.
local function text_of(redaction, session, hit)
  if hit.kind ~= "message" then
    return redaction:line(hit.text)
  end
  local entry = session:entry(hit.entry)
  local found = entry and core.decode(redaction.redactor:json(facts.within(entry).json))
  local data = type(found) == "table" and found.data
  if type(data) ~= "table" then
    return ""
  end
  return clean.line(page.flat(data)), data
end

local function hit_row(server, hit, wanted)
  local session <close>, message, code = server.scope:open(server:store(), place.name(hit))
  local redaction
  if session then
    redaction, message, code = server.redactions:of(session)
  end
  if not redaction then
    return nil, message, code
  end
  local shown = text_of(redaction, session, hit)
  return {
    session = place.name(hit), kind = hit.kind, entry = hit.entry, role = hit.role,
    title = session.title and session.title ~= "" and redaction:line(session.title) or nil,
    time = page.time(hit.time), text = around(shown, wanted),
  }
end

tools[2].run = function(server, args)
  local agent, message, code, step = server.scope:of_agent(args.agent)
  if agent == false then
    return nil, message, code, step
  elseif args.text == "" then
    return nil, "'text' is empty", "EINVALID"
  end
  local limit, store = args.limit or 10, server:store()
  local hits, unread, more = core.array {}, {}, false
  if not store then
    return { hits = hits, more = false }
  end
  local iterator, wrong, kind, search = store:search(args.text, { agent = agent,
    user = server.scope.user, role = args.role, limit = limit + 1 })
  if not iterator then
    return nil, wrong, kind
  end
  local function miss(hit, why)
    if #unread < MOST_UNREAD then
      unread[#unread + 1] = { session = hit.session and place.name(hit) or "",
        why = clean.new():line(why or "?") }
    end
  end
  for hit in iterator do
    if hit.kind == "unread" then
      miss(hit, hit.message)
    elseif #hits == limit then
      more = true
      break
    else
      local row, why = hit_row(server, hit, args.text)
      hits[#hits + 1] = row
      if not row then
        miss(hit, why)
      end
    end
  end
  if search then
    search:close()
  end
  return { hits = hits, more = more, unread = #unread > 0 and core.array(unread) or nil }
end

return tools
