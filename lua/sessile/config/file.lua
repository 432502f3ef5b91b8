-- file.lua: reads one configuration file, and decides whether it is trusted.
--
-- The engine runs the file in its sandbox and returns plain values. If the file contains functions
-- and belongs to the user, it is then run again in this Lua state, with the same names in reach, so
-- that the functions can be called. A file never runs here before it has run in the sandbox without
-- an error, and functions of an untrusted file are never returned.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local paths = require "sessile.paths"
local places = require "sessile.config.places"

local file = {}

-- ---------------------------------------------------------------- values

-- Converts what core.config returns: a table is [k, v, k, v], a function {line = n}.
local function plain(value)
  if type(value) ~= "table" then
    return value, false
  elseif value.line then
    return function() end, true
  end
  local made, functions = {}, false
  for i = 1, #value, 2 do
    local one, has
    one, has = plain(value[i + 1])
    made[value[i]] = one
    functions = functions or has
  end
  return made, functions
end

local SEEN = { "assert", "error", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget",
  "rawlen", "rawset", "select", "setmetatable", "tonumber", "tostring", "type" }

-- The names that a policy sees, in this Lua state.
local function environment()
  local env = {}
  for _, name in ipairs(SEEN) do
    env[name] = _G[name]
  end
  for _, name in ipairs { "math", "string", "table", "utf8" } do
    env[name] = {}
    for key, value in pairs(dialect[name] or _G[name]) do
      env[name][key] = value
    end
  end
  return env
end

-- ---------------------------------------------------------------- reading

---@class sessile.config.file
---@field path string       from the root
---@field folder string     where it is
---@field text string
---@field values table
---@field lines table<string, integer>
---@field has_functions boolean
---@field trusted boolean   it may name programs, keys and functions
---@field own boolean       it is no project's

-- The engine's messages contain only the last part of a path.
local function with_path(message, path)
  local last = path:match "[^/]*$"
  if message:sub(1, #last + 1) == last .. ":" then
    return path .. message:sub(#last + 1)
  end
  return message
end

--- Reads a file. nil, message, code; ENOTFOUND: it does not exist.
---@param path string
---@return sessile.config.file?
---@return string? message
---@return string? code
function file.read(path)
  local list, text, real = core.config(path)
  if not list then
    return nil, with_path(text, path), real
  end
  local values, functions = plain(list)
  return {
    path = real, folder = real:match "^(.*)/[^/]*$", text = text, values = values,
    lines = places.of(text), has_functions = functions, trusted = false,
  }
end

--- Puts the functions into the values of a trusted file. nil, message, code.
---@param one sessile.config.file
function file.call_back(one)
  if not one.has_functions then
    return true
  end
  local chunk, message = load(one.text, "@" .. one.path, "t", environment())
  local ok, values = pcall(chunk or error, message)
  if not chunk or not ok or type(values) ~= "table" then
    return nil, ("%s: two runs gave different results: %s"):format(one.path,
      tostring(values)), "EINVALID"
  end
  one.values = values
  return true
end

-- ---------------------------------------------------------------- trust

--- The folder of the records of trusted files; nil without a home.
function file.trust_folder()
  return paths.config "trusted"
end

--- The path and the text of the record that this file is trusted.
---@param one sessile.config.file
---@return string? path
---@return string text
function file.trust_record(one)
  local folder = file.trust_folder()
  return folder and ("%s/%s.lua"):format(folder, core.sha256(one.path)),
    ("return { path = %q, text = %q }\n"):format(one.path, one.text)
end

--- Whether this file is trusted, with its present text and place, and whether it was trusted with
--- another text.
---@param one sessile.config.file
---@return boolean trusted
---@return boolean changed
function file.is_trusted(one)
  local path = file.trust_record(one)
  local list = path and core.config(path)
  if not list then
    return false, false
  end
  local kept = plain(list)
  if kept.path ~= one.path then
    return false, false
  end
  return kept.text == one.text, kept.text ~= one.text
end

return file
