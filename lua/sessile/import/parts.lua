--- parts: cuts members out of JSON objects and joins them again, unchanged.
--
-- Owns: what formats share when they convert an object to a message: keeping other members, finding
-- duplicate keys, converting times. Must never encode a value again.

local span = require("sessile.core").span

local parts = {}

--- The members of an object; nil if a key occurs twice, since one of them would be lost.
---@param raw string?
---@return sessile.span.member[]? members
---@return table<string, string>|nil fields
function parts.members(raw)
  local members, fields = nil, nil
  if raw then
    members, fields = span.object(raw)
  end
  if not members then
    return nil
  end
  local seen = {}
  for _, member in ipairs(members) do
    if seen[member.key] then
      return nil
    end
    seen[member.key] = true
  end
  return members, fields
end

--- The members whose keys are not in `taken`, joined without braces.
---@param members sessile.span.member[]
---@param taken table<string, any>
---@return string
function parts.rest(members, taken)
  local list = {}
  for _, member in ipairs(members) do
    if not taken[member.key] then
      list[#list + 1] = member.raw_key .. ":" .. member.raw
    end
  end
  return table.concat(list, ",")
end

--- An object without the members of a key; anything else is unchanged.
---@param raw string
---@param key string
---@return string
function parts.without(raw, key)
  local members, fields = span.object(raw)
  return members and fields[key] and "{" .. parts.rest(members, { [key] = true }) .. "}" or raw
end

--- An object of members, each {"key", json}. Members with "" or nil are left out.
---@param list {[1]: string, [2]: string?}[]
---@return string
function parts.object(list)
  local out = {}
  for _, one in ipairs(list) do
    if one[2] and one[2] ~= "" then
      out[#out + 1] = ('"%s":%s'):format(one[1], one[2])
    end
  end
  return "{" .. table.concat(out, ",") .. "}"
end

--- An object from members without braces; "" if there are none.
---@param inside string
---@return string
function parts.braced(inside)
  return inside ~= "" and "{" .. inside .. "}" or ""
end

-- Days since 1970-01-01 of a date of the Gregorian calendar.
local function days(year, month, day)
  year = month <= 2 and year - 1 or year
  local era, shifted = math.floor(year / 400), (month + 9) % 12
  local of_era = year - era * 400
  local of_year = math.floor((153 * shifted + 2) / 5) + day - 1
  return era * 146097 + of_era * 365 + math.floor(of_era / 4) - math.floor(of_era / 100)
    + of_year - 719468
end

--- "2025-11-20T23:33:50.805Z" (or with an offset) as milliseconds since 1970.
---@param text string?
---@return integer?
function parts.time(text)
  local year, month, day, hour, minute, second, rest =
    (text or ""):match "^(%d%d%d%d)-(%d%d)-(%d%d)[T ](%d%d):(%d%d):(%d%d)(.*)$"
  if not year then
    return nil
  end
  local fraction, zone = rest:match "^%.?(%d*)(.*)$"
  local sign, hours, minutes = zone:match "^([+-])(%d%d):?(%d%d)$"
  if zone ~= "Z" and zone ~= "" and not sign then
    return nil
  end
  local ms = ((days(tonumber(year), tonumber(month), tonumber(day)) * 24 + tonumber(hour)) * 60
    + tonumber(minute)) * 60 + tonumber(second)
  if sign then
    ms = ms - (sign == "-" and -1 or 1) * (tonumber(hours) * 60 + tonumber(minutes)) * 60
  end
  return ms * 1000 + tonumber((fraction .. "000"):sub(1, 3))
end

--- Milliseconds as "2025-11-20T23:33:50.805Z".
---@param ms integer
---@return string
function parts.stamp(ms)
  return os.date("!%Y-%m-%dT%H:%M:%S", math.floor(ms / 1000)) .. (".%03dZ"):format(ms % 1000)
end

return parts
