-- audit/ecs.lua: events in the Elastic Common Schema, version 8: one JSON object a line.
--
-- What the schema has no field for is in `sessile`, a field set of our own.

local event = require "sessile.audit.event"

local ecs = { version = "8.17.0" }

-- event.type and event.category, which are closed lists, by what the operation does.
local TYPES = { create = "creation", read = "access", update = "change", delete = "deletion",
  grant = "change", revoke = "change", logon = "start", logoff = "end", other = "info" }
local CATEGORIES = { grant = "iam", revoke = "iam", logon = "authentication",
  logoff = "authentication" }
local OUTCOMES = { success = "success", failure = "failure" }

function ecs.make(e)
  local kind, failed = event.kind(e), event.failed(e)
  local user, name, source = event.text(e.user), event.text(e.name), event.text(e.source)
  local types = { TYPES[kind] }
  if e.code == "DENIED" and not CATEGORIES[kind] then
    types[2] = "denied"
  end
  local address = source and event.address(source)
  return {
    ["@timestamp"] = event.time(e),
    ecs = { version = ecs.version },
    event = {
      id = e.id, kind = "event", module = "sessile", dataset = "sessile.audit",
      provider = "sessile", action = event.text(e.operation),
      category = { CATEGORIES[kind] or "api" }, type = types,
      outcome = OUTCOMES[e.outcome] or "unknown", reason = event.text(e.rule),
    },
    error = failed and e.code and { code = event.text(e.code) } or nil,
    user = (user or name or e.role) and { id = user, name = name,
      roles = e.role and { event.text(e.role) } or nil } or nil,
    related = (user or name) and { user = { user or name, user and name or nil } } or nil,
    source = source and { address = source, ip = address and source or nil } or nil,
    http = e.request and { request = { id = event.text(e.request) } } or nil,
    service = { name = "sessile", type = "sessile" },
    sessile = {
      actor = event.text(e.actor), agent = event.text(e.agent), session = event.text(e.session),
      entry = event.text(e.entry), method = event.text(e.method), key = event.text(e.key),
      permission = event.text(e.permission), owner = event.text(e.owner),
      outcome = event.text(e.outcome),
      count = e.count, details = event.details(e),
    },
  }
end

ecs.specimen = [[{"@timestamp":"2026-02-01T14:03:22.123Z","ecs":{"version":"8.17.0"},"error":]]
  .. [[{"code":"DENIED"},"event":{"action":"append","category":["api"],"dataset":"sessile.audit",]]
  .. [["id":"00-000/0000002a","kind":"event","module":"sessile","outcome":"failure",]]
  .. [["provider":"sessile","type":["change","denied"]},"related":{"user":["u_abc","ann"]},]]
  .. [["service":{"name":"sessile","type":"sessile"},"sessile":{"agent":"coder",]]
  .. [["outcome":"failure","permission":"modify_session","session":"bug-42"},]]
  .. [["user":{"id":"u_abc","name":"ann"}}]]

return ecs
