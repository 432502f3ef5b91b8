--- nodes: lists the servers that share the store.
--
-- Must never ask a server: the store knows who lives.

local terminal = require "sessile.cli.terminal"

return {
  summary = "list the servers that share the store",
  usage = "nodes",
  examples = [[
    sessile nodes            by name: where they listen, and what they keep
    sessile nodes --json     for scripts]],
  about = [[
    Servers (sessile serve) over one PostgreSQL database find each other by it. One that ended is
    not in the list; one that was killed stays in it for an hour, as dead.]],
  run = function(app)
    local rows, message, code = app.try(app:store()):nodes()
    local none = "None. Start one: sessile serve"
    if code == "EUNSUPPORTED" then
      rows, none = {}, "None: servers share a store only in a PostgreSQL database."
    elseif not rows then
      return nil, message, code
    end
    if app.json then
      app:print_json { nodes = app.array(rows) }
      return
    elseif #rows == 0 then
      app:note(none)
      return
    end
    local now, lines = app.now(), {}
    for i, row in ipairs(rows) do
      lines[i] = {
        terminal.line(row.name), terminal.line(row.address), terminal.line(row.version),
        row.living and "alive" or "dead", terminal.ago(row.started, now),
        terminal.number(row.sessions), terminal.number(row.calls),
      }
    end
    app:print_table({ "NAME", "ADDRESS", "VERSION", "STATE", "STARTED", "SESSIONS>", "CALLS>" },
      lines)
  end,
}
