-- trigger.lua: converts the trigger that a host gives to what the engine takes.
--
--   trigger = { messages = 50, seconds = "10m", share = 0.8, overflow = true,
--               events = { "deploy" } }
--   false     no trigger, even if the session or store has one
--
-- A trigger tells when to run the `compact` hooks of a policy. The engine checks it at the end of
-- each turn. A wrong trigger is a mistake in the program and raises an error.

local options = require "sessile.options"

local trigger = {}

local fields = {
  messages = "number", seconds = "any", share = "any", overflow = "boolean", events = "table",
}

local units = { s = 1, m = 60, h = 3600, d = 86400 }

-- 600, "600", "600s", "10m", "2h", "1d".
local function seconds_of(given)
  if type(given) == "string" then
    local digits, unit = given:match "^(%d+)([smhd]?)$"
    given = digits and #digits <= 9 and tonumber(digits) * (units[unit] or 1)
  end
  local whole = type(given) == "number" and math.tointeger(given)
  return whole and whole > 0 and whole or nil
end

local function check(who, given)
  local copy = options.check(who .. ": trigger", given, fields)
  local function wrong(name, wanted)
    options.misuse(("%s: trigger: option '%s': %s expected, got %s"):format(who, name, wanted,
      type(given[name]) == "table" and "a table" or ("%q"):format(given[name])))
  end
  if copy.messages and copy.messages < 1 then
    wrong("messages", "a number above 0")
  end
  if copy.seconds ~= nil then
    copy.seconds = seconds_of(copy.seconds) or wrong("seconds", "seconds, or \"10m\", \"2h\"")
  end
  if copy.share ~= nil then
    local share = copy.share
    if type(share) ~= "number" or not (share > 0 and share <= 1) then
      wrong("share", "a share of the window, above 0 and at most 1 (0.8 is 80 %),")
    end
    copy.share = math.max(1, math.floor(share * 1000 + 0.5))
  end
  for i, name in ipairs(copy.events or {}) do
    -- names end at a NUL where the engine keeps them
    if type(name) ~= "string" or name == "" or name:find("\0", 1, true) then
      options.misuse(("%s: trigger: event %d: a name expected"):format(who, i))
    end
  end
  if copy.events and #copy.events == 0 and next(copy.events) ~= nil then
    options.misuse(who .. ": trigger: option 'events': a list of names expected")
  end
  return copy
end

--- Turns what the host wrote into {messages, seconds, share (per thousand), overflow, events};
--- false into an empty one, which fires never; nil stays nil.
function trigger.resolve(who, given)
  if given == nil then
    return nil
  end
  if given == false then
    return {}
  end
  return check(who, given)
end

--- The same for checkpoints: {messages, seconds, share, events, keep, state}; state is a
--- function that is asked for the state of one, and gives any value, or nil. Returns {on, keep,
--- state}: when, as resolve() gives it, how many are kept, and that function.
function trigger.checkpoints(who, given)
  if given == nil then
    return nil
  elseif given == false then
    return { on = {} }
  elseif type(given) ~= "table" then
    options.misuse(("%s: option 'checkpoint': table expected, got %s"):format(who, type(given)))
  end
  local copy = {}
  for name, value in pairs(given) do
    copy[name] = value
  end
  copy.keep, copy.state = nil, nil
  local keep = given.keep
  if keep ~= nil and (math.type(keep) ~= "integer" or keep < 1 or keep > 1000000) then
    options.misuse(who .. ": checkpoint: option 'keep': a number above 0 expected")
  end
  if given.state ~= nil and not options.callable(given.state) then
    options.misuse(who .. ": checkpoint: option 'state': a function expected")
  end
  return { on = trigger.resolve(who, copy), keep = keep, state = given.state }
end

return trigger
