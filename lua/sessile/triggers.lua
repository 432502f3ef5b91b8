-- triggers.lua: checks the rules that start compactions and checkpoints, in programs and
-- configurations, and converts them to what the engine takes.
--
--   triggers   = { messages = 50, interval = "10m", share = 0.8, overflow = true,
--                  events = { "deploy" } }
--   checkpoint = { strategy = "periodic", interval = "5m", keep = 20 }
--   false      none, even if the store or the agent has some; triggers = false turns off every
--              automatic compaction, also what policies do in each turn
--
-- The engine checks triggers at the end of each turn.

local dialect = require "sessile.dialect"
local options = require "sessile.options"
local times = require "sessile.times"

local math, utf8 = dialect.math, dialect.utf8

local triggers = {}

--- The kinds of the options, for options.check.
triggers.fields = {
  messages = "any", interval = "any", share = "any", overflow = "any", events = "any",
}
triggers.checkpoint_fields = {
  strategy = "any", messages = "any", interval = "any", share = "any", events = "any",
  keep = "any",
}

local function shown(value)
  if type(value) == "number" then
    return ("%.14g"):format(value)
  end
  return type(value) == "string" and ("%q"):format(value:sub(1, 60)) or "a " .. type(value)
end

local function whole(given, wrong, name)
  local value = type(given) == "number" and math.tointeger(given)
  if not value then
    wrong(name, "whole number expected, got " .. shown(given))
  elseif value < 1 then
    wrong(name, "a number above 0 expected, got " .. shown(given))
  end
  return value
end

local function interval(given, wrong)
  local ms = times.ms(given)
  if not ms or ms < 1000 then
    wrong("interval", ("a time of a second or more expected, as 90 (seconds), \"10m\" or \"2h\", "
      .. "got %s"):format(shown(given)))
  end
  return ms
end

local function share(given, wrong)
  if type(given) ~= "number" or not (given > 0 and given <= 1) then
    wrong("share", ("a share of the window expected, above 0 and at most 1 (0.8 is 80 %%), got %s")
      :format(shown(given)))
  end
  return math.max(1, math.floor(given * 1000 + 0.5))
end

local function events(given, wrong)
  if type(given) ~= "table" then
    wrong("events", "table expected, got " .. shown(given))
  end
  for key in pairs(given) do
    if math.type(key) ~= "integer" or key < 1 or key > #given then
      wrong("events", "a list of names expected")
    end
  end
  local names = {}
  for i = 1, #given do
    local name = given[i]
    -- names end at a NUL where the engine keeps them
    if type(name) ~= "string" or name == "" or name:find("\0", 1, true) or not utf8.len(name) then
      wrong("events", ("event %d: a name expected"):format(i))
    end
    names[i] = name
  end
  return names
end

--- Checks triggers. Returns {messages, interval_ms, share (per thousand),
--- overflow, events}. wrong(name, what) raises.
function triggers.read(given, wrong)
  if given.overflow ~= nil and type(given.overflow) ~= "boolean" then
    wrong("overflow", "true or false expected, got " .. shown(given.overflow))
  end
  local names = given.events ~= nil and events(given.events, wrong)
  return {
    messages = given.messages ~= nil and whole(given.messages, wrong, "messages") or nil,
    interval_ms = given.interval ~= nil and interval(given.interval, wrong) or nil,
    share = given.share ~= nil and share(given.share, wrong) or nil,
    overflow = given.overflow or nil,
    events = names and #names > 0 and names or nil,
  }
end

-- The conditions that each strategy adds to those given.
local strategies = {
  manual = function(on, wrong)
    if next(on) then
      wrong("strategy", "\"manual\" means by hand: leave out the conditions, or it")
    end
  end,
  periodic = function(on)
    if not on.interval_ms and not on.messages then
      on.interval_ms = 300000
    end
  end,
  event = function(on, wrong)
    if not on.events then
      wrong("events", "the strategy \"event\" needs events = { \"name\", … }")
    end
  end,
  threshold = function(on)
    on.share = on.share or 800
  end,
}

--- The same for the rules of checkpoints. Returns {on, keep, state}: the triggers, as triggers.read
--- returns them; how many are kept; a function that returns the state of a checkpoint.
function triggers.read_checkpoint(given, wrong)
  local on = triggers.read(given, wrong)
  if given.strategy ~= nil then
    local fill = strategies[given.strategy]
    if not fill then
      wrong("strategy", "manual, periodic, event or threshold expected, got "
        .. shown(given.strategy))
    end
    fill(on, wrong)
  end
  local keep = given.keep ~= nil and whole(given.keep, wrong, "keep") or nil
  if keep and keep > 1000000 then
    wrong("keep", "at most 1000000 expected")
  end
  if given.state ~= nil and not options.callable(given.state) then
    wrong("state", "a function expected, got " .. shown(given.state))
  end
  return { on = on, keep = keep, state = given.state }
end

-- A program may also give a function; a configuration may not.
local program_fields = { state = "any" }
for name, kind in pairs(triggers.checkpoint_fields) do
  program_fields[name] = kind
end

options.shape("sessile.open: triggers", triggers.fields)
options.shape("sessile.open: checkpoint", program_fields)

local function checked(who, label, given, fields, read)
  local copy = options.check(who .. ": " .. label, given, fields)
  return read(copy, function(name, what)
    options.misuse(("%s: %s: option '%s': %s"):format(who, label, name, what))
  end)
end

--- Triggers given by a program: nil stays nil; false becomes {}, which turns automatic compaction
--- off. Raises if they are wrong.
function triggers.resolve(who, given)
  if given == nil then
    return nil
  end
  return given and checked(who, "triggers", given, triggers.fields, triggers.read) or {}
end

--- Whether resolved triggers turn automatic compaction off.
function triggers.off(resolved)
  return resolved and next(resolved) == nil or false
end

--- The same for rules of checkpoints, as triggers.read_checkpoint() returns them.
function triggers.checkpoints(who, given)
  if given == nil then
    return nil
  elseif given == false then
    return { on = {} }
  end
  return checked(who, "checkpoint", given, program_fields, triggers.read_checkpoint)
end

return triggers
