--- source: a session as the formats of an export read it.
--
-- Owns: the facts of a session, and redaction for all formats: everything that a source returns has
-- gone through the redactor. Must never keep entries: they are read one at a time, in the order of
-- the log.

local answers = require "sessile.answers"
local characters = require "sessile.characters"
local core = require "sessile.core"
local span = require("sessile.core").span
local within = require("sessile.facts").within

local source = {}

local methods = {}

-- Names may be any bytes; a document is UTF-8.
local function repaired(value)
  if type(value) == "string" then
    return characters.repaired(value)
  elseif type(value) ~= "table" then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    rawset(copy, repaired(key), repaired(inner))
  end
  return copy
end

-- Raises the first failure.
local function ask(session)
  local told = {}
  for _, name in ipairs { "labels", "settings", "metadata", "usage", "checkpoints", "log", "life",
    "subsessions" } do
    local value, message, code, retry_ms, rule = session[name](session)
    if value == nil and message then
      return nil, message, code, retry_ms, rule
    end
    told[name] = value
  end
  local pause, message, code, retry_ms, rule = session:suspended()
  if message then
    return nil, message, code, retry_ms, rule
  end
  told.suspension = pause
  return told
end

-- The keys of the messages that the model would get, and their tokens.
local function context(session)
  local list, about, code, retry_ms, rule = session:context()
  if not list then
    return nil, about, code, retry_ms, rule
  end
  local keys = {}
  for _, message in ipairs(list) do
    keys[#keys + 1] = within(message).key -- none: a result that the engine adds
  end
  return keys, about
end

local function raw(redactor, object)
  local kept = object and within(object).json or "{}"
  return core.json(redactor and redactor:json(kept) or kept)
end

local function rows(list, make)
  local out = {}
  for i, row in ipairs(list or {}) do
    out[i] = make(row)
  end
  return core.array(out)
end

local function checkpoint_row(row)
  return {
    id = row.id, head = row.head, time = row.time, reason = row.reason, name = row.name,
    messages = row.messages, tokens = row.tokens, state_bytes = row.state_bytes,
    event = row.event, agent_version = row.agent_version, metadata = row.metadata,
  }
end

local function compaction_row(row)
  local copy = {}
  for name, value in pairs(row) do
    copy[name] = value
  end
  copy.policies = row.policies and core.array(row.policies) or nil
  return copy
end

-- Field names and entry ids are never redacted: the document depends on them.
local WORDS = { status = true, code = true, kind = true, in_force = true }
local HOSTS = { metadata = true, options = true, suspension = true } -- what is in these is theirs

local function without(redactor, value, name)
  if WORDS[name] or type(value) == "string" and #value < 20
    and value:find "^%x%x%x%x%x%x%x%x%.?%d*$" then
    return value
  elseif type(value) ~= "table" or HOSTS[name] then
    return redactor:value(value, name)
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, inner in pairs(value) do
    rawset(copy, key, without(redactor, inner, type(key) == "string" and key or name))
  end
  return copy
end

-- Everything except the entries, with the names of `sessile info --json`.
local function facts(session, redactor)
  local told, message, code, retry_ms, rule = ask(session)
  if not told then
    return nil, message, code, retry_ms, rule
  end
  local keys, about
  keys, about, code, retry_ms, rule = context(session)
  if not keys then
    return nil, about, code, retry_ms, rule
  end
  local found = {
    id = session.id, agent = session.agent, user = session.user, title = session.title,
    created = session.created, modified = session.modified, head = session:head(),
    status = session.damage and session.damage.code or told.life.status,
    ttl = told.life.ttl, expires = told.life.expires,
    origin = session.origin, parent = session.parent,
    children = core.array(told.subsessions or {}),
    labels = rows(told.labels, function(row)
      return { entry = row.id, label = row.name, time = row.time }
    end),
    checkpoints = rows(told.checkpoints, checkpoint_row),
    compactions = rows(told.log, compaction_row),
    usage = told.usage, tokens = about.tokens, token_source = about.source,
    events = session:event_count(), suspension = told.suspension,
    damage = session.damage,
  }
  found = repaired(found)
  for name, value in pairs(redactor and found or {}) do
    found[name] = without(redactor, value, name)
  end
  found.context = core.array(keys)
  found.settings = raw(redactor, told.settings)
  found.metadata = raw(redactor, told.metadata)
  return found
end

local meta = {}

-- `facts` is read on first use: JSON Lines does not need it.
function meta.__index(self, name)
  if name ~= "facts" then
    return methods[name]
  end
  local found, message, code = facts(self.session, self.redactor)
  if not found then
    error(("%s: %s"):format(code, message), 0)
  end
  rawset(self, "facts", found)
  return found
end

--- A source. It raises "ECODE: sentence" if something cannot be read.
---@param session sessile.Session
---@param redactor table?  of sessile.redact
---@param on_step (fun(entries: integer))?  called as entries are read, with how many were
---@return table source  facts, session, redactor
function source.open(session, redactor, on_step)
  local self = setmetatable({ session = session, redactor = redactor, on_step = on_step,
    steps = 0 }, meta)
  if redactor then
    -- The first pass finds all secrets; the second one writes.
    for _ in self:texts() do end -- luacheck: ignore 542
    facts(session, redactor)
    redactor:restart()
  end
  return self
end

local PLACED = { id = true, parent_id = true, timestamp = true, type = true }

local function step(self)
  self.steps = self.steps + 1
  if self.on_step then
    self.on_step(self.steps)
  end
end

-- The text of an entry, redacted except for its ids and its time.
local function redacted(redactor, json)
  local members = span.object(json)
  if not members then
    return redactor:json(json)
  end
  for i, member in ipairs(members) do
    members[i] = ("%s:%s"):format(member.raw_key,
      PLACED[member.key] and member.raw or redactor:json(member.raw, member.key))
  end
  return "{" .. table.concat(members, ",") .. "}"
end

-- An entry for a format: its fields, and its text as `json`.
local function shaped(self, entry)
  step(self)
  local json = within(entry).json
  if not self.redactor then
    return { json = json, id = entry.id, parent_id = entry.parent_id, type = entry.type,
      timestamp = entry.timestamp, source = entry.source, author = entry.author,
      user = entry.user, data = entry.data, tokens = entry.tokens }
  end
  json = redacted(self.redactor, json)
  local shape = answers.decode(json)
  shape.json = json
  return shape
end

-- The session's iterator; raises if it fails.
local function log_of(self)
  local iterator, message, code = self.session:entries()
  if not iterator then
    error(("%s: %s"):format(code, message), 0)
  end
  return iterator
end

--- An iterator over the entries in the order of the log; it raises if one cannot be read.
function methods:entries()
  local iterator = log_of(self)
  return function()
    local entry = iterator()
    return entry and shaped(self, entry)
  end
end

--- An iterator over the texts of the entries, which are not parsed.
function methods:texts()
  local iterator = log_of(self)
  return function()
    local entry = iterator()
    local json = entry and within(entry).json
    step(self)
    return json and self.redactor and redacted(self.redactor, json) or json
  end
end

--- An iterator over the texts of the messages that the model would get.
function methods:context()
  local list, message, code = self.session:context()
  if not list then
    error(("%s: %s"):format(code, message), 0)
  end
  local i = 0
  return function()
    i = i + 1
    local json = list[i] and within(list[i]).json
    return json and self.redactor and self.redactor:json(json) or json
  end
end

--- One entry by its id.
function methods:entry(id)
  local entry, message, code = self.session:entry(id)
  if not entry then
    error(("%s: %s"):format(code, message), 0)
  end
  return shaped(self, entry)
end

return source
