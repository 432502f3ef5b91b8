-- times.lua: durations as people write them ("5m", "30d"), and dates.
--
-- It never reads a clock.

local floor = math.floor

local times = {}

local LONGEST = 64 -- bytes of a span as text: a pattern looks at each digit several times
local UNITS = { [""] = 1000, ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000 }

--- A duration in ms: a number of seconds (90, "90", "0.5"), or with a unit ("500ms", "5m", "90d").
--- nil: it is not a duration.
---@param given any
---@return integer? ms
function times.ms(given)
  if type(given) == "number" then
    given = ("%.17g"):format(given)
  elseif type(given) ~= "string" or #given > LONGEST then
    return nil
  end
  local number, unit = given:match "^(%d+%.?%d*)(%l*)$"
  local ms = number and UNITS[unit] and tonumber(number) * UNITS[unit]
  return ms and ms <= 2 ^ 53 and math.floor(ms) or nil
end

-- Days since 1970-01-01. Years start in March here, so that a leap day is the last day of a year.
local function days(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  return 365 * year + floor(year / 4) - floor(year / 100) + floor(year / 400)
    + floor((153 * (month - 3) + 2) / 5) + day - 1 - 719468
end

--- The first moment of a day (UTC), in ms since 1970; nil: there is no such day.
---@param year integer
---@param month integer
---@param day integer
---@return integer? ms
function times.date(year, month, day)
  if month < 1 or month > 12 or day < 1 or day > 31 then
    return nil
  end
  local next_year, next_month = year + floor(month / 12), month % 12 + 1
  if days(year, month, day) >= days(next_year, next_month, 1) then
    return nil
  end
  return days(year, month, day) * 86400000
end

--- The offset of a zone from UTC in ms: "UTC", or as "+02:00"; nil: it is none.
---@param text any
---@return integer? ms
function times.zone(text)
  if text == "UTC" then
    return 0
  end
  local sign, hours, minutes = tostring(text):match "^([+-])(%d%d):(%d%d)$"
  if not sign or tonumber(hours) > 14 or tonumber(minutes) > 59 then
    return nil
  end
  local ms = (tonumber(hours) * 60 + tonumber(minutes)) * 60000
  return sign == "-" and -ms or ms
end

--- The date of a moment (ms since 1970) in a zone (its offset in ms): "2026-02-01".
---@param ms integer
---@param zone integer
---@return string
function times.day(ms, zone)
  return os.date("!%Y-%m-%d", floor((ms + zone) / 1000))
end

--- A moment in ms since 1970, given as a date (UTC) "2026-02-01" or as an age "24h" before `now`
--- (ms); nil: it is neither.
---@param text string
---@param now integer
---@return integer? ms
function times.moment(text, now)
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  if year then
    return times.date(tonumber(year), tonumber(month), tonumber(day))
  end
  local age = times.ms(text)
  return age and now - age
end

return times
