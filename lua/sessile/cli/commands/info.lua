--- info: what a session is: names, times, counts, and what it was made from.
--
-- Owns: the layout. Must never show a message.

local terminal = require "sessile.cli.terminal"

-- What a session is linked to, as "bug-42 (agent coder) at 0000002a".
local function link_text(session, link)
  local agent = link.agent ~= session.agent and (" (agent %s)"):format(link.agent) or ""
  return terminal.line(("%s%s at %s"):format(link.id, agent, link.entry))
end

local function read(session)
  local head, message, code = session:head()
  if not head then
    return nil, message, code
  end
  local context, about = session:context()
  if not context then
    return nil, about, code
  end
  local messages = assert(session:messages())
  return {
    id = session.id, agent = session.agent, user = session.user, title = session.title,
    created = session.created, modified = session.modified, head = head,
    messages = #messages, events = session:event_count(), in_context = #context,
    tokens = about.tokens, token_source = about.source, usage = session:usage(),
    origin = session.origin,
  }
end

local function draw(app, session, it)
  local now = app.now()
  local function row(name, value)
    app:out(("%-10s %s\n"):format(name, value))
  end
  row("id", app.paint(terminal.line(it.id), "cyan"))
  row("agent", terminal.line(it.agent))
  if it.user ~= "" then row("user", terminal.line(it.user)) end
  if it.title ~= "" then row("title", terminal.line(it.title)) end
  row("created", terminal.ago(it.created, now))
  row("modified", terminal.ago(it.modified, now))
  row("head", it.head)
  row("messages", ("%s, of which %s are in the context (%s tokens, %s)"):format(
    terminal.number(it.messages), terminal.number(it.in_context), terminal.number(it.tokens),
    it.token_source))
  row("events", terminal.number(it.events))
  if it.origin then row("forked", "from " .. link_text(session, it.origin)) end
end

return {
  name = "info",
  summary = "what a session is, and what it was made from",
  usage = "info [ID]",
  examples = {
    { "sessile info bug-42", "its names, times and counts" },
    { "sessile info last --json | jq .origin", "what it was forked from" },
  },
  arguments = { { "id", "a session's id, a beginning of it, its title, or `last`", "?" } },
  run = function(app, args)
    local session, message, code, step = app:session(args.id or "last")
    if not session then
      return nil, message, code, step
    end
    local it
    it, message, code = read(session)
    if it and app.json then
      app:print_json(it)
    elseif it then
      draw(app, session, it)
    end
    session:close()
    if not it then
      return nil, message, code
    end
  end,
}
