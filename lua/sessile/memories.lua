-- memories.lua: the memories of a session, read as one: `session:memory`.
--
-- A session has two: its user's, if it has a user, and the one that its agent keeps for all. The
-- user's comes first. The store's pool opens each when it is needed. Reading never makes one, and
-- nothing is written for all by accident: without `share` a session with a user writes to, and
-- decides about, the user's alone. A row says which memory it is of, and is judged there.

local memory = require "sessile.memory"
local object = require "sessile.object"
local options = require "sessile.options"
local pool = require "sessile.memory_pool"
local settings = require "sessile.memory_settings"

local memories = {}
local methods = {}
memories.methods = methods

-- A memory of the session, opened. ENOTFOUND: it is not there, and `create` is not set.
local function open(self, name, create, consent)
  if self._closed then
    return nil, "the memories of the session were closed: call session:memory again", "ECLOSED"
  end
  return pool.get(self._store, {
    agent = self._agent, user = name == "user" and self._user or "", consent = consent,
    language = create and self._language or nil, timeout_ms = self._timeout_ms,
    must_exist = not create,
  })
end

-- Says of a row which memory it is of.
local function mark(row, name)
  row.memory = name
  return row
end

-- ---------------------------------------------------------------- reading

-- What a method returns in the first memory where it finds something, and that memory's name at the
-- end. A row is looked for in its own memory alone. by_id: the method takes no rows.
local function first(self, method, entry, by_id)
  local own = type(entry) == "table" and entry.memory
  local failure
  if by_id and type(entry) == "table" then
    entry = entry.id
  end
  for _, name in ipairs(own and { own } or self._names) do
    local found, message, code, retry_ms, rule = open(self, name)
    if found then
      found, message, code, retry_ms, rule = found[method](found, entry)
    else
      message = code == "ENOTFOUND" and "there is no entry yet" or message
    end
    if found or code ~= "ENOTFOUND" then
      return found, message, code, retry_ms, rule, name
    elseif not failure or message:find("did you mean", 1, true) then
      failure = message
    end
  end
  return nil, failure, "ENOTFOUND"
end

--- The live entry of a key: the user's, or else the agent's.
function methods:read(key)
  options.expect("string", key, "memory:read: a key")
  local row, message, code, retry_ms, rule, name = first(self, "read", key)
  if not row then
    return nil, message, code, retry_ms, rule
  end
  return mark(row, name)
end

--- An entry by its id, or again by its row. Both memories may have the id: the user's is first.
function methods:get(entry)
  local is_row = type(entry) == "table"
  options.expect("string", is_row and entry.id or entry, "memory:get: an id or a row")
  local row, message, code, retry_ms, rule, name = first(self, "get", entry, true)
  if not row then
    return nil, message, code, retry_ms, rule
  end
  return mark(row, name)
end

--- What led to an entry, by its key, id or row; in the user's memory, or else in the agent's.
function methods:history(entry)
  local rows, message, code, retry_ms, rule, name = first(self, "history", entry)
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  for _, row in ipairs(rows) do
    mark(row, name)
  end
  return rows
end

--- Where an entry comes from and what ended it, by its key, id or row; in the user's memory, or
--- else in the agent's.
function methods:why(entry)
  local found, message, code, retry_ms, rule, name = first(self, "why", entry)
  if not found then
    return nil, message, code, retry_ms, rule
  end
  mark(found.entry, name)
  return found
end

-- Each memory rates its own best hit about 1: that differs by rounding.
local NEAR = 1e-9

-- Two sorted lists as one, from `offset` on, at most `limit` (0: all). field: the larger is first;
-- of equal ones those of the first list.
local function merge(lists, field, offset, limit)
  local a, b = lists[1] or {}, lists[2] or {}
  local i, k, merged = 1, 1, {}
  for at = 1, limit > 0 and math.min(#a + #b, offset + limit) or #a + #b do
    local row
    if a[i] and not (b[k] and b[k][field] - a[i][field] > NEAR) then
      row, i = a[i], i + 1
    else
      row, k = b[k], k + 1
    end
    if at > offset then
      merged[#merged + 1] = row
    end
  end
  return merged
end

-- What a method, or a function, lists in each of the memories.
local function each(self, method, ...)
  local lists = {}
  for _, name in ipairs(self._names) do
    local found, message, code, retry_ms, rule = open(self, name)
    local rows = {}
    if found then
      rows, message, code, retry_ms, rule =
        (type(method) == "function" and method or found[method])(found, ...)
    end
    if not rows or not found and code ~= "ENOTFOUND" then
      return nil, message, code, retry_ms, rule
    end
    for i, row in ipairs(rows) do
      rows[i] = mark(row, name)
    end
    lists[#lists + 1] = rows
  end
  return lists
end

--- Entries of both, newest first.
function methods:list(given)
  local opts = options.check("memory:list", given, memory.list_options)
  local offset, limit = opts.offset or 0, opts.limit or 0
  local all = options.add({}, given or {})
  all.offset, all.limit = nil, limit > 0 and offset + limit or nil
  local lists, message, code, retry_ms, rule = each(self, "list", all)
  if not lists then
    return nil, message, code, retry_ms, rule
  end
  return merge(lists, "time", offset, limit)
end

--- Entries of both that answer a question, by score; and {legs = …}, as for a memory. The question
--- is embedded once.
function methods:search(question, given)
  options.expect("string", question, "memory:search: a question")
  local opts = options.check("memory:search", given, memory.search_options)
  local found = memory.question(settings.of(self._store, self._agent), self._questions, question,
    opts)
  local legs = { words = true, vectors = false, why = found.why }
  local lists, message, code, retry_ms, rule = each(self, function(one)
    local rows, info, failed = memory.search(one, question, given, found)
    if rows then
      legs.vectors = legs.vectors or info.legs.vectors
      legs.why = legs.why or info.legs.why
    end
    return rows, info, failed
  end)
  if not lists then
    return nil, message, code, retry_ms, rule
  end
  legs.why = not legs.vectors and legs.why or nil
  return merge(lists, "score", 0, opts.limit or memory.HITS), { legs = legs }
end

--- Entries of both that wait for a person to approve or reject them, newest first.
function methods:pending()
  return self:list { state = "pending" }
end

--- What a person should look at, in both.
function methods:audit()
  local lists, message, code, retry_ms, rule = each(self, "audit")
  if not lists then
    return nil, message, code, retry_ms, rule
  end
  local found = {}
  for _, list in ipairs(lists) do
    for _, one in ipairs(list) do
      if one.row then
        mark(one.row, one.memory)
      end
      found[#found + 1] = one
    end
  end
  return found
end

--- The counts of each that is there: {user = …, agent = …}.
function methods:stats()
  local found = {}
  for _, name in ipairs(self._names) do
    local one, message, code, retry_ms, rule = open(self, name)
    if one then
      one, message, code, retry_ms, rule = one:stats()
    end
    if not one and code ~= "ENOTFOUND" then
      return nil, message, code, retry_ms, rule
    end
    found[name] = one
  end
  return found
end

--- The user's newest consent; false if there never was one, or there is no user.
function methods:consented()
  local found, message, code, retry_ms, rule = open(self, self._names[1])
  if not found and code == "ENOTFOUND" then
    return false
  elseif not found then
    return nil, message, code, retry_ms, rule
  end
  return found:consented()
end

-- ---------------------------------------------------------------- writing

-- Options without `share`, and the memory that a write is for.
local function target(self, who, given)
  options.expect("table?", given, who .. ": options")
  local opts = options.add({}, given or {})
  options.expect("boolean?", opts.share, who .. ": option 'share': true or false")
  local share = opts.share
  if share == nil then
    share = self._share
  end
  local name = share and "agent" or self._names[1]
  opts.share = nil
  return opts, name
end

--- Which memory a write goes to, "user" or "agent"; share: as the option.
function memories.name_of_writes(self, share)
  local _, name = target(self, "memory:write", { share = share })
  return name
end

--- The same memory, opened, for what writes several entries as one commit. nil, message, code.
function memories.of_writes(self, share)
  local name = memories.name_of_writes(self, share)
  local found, message, code, retry_ms, rule = open(self, name, name == "agent")
  if not found and code == "ENOTFOUND" then
    return nil, "the user has not consented: nothing is written until a consent is: "
      .. "session:memory{ consent = their words }", "EDENIED"
  end
  return found, message, code, retry_ms, rule
end

--- Writes an entry to the user's memory; to the agent's with `share`, or if there is no user.
function methods:write(key, value, given)
  local opts, name = target(self, "memory:write", given)
  local found, message, code, retry_ms, rule = memories.of_writes(self, name == "agent")
  if not found then
    return nil, message, code, retry_ms, rule
  end
  return found:write(key, value, opts)
end

-- Calls a method of the memory that an entry or a write is of. A memory that is not there has no
-- entry.
local function judge(self, method, entry, given)
  local opts, name = target(self, "memory:" .. method, memory.verdict_options(given))
  local own = type(entry) == "table" and entry.memory or name
  local found, message, code, retry_ms, rule = open(self, own)
  if not found then
    return nil, code == "ENOTFOUND" and "there is no entry yet" or message, code, retry_ms, rule
  end
  return found[method](found, entry, opts)
end

-- Verdicts. A row is judged in its own memory; a key or an id where a write would go.
for _, method in ipairs { "delete", "reject", "approve", "restore", "pin", "unpin", "confirm" } do
  methods[method] = function(self, entry, given)
    return judge(self, method, entry, given)
  end
end

-- Erases what options name in one memory, which need not be there. Returns how many.
local function erase_in(self, name, opts)
  local found, message, code, retry_ms, rule = open(self, name)
  if not found and code == "ENOTFOUND" then
    return 0
  elseif not found then
    return nil, message, code, retry_ms, rule
  end
  return found:erase(nil, opts)
end

--- Takes the texts of entries out of the log for good: an entry as for a verdict; what is from a
--- session in both memories; what ended before a time where a write would go. Returns how many.
function methods:erase(entry, given)
  if type(entry) == "table" and not entry.id and given == nil then
    entry, given = nil, entry
  end
  if entry ~= nil then
    return judge(self, "erase", entry, given)
  end
  local opts, own = target(self, "memory:erase", given)
  local count = 0
  for _, name in ipairs(self._names) do
    local part = options.add({}, opts)
    if name ~= own then
      part.ended_before = nil
    end
    if name == own or part.session then
      local erased, message, code, retry_ms, rule = erase_in(self, name, part)
      if not erased then
        return nil, message, code, retry_ms, rule
      end
      count = count + erased
    end
  end
  return count
end

--- Deletes all that is live or pending where a write would go. Returns how many.
function methods:clear(given)
  local opts, name = target(self, "memory:clear", given)
  local found, message, code, retry_ms, rule = open(self, name)
  if not found and code == "ENOTFOUND" then
    return 0
  elseif not found then
    return nil, message, code, retry_ms, rule
  end
  return found:clear(opts)
end

--- Writes that the user consents, or with false: does no longer.
function methods:consent(is_given, given)
  local found, message, code, retry_ms, rule = open(self, self._names[1], true)
  if not found then
    return nil, message, code, retry_ms, rule
  end
  return found:consent(is_given, given)
end

--- Embeds what has no vector yet, in both: as for a memory, with the sums of both. A user without
--- consent is passed over.
function methods:embed(given)
  local sum = { verdict = "unchanged", embedded = 0, to_embed = 0 }
  local denied
  for _, name in ipairs(self._names) do
    local found, message, code, retry_ms, rule = open(self, name)
    local done
    if found then
      done, message, code, retry_ms, rule = found:embed(given)
    end
    if done then
      sum.verdict = (sum.verdict == "refused" or done.verdict == "unchanged") and sum.verdict
        or done.verdict
      sum.embedded, sum.to_embed = sum.embedded + done.embedded, sum.to_embed + done.to_embed
      sum.model, sum.message = done.model, sum.message or done.message
    elseif code == "EDENIED" then
      denied = message
    elseif code ~= "ENOTFOUND" then
      return nil, message, code, retry_ms, rule
    end
  end
  if denied and not sum.model then
    return nil, denied, "EDENIED"
  end
  return sum
end

-- ---------------------------------------------------------------- opening

--- Ends its use. The memories stay open for other sessions of the store.
function methods:close()
  rawset(self, "_closed", true)
  return true
end

local meta = object.class {
  name = "sessile.Memories",
  methods = methods,
  text = function(self) return self._agent .. (self._user and " and a user" or "") end,
}

local open_options = options.shape("session:memory",
  { consent = "string", language = "string", timeout_ms = "timeout" })

--- The core handles of those that are there, and their names, "user" or "agent". They are the
--- pool's: use them before another memory of the store is opened.
function memories.handles(self)
  local handles, names = {}, {}
  for _, name in ipairs(self._names) do
    local found, message, code, retry_ms, rule = open(self, name)
    if found then
      handles[#handles + 1], names[#names + 1] = found._core, name
    elseif code ~= "ENOTFOUND" then
      return nil, message, code, retry_ms, rule
    end
  end
  return handles, names
end

--- Makes the memory that a session without a user writes to.
function memories.make(self)
  return open(self, self._names[1], true)
end

--- The memories of a session's user and agent. With `consent` the user's is made if need be.
function memories.open(store, agent, user, given)
  local opts = options.check("session:memory", given, open_options)
  local has_user = user ~= nil and user ~= ""
  local self = setmetatable({
    _store = store, _agent = agent, _user = has_user and user, _closed = false, _questions = {},
    _names = has_user and { "user", "agent" } or { "agent" }, _language = opts.language,
    _timeout_ms = opts.timeout_ms, _share = settings.of(store, agent).share or false,
  }, meta)
  if opts.consent then
    local found, message, code, retry_ms, rule = open(self, self._names[1], true, opts.consent)
    if not found then
      return nil, message, code, retry_ms, rule
    end
  end
  return self
end

return memories
