-- grammars.lua: parsers of CEF version 0 and of RFC 5424. They raise for what the two do not allow.

local grammars = {}

-- Splits at separators that are not escaped, and undoes the escapes. Raises for a backslash before
-- anything else. allowed: {["|"] = "|", …}: what an escape means.
local function unescaped(text, allowed)
  return (text:gsub("\\(.?)", function(one)
    return assert(allowed[one], ("a backslash before %q"):format(one))
  end))
end

local HEADER = { ["\\"] = "\\", ["|"] = "|" }
local VALUE = { ["\\"] = "\\", ["="] = "=", n = "\n", r = "\r" }

--- {version, vendor, product, product_version, class, name, severity, extension = {key = value}}.
function grammars.cef(line)
  assert(not line:find "[%c]", "a control character")
  assert(utf8.len(line), "not UTF-8")
  local fields, at, from = {}, 1, 1
  while #fields < 7 do
    local c = line:sub(at, at)
    assert(c ~= "", "the header has seven fields")
    if c == "\\" then
      at = at + 1
    elseif c == "|" then
      fields[#fields + 1] = unescaped(line:sub(from, at - 1), HEADER)
      from = at + 1
    end
    at = at + 1
  end
  assert(fields[1] == "CEF:0", fields[1])
  local severity = tonumber(fields[7])
  assert(severity and severity >= 0 and severity <= 10 and severity % 1 == 0, fields[7])
  local extension, rest = {}, line:sub(from)
  -- A key begins the extension or follows a space, and an `=` that is not escaped follows it.
  local places = {}
  local i = 1
  while i <= #rest do
    local c = rest:sub(i, i)
    if c == "\\" then
      i = i + 1
    elseif c == "=" then
      local before = rest:sub(1, i - 1)
      local key = assert(before:match "^([%w_]+)$" or before:match " ([%w_]+)$",
        "an = that is not escaped in a value")
      places[#places + 1] = { key, i - #key, i + 1 }
    end
    i = i + 1
  end
  assert(#places > 0 or rest == "", "an extension without a key")
  assert(#places == 0 or places[1][2] == 1, "bytes before the first key")
  for k, place in ipairs(places) do
    local ends = places[k + 1] and places[k + 1][2] - 2 or #rest
    assert(extension[place[1]] == nil, "a key twice: " .. place[1])
    extension[place[1]] = unescaped(rest:sub(place[3], ends), VALUE)
  end
  return { version = fields[1], vendor = fields[2], product = fields[3],
    product_version = fields[4], class = fields[5], name = fields[6], severity = severity,
    extension = extension }
end

-- PRINTUSASCII of 1 to `most` bytes, or "-".
local function word(text, most, what)
  assert(text == "-" or #text <= most and text:find "^[\x21-\x7e]+$", what .. ": " .. text)
  return text ~= "-" and text or nil
end

--- {facility, severity, time, host, app, process, id, message}. Structured data is "-".
function grammars.syslog(line)
  assert(not line:find "[\r\n]", "a message of one line")
  local priority, rest = line:match "^<(%d%d?%d?)>1 (.*)$"
  assert(priority and (priority == "0" or not priority:find "^0"), "PRI and VERSION")
  priority = math.tointeger(tonumber(priority))
  assert(priority <= 191, "PRIVAL is 0 to 191")
  local time, host, app, process, id, data, message =
    rest:match "^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) ?(.*)$"
  assert(message, "HEADER SP STRUCTURED-DATA")
  local month, day, hour, minute, second =
    time:match "^%d%d%d%d%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)%.%d%d?%d?%d?%d?%d?Z$"
  assert(month and month >= "01" and month <= "12" and day >= "01" and day <= "31"
    and hour <= "23" and minute <= "59" and second <= "59", "TIMESTAMP: " .. time)
  assert(data == "-", "STRUCTURED-DATA: " .. data)
  return { facility = priority // 8, severity = priority % 8, time = time,
    host = word(host, 255, "HOSTNAME"), app = word(app, 48, "APP-NAME"),
    process = word(process, 128, "PROCID"), id = word(id, 32, "MSGID"), message = message }
end

return grammars
