-- memory_read.lua: the methods of a memory that read.
--
-- A list and a search take the same filter. memory_named.lua says which entry a caller names.

local dialect = require "sessile.dialect"
local audit = require "sessile.memory_audit"
local core = require "sessile.core"
local embed = require "sessile.memory_embed"
local named = require "sessile.memory_named"
local object = require "sessile.object"
local options = require "sessile.options"
local times = require "sessile.times"
local view = require "sessile.memory_view"
local why = require "sessile.memory_why"

local math = dialect.math

local read = {}
local methods = {}
read.methods = methods

local STATES = { "live", "pending", "replaced", "deleted", "rejected", "expired", "erased" }
local KINDS = { "fact", "episode", "reflection", "procedure" }
local SOURCES = { "user", "agent", "tool", "system" }
read.KINDS, read.SOURCES = KINDS, SOURCES

--- Hits of a search without a limit, as the engine has it.
read.HITS = 10

-- ---------------------------------------------------------------- filters

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

-- ---------------------------------------------------------------- reading

--- The live entry of a key.
function methods:read(key)
  options.expect("string", key, "memory:read: a key")
  return self._core:read(key)
end

--- An entry by its id, whatever became of it.
function methods:get(id)
  options.expect("string", id, "memory:get: an id")
  if not named.is_id(id) then
    return nil, ("'%s' is no id of an entry: eight hexadecimal digits"):format(id:sub(1, 40)),
      "EINVALID"
  end
  return self._core:get(id)
end

local list_options = options.shape("memory:list", filter,
  { limit = "count", offset = "count", day = "string" })
read.list_options = list_options

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
  local opts, message, code, retry_ms, rule =
    core_filter(options.check("memory:list", given, list_options))
  if opts then
    opts, message, code, retry_ms, rule = take_day(self, opts)
  end
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return self._core:list(opts)
end

local search_options = options.shape("memory:search", filter, {
  limit = "positive", vector = "table|no", model = "string", weight = "any", recency = "any",
  importance = "any", min = "any", explain = "boolean",
})
read.search_options = search_options

-- The vector of a question, as memory_embed.lua has it. opts: of a search. kept: see there.
function read.question(own, kept, question, opts)
  if opts.vector then
    return { vector = opts.vector, model = opts.model, given = true }
  elseif opts.vector == false then
    return {}
  end
  return embed.question(own, kept, question, opts.weight or own.weight)
end

--- As search, with the vector of read.question.
function read.search(self, question, given, found)
  local opts = options.check("memory:search", given, search_options)
  for _, name in ipairs { "weight", "recency", "importance", "min" } do
    if opts[name] ~= nil and type(opts[name]) ~= "number" then
      options.misuse(("memory:search: option '%s': a number expected"):format(name))
    end
  end
  local message, code, retry_ms, rule
  opts.weight = opts.weight or self._settings.weight
  found = found or read.question(self._settings, self._questions, question, opts)
  opts, message, code, retry_ms, rule = core_filter(opts)
  if not opts then
    return nil, message, code, retry_ms, rule
  end
  return embed.search(self, question, opts, found, opts.limit or read.HITS)
end

--- Entries that answer a question, best first, each with its score; and {legs = {words = true,
--- vectors =, why =}}: whether vectors were compared, and if not though somebody embeds here, why.
--- vector: the question's; false: by words alone.
function methods:search(question, given)
  options.expect("string", question, "memory:search: a question")
  return read.search(self, question, given)
end

--- What led to an entry, newest first: it, what it replaced, and so on. By its key, id or row.
function methods:history(entry)
  local is_row = type(entry) == "table"
  entry = is_row and entry.id or entry
  options.expect("string", entry, "memory:history: a key, an id or a row")
  if is_row or named.means_id(self, entry) then
    return self._core:history(nil, entry)
  end
  return self._core:history(entry)
end

--- Entries that wait for a person to approve or reject them, newest first.
function methods:pending()
  return self:list { state = "pending" }
end

--- Where an entry comes from, and what ended it: {entry, from = {{session, agent, first, last,
--- messages, or failure and code}, …}, ended = {id, state, time, by, reason, value}}.
function methods:why(entry)
  local id, message, code, retry_ms, rule = named.id(self, "memory:why", entry)
  if not id then
    return nil, message, code, retry_ms, rule
  end
  local row
  row, message, code, retry_ms, rule = self._core:get(id)
  if not row then
    return nil, message, code, retry_ms, rule
  end
  return why.of(self, row)
end

--- What a person should look at: see memory_audit.lua.
function methods:audit()
  local rows, message, code, retry_ms, rule = self._core:list { states = { "live", "pending" } }
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  local judge
  judge, message, code, retry_ms, rule = audit.judge()
  if not judge then
    return nil, message, code, retry_ms, rule
  end
  return audit.of(rows, judge)
end

local markdown_options = options.shape("memory:markdown", { day = "string" })

--- The live entries as Markdown, one line each, below a heading for each kind. day: those written
--- on it, as for list.
function methods:markdown(given)
  local opts = options.check("memory:markdown", given, markdown_options)
  local rows, message, code, retry_ms, rule = self:list { day = opts.day }
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  local day = opts.day == "today" and times.day(core.now(), self._settings.zone or 0) or opts.day
  return view.render(rows, self._agent, self._user, day)
end

--- Counts; and the models that entries have vectors of: {name=, dims=, vectors=, live=, missing=,
--- used=}.
object.forward(methods, "stats models")

local watch_options = options.shape("memory:watch", { after = "string", timeout_ms = "timeout" })

--- Waits until others have written: entries, verdicts, consents, vectors. after: the id that the
--- last call returned; nil: everything that this handle has read. Returns whether there is anything
--- new, and the next `after`.
function methods:watch(given)
  local opts = options.check("memory:watch", given, watch_options)
  if opts.after and not named.is_id(opts.after) then
    options.misuse(("memory:watch: option 'after': an id expected, got '%s'"):format(
      opts.after:sub(1, 40)))
  end
  return self._core:watch(opts)
end

return read
