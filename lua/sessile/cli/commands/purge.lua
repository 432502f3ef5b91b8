--- purge: removes expired sessions, those that were deleted softly long ago, and what is left of
-- forgotten users.
--
-- Owns: the list of these sessions, and the confirmation.

local ask = require "sessile.cli.ask"
local guard_options = require "sessile.guard_options"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local function as_json(app, rows, dry_run)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = { id = row.id, agent = row.agent, user = row.user, status = row.status,
      bytes = row.bytes }
  end
  app:print_json { purged = app.array(list), dry_run = dry_run or false }
end

local function print_rows(app, rows)
  for _, row in ipairs(rows) do
    app:out(("%s  %s  %s\n"):format(row.status, terminal.line(row.id),
      terminal.cut(terminal.line(row.title or ""), 50)))
  end
end

-- What is left of forgotten users: their sessions have no names any more.
local function forgotten(app, args)
  if app.globals.user then
    return nil, "what is left of forgotten users has no name of a user: leave out --user", "EUSAGE"
  end
  local store = app:need_store()
  local given = { agent = app.globals.agent, dry_run = true }
  local found = app.try(store:purge_forgotten(given))
  if found.sessions > 0 and not args.dry_run then
    ask.must(app, args, ("Remove what is left of %s of forgotten users"):format(
      terminal.plural(found.sessions, "session")))
    given.dry_run = false
    found = app.try(store:purge_forgotten(given))
  end
  app:result({ forgotten = found.sessions, bytes = found.bytes, dry_run = args.dry_run or false },
    ("%s of forgotten users, %s%s\n"):format(terminal.plural(found.sessions, "session"),
      terminal.bytes(found.bytes), args.dry_run and ": nothing was changed (--dry-run)" or ""))
end

local function of_audit(found)
  return found.audit_logs > 0 and (", %s of the audit"):format(
    terminal.plural(found.audit_logs, "log")) or ""
end

-- What is older than the configured retention says.
local function old(app, args)
  local store = app:need_store()
  local guard = guard_options.whole(app:config().guard)
  local rules = {}
  for name, value in pairs(type(guard) == "table" and guard.retention or {}) do
    rules[name] = value
  end
  for _, name in ipairs { "sessions", "memory", "audit" } do
    rules[name] = args["keep_" .. name] and args["keep_" .. name] .. "ms" or rules[name]
  end
  if next(rules) == nil then
    return nil, "no retention is configured", "EUSAGE",
      "Say it here: sessile purge --old --keep-sessions 90d; or in the configuration."
  elseif app.globals.user or app.globals.agent then
    return nil, "a retention has its own rules for agents and users", "EUSAGE",
      "Leave out --user and --agent."
  end
  rules.dry_run = true
  local found = app.try(store:purge_retention(rules))
  if found.sessions + found.entries + found.audit_logs > 0 and not args.dry_run then
    ask.must(app, args, ("Remove %s, %s of memories%s permanently"):format(
      terminal.plural(found.sessions, "session"),
      terminal.plural(found.entries, "entry", "entries"), of_audit(found)))
    rules.dry_run = nil
    found = app.try(store:purge_retention(rules))
  end
  app:result({ sessions = found.sessions, entries = found.entries, bytes = found.bytes,
    held = found.held, closed = found.closed, audit_logs = found.audit_logs,
    audit_held = found.audit_held, dry_run = args.dry_run or false },
    ("%s, %s of memories%s%s%s%s\n"):format(terminal.plural(found.sessions, "session"),
      terminal.plural(found.entries, "entry", "entries"), of_audit(found),
      found.audit_held > 0 and (", %s of the audit kept while there is a hold"):format(
        terminal.plural(found.audit_held, "log")) or "",
      found.held > 0 and (", %d kept by a hold"):format(found.held) or "",
      args.dry_run and ": nothing was changed (--dry-run)" or ""))
end

return {
  summary = "remove expired sessions, and those deleted softly long ago",
  usage = "purge [--forgotten | --old] [--dry-run] [--retention TIME] [--keep-sessions TIME] "
    .. "[--keep-memory TIME] [--keep-audit TIME] [--yes]",
  examples = [[
    sessile purge --dry-run             show what would be removed
    sessile purge --retention 7d --yes  remove deleted sessions after a week
    sessile purge --old --dry-run       what is older than the retention of the configuration
    sessile purge --forgotten           remove what `sessile forget` made unreadable]],
  options = {
    { "--forgotten", "remove what is left of the sessions of forgotten users instead" },
    { "--dry-run", "only show what would be removed" },
    { "--retention TIME", "how long a deleted session is kept (else as configured, default 90d)",
      time = true },
    { "--old", "remove sessions and entries of memories that are older than the configuration "
      .. "keeps them" },
    { "--keep-sessions TIME", "with --old: how long after its newest entry a session is kept",
      time = true },
    { "--keep-memory TIME", "with --old: how long an entry of a memory is kept", time = true },
    { "--keep-audit TIME", "with --old: how long an event of the audit is kept", time = true },
    ask.option,
  },
  run = function(app, args)
    if args.forgotten then
      return forgotten(app, args)
    elseif args.old then
      return old(app, args)
    end
    local store = app:need_store()
    local retention = args.retention or app:config().retention
    local given = {
      agent = app.globals.agent, user = app.globals.user, dry_run = true,
      retention = retention and retention .. "ms" or nil,
    }
    local rows = app.try(store:purge(given))
    if #rows == 0 or args.dry_run then
      if app.json then
        return as_json(app, rows, args.dry_run)
      elseif #rows == 0 then
        app:note "Nothing has expired, and nothing was deleted long ago."
      end
      return print_rows(app, rows)
    end
    ask.must(app, args, #rows == 1
      and ("Delete session %s permanently"):format(hints.shown(rows[1].id))
      or ("Delete %d sessions permanently"):format(#rows))
    given.dry_run = false
    rows = app.try(store:purge(given));
    (app.json and as_json or print_rows)(app, rows)
  end,
}
