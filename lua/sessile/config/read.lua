-- read.lua: reads the simple values of a configuration: texts, numbers, times, sizes, paths, and
-- where a secret is.
--
-- An error is a table {at =, what =, code =}.

local dialect = require "sessile.dialect"
local key = require "sessile.key"
local options = require "sessile.options"
local paths = require "sessile.paths"
local schema = require "sessile.config.schema"
local times = require "sessile.times"

local math = dialect.math

local read = {}

--- Raises an error about the value of a key.
---@param at string?
---@param what string
---@param code string?
function read.wrong(at, what, code)
  error({ at = at, what = what, code = code or "EINVALID" }, 0)
end

--- A value for a message: short, without the contents of tables.
function read.shown(value)
  if type(value) == "string" then
    return #value <= 40 and not value:find "%c" and ("%q"):format(value) or "a long text"
  elseif type(value) == "table" or type(value) == "function" then
    return "a " .. type(value)
  end
  return tostring(value)
end

--- Checks that a value is a table with no keys but those of `known`.
---@param at string?
---@param value any
---@param known table<string, any>
function read.among(at, value, known)
  read.table(at, value)
  for name in pairs(value) do
    if known[name] == nil then
      local meant = schema.known_elsewhere[name]
      local near = meant and known[meant] ~= nil and meant or options.nearest(name, known)
      local called = type(name) == "string" and #name > 100 and "a long name" or tostring(name)
      read.wrong((at and at .. "." or "") .. called, "there is no such key"
        .. (near and (", did you mean '%s'?"):format(near) or ""))
    end
  end
  return value
end

function read.table(at, value)
  if type(value) ~= "table" then
    read.wrong(at, "a table expected, got " .. read.shown(value))
  end
  return value
end

--- A list, as a copy.
function read.list(at, value)
  read.table(at, value)
  local copy = {}
  for i, one in ipairs(value) do
    copy[i] = one
  end
  for name in pairs(value) do
    if math.type(name) ~= "integer" or name < 1 or name > #copy then
      read.wrong(at, "a list expected, { \"…\", \"…\" }")
    end
  end
  return copy
end

function read.text(at, value)
  if type(value) ~= "string" or value == "" or value:find("\0", 1, true) then
    read.wrong(at, "a text expected, not empty" .. (type(value) ~= "string"
      and ", got " .. read.shown(value) or ""))
  end
  return value
end

function read.whole(at, value, least)
  local whole = type(value) == "number" and math.tointeger(value)
  if not whole or whole < least then
    read.wrong(at, ("a whole number expected, %d or more, got %s"):format(least,
      read.shown(value)))
  end
  return whole
end

--- In ms.
function read.time(at, value)
  local ms = times.ms(value)
  if not ms then
    read.wrong(at, ("a time expected, as 90 (seconds), \"500ms\", \"5m\" or \"90d\", got %s")
      :format(read.shown(value)))
  end
  return ms
end

--- Milliseconds, or a time as text; in ms.
function read.timeout(at, value)
  local ms = type(value) == "number" and math.tointeger(value)
    or type(value) == "string" and times.ms(value)
  if not ms or ms < -1 then
    read.wrong(at, ("milliseconds, or a time as \"500ms\" or \"5m\", expected, got %s"):format(
      read.shown(value)))
  end
  return ms
end

local SIZES = { [""] = 1, b = 1, kb = 1e3, mb = 1e6, gb = 1e9, tb = 1e12, kib = 1024,
  mib = 1048576, gib = 1073741824, tib = 1099511627776 }

--- In bytes.
function read.size(at, value)
  local number, unit
  if type(value) == "number" then
    number, unit = value, ""
  elseif type(value) == "string" and #value <= 64 then
    number, unit = value:match "^(%d+%.?%d*) ?(%a*)$"
    number = tonumber(number)
  end
  local bytes = number and SIZES[unit:lower()] and number * SIZES[unit:lower()]
  bytes = bytes and bytes >= 1 and bytes <= 2 ^ 53 and math.floor(bytes)
  if not bytes then
    read.wrong(at, ("a size expected, as 1048576 (bytes), \"8MiB\" or \"100MB\", got %s"):format(
      read.shown(value)))
  end
  return math.tointeger(bytes)
end

-- ---------------------------------------------------------------- paths

--- Expands $NAME and ${NAME} in a text; $$ is a $. An error in a file that is not trusted.
function read.expanded(at, text, from)
  if not text:find("$", 1, true) then
    return text
  elseif not from.trusted then
    read.wrong(at, "variables of the environment are taken from your own configuration only",
      "EDENIED")
  end
  return (text:gsub("%$(%$?)({?)([%a_]?[%w_]*)(}?)", function(twice, open, name, close)
    if twice ~= "" then
      return "$" .. open .. name .. close
    end
    if name == "" or open == "{" and close == "" then
      read.wrong(at, "$NAME or ${NAME} expected after a $; $$ is a $")
    end
    local value = os.getenv(name)
    if not value or value == "" then
      read.wrong(at, ("the variable %s is not set"):format(name))
    end
    return value .. (open == "" and close or "")
  end))
end

--- A path, relative to the folder of the file that contains it.
function read.beside(path, from)
  path = paths.expand(path)
  if path:sub(1, 1) == "/" or from.folder == nil then
    return path
  end
  return from.folder .. "/" .. path:gsub("^%./", "")
end

function read.path(at, value, from)
  return read.beside(read.expanded(at, read.text(at, value), from), from)
end

--- A name, or a path if it contains a "/".
function read.path_or_name(at, value, from)
  return read.text(at, value):find "/" and read.path(at, value, from) or value
end

-- ---------------------------------------------------------------- secrets

local SOURCES = { env = true, file = true, command = true }

--- The source of a secret, as a value of sessile.key. also: other accepted values, for the message.
function read.key(at, value, from, also)
  local expected = ("{ env = \"NAME\" }, { file = \"…\" } or { command = { \"program\", … } } "
    .. "expected%s"):format(also and ", " .. also or "")
  if type(value) == "string" then
    read.wrong(at, "this file must not hold a secret: " .. expected)
  elseif type(value) ~= "table" then
    read.wrong(at, expected .. ", got " .. read.shown(value))
  end
  read.among(at, value, SOURCES)
  local source, what = next(value)
  if not source or next(value, source) ~= nil then
    read.wrong(at, "one of " .. expected)
  elseif source == "env" then
    return key.env(read.text(at .. ".env", what))
  elseif source == "file" then
    return key.file(read.path(at .. ".file", what, from))
  end
  return key.command(read.command(at .. ".command", what, from))
end

--- A program and its arguments.
function read.command(at, value, from)
  local words = read.list(at, type(value) == "string" and { value } or value)
  for i, word in ipairs(words) do
    read.text(at, word)
    words[i] = i == 1 and read.path_or_name(at, word, from) or read.expanded(at, word, from)
  end
  if #words == 0 or words[1]:sub(1, 1) == "-" then
    read.wrong(at, "a list of words expected, the program first")
  end
  return words
end

return read
