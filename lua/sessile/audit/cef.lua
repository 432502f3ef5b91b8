-- audit/cef.lua: events in the Common Event Format, version 0, of ArcSight: one line each.
--
-- In the header `|` and `\` are escaped, in the extension `=` and `\`, and a newline is written
-- `\n`. Every other control character becomes a space, so no text ends a line or begins a field.

local characters = require "sessile.characters"
local core = require "sessile.core"
local event = require "sessile.audit.event"

local cef = {}

-- What ends a line somewhere, as a newline; what nobody sees, as a space.
local function clean(text)
  text = characters.repaired(text):gsub("\r\n", "\n"):gsub("\r", "\n")
    :gsub("\u{85}", "\n"):gsub("\u{2028}", "\n"):gsub("\u{2029}", "\n")
  return characters.without_hidden(text:gsub("[%z\1-\9\11-\31\127]", " "),
    function() return " " end)
end

--- A text of the header.
function cef.header(text)
  return (clean(text):gsub("\n", " "):gsub("[\\|]", "\\%0"))
end

--- A value of the extension.
function cef.value(text)
  return (clean(text):gsub("[\\=]", "\\%0"):gsub("\n", "\\n"))
end

-- The extension in order: the key of the dictionary, and where its value is from.
local CUSTOM = { "agent", "session", "permission", "rule", "role", "method" }

function cef.make(e)
  local words = {}
  local function put(key, value)
    if value ~= nil and value ~= "" then
      words[#words + 1] = key .. "=" .. cef.value(tostring(value))
    end
  end
  put("rt", e.time)
  put("externalId", e.id)
  put("act", e.operation)
  put("outcome", e.outcome)
  put("suid", e.user)
  put("suser", e.name)
  put("duid", e.owner)
  put("sproc", e.actor)
  put("reason", e.code)
  if e.source and event.address(e.source) == 1 then
    put("src", e.source)
  elseif e.source and event.address(e.source) == 2 then
    put("c6a2", e.source)
    put("c6a2Label", "Source IPv6 Address")
  else
    put("shost", e.source)
  end
  put("cnt", e.count)
  for i, name in ipairs(CUSTOM) do
    if e[name] then
      put("cs" .. i, e[name])
      put(("cs%dLabel"):format(i), name)
    end
  end
  put("flexString1", e.request)
  put("flexString1Label", e.request and "request")
  put("flexString2", e.key)
  put("flexString2Label", e.key and "key")
  put("fname", e.entry)
  put("msg", event.details(e))
  local operation = cef.header(event.text(e.operation) or "unknown")
  return ("CEF:0|sessile|sessile|%s|%s|%s %s|%d|%s"):format(core.version, operation, operation,
    cef.header(event.text(e.outcome) or "unknown"), event.failed(e) and 5 or 2,
    table.concat(words, " "))
end

cef.specimen = [[CEF:0|sessile|sessile|0.1.0|append|append failure|5|rt=1769954602123 ]]
  .. [[externalId=00-000/0000002a act=append outcome=failure suid=u_abc suser=ann reason=DENIED ]]
  .. [[cs1=coder cs1Label=agent cs2=bug-42 cs2Label=session cs3=modify_session cs3Label=permission]]

return cef
