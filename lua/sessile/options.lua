-- options.lua: checks arguments and tables of options where they enter the module, so that a
-- misspelled name, a wrong type or a number out of range is an error at the caller's line.
--
-- Each public function declares the shape of its options once, with options.shape(). These
-- functions only raise errors: a wrong option is a mistake in the program. Values that only
-- the engine can judge (too large, unknown file) are passed on and fail with nil, message, code.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local nearest = require "sessile.nearest"
local times = require "sessile.times"

local math = dialect.math

local options = {}

local LONGEST = 100 -- bytes of a value that an error shows

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

core.on_misuse(options.misuse)

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

options.nearest = nearest

--- Whether a value can be called.
function options.callable(value)
  if type(value) == "function" then
    return true
  end
  local meta = getmetatable(value)
  return type(meta) == "table" and meta.__call ~= nil
end

-- ---------------------------------------------------------------- kinds of values

-- Tokens and times are often computed: 0.9 * window is taken when it is whole.
local function whole(least)
  return function(value)
    local n = type(value) == "number" and math.tointeger(value)
    return n and n >= least, n
  end
end

local function of_type(name)
  return function(value) return type(value) == name, value end
end

local function strings(value)
  for i = 1, type(value) == "table" and #value or 0 do
    if type(value[i]) ~= "string" then
      return false
    end
  end
  return type(value) == "table" and (#value > 0 or next(value) == nil), value
end

local function span(value)
  local ms = times.ms(value)
  return ms ~= nil, ms
end

-- By name: what is expected, in words, and a function that returns whether a value is of that
-- kind, and the value as the engine takes it.
local kinds = {
  any = { "a value", function(value) return true, value end },
  string = { "string", of_type "string" },
  boolean = { "boolean", of_type "boolean" },
  table = { "table", of_type "table" },
  callable = { "function", function(value) return options.callable(value), value end },
  no = { "false", function(value) return value == false, value end },
  strings = { "list of strings", strings },
  -- 0 sets no limit, everywhere.
  count = { "whole number from 0", whole(0) },
  positive = { "whole number from 1", whole(1) },
  timeout = { "milliseconds (-1: for ever), or a time as \"5s\",", function(value)
    if type(value) == "string" then
      return span(value)
    end
    return whole(-1)(value)
  end },
  span = { "time as 90 (seconds), \"5m\" or \"30d\"", span },
  moment = { "milliseconds since 1970, a date as \"2026-02-01\", or an age as \"24h\",",
    function(value)
      if type(value) == "string" then
        local ms = times.moment(value, core.now())
        return ms ~= nil, ms
      end
      return whole(0)(value)
    end },
}

--- The roles of messages, as a kind.
options.roles = { "system", "developer", "user", "assistant", "model", "tool", "function" }

-- Whether a value is of a kind, and the value to use. kind: "string|table", or a list of the words
-- that are allowed.
local function take(kind, value)
  if type(kind) == "table" then
    for _, word in ipairs(kind) do
      if value == word then
        return true, value
      end
    end
    return false
  end
  for one in kind:gmatch "%a+" do
    local ok, taken = kinds[one][2](value)
    if ok then
      return true, taken
    end
  end
  return false
end

-- Words as a sentence has them: "a", "b" or "c".
local function one_of(words)
  local quoted = {}
  for i, word in ipairs(words) do
    quoted[i] = ('"%s"'):format(word)
  end
  local last = table.remove(quoted)
  return #quoted > 0 and table.concat(quoted, ", ") .. " or " .. last or last
end

-- What is expected, and what is there instead.
local function expected(kind, value)
  local wanted = type(kind) == "table" and one_of(kind)
    or kind:gsub("%a+", function(one) return kinds[one][1] end):gsub(",?|", " or ")
  local got = type(value)
  if got == "number" then
    got = ("%.14g"):format(value)
  elseif got == "string" and (type(kind) == "table" or not kind:find "string") then
    got = ("%q"):format(value:sub(1, LONGEST)):gsub("\\\n", "\\n")
  end
  return ("%s expected, got %s"):format(wanted, got)
end

-- ---------------------------------------------------------------- tables of options

--- The shapes by the functions that take them: {["store:list"] = {limit = "count", …}, …}.
options.shapes = {}

-- Names that options had once.
local former = { seconds = "interval", leaf = "at", park = "pending_run" }

--- Declares the options of a public function: the fields of all tables given. Returns them.
function options.shape(who, ...)
  local shape = {}
  for _, fields in ipairs { ... } do
    options.add(shape, fields)
  end
  options.shapes[who] = shape
  return shape
end

--- Whether a value is of a kind.
function options.is(kind, value)
  return (take(kind, value))
end

--- Raises unless a value is of that kind. what: the public function and what the value is, as
--- "session:set_timeout: timeout_ms". Returns the value as the engine takes it.
function options.value(what, value, kind)
  local ok, taken = take(kind, value)
  if not ok then
    options.misuse(("%s: %s"):format(what, expected(kind, value)))
  end
  return taken
end

--- Returns a copy of `given` (nil: empty) after checking names and kinds; raises as
--- misuse does. shape: {name = "string|table", …}.
function options.check(who, given, shape)
  if given == nil then
    return {}
  end
  options.expect("table", given, who .. ": a table of options")
  local copy = {}
  for name, value in pairs(given) do
    local kind = shape[name]
    if not kind then
      local near = shape[former[name]] and former[name] or options.nearest(name, shape)
      options.misuse(("%s: unknown option '%s'%s"):format(who, tostring(name),
        near and (", did you mean '" .. near .. "'?") or ""))
    end
    copy[name] = options.value(("%s: option '%s'"):format(who, name), value, kind)
  end
  return copy
end

--- Raises unless `list` is a list of messages.
function options.messages(who, list)
  options.expect("table", list, who .. ": a list of messages")
  if list.role ~= nil or (#list == 0 and next(list) ~= nil) then
    options.misuse(who .. ": a list of messages expected, got one: write {message}")
  end
  for i, message in ipairs(list) do
    if type(message) ~= "table" then
      options.misuse(("%s: message %d: a table expected, got %s"):format(who, i, type(message)))
    end
  end
end

--- Replaces the functions of a table by ones that refuse more arguments than they have, so that
--- options given to a function without options are not ignored. prefix: "session:".
function options.exact(prefix, functions)
  for name, method in pairs(functions) do
    local about = type(method) == "function" and debug and debug.getinfo(method, "u")
    if about and not about.isvararg then
      local most = about.nparams
      functions[name] = function(...)
        if select("#", ...) > most and select(most + 1, ...) ~= nil then
          local own = most - (prefix:find ":$" and 1 or 0)
          options.misuse(("%s%s: %s expected, got more: %s"):format(prefix, name,
            own == 0 and "no argument" or own == 1 and "one argument"
              or ("at most %d arguments"):format(own),
            options.shapes[prefix .. name] and "the options are one table" or "it has no options"))
        end
        return method(...)
      end
    end
  end
end

return options
