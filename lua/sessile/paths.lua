-- paths.lua: the default store, the folders of policies and encodings, and `~`.
--
-- It reads the environment and touches no file. The C code uses paths unchanged; they are expanded
-- only here.

local core = require "sessile.core"
local dialect = require "sessile.dialect"

local utf8 = dialect.utf8

local paths = {}

local function home()
  local dir = os.getenv("HOME")
  return dir ~= "" and dir or nil
end

--- An XDG folder: the variable when it is an absolute path, else the default under home.
local function xdg(variable, default)
  local dir = os.getenv(variable)
  if dir and dir:sub(1, 1) == "/" then
    return dir
  end
  return home() and (home() .. default) or nil
end

--- Replaces a leading `~` (alone or before a slash) by the home folder.
function paths.expand(path)
  local rest = path:match("^~(.*)$")
  if not rest or (rest ~= "" and rest:sub(1, 1) ~= "/") or not home() then
    return path
  end
  return home() .. rest
end

--- The same for the path in a store's URL.
function paths.expand_url(url)
  local path = (core.scheme(url) or {}).path
  return path and url:sub(1, #url - #path) .. paths.expand(path) or url
end

--- How URLs of stores are written, but those of `file:`: "sqlite:FILE, postgres://… or ram:".
---@param lasting boolean? only of stores that are there afterwards
function paths.store_forms(lasting)
  local forms = {}
  for _, one in ipairs(core.schemes()) do
    if one.form and one.place ~= "folder" and not (lasting and one.place == "memory") then
      forms[#forms + 1] = one.form
    end
  end
  local last = table.remove(forms)
  return #forms > 0 and table.concat(forms, ", ") .. " or " .. last or last
end

--- What programs remember between runs: $XDG_STATE_HOME/sessile/NAME; nil when there is no home.
function paths.state(name)
  local state = xdg("XDG_STATE_HOME", "/.local/state")
  return state and ("%s/sessile/%s"):format(state, name) or nil
end

--- $XDG_DATA_HOME/sessile; nil when there is no home.
function paths.default_store()
  local data = xdg("XDG_DATA_HOME", "/.local/share")
  return data and data .. "/sessile" or nil
end

--- $XDG_CONFIG_HOME/sessile/NAME, the user's own file or folder; nil when there is no home.
function paths.config(name)
  local config = xdg("XDG_CONFIG_HOME", "/.config")
  return config and config .. "/sessile/" .. name or nil
end

--- The key file that is read when no other is named; nil when there is no home.
function paths.default_key()
  return paths.config "key"
end

--- Whether a text that somebody else wrote names a folder: an absolute path without `..`, and
--- without control characters.
---@param path any
---@return boolean
function paths.is_folder(path)
  return type(path) == "string" and path:sub(1, 1) == "/" and utf8.len(path) ~= nil
    and not (path .. "/"):find("/../", 1, true) and not path:find "%c"
    and not path:find "\xC2[\x80-\x9F]"
end

--- The first of these paths where a file can be read; nil: none.
---@param list string[]
---@return string?
function paths.readable(list)
  for _, path in ipairs(list) do
    local file = io.open(path, "rb")
    if file then
      file:close()
      return path
    end
  end
  return nil
end

-- ---------------------------------------------------------------- what came with the module

-- This file's folder: lua/sessile in a source tree, PREFIX/share/lua/5.4/sessile installed.
local function here()
  local source = debug.getinfo(1, "S").source
  return source:match("^@(.*)/[^/]*$") or "."
end

-- The folder above the executable's own: build/, or PREFIX. Nil in a Lua of somebody else's.
local function above_executable()
  local has_system, system = pcall(require, "sessile.system")
  return has_system and system.executable and system.executable:match "^(.*)/[^/]*/[^/]*$" or nil
end

-- Folders as the engine takes them: the given ones (a text or a list), then the user's own.
local function folders(given, own)
  local list = {}
  if type(given) == "string" then
    given = { given }
  end
  for _, dir in ipairs(given or {}) do
    list[#list + 1] = paths.expand(dir)
  end
  list[#list + 1] = paths.config(own)
  return list
end

--- Folders that policies are looked up in, as the engine takes them: the given ones, the
--- user's own, then what came with the module.
function paths.policy_path(given)
  local list = folders(given, "policies")
  list[#list + 1] = here() .. "/../../policies"
  list[#list + 1] = here() .. "/../../../sessile/policies"
  return table.concat(list, ":")
end

--- Folders that screens are looked up in: the given ones, the user's own, then those that ship.
function paths.screen_path(given)
  local list = folders(given, "screens")
  list[#list + 1] = here() .. "/../../policies/screens"
  list[#list + 1] = here() .. "/../../../sessile/policies/screens"
  return table.concat(list, ":")
end

--- An encoding as the engine takes it: a name, or a path with a '/'.
function paths.encoding(given)
  if given:find "%.tiktoken$" or given:find "%.json$" or given:find("/", 1, true) then
    given = paths.expand(given)
    return given:find("/", 1, true) and given or "./" .. given
  end
  return given
end

-- The folder of the build that the loaded module is of, whatever it is called.
local function build_folder()
  local module = package.searchpath("sessile.core", package.cpath)
  return module and module:match "^(.*)/%l+/sessile/[^/]*$"
end

--- Folders that encodings are looked up in, as the engine takes them: the given ones, the user's
--- own, those of the build or installation that this module is of. (Where the library was
--- installed is looked at when this finds none.)
function paths.encodings(given)
  local list = folders(given, "encodings")
  local build = build_folder()
  list[#list + 1] = build and build .. "/share/sessile/encodings"
  list[#list + 1] = here() .. "/../../build/share/sessile/encodings"
  list[#list + 1] = here() .. "/../../../sessile/encodings"
  local folder = above_executable()
  if folder then
    list[#list + 1] = folder .. "/share/sessile/encodings"
  end
  return table.concat(list, ":")
end

-- A file of libexec: beside the executable or this module; nil: where the library was installed.
local function libexec(name)
  local places = { here() .. "/../../build/libexec/" .. name,
    here() .. "/../../../../libexec/sessile/" .. name }
  local build, folder = build_folder(), above_executable()
  if build then
    table.insert(places, 1, build .. "/libexec/" .. name)
  end
  if folder then
    table.insert(places, 1, folder .. "/libexec/" .. name)
    table.insert(places, 2, folder .. "/libexec/sessile/" .. name)
  end
  return paths.readable(places)
end

--- The program that isolated policies run in: the one given, else that of this build.
function paths.worker(given)
  return given and paths.expand(given) or libexec "sessile-worker"
end

--- The program that serves sessions over a network; nil: it was not installed.
function paths.server()
  return libexec "sessile-server"
end

--- The library of stores behind a server, grpcs://; nil: where the engine was installed.
function paths.remote_library()
  return libexec "libsessile-remote.so"
end

--- The library that knows JSON Schema; nil: none is found.
function paths.schema_library()
  return libexec "schema.so"
end

return paths
