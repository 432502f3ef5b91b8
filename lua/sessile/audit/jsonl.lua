-- audit/jsonl.lua: events as they are, one JSON object a line.
--
-- The members of an event (engine/audit/README.md), with `id`, `timestamp` and, if it is known, the
-- user's `name`.

local event = require "sessile.audit.event"

local jsonl = {}

local OWN = { json = true, time = true, name = true }

function jsonl.make(e)
  local made = { timestamp = event.time(e), name = event.text(e.name) }
  for name, value in pairs(e) do
    if not OWN[name] then
      made[name] = value
    end
  end
  return made
end

jsonl.specimen = [[{"agent":"coder","code":"DENIED","id":"00-000/0000002a","name":"ann",]]
  .. [["operation":"append","outcome":"failure","permission":"modify_session","session":"bug-42",]]
  .. [["timestamp":"2026-02-01T14:03:22.123Z","user":"u_abc"}]]

return jsonl
