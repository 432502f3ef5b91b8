--- doctor: the checks of `sessile doctor`.
--
-- Owns: the checks; each adds a finding {group, name, state, text, next}. Must never show a key,
-- create a store, ask a model anything, or leave a file behind.

local core = require "sessile.core"
local disk = require "sessile.disk"
local doctor_guard = require "sessile.cli.doctor_guard"
local doctor_servers = require "sessile.cli.doctor_servers"
local endpoints = require "sessile.cli.endpoints"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local mounts = require "sessile.cli.mounts"
local paths = require "sessile.paths"
local sessile = require "sessile"
local show = require "sessile.config.show"
local stores = require "sessile.cli.stores"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local doctor = {}

---@class sessile.cli.finding
---@field group string
---@field name string
---@field state "ok"|"warn"|"bad"
---@field text string
---@field next string?

-- Collects findings under a heading.
local function under(list, group)
  return function(name, state, text, step)
    list[#list + 1] = { group = group, name = name, state = state, text = terminal.line(text),
      next = step }
  end
end

-- ---------------------------------------------------------------- what is installed

-- The file names of the libraries that this process has mapped.
local function libraries()
  local found, file = {}, io.open "/proc/self/maps"
  for line in file and file:lines() or function() end do
    local name = line:match "/(lib[^/]+%.so[%d.]*)$"
    if name and not name:find "^libc%.so" and not name:find "^libm%.so" then
      found[name] = true
    end
  end
  if file then
    file:close()
  end
  return json.keys(found)
end

local function worker(add, options)
  local path = paths.worker(options.worker)
  local asked = options.isolation == "worker"
  if not path or system.kind(path) ~= "file" then
    add("worker", asked and "bad" or "warn", "the program for policies in a process of their own "
      .. "is not there" .. (path and ": " .. path or ""),
      "Install sessile again, or name it: worker = \"…\" in the configuration")
    return
  end
  -- The file exists; only a run shows whether this machine allows it.
  local store, message = sessile.open("ram:", { key = false, isolation = "worker",
    worker = options.worker, policy = { "sliding_window", messages = 2 } })
  local outcome
  if store then
    local s = assert(store:create())
    local turn = {}
    for i = 1, 4 do
      turn[i] = { role = i % 2 == 1 and "user" or "assistant", content = "message " .. i }
    end
    outcome, message = s:turn(turn)
    local refused = outcome and outcome.policy and outcome.policy.refused
    outcome, message = not refused and outcome or nil, refused and outcome.policy.message or message
    store:close()
  end
  if outcome then
    add("worker", "ok", path .. ": runs policies")
  else
    add("worker", asked and "bad" or "warn", ("%s does not run here: %s"):format(path,
      message or "?"), "Policies run in this process while isolation is \"none\"")
  end
end

local function encodings(add, options)
  local folders, names, seen = paths.encodings(options.encoding_path), {}, {}
  for folder in folders:gmatch "[^:]+" do
    for _, file in ipairs(system.files(folder) or {}) do
      local name = file:match "^(.*)%.%w+$"
      if name and not seen[name] then
        names[#names + 1], seen[name] = name, true
      end
    end
  end
  local wanted, message = options.encoding, nil
  local opened = true
  if wanted then
    opened, message = sessile.encoding(wanted, { folders = options.encoding_path })
  end
  if not opened then
    add("encodings", "bad", ("%s is configured: %s"):format(wanted, message),
      "Name another one: " .. table.concat(names, ", "))
  elseif #names == 0 then
    add("encodings", "warn", "none: tokens are estimated", "Install sessile again")
  else
    add("encodings", "ok", table.concat(names, ", "))
  end
end

local function version_of(module)
  local found, value = pcall(require, module)
  if not found then
    return nil
  end
  local version = type(value) == "table" and value._VERSION
  return type(version) == "string" and version:match "[%d][%w.-]*" or "installed"
end

-- Modules of other packages, and the commands that need them.
local function modules(add, cfg)
  local argparse = version_of "argparse"
  add("argparse", argparse and "ok" or "bad",
    argparse or "missing: the command line cannot be parsed",
    not argparse and "Install it: apt-get install lua-argparse" or nil)
  local model = cfg and cfg:for_agent(nil).model
  local url = type(model) == "table" and model.endpoint
  local library = core.http_library()
  if library then
    add("libcurl", "ok", library)
  elseif url then
    add("libcurl", "bad", "missing, and the model is at " .. show.url(url),
      "Install it: apt-get install libcurl4")
  else
    add("libcurl", "ok", "missing: only models at an endpoint need it")
  end
end

-- What screens and URLs need of other packages. Without them they refuse more than they need to.
local function screening(add)
  local ok = sessile.url_check "http://b\u{fc}cher.example/"
  add("libidn2", ok and "ok" or "warn",
    ok and "reads the names of hosts that are not ASCII"
      or "missing: URLs with a host that is not ASCII are refused",
    not ok and "Install it: apt-get install libidn2-0" or nil)
  local library = paths.schema_library()
  local list, message = sessile.screen { schemas = { metadata = "{}" } }
  if list then
    list:close()
  end
  add("schema.so", "ok", list and (library or "checks JSON Schema")
    or ("missing: only schemas of a guard need it (%s)"):format(message))
end

local function installed(list, cfg)
  local add = under(list, "Installed")
  add("sessile", "ok", ("%s, %s"):format(sessile.version, system.executable))
  add("Lua", "ok", ("%s, with the files in %s"):format(_VERSION, system.lua))
  local names = libraries()
  add("libraries", "ok", #names > 0 and table.concat(names, ", ")
    or "built in, or not shown by /proc")
  worker(add, cfg or {})
  encodings(add, cfg or {})
  modules(add, cfg)
  screening(add)
end

-- ---------------------------------------------------------------- the configuration

-- The policies of memories that are configured: the store's, and agents' of their own.
local function memory_policies(add, cfg)
  local found = { { "memory", cfg.memory } }
  for name, own in pairs(cfg.agents or {}) do
    found[#found + 1] = { "memory of " .. terminal.line(name), own.memory }
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  for _, one in ipairs(found) do
    local name, own = one[1], one[2]
    if own and own.policy then
      local tried, why = sessile.open("ram:", { key = false, policy_path = cfg.policy_path,
        memory = { policy = own.policy } })
      if tried then
        tried:close()
        add(name, "ok", type(own.policy) == "string" and own.policy or show.literal(own.policy))
      else
        add(name, "bad", why, "See the policies: sessile policy list")
      end
    end
  end
end

local function configuration(list, app, offline)
  local add = under(list, "Configuration")
  local cfg, message, code, step = app:config()
  if not cfg then
    add("files", "bad", message, step
      or code == "EINVALID" and "Correct it; to find the file: sessile config path" or nil)
    return nil
  end
  local names = {}
  for i, one in ipairs(cfg.files) do
    names[i] = one.path .. (one.trusted and "" or " (not trusted: it may set only some keys)")
  end
  add("files", "ok", #names > 0 and table.concat(names, ", ") or "none: defaults are used")
  local policy = cfg:for_agent(nil).policy
  local tried, why = sessile.open("ram:", { key = false, policy = policy,
    fallback = cfg.fallback, policy_path = cfg.policy_path, worker = cfg.worker })
  if tried then
    tried:close()
    add("policy", "ok", policy and type(policy) == "string" and policy
      or policy and show.literal(policy) or "none: nothing is compacted")
  else
    add("policy", "bad", why, "See the policies: sessile policy list")
  end
  memory_policies(add, cfg)
  local triggers = cfg:value "triggers"
  if policy and type(triggers) == "table" and triggers.share and not cfg.window then
    add("window", "warn", "a trigger waits for a share of the window, and no window is set",
      "Set the window of your model: window = 200000")
  end
  local model = cfg:for_agent(nil).model
  add("model", "ok", model and show.model(model) or "none: chat and summaries want one")
  endpoints.check(add, cfg, offline)
  return cfg
end

-- ---------------------------------------------------------------- the store

local function octal(mode)
  return ("%04o"):format(mode)
end

-- The folder, or its nearest ancestor that exists; "." for a bare name.
local function nearest(folder)
  local at = folder
  while at ~= "" and not disk.look(at) do
    local above = at:match "^(.*)/[^/]*$"
    at = above == "" and "/" or above or "."
  end
  return at == "" and "/" or at
end

local function permissions(add, folder)
  local seen = disk.look(folder)
  if not seen then
    add("folder", "ok", folder .. ": does not exist yet, created when it is first used")
  elseif seen.kind ~= "folder" then
    add("folder", seen.kind == "link" and "warn" or "bad",
      ("%s is %s, not a folder"):format(folder, seen.kind == "link" and "a link" or "a file"),
      "Name the folder where sessions live: --store FOLDER")
  elseif not seen.own then
    add("folder", "bad", ("%s belongs to the user %d"):format(folder, seen.owner),
      "Be that user, or: chown -R \"$(id -u)\" " .. hints.quoted(folder))
  elseif seen.mode & 0x3f ~= 0 then -- 077
    add("folder", seen.mode & 0x12 ~= 0 and "bad" or "warn", -- 022
      ("%s: mode %s, other users can list it"):format(folder, octal(seen.mode)),
      "Close it: chmod 700 " .. hints.quoted(folder))
  else
    add("folder", "ok", ("%s: yours, mode %s"):format(folder, octal(seen.mode)))
  end
end

local function key_file(add, path)
  local seen = path and disk.look(path)
  if not seen then
    return
  elseif seen.kind ~= "file" or not seen.own and seen.owner ~= 0 then
    add("key file", "bad", ("%s is %s"):format(path, seen.kind ~= "file"
      and "no file: " .. seen.kind or "another user's"), "Name yours: --key-file FILE")
  elseif seen.mode & 0x3f ~= 0 then
    add("key file", "bad", ("%s: mode %s, other users can read it"):format(path, octal(seen.mode)),
      "Close it: chmod 600 " .. hints.quoted(path))
  end
end

local function sealing(add, app, cfg, is_memory)
  local source, given = stores.key_source(app.globals)
  local globals = app.globals
  if is_memory then
    add("sealed", "ok", "memory is never sealed")
    return nil
  end
  local env = os.getenv "SESSILE_KEY"
  if not globals.plain and (env == nil or env == "" or globals.key_file) then
    local key = cfg and cfg.key
    key_file(add, globals.key_file or key and key.source == "file" and key.value
      or not key and paths.default_key() or nil)
  end
  local store, message, _, step, absent, rule = app:store()
  if not store and absent then
    add("sealed", "ok", (globals.plain or cfg and cfg.key == false) and "a new store will be plain"
      or ("a new store will be sealed, its key from %s%s"):format(source,
        given and "" or ", which is made then"))
    return nil
  elseif not store and (rule == "guard" or rule == "control") then
    return nil, { message = message, step = step, rule = rule } -- the guard's own lines say it
  elseif not store then
    add("opens", "bad", message, step or "See the other lines")
    return nil
  end
  if store.sealed then
    local keys = store:keys()
    add("sealed", "ok", ("with %s, its key from %s"):format(keys and keys.suite or "?", source))
  else
    add("sealed", "warn", "it is plain: anyone who can read the files can read the sessions",
      "A new store is sealed unless --plain or key = false says otherwise")
  end
  return store
end

local function contents(add, app, store)
  local rows, message = app:list(store)
  if not rows then
    add("sessions", "bad", message)
    return nil
  end
  local damaged, newest, full = 0, 0, nil
  for _, row in ipairs(rows) do
    full = full or app:is_nearly_full(row.bytes) and row
    damaged = damaged + (row.message and 1 or 0)
    newest = math.max(newest, row.modified or 0)
  end
  local count = ("%d, of which %d cannot be read completely"):format(#rows, damaged)
  add("sessions", damaged > 0 and "warn" or "ok", (count:gsub(", of which 0.*", "")),
    damaged > 0 and "See them: sessile check" or nil)
  if full then
    add("room", "warn", ("session %s has used %s of the %s that a session may take"):format(
      hints.shown(full.id), terminal.bytes(full.bytes),
      terminal.bytes(select(2, app:is_nearly_full(full.bytes)))),
      "Beyond that, writes fail: start a new session, or raise limits.session")
  end
  return newest
end

local FEW, LITTLE = 64 * 1024 * 1024, 1024 * 1024 * 1024

local function volume(add, folder, cfg, globals)
  local at = nearest(folder)
  local seen = disk.look(at)
  if not seen then
    add("file system", "bad", at .. " cannot be looked at")
    return
  end
  local kind, where = mounts.of(seen.real or at)
  local leave = globals.network or cfg and cfg.network
  local name = seen.network or kind or "of a kind that /proc does not show"
  if seen.read_only then
    add("file system", "bad", name .. ", read-only", "Use another folder: --store FOLDER")
  elseif seen.network and not leave then
    add("file system", "bad", ("%s: other machines write it as well; it can only be read")
      :format(name), "Use a local folder. If only one machine writes: --network")
  else
    add("file system", seen.network and "warn" or "ok", name .. (where and ", on " .. where or ""),
      seen.network and "Make sure that only one machine writes there" or nil)
  end
  if seen.free then
    add("free space", seen.free < FEW and "bad" or seen.free < LITTLE and "warn" or "ok",
      ("%s of %s"):format(terminal.bytes(seen.free), terminal.bytes(seen.size)),
      seen.free < LITTLE and "Free space: a full device stops writes, but loses nothing" or nil)
  end
  if not seen.writable or seen.kind ~= "folder" then
    add("locks", "warn", ("not tried: nothing can be written in %s"):format(at),
      "Sessions can be read there, and not written")
    return
  end
  local works, why = disk.lock(at)
  if works then
    add("locks", "ok", "they exclude other writers")
  elseif works == false then
    add("locks", "bad", "two locks on one file were both granted",
      "Use another file system: here two writers would damage each other's data")
  else
    add("locks", "bad", "the file cannot be locked: " .. why, "Use another file system")
  end
end

-- The schema version in the first page of a database; nil while it is only in the write-ahead log.
local function schema_of(path)
  local file = io.open(path, "rb")
  local head = file and file:read(64)
  if file then
    file:close()
  end
  local version = head and #head == 64 and head:sub(1, 15) == "SQLite format 3"
    and (">I4"):unpack(head, 61)
  return version and version > 0 and version or nil
end

local function file_of(add, path)
  local seen, folder = disk.look(path), path:match "^(.*)/" or "."
  local around = disk.look(folder == "" and "/" or folder)
  if around and around.mode & 0x12 ~= 0 then -- 022
    add("database", "bad", ("%s: other users can write in its folder, mode %s"):format(path,
      octal(around.mode)), "Keep it in a folder of its own: chmod 700 that")
  elseif not seen then
    add("database", "ok", ("%s: does not exist yet, the first session creates it"):format(path))
  elseif seen.kind ~= "file" or not seen.own then
    add("database", "bad", ("%s is %s"):format(path, seen.kind ~= "file"
      and "no file: " .. seen.kind or "another user's"),
      "Name a file of yours: --store sqlite:FILE")
  elseif seen.mode & 0x3f ~= 0 then -- 077
    add("database", "bad", ("%s: mode %s, other users can access it"):format(path,
      octal(seen.mode)),
      "Close it: chmod 600 " .. hints.quoted(path))
  else
    local version = schema_of(path)
    add("database", "ok", ("%s: yours, mode %s%s"):format(path, octal(seen.mode),
      version and ", schema version " .. version or ""))
  end
end

local function store_of(list, app, cfg)
  local add = under(list, "Store")
  local url, folder = stores.place(app.globals)
  local scheme = not folder and url and core.scheme(url)
  local database = scheme and scheme.place == "file" and scheme.path ~= "" and scheme.path
  if not folder then
    if not url then
      add("folder", "bad", "there is no place: neither HOME nor XDG_DATA_HOME is set",
        "Name a folder with --store FOLDER")
      return nil
    end
    if database then
      file_of(add, database)
    else
      add("place", "ok", scheme and scheme.place == "memory"
        and "ram: holds sessions in one process; they end with it" or show.url(url))
    end
  else
    permissions(add, folder)
  end
  local store, failure = sealing(add, app, cfg, scheme and scheme.place == "memory")
  local newest = store and contents(add, app, store)
  if folder or database then
    volume(add, folder or database:match "^(.+)/[^/]*$" or ".", cfg, app.globals)
  end
  doctor_guard.check(under(list, "Guard"), app, cfg, store, failure or {})
  return newest, store
end

-- ---------------------------------------------------------------- the machine

local function system_limit(name)
  local file, value = io.open "/proc/self/limits", nil
  for line in file and file:lines() or function() end do
    value = value or line:match("^" .. name .. "%s+(%S+)")
  end
  if file then
    file:close()
  end
  return value == "unlimited" and math.huge or tonumber(value)
end

-- Entries have the times of the machines that wrote them, and expiry goes by them.
local APART = 60 * 1000

local function server_clock(add, store)
  local ahead, within, code = store:clock()
  if code == "EDENIED" then
    return -- whoever may not check the store
  elseif not ahead then
    add("server's clock", "warn", "it does not answer: " .. within)
  elseif math.abs(ahead) - within > APART then
    local apart = terminal.plural((math.abs(ahead) + APART // 2) // APART, "minute")
    add("server's clock", "warn", ("this machine's clock is %s %s that of the store's server: "
      .. "sessions written here expire too %s"):format(apart, ahead > 0 and "ahead of" or "behind",
      ahead > 0 and "late" or "early"),
      "Set both clocks, or have NTP do it: timedatectl set-ntp true")
  elseif within > 0 then
    add("server's clock", "ok", "within a minute of this machine's")
  end
end

local function machine(list, app, newest, store)
  local add = under(list, "Limits and clock")
  local largest = app:limit "session"
  add("limits", "ok", ("a message %s, a session %s"):format(show.size(app:limit "message"),
    show.size(largest)))
  local files, size = system_limit "Max open files", system_limit "Max file size"
  if files then
    add("open files", files < 64 and "warn" or "ok", files == math.huge and "any number"
      or ("%d at most"):format(files), files < 64 and "Allow more: ulimit -n 1024" or nil)
  end
  if size and size < largest then
    add("file size", "warn", ("no file may grow beyond %s"):format(terminal.bytes(size)),
      "Allow more: ulimit -f unlimited")
  end
  local now = os.time()
  if now < 1735689600 then -- 2025
    add("clock", "bad", os.date("!it says %Y-%m-%d %H:%M UTC", now), "Set it")
  elseif newest and newest > (now + 60) * 1000 then
    add("clock", "warn", ("the newest session is dated %s, in the future"):format(
      terminal.exact(newest)), "Set the clock of this machine, or of the one that wrote it")
  else
    add("clock", "ok", os.date("!%Y-%m-%d %H:%M UTC", now))
  end
  if store then
    server_clock(add, store)
  end
end

--- Runs all checks.
---@param app sessile.cli.app
---@param offline boolean?  ask no endpoint
---@return sessile.cli.finding[]
function doctor.findings(app, offline)
  local list, configured = {}, {}
  app.warned_of_policy = true -- it is a finding
  local cfg = configuration(configured, app, offline)
  installed(list, cfg)
  table.move(configured, 1, #configured, #list + 1, list)
  local newest, store
  if cfg then
    newest, store = store_of(list, app, cfg)
  end
  if store then
    doctor_servers.check(under(list, "Servers"), cfg, store)
  end
  machine(list, app, newest, store)
  return list
end

return doctor
