-- init.lua: finds the configuration files, merges them, and returns options for sessile.open.
--
-- The environment overrides ./sessile.lua, which overrides the user's own file, which overrides the
-- defaults. No file is read unless the caller asks for the configuration, and a project's file that
-- the user has not trusted may set few keys: see `sessile config trust`.

local check = require "sessile.config.check"
local file = require "sessile.config.file"
local merge = require "sessile.config.merge"
local paths = require "sessile.paths"
local places = require "sessile.config.places"
local schema = require "sessile.config.schema"

local config = {}

--- The file of a project, in the current folder.
config.project = "./sessile.lua"

--- The user's own file; nil without a home.
function config.own()
  return paths.config "config.lua"
end

--- The file that replaces both: the one given, else $SESSILE_CONFIG. nil: neither.
---@param given string?
---@return string? path
---@return string? said_by
function config.named(given)
  local env = os.getenv "SESSILE_CONFIG"
  if given then
    return paths.expand(given), "--config"
  elseif env and env ~= "" then
    return paths.expand(env), "SESSILE_CONFIG"
  end
  return nil
end

-- ---------------------------------------------------------------- one file

local KEYS = "Every key with its default: sessile config --config /dev/null"
local TRUST = "Read it, then trust it: sessile config trust"

-- Why a value is refused, with its file and line.
local function sentence(one, problem)
  local at = problem.at
  local line = at and places.line(one.lines, at)
  local place = one.path .. (line and ":" .. line or "")
  return ("%s: %s%s"):format(place, at and ("'%s': "):format(at) or "", problem.what)
end

--- Returns true, or nil, message, code, step if the name is that of a file in another language.
---@param path string
function config.is_lua(path)
  local ending = path:match "%.(%a+)$"
  if ending and ({ yaml = 1, yml = 1, json = 1, toml = 1, ini = 1 })[ending:lower()] then
    return nil, ("%s: a configuration is Lua that returns a table, not %s"):format(path,
      ending:upper()), "EUSAGE", "See one: sessile config init FILE.lua"
  end
  return true
end

-- Reads a file and converts its values, in the field `made`. nil, message, code, step.
local function read(path, trusted)
  local one, message, code = file.read(path)
  if not one then
    return nil, message, code
  end
  local changed
  one.trusted, one.own = trusted, trusted
  if not trusted then
    one.trusted, changed = file.is_trusted(one)
  end
  if one.trusted then
    local ok
    ok, message, code = file.call_back(one)
    if not ok then
      return nil, message, code
    end
  end
  local fine, made = pcall(check.file, one.values, one)
  if fine then
    one.made = made
    return one
  elseif type(made) ~= "table" then
    error(made, 0)
  end
  local step = KEYS
  if made.own then
    step = "Take it out of that file, and set it in yours: sessile config path"
  elseif made.code == "EDENIED" then
    step = changed and "It has changed since you trusted it. " .. TRUST or TRUST
  end
  return nil, sentence(one, made), made.code, step
end

config.read = read

-- Whether this user may enter the folder of a path. The configuration in another user's home is
-- ignored.
local function is_ours(path)
  local folder = io.open(path:match "^(.*)/[^/]*$" .. "/.")
  if folder then
    folder:close()
  end
  return folder ~= nil
end

-- The files that exist; later ones override earlier ones. nil, message, code, step.
local function files(given)
  local named, said_by = config.named(given)
  if named == "/dev/null" then
    return {}
  elseif named then
    local one, message, code, step
    one, message, code, step = config.is_lua(named)
    if one then
      one, message, code, step = read(named, true)
    end
    if not one and code == "ENOTFOUND" then
      return nil, ("there is no file %s (%s)"):format(named, said_by), "EUSAGE",
        "Name one that is there, or make one: sessile config init"
    elseif not one then
      return nil, message, code, step
    end
    one.kind = "named"
    return { one }
  end
  local list = {}
  for _, kind in ipairs { "own", "project" } do
    local path = kind == "own" and config.own() or kind == "project" and config.project
    local one, message, code, step
    if path then
      one, message, code, step = read(path, kind == "own")
    end
    if one then
      one.kind = kind
      list[#list + 1] = one
    elseif path and code ~= "ENOTFOUND" and is_ours(path) then
      return nil, message, code, step or kind == "project" and code == "EDENIED"
        and "To use no configuration: --config /dev/null" or nil
    end
  end
  return list
end

-- ---------------------------------------------------------------- all of it

--- The merged configuration. path: one file in place of the two. nil, message, code, and perhaps a
--- next step; EUSAGE: the named file does not exist.
---@param given string?
---@return sessile.Config?
---@return string? message
---@return string? code
---@return string? step
function config.load(given)
  local list, message, code, step = files(given)
  if not list then
    return nil, message, code, step
  end
  return merge.of(list)
end

config.schema = schema

return config
