--- stores: the store that a command works on, and its key.
--
-- Owns: the choice of the store (--store, $SESSILE_STORE, the configuration, the default) and of
-- the key. Must never create a store for a command that only reads, or open a file of the store,
-- which may be a FIFO: only the engine does that.

local core = require "sessile.core"
local disk = require "sessile.disk"
local guard_open = require "sessile.guard_open"
local hints = require "sessile.cli.hints"
local identity = require "sessile.cli.identity"
local paths = require "sessile.paths"
local sessile = require "sessile"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local stores = {}

-- Error numbers of a path that cannot be opened.
local MISSING, NO_FOLDER = 2, 20
local DENIED = { [1] = true, [13] = true, [40] = true }

--- Fails if the path is an SQLite file that was named without `sqlite:`.
---@param path string
---@return boolean? ok
---@return string? message
---@return string? code
---@return string? step
function stores.no_database(path)
  if system.kind(path) ~= "file" then
    return true
  end
  local file <close> = io.open(path, "rb")
  if file and file:read(15) == "SQLite format 3" then
    return nil, ("%s is a database, not a folder"):format(terminal.line(path)), "EINVALID",
      "Say so: sqlite:" .. hints.quoted(path)
  end
  return true
end

-- Whether the folder has a store. Only a missing file means no; other errors are failures.
local function has_store(folder)
  local folder_it_is, what, code, step = stores.no_database(folder)
  if not folder_it_is then
    return nil, what, code, step
  end
  for _, name in ipairs { "keyring", "agents" } do
    local path = folder .. "/" .. name
    local kind, why, number = system.kind(path)
    if kind then
      return true
    elseif number == NO_FOLDER then
      return nil, ("%s is not a folder"):format(terminal.line(folder)), "EINVALID",
        "Name the folder where sessions live: --store FOLDER"
    elseif number ~= MISSING then
      local seen = DENIED[number] and disk.look(folder)
      if seen and seen.own and seen.mode & 0x140 ~= 0x140 then -- 0500
        return nil, ("cannot open the folder %s, whose mode is %03o: chmod u+rwx it"):format(
          terminal.line(folder), seen.mode & 0x1ff), "EDENIED"
      end
      return nil, ("%s cannot be read: %s"):format(terminal.line(path), why),
        DENIED[number] and "EDENIED" or "EIO"
    end
  end
  return false
end

-- Whether the file of a database exists; other errors are left to the engine. Without this check, a
-- mistyped name would create an empty database.
local function is_there(path)
  local kind, _, number = system.kind(path)
  return kind ~= nil or number ~= MISSING
end

-- The configuration that app:config() has read, if it has.
local function configured(globals)
  return globals.configured or {}
end

--- The store that was named: its URL, and its folder if it is one.
---@param globals table
---@return string? url     nil: the default
---@return string? folder
function stores.place(globals)
  local url = globals.store or configured(globals).store
  if not url then
    return nil, paths.default_store()
  end
  local scheme = core.scheme(url)
  if not scheme or scheme.place ~= "folder" then
    return paths.expand_url(url) -- the engine says what is wrong with it
  end
  local folder = paths.expand(scheme.path)
  return folder, folder
end

--- Where the key comes from, as text, and whether there is one.
---@param globals table
---@return string words
---@return boolean given
function stores.key_source(globals)
  local env = os.getenv "SESSILE_KEY"
  local key = configured(globals).key
  if globals.key_file then
    return "the key file " .. globals.key_file, true
  elseif env and env ~= "" then
    return "the variable SESSILE_KEY", true
  elseif key and key.source == "env" then
    return "the variable " .. key.value, true
  elseif key and key.source == "file" then
    return "the key file " .. key.value, true
  elseif key then
    return "the program " .. key.value[1], true
  end
  local path = paths.default_key()
  return "the key file " .. (path or "of yours"), path ~= nil and system.kind(path) ~= nil
end

-- The next step if the key does not fit.
local function key_step(globals, url, exists)
  if globals.plain then
    return "Omit --plain; the key comes from SESSILE_KEY or --key-file FILE."
  elseif configured(globals).key == false then
    return "The configuration says key = false: leave that out. See: sessile config show"
  end
  local plain = exists and sessile.open(url, { key = false })
  if plain then
    plain:close()
    return "The store is not sealed. If that is intended, pass --plain."
  end
  local source, given = stores.key_source(globals)
  return (given and ("The key came from %s. "):format(source) or "")
    .. "Give the right one: set SESSILE_KEY, or --key-file FILE."
end

-- The key that was typed, else the configured one; nil: the engine finds it.
local function chosen_key(globals)
  if globals.plain then
    return false
  elseif globals.key_file then
    return sessile.key.file(globals.key_file)
  end
  return configured(globals).key
end

--- A store other than --store, as sessile.migrate takes one, with the typed or the configured key.
---@param app sessile.cli.app
---@param url string
---@return sessile.Place? place
---@return string? message
---@return string? code
---@return string? step
function stores.as_place(app, url)
  local globals = app.globals
  local known, message, code, step = app:config()
  if not known then
    return nil, message, code, step
  elseif globals.plain and globals.key_file then
    return nil, "--plain and --key-file exclude each other", "EUSAGE"
  end
  local key = chosen_key(globals)
  if key == false and not globals.plain then
    key = nil -- it is configured for the configured store; another may be sealed
  end
  return { url = url, key = key, timeout_ms = globals.timeout, network = globals.network }
end

--- The store at a URL as the caller may use it, where a guard is configured and there is a store;
--- the application keeps it open. false: it is not so. nil, message, code, step.
function stores.guarded(app, url)
  local globals = app.globals
  local known, message, code, step = app:config()
  if not known then
    return nil, message, code, step
  elseif type(guard_open.wanted(configured(globals).guard)) ~= "table" then
    return false
  end
  local store, absent
  store, message, code, step, absent = stores.open({ store = url, configured = globals.configured,
    key_file = globals.key_file, plain = globals.plain, timeout = globals.timeout,
    network = globals.network, token_file = globals.token_file }, false,
    { on_policy_error = function() end })
  if not store and absent then
    return false
  end
  return store and app:keep(store), message, code, step
end

--- The options of sessile.open: the typed ones, else the configured ones.
---@param globals table
---@return table
function stores.options(globals)
  local options = {}
  for name, value in pairs(configured(globals)) do
    options[name] = value
  end
  options.store = nil
  options.agent = globals.agent or options.agent
  options.timeout_ms = globals.timeout or options.timeout_ms
  options.network = globals.network or options.network
  options.key = chosen_key(globals)
  return options
end

-- Whether a store did not open because of what its guard was told, which may be anything.
local function is_of_guard(message)
  for _, part in ipairs { "^guard: ", "^role ", "^limits: ", "key set", "screen", "rate limits",
    "keep an audit" } do
    if message:find(part) then
      return true
    end
  end
  return false
end

-- The store's own handle, which may do everything. One that waits for a guard gets the least one.
local function host(store)
  if guard_open.waits(store) then
    local set, message, code = store:guard { audit = true }
    if not set then
      store:close()
      return nil, message, code
    end
  end
  return store
end

--- Opens the store. Without `create`, a folder without a store is NOTFOUND and is not changed.
---@param globals table
---@param create boolean?
---@param more table?  further options of sessile.open
---@return table? store
---@return string? message
---@return string? code
---@return string? step
---@return boolean? absent  there is no store, and none was created
---@return string? rule  of a guard, that refused
function stores.open(globals, create, more)
  local url, folder = stores.place(globals)
  if globals.plain and globals.key_file then
    return nil, "--plain and --key-file exclude each other", "EUSAGE"
  end
  if not url and not folder then
    return nil, "there is no place for sessions: neither HOME nor XDG_DATA_HOME is set",
      "EUSAGE", "Name a folder with --store FOLDER, or set one of them."
  end
  local exists = false
  local database = url and url:match "^sqlite:(.+)$"
  if folder or database then
    local found, message, code, step
    if folder then
      found, message, code, step = has_store(folder)
    else
      found = is_there(database)
    end
    exists = found
    if found == nil then
      return nil, message, code, step
    elseif not found and not create then
      return nil, ("there is no store at %s"):format(terminal.line(folder or url)), "ENOTFOUND",
        "Make a session there with `sessile new`, or name another store with --store.", true
    end
  end
  local options = stores.options(globals)
  for name, value in pairs(more or {}) do
    options[name] = value
  end
  if globals.as_host then
    options.guard = options.guard and guard_open.for_host(options.guard)
  end
  local store, message, code = sessile.open(url, options)
  if store and globals.as_host then
    return host(store)
  elseif store then
    local view, why, kind, step, rule = identity.view(store, globals)
    return view, why, kind, step, nil, rule
  elseif code == "EINVALID" and message:find "^[%w ]*secret " then
    return nil, ("%s holds no usable key: %s"):format((stores.key_source(globals)), message),
      "ESEALED",
      "A passphrase has at least 12 characters."
  elseif message:find("keyring", 1, true) and message:find("bring back", 1, true) then
    return nil, message, code, ("Put a copy of %s back; the logs are as they were.")
      :format(terminal.line((folder or url) .. "/keyring"))
  elseif code == "ESEALED" then
    return nil, message, code, key_step(globals, url, exists
      or message:find("says that it is plain", 1, true))
  elseif code ~= "EDENIED" and is_of_guard(message) then
    return nil, message, code, "Correct the guard in the configuration: sessile config show"
  elseif code == "ENOTFOUND" then
    return nil, message, code, "Name a folder that can be made: --store FOLDER"
  end
  return nil, message, code
end

--- Creates the keyring of the store, and does not open the store.
---@param globals table
---@param suite string?
---@return boolean? made
---@return string? message
---@return string? code
---@return string? step
function stores.init(globals, suite)
  local url, folder = stores.place(globals)
  if globals.plain and globals.key_file then
    return nil, "--plain and --key-file exclude each other", "EUSAGE"
  end
  local made, message, code = sessile.keys_init(url or folder, {
    key = chosen_key(globals), suite = suite or configured(globals).suite,
  })
  if not made then
    return nil, message, code, code == "EEXISTS" and "See it: sessile keys status" or nil
  end
  return true
end

--- The file in which a cut-off write of that size was set aside; the folder of the logs if several
--- files match.
---@param globals table
---@param size integer
---@return string?
function stores.torn_file(globals, size)
  local _, folder = stores.place(globals)
  if not folder then
    return nil
  end
  local agents, found = folder .. "/agents", nil
  for _, agent in ipairs(system.files(agents) or {}) do
    for _, name in ipairs(system.files(agents .. "/" .. agent) or {}) do
      local path = ("%s/%s/%s"):format(agents, agent, name)
      local kind, bytes = system.kind(path)
      if name:find "%.torn%-%d" and kind == "file" and bytes == size then
        if found then
          return agents
        end
        found = path
      end
    end
  end
  return found or agents
end

return stores
