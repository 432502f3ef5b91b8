-- migrate.lua: copies of whole stores: sessile.migrate and store:backup.
--
-- No session is opened here: the engine copies, and it only reads the source.

local core = require "sessile.core"
local key = require "sessile.key"
local object = require "sessile.object"
local options = require "sessile.options"
local paths = require "sessile.paths"

local migrate = {}

local place_options = options.shape("sessile.migrate: from", {
  url = "string", key = "any", suite = "string", timeout_ms = "timeout", network = "boolean",
})

-- A store as the core takes it: an open one, or its URL and options. nil, message, code.
local function place(who, given)
  if type(given) == "string" then
    given = { url = given }
  elseif type(given) == "table" and given._core then
    return given._core
  elseif type(given) ~= "table" then
    options.misuse(("%s: a path, URL, store or table expected, got %s"):format(who, type(given)))
  end
  local opts = options.check(who, given, place_options)
  if not opts.url then
    options.misuse(who .. ": url is missing")
  end
  local source, value, code = key.resolve(who, opts.key)
  if not source then
    return nil, value, code
  end
  return {
    url = paths.expand_url(opts.url), key_source = source, key = value, suite = opts.suite,
    timeout_ms = opts.timeout_ms, network = opts.network, remote = paths.remote_library(),
  }
end

local PARTS = { sessions = 1, keyring = 2, users = 4 }

local function parts_of(who, list)
  local bits, seen = 0, {}
  for _, name in ipairs(list or {}) do
    if not PARTS[name] then
      options.misuse(("%s: option 'parts': \"sessions\", \"keyring\" or \"users\" expected, got %s")
        :format(who, tostring(name)))
    end
    if not seen[name] then
      bits, seen[name] = bits + PARTS[name], true
    end
  end
  return bits
end

-- Steps to the end. Returns the last state, with all failures.
local function run(from, to, opts)
  local work, message, code, retry_ms, rule = core.migrate(from, to, opts)
  if not work then
    return nil, message, code, retry_ms, rule
  end
  return object.drive(work, opts.progress)
end

local migrate_options = options.shape("sessile.migrate", {
  change = "boolean", into = "boolean", fresh = "boolean", replace = "boolean",
  mirror = "boolean", whole = "boolean", parts = "strings", progress = "callable",
})

--- Copies every session of one store into another; see sessile.migrate in meta.lua.
function migrate.migrate(from, to, given)
  local who = "sessile.migrate"
  local opts = options.check(who, given, migrate_options)
  opts.parts = parts_of(who, opts.parts)
  local source, target, message, code, retry_ms, rule
  source, message, code, retry_ms, rule = place(who .. ": from", from)
  if not source then
    return nil, message, code, retry_ms, rule
  end
  target, message, code, retry_ms, rule = place(who .. ": to", to)
  if not target then
    return nil, message, code, retry_ms, rule
  end
  return run(source, target, opts)
end

-- A plain path is the file of a SQLite database.
local function backup_url(path)
  local scheme = core.scheme(path)
  local plain = scheme and scheme.path == path
  return plain and "sqlite:" .. paths.expand(path) or path
end
migrate.backup_url = backup_url

-- Whether the file of a backup exists.
local function is_there(path)
  local file = io.open((core.scheme(backup_url(path)) or {}).path or path, "rb")
  return file ~= nil and file:close()
end

local backup_options = options.shape("store:backup",
  { keys = "string", update = "boolean", progress = "callable" })

--- Methods of a store.
migrate.methods = {}

--- Copies the store into a file; see Store:backup in meta.lua.
function migrate.methods:backup(path, given)
  local who = "store:backup"
  local opts = options.check(who, given, backup_options)
  if type(path) ~= "string" or path == "" then
    options.misuse(who .. ": the path of a file expected")
  end
  if opts.keys and not opts.update and is_there(opts.keys) then
    -- Found out afterwards, it would leave a backup that no secrets go with.
    return nil, opts.keys .. " is there already: choose another name, or move it away", "EEXISTS"
  end
  local copied, message, code, retry_ms, rule = run(self._core, { url = backup_url(path) }, {
    from_url = self._url,
    parts = opts.keys and PARTS.sessions + PARTS.keyring or nil, whole = not opts.update,
    into = opts.update, mirror = opts.update, progress = opts.progress,
  })
  if not copied or not opts.keys then
    return copied, message, code, retry_ms, rule
  end
  -- After the sessions: each user that they need is there by now.
  local secrets
  secrets, message, code, retry_ms, rule = run(self._core, { url = backup_url(opts.keys) }, {
    from_url = self._url,
    parts = PARTS.keyring + PARTS.users, whole = not opts.update, into = opts.update,
    mirror = opts.update,
  })
  if not secrets then
    return nil, message, code, retry_ms, rule
  end
  for _, name in ipairs { "users", "users_removed", "users_kept" } do
    copied[name] = secrets[name]
  end
  table.move(secrets.failures, 1, #secrets.failures, #copied.failures + 1, copied.failures)
  return copied
end

return migrate
