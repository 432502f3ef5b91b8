-- reading.lua: the tools that read one session: session_read and session_why.

local core = require "sessile.core"
local page = require "sessile.mcp.page"
local place = require "sessile.mcp.place"
local schema = require "sessile.mcp.schema"

local text, whole, list = schema.text, schema.whole, schema.list

local tools = {}

local SESSION = text "AGENT/ID as session_list shows it"

-- ---------------------------------------------------------------- session_read

local BYTES, FEWEST, MOST = 16000, 500, 65536

tools[1] = {
  name = "session_read", title = "Read a session",
  about = "Read messages: around an entry, or the last ones. To go on, pass `next` as `entry`.",
  input = schema.object({
    session = SESSION, entry = text "of a hit, or `next`", last = whole(1, 1000),
    view = text("context: what the model sees after compactions", { "history", "context" }),
    bytes = whole(FEWEST, MOST, "default 16000"),
  }, { "session" }),
  output = schema.object({
    session = text(), title = text(), view = text(), total = whole(0, math.maxinteger),
    before = whole(0, math.maxinteger),
    messages = list({ entry = text(), role = text(), text = text(), time = text(),
      of_bytes = whole(0, math.maxinteger) }, { "entry", "role", "text" }),
    next = text(), damage = text(), notice = text(),
  }, { "session", "view", "total", "before", "messages", "notice" }),
}

-- The messages of a view, and the index of `entry` in it. Without the entry on the path to the
-- head: those up to it. nil, message, code.
local function messages_of(session, view, entry)
  if view == "context" then
    local found, message, code = session:context()
    if not found then
      return nil, message, code
    end
    local index = not entry and #found + 1 or page.index(found, entry)
    if not index then
      return nil, ("the context has no message %s"):format(entry), "ENOTFOUND",
        "session_why says what became of it; view=history has it."
    end
    return found, index
  end
  local found, message, code = session:messages()
  if found and not entry then
    return found, #found + 1
  end
  local index = found and page.index(found, entry)
  if found and not index then
    found, message, code = session:messages { at = entry }
    index = found and math.max(#found, 1)
  end
  if not found then
    return nil, message, code, "session_search gives entries; session_read without one, the last."
  end
  return found, index
end

-- Where reading begins.
local function start_of(redaction, found, index, args, bytes)
  if not args.entry then
    return { index = page.newest(redaction, found, args.last or 1000, bytes), from = 1 }
  end
  local _, after, from = page.position(args.entry)
  return { index = after and index + 1 or index, from = from, around = not after and from == 1 }
end

tools[1].run = function(server, args)
  if args.entry and args.last then
    return nil, "'entry' and 'last' exclude each other", "EINVALID"
  end
  local session <close>, message, code, step = server:session(args.session)
  if not session then
    return nil, message, code, step
  end
  local redaction
  redaction, message, code = server.redactions:of(session)
  if not redaction then
    return nil, message, code
  end
  local view, bytes = args.view or "history", args.bytes or BYTES
  local found, index
  found, index, code, step = messages_of(session, view, args.entry and page.position(args.entry))
  if not found then
    return nil, index, code, step
  end
  local rows, next_one, first = page.fill(redaction, found,
    start_of(redaction, found, index, args, bytes), bytes)
  return {
    session = place.name(session), view = view, total = #found, before = first - 1,
    title = session.title and session.title ~= "" and redaction:line(session.title) or nil,
    messages = core.array(rows), next = next_one,
    damage = session.damage and redaction:line(session.damage.message) or nil,
  }
end

-- ---------------------------------------------------------------- session_why

tools[2] = {
  name = "session_why", title = "Explain a message",
  about = "Explain what became of a message: why the model sees it or not, what replaced it.",
  input = schema.object({ session = SESSION, entry = text() }, { "session", "entry" }),
  output = schema.object({
    session = text(), entry = text(), in_context = { type = "boolean" }, shown = text(),
    verdict = text(), steps = { type = "array", items = text() }, notice = text(),
  }, { "session", "entry", "in_context", "verdict", "steps", "notice" }),
}

tools[2].run = function(server, args)
  local session <close>, message, code, step = server:session(args.session)
  if not session then
    return nil, message, code, step
  end
  local redaction
  redaction, message, code = server.redactions:of(session)
  if not redaction then
    return nil, message, code
  end
  local found
  found, message, code = session:why(page.full(args.entry))
  if not found then
    return nil, message, code, "session_search and session_read give entries."
  end
  local steps = core.array {}
  for i, happened in ipairs(found.steps) do
    steps[i] = redaction:line(happened.text)
  end
  return {
    session = place.name(session), entry = found.key, in_context = found.in_context,
    shown = found.shown, verdict = redaction:line(found.verdict), steps = steps,
  }
end

return tools
