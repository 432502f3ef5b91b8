-- audit/syslog.lua: events as messages of RFC 5424 around the Common Event Format: one line each.
--
-- Facility 13 (log audit); severity 4 (warning) for a failure, else 5 (notice). The message is
-- MSG-ANY: it has no BOM, since programs that read CEF expect none.

local cef = require "sessile.audit.cef"
local event = require "sessile.audit.event"

local syslog = {}

local FACILITY, WARNING, NOTICE = 13, 4, 5

-- PRINTUSASCII of at most `most` bytes; `-`: nothing is left.
local function ascii(text, most)
  text = (text or ""):gsub("[^\x21-\x7e]", ""):sub(1, most)
  return text ~= "" and text or "-"
end

function syslog.make(e, opts)
  return ("<%d>1 %s %s sessile - %s - %s"):format(
    FACILITY * 8 + (event.failed(e) and WARNING or NOTICE), event.time(e),
    ascii(opts and opts.host, 255), ascii(e.operation, 32), cef.make(e))
end

syslog.specimen = "<108>1 2026-02-01T14:03:22.123Z - sessile - append - " .. cef.specimen

return syslog
