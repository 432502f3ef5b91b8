--- sessions: opens the store, and the session that a name means.
--
-- Owns: the choice of the store (--store, $SESSILE_STORE, the configuration, the default), of the
-- key, and of the session. Must never create a store for a command that only reads, choose between
-- two sessions that match, or open a file of the store, which may be a FIFO: only the engine does
-- that.

local core = require "sessile.core"
local hints = require "sessile.cli.hints"
local paths = require "sessile.paths"
local sessile = require "sessile"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local sessions = {}

-- ---------------------------------------------------------------- stores

-- Error numbers of a path that cannot be opened.
local MISSING, NO_FOLDER = 2, 20
local DENIED = { [1] = true, [13] = true, [40] = true }

--- Fails if the path is an SQLite file that was named without `sqlite:`.
---@param path string
---@return boolean? ok
---@return string? message
---@return string? code
---@return string? step
function sessions.no_database(path)
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
  local folder_it_is, what, code, step = sessions.no_database(folder)
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
function sessions.place(globals)
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
function sessions.key_source(globals)
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
  local source, given = sessions.key_source(globals)
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
function sessions.as_place(app, url)
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

--- The options of sessile.open: the typed ones, else the configured ones.
---@param globals table
---@return table
function sessions.options(globals)
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

--- Opens the store. Without `create`, a folder without a store is NOTFOUND and is not changed.
---@param globals table
---@param create boolean?
---@param more table?  further options of sessile.open
---@return table? store
---@return string? message
---@return string? code
---@return string? step
---@return boolean? absent  there is no store, and none was created
function sessions.open(globals, create, more)
  local url, folder = sessions.place(globals)
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
  local options = sessions.options(globals)
  for name, value in pairs(more or {}) do
    options[name] = value
  end
  local store, message, code = sessile.open(url, options)
  if store then
    return store
  elseif code == "EINVALID" and message:find("secret", 1, true) then
    return nil, ("%s holds no usable key: %s"):format((sessions.key_source(globals)), message),
      "ESEALED",
      "A passphrase has at least 12 characters."
  elseif message:find("keyring", 1, true) and message:find("bring back", 1, true) then
    return nil, message, code, ("Put a copy of %s back; the logs are as they were.")
      :format(terminal.line((folder or url) .. "/keyring"))
  elseif code == "ESEALED" then
    return nil, message, code, key_step(globals, url, exists
      or message:find("says that it is plain", 1, true))
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
function sessions.init(globals, suite)
  local url, folder = sessions.place(globals)
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
function sessions.torn_file(globals, size)
  local _, folder = sessions.place(globals)
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

-- ---------------------------------------------------------------- names

local function row_name(row)
  local title = row.title and row.title ~= "" and "  " .. terminal.line(row.title) or ""
  local user = row.user and row.user ~= "" and ", user " .. terminal.line(row.user) or ""
  return ("  %s  (agent %s%s)%s"):format(terminal.line(row.id or "?"),
    terminal.line(row.agent or "?"), user, title)
end

-- Whether its messages can be read. Those of a damaged session can.
local function opens(row)
  return row.entries ~= nil
end

-- The rows that match and can be opened; and the first that matches and cannot.
local function matching(rows, fits)
  local found, closed = {}, nil
  for _, row in ipairs(rows) do
    if row.id and fits(row) then
      if opens(row) then
        found[#found + 1] = row
      else
        closed = closed or row
      end
    end
  end
  return found, closed
end

--- Whether a row of the list or a node of a tree has a label.
---@param row {labels: string[]?}
---@param name string
---@return boolean
function sessions.has_label(row, name)
  for _, label in ipairs(row.labels or {}) do
    if label == name then
      return true
    end
  end
  return false
end

--- The session that a name means: `last` is the newest; otherwise the name is an id, a title, a
--- prefix of an id, or a label, in this order. A session that cannot be opened is used only if no
--- other matches.
---@param rows table[]  from store:list
---@param name string
---@return table? row
---@return string? message
---@return string? code
---@return string? step
function sessions.find(rows, name)
  local tests = {
    function(row) return row.id == name end,
    function(row) return row.title == name end,
    function(row) return row.id:sub(1, #name) == name end,
    function(row) return sessions.has_label(row, name) end,
  }
  for _, fits in ipairs(name ~= "" and name ~= "last" and tests or {}) do
    local found, closed = matching(rows, fits)
    if #found == 1 then
      return found[1]
    elseif #found == 0 and closed then
      return nil, closed.message or ("session %s cannot be opened"):format(
        hints.shown(closed.id)), closed.status
    elseif #found > 1 then
      local lines = {}
      for i = 1, math.min(#found, 8) do
        lines[i] = row_name(found[i])
      end
      return nil, ("'%s' fits %d sessions"):format(hints.shown(name), #found), "EUSAGE",
        table.concat(lines, "\n") .. "\nType more of the id, or add --agent."
    end
  end
  if name == "last" then
    for _, row in ipairs(rows) do
      if row.id and opens(row) then
        return row
      end
    end
    return nil, "there is no session yet", "ENOTFOUND", "Make one: sessile new"
  end
  local unreadable, first = 0, nil
  for _, row in ipairs(rows) do
    if not row.id then
      unreadable, first = unreadable + 1, first or row
    end
  end
  if first then
    -- The session may be one of these.
    return nil, ("no readable session is '%s'; %d cannot be read: %s"):format(
      hints.shown(name), unreadable, first.message or "?"),
      first.status == "EDENIED" and "EDENIED" or "ENOTFOUND"
  end
  return nil, ("there is no session '%s'"):format(hints.shown(name)), "ENOTFOUND"
end

-- Errors of an existing session: no other session is looked for.
local FINAL = {
  EDENIED = true, EIO = true, EBUSY = true, EDAMAGED = true, ETRUNCATED = true, ESEALED = true,
}

-- The session with exactly this id, which saves listing all sessions; else the rows if they were
-- read; else perhaps why it cannot be opened.
local function resume_exact(store, name, agent, user)
  if name == "" or name == "last" then
    return nil
  end
  local session, message, code = store:resume { id = name, agent = agent, user = user }
  if not session and FINAL[code] then
    return nil, nil, message, code
  elseif not session or agent then
    return session
  end
  local rows = store:list { prefix = name, user = user } or {}
  local same = matching(rows, function(row) return row.id == name end)
  if #same > 1 then
    session:close() -- another agent has one of this id
    return nil, rows
  end
  return session
end

local FEW = 8

-- The rows that can match a name: by a prefix of the id, the title, or a label; for `last`, the
-- newest few. And whether these are all rows of the store.
local function candidates(store, name, agent, user)
  if name == "" or name == "last" then
    local rows, message, code = store:list { agent = agent, user = user, limit = FEW }
    return rows, rows and #rows < FEW or message, code
  end
  local rows, message, code = store:list { agent = agent, user = user, prefix = name }
  if not rows then
    return nil, message, code
  end
  local known = {}
  for _, row in ipairs(rows) do
    known[("%s\0%s"):format(row.id, row.agent)] = true
  end
  for _, field in ipairs { "title", "label" } do
    local more
    more, message, code = store:list { agent = agent, user = user, [field] = name }
    if not more then
      return nil, message, code
    end
    for _, row in ipairs(more) do
      local key = ("%s\0%s"):format(row.id, row.agent)
      if not known[key] then
        known[key] = true
        rows[#rows + 1] = row
      end
    end
  end
  return rows, false
end

-- As sessions.find. All rows are read only if no candidate matches, because the error names logs
-- that cannot be read.
local function find(store, name, agent, user)
  local rows, whole, code = candidates(store, name, agent, user)
  if not rows then
    return nil, whole, code
  end
  local row, message, step
  row, message, code, step = sessions.find(rows, name)
  if not row and code == "ENOTFOUND" and whole ~= true then
    rows, message, code = store:list { agent = agent, user = user }
    if not rows then
      return nil, message, code
    end
    return sessions.find(rows, name)
  end
  return row, message, code, step
end

--- Resumes the session that a name means. Second result: how many bytes of a cut-off write were set
--- aside, by the list or by the session.
---@param store table
---@param name string
---@param agent string?  only of this agent
---@param user string?   only of this user
function sessions.resume(store, name, agent, user)
  local session, rows, message, code = resume_exact(store, name, agent, user)
  if session then
    return session, session.torn
  elseif code then
    return nil, message, code
  end
  local row, step
  if rows then
    row, message, code, step = sessions.find(rows, name)
  else
    row, message, code, step = find(store, name, agent, user)
  end
  if not row then
    local deleted = code == "ENOTFOUND" and store:list {
      agent = agent, user = user, status = "deleted",
    }
    local gone = deleted and name ~= "last" and sessions.find(deleted, name)
    if gone then
      return nil, ("session %s was deleted"):format(hints.shown(gone.id)), code,
        "Bring it back: sessile undelete " .. hints.id(gone.id)
    end
    return nil, message, code, step
  end
  session, message, code = store:resume { id = row.id, agent = row.agent, user = row.user or "" }
  if not session then
    return nil, message, code
  end
  return session, row.torn + session.torn
end

--- For each row the shortest prefix of its id that no other id has; at least 8 characters.
---@param rows table[]
---@param among table[]?  all rows, if `rows` are only some
---@return table<table, string>
function sessions.short_ids(rows, among)
  local ids, short, seen = {}, {}, {}
  for _, list in ipairs { rows, among } do
    for _, row in ipairs(list) do
      if row.id and not seen[row.id] then
        seen[row.id] = true
        ids[#ids + 1] = row.id
      end
    end
  end
  table.sort(ids)
  local function common(a, b)
    local n = 0
    while b and n < #a and a:byte(n + 1) == b:byte(n + 1) do
      n = n + 1
    end
    return n
  end
  local need = {}
  for i, id in ipairs(ids) do
    need[id] = math.max(8, 1 + math.max(common(id, ids[i - 1]), common(id, ids[i + 1])))
  end
  for _, row in ipairs(rows) do
    local id = row.id
    -- An id that is only a little longer is shown whole. A character is never cut.
    if id and need[id] + 4 < #id and id:find("^[%w_-]+$") then
      id = id:sub(1, need[id])
    end
    short[row] = id and terminal.line(id)
  end
  return short
end

return sessions
