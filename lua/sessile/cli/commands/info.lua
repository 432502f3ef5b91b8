--- info: prints facts about a session.
--
-- Owns: the choice of facts and their order. Must never read the whole log.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"

-- The session's row in the list; an empty table if the list cannot be read.
local function row_of(app, session)
  local rows = app:list(app:store(), { prefix = session.id })
  for _, row in ipairs(rows or {}) do
    if row.id == session.id and row.agent == session.agent
      and (row.user or "") == session.user then
      return row
    end
  end
  return {}
end

-- How many messages of a context are entries; a policy or a branch's summary wrote the others.
local function said_of(app, session, context)
  local tree = app.try(session:tree { types = { "message" } })
  local said = 0
  for _, one in ipairs(context) do
    local key = render.facts(one).key
    said = said + (key and tree.nodes[key] and 1 or 0)
  end
  return said
end

local function collect(app, session)
  local row = row_of(app, session)
  local labels = app.try(session:labels())
  local settings = app.try(session:settings())
  local metadata = app.try(session:metadata())
  local usage = app.try(session:usage())
  local pause, message, code = session:suspended()
  app.try(not message, message, code)
  local pending = app.try(session:pending_runs())
  local life = app.try(session:life())
  local context, about = app.try(session:context())
  return {
    id = session.id, agent = session.agent, user = session.user, title = session.title,
    created = session.created, modified = session.modified, head = session:head(),
    entries = row.entries, messages = row.messages or #assert(session:messages()),
    bytes = row.bytes,
    events = session:event_count(), in_context = #context,
    said_in_context = said_of(app, session, context), tokens = about.tokens,
    token_source = about.source, tokens_low = about.low, tokens_high = about.high,
    usage = usage, origin = session.origin,
    parent = session.parent, children = session:subsessions() or {},
    status = session.damage and session.damage.code or life.status,
    ttl = life.ttl, expires = life.expires,
    labels = labels, suspension = pause, pending_runs = pending, settings = settings,
    metadata = metadata,
  }
end

local function as_json(app, info)
  local labels = {}
  for i, label in ipairs(info.labels) do
    labels[i] = { entry = label.id, label = label.name, time = label.time }
  end
  info.labels = app.array(labels)
  info.children = app.array(info.children)
  local pending = {}
  for i, run in ipairs(info.pending_runs) do
    pending[i] = { entry = run.id, policy = run.policy, time = run.time }
  end
  info.pending_runs = app.array(pending)
  info.settings = app.raw(render.facts(info.settings).json)
  info.metadata = app.raw(render.facts(info.metadata).json)
  app:print_json(info)
end

-- An object on one line: key = value, …
local function members(object)
  local parts = {}
  for i, member in ipairs(span.object(render.facts(object).json) or {}) do
    parts[i] = ("%s = %s"):format(terminal.line(member.key), terminal.line(member.raw))
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

local function usage_text(usage)
  local parts = {}
  for _, name in ipairs { "input", "output", "cache_read", "cache_write" } do
    if usage[name] > 0 then
      parts[#parts + 1] = ("%s %s"):format(name:gsub("_", " "), terminal.number(usage[name]))
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

local function labels_text(labels)
  local parts = {}
  for i, label in ipairs(labels) do
    parts[i] = ("%s@%s"):format(terminal.line(label.name), label.id)
  end
  return #parts > 0 and table.concat(parts, ", ") or nil
end

local function pause_text(id, pause, now)
  if not pause then return nil end
  local reason = pause.reason ~= "" and terminal.line(pause.reason) or "no reason given"
  return ("%s (entry %s, %s): sessile answer %s"):format(reason, pause.id,
    terminal.ago(pause.time, now), hints.id(id))
end

-- A link to another session, as "bug-42 (agent coder) at 0000002a".
local function link_text(info, link)
  if not link then return nil end
  local agent = link.agent ~= info.agent and (" (agent %s)"):format(link.agent) or ""
  return terminal.line(("%s%s at %s"):format(link.id, agent, link.entry))
end

return {
  summary = "show facts about a session: times, counts, usage, settings",
  usage = "info [ID]",
  examples = [[
    sessile info last                          times, counts, usage, labels, settings
    sessile info bug-42 --json | jq .settings  for a program
    sessile info last --json | jq .origin      the session that it was forked from]],
  arguments = { common.newest },
  run = function(app, args)
    local session = app:open(args.id or "last")
    local info = collect(app, session)
    if app.json then
      return as_json(app, info)
    end
    local now, columns = app.now(), terminal.columns() or 100
    local function line(name, text)
      if text and text ~= "" then
        app:out(("%s  %s\n"):format(app.paint(("%-9s"):format(name), "dim"),
          terminal.cut(text, math.max(columns - 11, 40))))
      end
    end
    line("id", app.paint(terminal.line(info.id), "cyan"))
    line("title", terminal.line(info.title))
    line("agent", terminal.line(info.agent))
    line("user", terminal.line(info.user))
    line("status", info.status)
    line("waits for", pause_text(info.id, info.suspension, now))
    for i, run in ipairs(info.pending_runs) do
      line(i == 1 and "pending" or "", ("%s asks its model (entry %s, %s): sessile answer %s")
        :format(terminal.line(run.policy), run.id, terminal.ago(run.time, now),
          hints.id(info.id)))
    end
    line("created", terminal.ago(info.created, now))
    line("modified", terminal.ago(info.modified, now))
    if info.expires then line("expires", os.date("!%Y-%m-%d %H:%M UTC", info.expires // 1000)) end
    line("head", info.head)
    line("forked", info.origin and "from " .. link_text(info, info.origin))
    line("child of", link_text(info, info.parent))
    for i, child in ipairs(info.children) do
      line(i == 1 and "children" or "", ("%s, %s"):format(link_text(info, child), child.state))
    end
    line("messages", ("%s, %s of them in the context"):format(terminal.number(info.messages),
      terminal.number(info.said_in_context)))
    local made = info.in_context - info.said_in_context
    line("context", ("%s message%s%s, %s"):format(
      terminal.number(info.in_context), info.in_context == 1 and "" or "s",
      made > 0 and (", %s added by a policy or for an open call"):format(terminal.number(made))
        or "",
      terminal.tokens { tokens = info.tokens, source = info.token_source, low = info.tokens_low,
        high = info.tokens_high }))
    line("entries", info.entries and ("%s, %s"):format(terminal.number(info.entries),
      terminal.bytes(info.bytes)))
    local is_full, limit = app:is_nearly_full(info.bytes)
    if is_full then
      app:note(("It has used %s of the %s that a session may take; beyond that, writes fail. "
        .. "Start a new session, or raise limits.session: sessile help config"):format(
        terminal.bytes(info.bytes), terminal.bytes(limit)))
    end
    line("events", info.events
      and terminal.number(info.events) .. " turns, appends and compactions")
    line("usage", usage_text(info.usage))
    line("labels", labels_text(info.labels))
    line("settings", members(info.settings))
    line("metadata", members(info.metadata))
  end,
}
