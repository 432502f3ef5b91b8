-- options.lua: checks arguments and tables of options where they enter the module, so that a
-- misspelled name is an error at the caller's line.
--
-- These functions only raise errors: a wrong option is a mistake in the program. Values that only
-- the engine can judge (too large, unknown file) are passed on and fail with nil, message, code.

local times = require "sessile.times"

local options = {}

local LONGEST = 100 -- bytes of a name that may be another by mistake

-- Edit distance, for "did you mean".
local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      local best = math.min(row[j] + 1, row[j - 1] + 1, corner + cost)
      corner, row[j] = row[j], best
    end
  end
  return row[#b]
end

-- The folder of this library, from the source of its functions.
local root = debug and debug.getinfo(1, "S").source:match "^(.*)options%.lua$"

--- Raises an error at the line outside this library that made the call, at any depth. message
--- begins with the name of the public function.
function options.misuse(message)
  local level = 2
  local frame = root and debug.getinfo(level, "S")
  while frame and (frame.what == "C" or frame.source:sub(1, #root) == root) do
    level = level + 1
    frame = debug.getinfo(level, "S")
  end
  error(message, frame and level or 2)
end

--- Raises "WHAT expected, got TYPE" unless a value is of that type; with "string?" it may be
--- nil. what: the public function and what it expects, as "store:count: a text".
function options.expect(kind, value, what)
  local wanted, optional = kind:match "^(%l+)(%??)$"
  if type(value) ~= wanted and (value ~= nil or optional == "") then
    options.misuse(("%s expected, got %s"):format(what, type(value)))
  end
end

--- Sets the fields of `more` (nil: none) in `fields`; returns `fields`.
function options.add(fields, more)
  for name, value in pairs(more or {}) do
    fields[name] = value
  end
  return fields
end

--- The name in `names` (a set) that is most similar to `name`; nil: none is similar.
function options.nearest(name, names)
  if type(name) ~= "string" or #name > LONGEST then
    return nil
  end
  local best, least
  for candidate in pairs(names) do
    local d = distance(name, candidate)
    if not least or d < least or (d == least and candidate < best) then
      best, least = candidate, d
    end
  end
  if least and least <= math.max(2, #name // 3) and least < #name then
    return best
  end
  return nil
end

--- Whether a value can be called.
function options.callable(value)
  if type(value) == "function" then
    return true
  end
  local meta = getmetatable(value)
  return type(meta) == "table" and meta.__call ~= nil
end

local is = {
  any = function() return true end,
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  table = function(v) return type(v) == "table" end,
  integer = function(v) return math.type(v) == "integer" end,
  -- Tokens and times are often computed: 0.9 * window is taken when it is whole.
  number = function(v) return type(v) == "number" and math.tointeger(v) ~= nil end,
  callable = options.callable,
  isolation = function(v) return v == "none" or v == "worker" end,
  -- Milliseconds, or a span as text: "5s".
  timeout = function(v)
    return type(v) == "number" and math.tointeger(v) ~= nil
      or type(v) == "string" and times.ms(v) ~= nil
  end,
}

-- Kinds whose name says too little.
local spoken = {
  timeout = "milliseconds, or a time as \"5s\",", isolation = "\"none\" or \"worker\"",
}

local function matches(kind, value)
  for one in kind:gmatch("%a+") do
    if is[one](value) then
      return true
    end
  end
  return false
end

--- Returns a copy of `given` (nil: empty) after checking names and kinds; raises as
--- misuse does. kinds: {name = "string|table", …}.
function options.check(who, given, kinds)
  if given == nil then
    return {}
  end
  options.expect("table", given, who .. ": a table of options")
  local copy = {}
  for name, value in pairs(given) do
    local kind = kinds[name]
    if not kind then
      local near = options.nearest(name, kinds)
      options.misuse(("%s: unknown option '%s'%s"):format(who, tostring(name),
        near and (", did you mean '" .. near .. "'?") or ""))
    end
    if not matches(kind, value) then
      -- a number that is refused is not whole, or no integer is as large
      local wanted = spoken[kind] or kind:gsub("|", " or ")
      local got = spoken[kind] and ("%q"):format(tostring(value)) or type(value)
      if got == "number" then
        wanted, got = wanted:gsub("number", "whole number"), ("%.14g"):format(value)
      end
      options.misuse(("%s: option '%s': %s expected, got %s"):format(who, name, wanted, got))
    end
    if kind == "timeout" then
      value = type(value) == "string" and times.ms(value) or math.tointeger(value)
    elseif type(value) == "number" and kind:find("number", 1, true) then
      value = math.tointeger(value)
    end
    copy[name] = value
  end
  return copy
end

return options
