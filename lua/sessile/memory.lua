-- memory.lua: the handle of a long-term memory: `store:memory`.
--
-- It checks arguments and options, and names entries by their key or their id. What an entry means,
-- and what is found, is the engine's.

local core = require "sessile.core"
local object = require "sessile.object"
local options = require "sessile.options"
local settings = require "sessile.memory_settings"
local times = require "sessile.times"

local memory = {}
local methods = {}
memory.methods = methods

local STATES = { "live", "pending", "replaced", "deleted", "rejected", "expired" }
local KINDS = { "fact", "episode", "reflection", "procedure" }
local SOURCES = { "user", "agent", "tool", "system" }

-- Hits of a search without a limit, as the engine has it.
memory.HITS = 10

-- Whether a text is an id. The engine's mark of "no entry" is none.
local function is_id(text)
  return text:find "^%x%x%x%x%x%x%x%x$" ~= nil and text:lower() ~= "ffffffff"
end

-- Raises if an option names an entry by a text that is no id.
local function expect_id(name, text)
  if not is_id(text) then
    options.misuse(("memory:write: option '%s': an id of an entry expected, got '%s'"):format(name,
      text:sub(1, 40)))
  end
end

-- Copies options, a single name as a list of one.
local function core_filter(opts)
  local given = options.add({}, opts)
  given.states = opts.state and { opts.state } or nil
  given.kinds = opts.kind and { opts.kind } or nil
  given.sources = opts.source and { opts.source } or nil
  given.state, given.kind, given.source, given.metadata = nil, nil, nil, nil
  if type(opts.metadata) == "string" then
    given.metadata_name = opts.metadata
  elseif opts.metadata then
    local name, value = next(opts.metadata)
    if type(name) ~= "string" or next(opts.metadata, name) ~= nil then
      return nil, "metadata is looked for by one member: { name = value }", "EINVALID"
    end
    given.metadata_name, given.metadata_value = name, value
  end
  return given
end

local filter = {
  state = STATES, kind = KINDS, source = SOURCES, since = "moment", ["until"] = "moment",
  holds_at = "moment", prefix = "string", session = "string", session_agent = "string",
  metadata = "string|table",
}

-- ---------------------------------------------------------------- writing

local write_options = options.shape("memory:write", {
  also = "string", kind = KINDS, source = SOURCES, author = "string", from = "table",
  replaces = "strings", importance = "any", ttl = "span|no", holds_from = "moment",
  holds_until = "moment", metadata = "table", pending = "boolean", was = "string|no",
})

--- Writes an entry and returns its id. A key (nil: none) names a slot: the entry replaces the live
--- one with this key.
function methods:write(key, value, given)
  options.expect("string?", key, "memory:write: a key, or nil,")
  options.expect("string", value, "memory:write: a value")
  local opts = options.check("memory:write", given, write_options)
  if opts.importance ~= nil and type(opts.importance) ~= "number" then
    options.misuse "memory:write: option 'importance': a number from 0 to 1 expected"
  end
  if opts.was then
    expect_id("was", opts.was)
  end
  for _, id in ipairs(opts.replaces or {}) do
    expect_id("replaces", id)
  end
  local enabled, why, denied = settings.check_enabled(self._settings, self._agent)
  if not enabled then
    return nil, why, denied
  end
  local ttl = opts.ttl
  if ttl == nil then
    ttl = self._settings.ttl
  end
  opts.key, opts.value, opts.ttl_ms, opts.ttl = key, value, ttl or nil, nil
  return self._core:write(opts)
end

-- Whether a text is an id, and no key of eight hexadecimal digits, such as the day 20260101. An id
-- goes first, so that no key that a model chose stands for another entry.
local function means_id(self, text)
  return is_id(text) and (self._core:get(text) ~= nil or not self._core:history(text))
end

-- The id of an entry: an id, a row, or the key of a live entry.
local function id_of(self, who, entry)
  local is_row = type(entry) == "table"
  entry = is_row and entry.id or entry
  options.expect("string", entry, who .. ": a key, an id or a row")
  if is_row or means_id(self, entry) then
    return entry
  end
  local row, message, code = self._core:read(entry)
  if not row then
    return nil, message, code
  end
  return row.id
end

-- Methods that give a verdict: m:delete("editor", {reason=, by=}) -> whether it changed anything.
for name, to in pairs {
  delete = "deleted", reject = "rejected", approve = "approved", restore = "restored",
  pin = "pinned", unpin = "unpinned", confirm = "confirmed",
} do
  local who = "memory:" .. name
  local shape = options.shape(who, { reason = "string", by = "string" })
  methods[name] = function(self, entry, given)
    local opts = options.check(who, given, shape)
    local id, message, code = id_of(self, who, entry)
    if not id then
      return nil, message, code
    end
    local changed
    changed, message, code = self._core:verdict {
      ids = { id }, to = to, reason = opts.reason, by = opts.by,
    }
    if not changed then
      return nil, message, code
    end
    return changed > 0
  end
end

local consent_options = options.shape("memory:consent",
  { by = "string", text = "string", scope = "string" })

--- Writes that the user consents, or with false: does no longer.
function methods:consent(is_given, given)
  options.expect("boolean", is_given, "memory:consent: true or false")
  local enabled, why, denied = settings.check_enabled(self._settings, self._agent)
  if is_given and not enabled then
    return nil, why, denied
  end
  return self._core:consent(is_given, options.check("memory:consent", given, consent_options))
end

--- Writes embeddings: vectors[i], a list of numbers, is that of the entry ids[i].
function methods:embed(model, ids, vectors)
  options.expect("string", model, "memory:embed: the name of a model")
  options.expect("table", ids, "memory:embed: a list of ids")
  options.expect("table", vectors, "memory:embed: a list of vectors")
  return self._core:embed(model, { ids = ids, vectors = vectors })
end

-- ---------------------------------------------------------------- reading

--- The live entry of a key.
function methods:read(key)
  options.expect("string", key, "memory:read: a key")
  return self._core:read(key)
end

--- An entry by its id, whatever became of it.
function methods:get(id)
  options.expect("string", id, "memory:get: an id")
  if not is_id(id) then
    return nil, ("'%s' is no id of an entry: eight hexadecimal digits"):format(id:sub(1, 40)),
      "EINVALID"
  end
  return self._core:get(id)
end

local list_options = options.shape("memory:list", filter,
  { limit = "count", offset = "count", day = "string" })
memory.list_options = list_options

local DAY = 86400000

-- Restricts a filter to the entries written on a day in the memory's zone.
local function take_day(self, opts)
  if opts.day then
    local zone = self._settings.zone or 0
    local begins = opts.day == "today" and times.day(core.now(), zone) or opts.day
    begins = begins:find "^%d+%-" and times.moment(begins, 0)
    if not begins then
      return nil, ("'%s' is no day: 2026-02-01, or today"):format(opts.day:sub(1, 40)), "EINVALID"
    end
    begins = begins - zone
    opts.since = math.max(opts.since or 0, begins, 0)
    opts["until"] = math.min(opts["until"] or math.maxinteger, begins + DAY)
    opts.day = nil
  end
  return opts
end

--- Entries, newest first; all that are live, unless options say which.
function methods:list(given)
  local opts, message, code = core_filter(options.check("memory:list", given, list_options))
  if opts then
    opts, message, code = take_day(self, opts)
  end
  if not opts then
    return nil, message, code
  end
  return self._core:list(opts)
end

local search_options = options.shape("memory:search", filter, {
  limit = "positive", vector = "table", model = "string", weight = "any", recency = "any",
  importance = "any", min = "any", explain = "boolean",
})
memory.search_options = search_options

--- Entries that answer a question, best first, each with its score.
function methods:search(question, given)
  options.expect("string", question, "memory:search: a question")
  local opts = options.check("memory:search", given, search_options)
  for _, name in ipairs { "weight", "recency", "importance", "min" } do
    if opts[name] ~= nil and type(opts[name]) ~= "number" then
      options.misuse(("memory:search: option '%s': a number expected"):format(name))
    end
  end
  local message, code
  opts.weight = opts.weight or self._settings.weight
  opts, message, code = core_filter(opts)
  if not opts then
    return nil, message, code
  end
  return self._core:search(question, opts)
end

--- What led to an entry, newest first: it, what it replaced, and so on. By its key, id or row.
function methods:history(entry)
  local is_row = type(entry) == "table"
  entry = is_row and entry.id or entry
  options.expect("string", entry, "memory:history: a key, an id or a row")
  if is_row or means_id(self, entry) then
    return self._core:history(nil, entry)
  end
  return self._core:history(entry)
end

object.forward(methods, "stats")

local watch_options = options.shape("memory:watch", { after = "string", timeout_ms = "timeout" })

--- Waits until others have written: entries, verdicts, consents, vectors. after: the id that the
--- last call returned; nil: everything that this handle has read. Returns whether there is anything
--- new, and the next `after`.
function methods:watch(given)
  local opts = options.check("memory:watch", given, watch_options)
  if opts.after and not is_id(opts.after) then
    options.misuse(("memory:watch: option 'after': an id expected, got '%s'"):format(
      opts.after:sub(1, 40)))
  end
  return self._core:watch(opts)
end

-- ---------------------------------------------------------------- opening

local meta = object.class {
  name = "sessile.Memory",
  methods = methods,
  text = function(self) return self._agent .. (self._user and " for a user" or "") end,
}

local open_options = options.shape("store:memory", {
  agent = "string", user = "string", consent = "string", language = "string",
  must_exist = "boolean", timeout_ms = "timeout",
})

--- Opens a memory of a store: of an agent (a name), or as options say.
function memory.open(store, given)
  local opts = options.check("store:memory", type(given) == "string" and { agent = given } or given,
    open_options)
  opts.agent = opts.agent or store._agent
  opts.user = opts.user or store._user or nil
  local own = settings.of(store, opts.agent)
  opts.language = opts.language or own.language
  local enabled, why, denied = settings.check_enabled(own, opts.agent)
  if not enabled and opts.consent then
    return nil, why, denied
  end
  local must_exist = opts.must_exist
  opts.must_exist = must_exist or not enabled
  local handle, message, code = store._core:memory(opts)
  if not handle and not enabled and not must_exist and code == "ENOTFOUND" then
    return nil, why, denied -- it would be created now
  elseif not handle then
    return nil, message, code
  end
  return setmetatable({ _core = handle, _agent = opts.agent, _user = opts.user, _settings = own,
    _store = store }, meta)
end

return memory
