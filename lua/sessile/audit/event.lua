-- audit/event.lua: what the formats say of an event in common: its texts, its time, what its
-- operation does.
--
-- Must never let a text of somebody end a line, or begin a field: each format escapes what it
-- writes, and gets its texts from here, as valid UTF-8.

local characters = require "sessile.characters"

local event = {}

-- What operations do, by their names in engine/guard/operations.def and those of the guard itself.
-- A host's own do something else.
local KINDS = {
  create = "create", put = "create", fork = "create", child = "create", keys_init = "create",
  grant = "grant", access_key = "grant", unlock = "grant",
  grant_end = "revoke", access_key_revoke = "revoke", lock = "revoke",
  open = "logon", view = "logon", renew = "logon", revoke = "logoff", authenticate = "logon",
  resume = "read", read = "read", list = "read", search = "read", check = "read", audit = "read",
  audit_verify = "read",
  append = "update", turn = "update", set = "update", suspend = "update", compact = "update",
  branch = "update", checkpoint = "update", restore = "update", undelete = "update",
  configure = "update", reseal = "update", keys_rotate = "update", consent = "update",
  hold = "update", move = "update", memory_write = "update", audit_seal = "update",
  delete = "delete", purge = "delete", forget = "delete", erase = "delete",
  checkpoint_delete = "delete", memory_delete = "delete", memory_erase = "delete",
  audit_retain = "delete",
}

--- "create", "read", "update", "delete", "grant", "revoke", "logon", "logoff" or "other".
function event.kind(e)
  return KINDS[e.operation] or "other"
end

--- A text of an event as valid UTF-8; nil: the event does not say.
function event.text(value)
  if value == nil or value == "" then
    return nil
  end
  return characters.repaired(tostring(value))
end

--- The time as RFC 3339 has it: "2026-02-01T14:03:22.123Z".
function event.time(e)
  return os.date("!%Y-%m-%dT%H:%M:%S", math.floor(e.time / 1000))
    .. (".%03dZ"):format(e.time % 1000)
end

--- Whether it was refused, or failed.
function event.failed(e)
  return e.outcome == "failure"
end

--- 1 if a source is an IPv4 address, 2: IPv6; nil: it is a name.
function event.address(source)
  if source:find "^%d+%.%d+%.%d+%.%d+$" then
    for part in source:gmatch "%d+" do
      if #part > 3 or tonumber(part) > 255 then
        return nil
      end
    end
    return 1
  end
  return source:find "^[%x:]+$" and source:find ":.*:" and 2 or nil
end

--- The details as one text of JSON; nil: there are none.
function event.details(e)
  return e.details and require("sessile.core").text(e.details) or nil
end

return event
