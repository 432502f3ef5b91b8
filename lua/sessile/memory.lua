-- memory.lua: the handle of a long-term memory (`store:memory`), and its methods that write.
--
-- It checks arguments and options. What an entry means, and what is found, is the engine's. The
-- methods that read are in memory_read.lua.

local agents = require "sessile.agents"
local dialect = require "sessile.dialect"
local embed = require "sessile.memory_embed"
local import = require "sessile.memory_import"
local memory_runs = require "sessile.memory_runs"
local named = require "sessile.memory_named"
local object = require "sessile.object"
local options = require "sessile.options"
local read = require "sessile.memory_read"
local settings = require "sessile.memory_settings"
local view = require "sessile.memory_view"

local math = dialect.math

local memory = {}
local methods = {}
memory.methods = methods

for name, method in pairs(read.methods) do
  methods[name] = method
end
memory.HITS, memory.list_options, memory.search_options = read.HITS, read.list_options,
  read.search_options
memory.question, memory.search = read.question, read.search

local KINDS, SOURCES = read.KINDS, read.SOURCES
local is_id = named.is_id

-- true, or nil, message, code: nothing is written for a disabled agent, or where memories are off.
local function check_enabled(store, own, agent)
  local enabled, reason, denied = agents.check_enabled(store, agent)
  if not enabled then
    return nil, reason, denied
  end
  return settings.check_enabled(own, agent)
end

--- Whether anything may be written to an open memory: true, or nil, message, code.
function memory.check_enabled(self)
  return check_enabled(self._store, self._settings, self._agent)
end

-- Raises if an option names an entry by a text that is no id.
local function expect_id(name, text)
  if not is_id(text) then
    options.misuse(("memory:write: option '%s': an id of an entry expected, got '%s'"):format(name,
      text:sub(1, 40)))
  end
end

-- ---------------------------------------------------------------- writing

local write_options = options.shape("memory:write", {
  also = "string", kind = KINDS, source = SOURCES, author = "string", from = "table",
  replaces = "strings", importance = "any", ttl = "span|no", holds_from = "moment",
  holds_until = "moment", metadata = "table", pending = "boolean", pinned = "boolean",
  was = "string|no",
})

-- Steps a run of the engine on this memory.
local function drive(self, run, model, chosen)
  local about = memory_runs.about(nil, self._agent, model or self._store._model, chosen)
  about.memory = self
  return memory_runs.drive(run, about)
end

--- Writes entries that a policy, the result of memory_runs.policy, admits. Returns what became of
--- each: {{id, state}, …}. nil, message, code: none was written, or one was not admitted.
function memory.admit(self, entries, chosen)
  local run, message, code, retry_ms, rule = self._core:admit(entries, { policy = chosen.handle })
  local outcome
  if run then
    outcome, message, code, retry_ms, rule = drive(self, run, nil, chosen)
  end
  if not outcome then
    return nil, message, code, retry_ms, rule
  elseif outcome.verdict == "refused" then
    return nil, ("the policy '%s' failed, and the entry was not written: %s"):format(
      outcome.policy or "?", outcome.message or "refused"), "EPOLICY"
  end
  for _, change in ipairs(outcome.changes) do
    if change.state == "not admitted" then
      return nil, "the entry was not admitted: " .. change.why, "EDENIED"
    end
  end
  return outcome.changes
end

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
  for key_of, source in pairs(opts.from or {}) do
    if math.type(key_of) ~= "integer" or type(source) ~= "table" or source.first == nil then
      options.misuse("memory:write: option 'from': a list of { session =, first =, last = } "
        .. "expected")
    end
  end
  for _, id in ipairs(opts.replaces or {}) do
    expect_id("replaces", id)
  end
  local enabled, reason, denied = memory.check_enabled(self)
  if not enabled then
    return nil, reason, denied
  end
  local ttl = opts.ttl
  if ttl == nil then
    ttl = self._settings.ttl
  end
  opts.key, opts.value, opts.ttl_ms, opts.ttl = key, value, ttl or nil, nil
  local chosen, message, code, retry_ms, rule =
    memory_runs.policy("memory:write", self._store, self._agent)
  if not chosen then
    return nil, message, code, retry_ms, rule
  elseif not chosen.handle then
    return self._core:write(opts)
  end
  local changes
  changes, message, code, retry_ms, rule = memory.admit(self, { opts }, chosen)
  if not changes then
    return nil, message, code, retry_ms, rule
  end
  return changes[1].id
end

--- Options of a verdict. A text is its reason.
function memory.verdict_options(given)
  return type(given) == "string" and { reason = given } or given
end

-- Methods that give a verdict: m:delete("editor", {reason=, by=}) -> whether it changed anything.
for name, to in pairs {
  delete = "deleted", reject = "rejected", approve = "approved", restore = "restored",
  pin = "pinned", unpin = "unpinned", confirm = "confirmed",
} do
  local who = "memory:" .. name
  local shape = options.shape(who, { reason = "string", by = "string" })
  methods[name] = function(self, entry, given)
    local opts = options.check(who, memory.verdict_options(given), shape)
    local id, message, code, retry_ms, rule = named.id(self, who, entry, to)
    if not id then
      return nil, message, code, retry_ms, rule
    end
    local changed
    changed, message, code, retry_ms, rule = self._core:verdict {
      ids = { id }, to = to, reason = opts.reason, by = opts.by,
    }
    if not changed then
      return nil, message, code, retry_ms, rule
    elseif to == "deleted" or to == "rejected" then
      embed.remove(self, { id }) -- what stays there is no hit here
    elseif to == "restored" or to == "approved" then
      embed.put_again(self, id)
    end
    return changed > 0
  end
end

local tidy_options = options.shape("memory:tidy", {
  ids = "strings", policy = "any", model = "callable", dry = "boolean",
})

--- Runs the `tidy` hooks of the policy on live entries, or on those with these ids, 64 in one run.
--- Returns {verdict=, written=, ended=, confirmed=, left=, changes = {…}, …}; left: how many were
--- not looked at. dry: nothing is written.
function methods:tidy(given)
  local opts = options.check("memory:tidy", given, tidy_options)
  for _, id in ipairs(opts.ids or {}) do
    if not is_id(id) then
      options.misuse(("memory:tidy: option 'ids': '%s' is no id of an entry"):format(id:sub(1, 40)))
    end
  end
  local enabled, reason, denied = memory.check_enabled(self)
  if not enabled then
    return nil, reason, denied
  end
  local chosen, message, code, retry_ms, rule =
    memory_runs.policy("memory:tidy", self._store, self._agent, opts.policy)
  local run
  if chosen then
    run, message, code, retry_ms, rule = self._core:tidy { policy = chosen.handle, ids = opts.ids,
      dry_run = opts.dry, trust_tools = self._settings.trust
      and self._settings.trust.tool == "live" or nil }
  end
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return drive(self, run, opts.model, chosen)
end

local clear_options = options.shape("memory:clear", { reason = "string", by = "string" })

--- Deletes all that is live or pending, as one commit. Returns how many entries that are. They can
--- be restored one by one.
function methods:clear(given)
  local opts = options.check("memory:clear", given, clear_options)
  local ids = {}
  local rows, message, code, retry_ms, rule = self._core:list { states = { "live", "pending" } }
  for i, row in ipairs(rows or {}) do
    ids[i] = row.id
  end
  local done = rows
  if rows and #ids > 0 then
    done, message, code, retry_ms, rule =
      self._core:apply { ends = ids, to = "deleted", reason = opts.reason,
      by = opts.by }
  end
  if not done then
    return nil, message, code, retry_ms, rule
  end
  embed.remove(self, ids)
  return #ids
end

local erase_options = options.shape("memory:erase", {
  history = "boolean", session = "string", session_agent = "string", ended_before = "moment",
})

-- The ids of what led to an entry, itself among them.
local function history_ids(self, id)
  local rows, message, code, retry_ms, rule = self._core:history(nil, id)
  local ids = {}
  for i, row in ipairs(rows or {}) do
    ids[i] = row.id
  end
  return rows and ids, message, code, retry_ms, rule
end

--- Takes the texts of entries out of the log for good. m:erase("editor"): with { history = true },
--- also all that led to it. m:erase{ session = "bug-42" }: what is from that session. m:erase{
--- ended_before = "30d" }: what was replaced, deleted or rejected, or expired, before. Returns how
--- many; and {outside = why} if memory.vectors still has them.
function methods:erase(entry, given)
  if type(entry) == "table" and not entry.id and given == nil then
    entry, given = nil, entry
  end
  local opts = options.check("memory:erase", given, erase_options)
  if entry == nil and not opts.session and not opts.ended_before then
    options.misuse "memory:erase: name an entry, a session, or a time"
  end
  local ids = {}
  if entry ~= nil then
    local id, message, code, retry_ms, rule = named.id(self, "memory:erase", entry)
    ids = { id }
    if id and opts.history then
      ids, message, code, retry_ms, rule = history_ids(self, id)
    end
    if message then
      return nil, message, code, retry_ms, rule
    end
  end
  return embed.erase(self, function()
    return self._core:erase { ids = ids, session = opts.session,
      session_agent = opts.session_agent, ended_before = opts.ended_before }
  end)
end

local delete_from_options = options.shape("memory:delete_from", { agent = "string", by = "string" })

--- Ends what came from a session that is deleted: what came from it alone is deleted, a merge with
--- what came from elsewhere is rejected. agent: the session's; nil: the memory's. Returns how many.
function methods:delete_from(session, given)
  options.expect("string", session, "memory:delete_from: the id of a session")
  local opts = options.check("memory:delete_from", given, delete_from_options)
  return self._core:delete_from { session = session, agent = opts.agent, by = opts.by }
end

local consent_options = options.shape("memory:consent",
  { by = "string", text = "string", scope = "string" })

--- Writes that the user consents, or with false: does no longer.
function methods:consent(is_given, given)
  options.expect("boolean", is_given, "memory:consent: true or false")
  local enabled, reason, denied = memory.check_enabled(self)
  if is_given and not enabled then
    return nil, reason, denied
  end
  return self._core:consent(is_given, options.check("memory:consent", given, consent_options))
end

--- The newest consent: {given, by, text, scope, time}; false if nobody ever consented.
function methods:consented()
  local stats, message, code, retry_ms, rule = self._core:stats()
  if not stats then
    return nil, message, code, retry_ms, rule
  elseif not stats.consent then
    return false
  end
  local entry
  entry, message, code, retry_ms, rule = self._core:entry(stats.consent)
  if not entry then
    return nil, message, code, retry_ms, rule
  end
  local data = entry.data
  return { given = data.given, by = data.by, text = data.text, scope = data.scope,
    time = entry.timestamp }
end

--- Embeds what has no vector yet: m:embed(), m:embed{ batch = 32 }; memory_embed.lua has the
--- options and what it returns. m:embed(model, ids, vectors) writes embeddings that the caller has:
--- vectors[i], a list of numbers, is that of the entry ids[i].
function methods:embed(model, ids, vectors)
  if ids == nil and type(model) ~= "string" then
    local enabled, reason, denied = check_enabled(self._store, self._settings, self._agent)
    if not enabled then
      return nil, reason, denied
    end
    return embed.run(self, model)
  end
  options.expect("string", model, "memory:embed: the name of a model")
  options.expect("table", ids, "memory:embed: a list of ids")
  options.expect("table", vectors, "memory:embed: a list of vectors")
  return self._core:embed(model, { ids = ids, vectors = vectors })
end

local edit_options = options.shape("memory:edit", { by = "string" })

--- Makes the changes that turn one text of markdown() into another: a changed line replaces its
--- entry, a vanished one deletes it, a new one is written, all as one commit. Returns {written,
--- replaced, deleted}. EINVALID names the line; ECONFLICT: entries changed meanwhile, it shows
--- both.
function methods:edit(before, after, given)
  options.expect("string", before, "memory:edit: the text as it was")
  options.expect("string", after, "memory:edit: the edited text")
  local opts = options.check("memory:edit", given, edit_options)
  local change, message, code, retry_ms, rule = view.diff(before, after)
  if not change then
    return nil, message, code, retry_ms, rule
  end
  local enabled, reason, denied = memory.check_enabled(self)
  if #change.write > 0 and not enabled then
    return nil, reason, denied
  end
  return view.apply(self, change, opts.by)
end

local import_options = options.shape("memory:import", { name = "string", source = SOURCES })

--- Writes what another program remembered: a text in the format of m:markdown, mem0, MCP's memory
--- server, or Markdown. What the memory has, or once had, is left out. name: of the file; source:
--- whose words these are ("agent"). Returns {written, known, format}. EINVALID says what the text
--- looks like.
function methods:import(text, given)
  options.expect("string", text, "memory:import: a text")
  local opts = options.check("memory:import", given, import_options)
  local enabled, reason, denied = memory.check_enabled(self)
  if not enabled then
    return nil, reason, denied
  end
  local entries, format, code = import.read(text, opts.name)
  if not entries then
    return nil, format, code
  end
  local done, message, retry_ms, rule
  done, message, code, retry_ms, rule = import.write(self, entries, opts.source or "agent")
  if not done then
    return nil, message, code, retry_ms, rule
  end
  done.format = format
  return done
end

-- ---------------------------------------------------------------- opening

local meta = object.class {
  name = "sessile.Memory",
  methods = methods,
  readers = {
    -- nil, or {code, message}: it can be read, not written, and what is lost is not there
    damage = function(self) return self._core:damage() end,
  },
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
  local enabled, reason, denied = check_enabled(store, own, opts.agent)
  if not enabled and opts.consent then
    return nil, reason, denied
  end
  local must_exist = opts.must_exist
  opts.must_exist = must_exist or not enabled
  local handle, message, code, retry_ms, rule = store._core:memory(opts)
  if not handle and not enabled and not must_exist and code == "ENOTFOUND" then
    return nil, reason, denied -- it would be created now
  elseif not handle then
    return nil, message, code, retry_ms, rule
  end
  return setmetatable({ _core = handle, _agent = opts.agent, _user = opts.user, _settings = own,
    _store = store, _questions = {} }, meta)
end

return memory
