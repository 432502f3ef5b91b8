-- memory_access.lua: what a model may do with the memories of a session, whatever its tools look
-- like.
--
-- It reads what is live and trusted as recall trusts it. It writes in the words of the agent, to
-- where the session writes. What repeats a tool waits for a person, and so does what would replace
-- the words of a person, or what somebody pinned or approved; such entries it does not delete.

local core = require "sessile.core"
local facts = require "sessile.facts"
local memories = require "sessile.memories"
local memory_of = require "sessile.memory"
local memory_runs = require "sessile.memory_runs"
local options = require "sessile.options"
local settings = require "sessile.memory_settings"

local access = {}

local Access = {}
Access.__index = Access

--- What a model may do in a session. opts: pending, share. nil, message, code.
function access.of(session, opts)
  local both, message, code, retry_ms, rule = session:memory()
  local stats
  if both then
    stats, message, code, retry_ms, rule = both:stats()
  end
  if not stats then
    return nil, message, code, retry_ms, rule
  end
  local own = settings.of(session._store, session.agent)
  return setmetatable({
    session = session, both = both, share = opts.share, pending = opts.pending or false,
    own = memories.name_of_writes(both, opts.share), consented = not stats.user
      or stats.user.consented,
    trusts_tools = (own.recall or {}).trust == "tool",
    admits_tools = own.trust and own.trust.tool == "live",
  }, Access)
end

--- Why a model may not read an entry; nil: it may.
function Access:unreadable(row)
  if row.memory == "user" and not self.consented then
    return "the user does not consent to be remembered"
  elseif row.state ~= "live" then
    return "it is not live: it is " .. row.state
  elseif row.source == "tool" and not row.approved and not self.trusts_tools then
    return "it has the words of a tool, and no person approved it"
  end
end

--- What an entry is that a model may not end or replace by itself; nil: it may.
function access.guarded(row)
  return row.pinned and "pinned" or row.approved and "approved by a person"
    or row.source == "user" and "in the user's words"
    or row.source == "system" and "in the host's words" or nil
end

-- Adds the newest message to what an entry is from.
local function add_here(session, from)
  local list = session:messages { last = 1 }
  local key = list and list[1] and facts.of(list[1]).key
  if type(key) == "string" and key:find "^%x+$" then
    from[#from + 1] = { session = session.id, agent = session.agent, first = key, last = key }
  end
  return from
end

--- The live entry of a key where the session writes; false: there is none. nil, message, code.
function Access:holder(key)
  local memory, message, code, retry_ms, rule = memories.of_writes(self.both, self.share)
  if not memory then
    return nil, message, code, retry_ms, rule
  end
  local row
  row, message, code, retry_ms, rule = memory:read(key)
  if not row and code == "ENOTFOUND" then
    return false
  end
  return row, message, code, retry_ms, rule
end

-- Whose words an entry has that the model wrote: "agent" or "tool". nil, message, code.
local function source_of(self, memory, entry, old)
  if entry.source == "tool" then
    return "tool"
  end
  return self.session._core:agent_source(memory._core, entry.value, entry.key,
    old and not self:unreadable(old) and old.value or nil)
end

-- An entry as the core takes it: the agent's words, or less. nil, message, code.
local function complete(self, memory, entry, old)
  local source, message, code, retry_ms, rule = source_of(self, memory, entry, old)
  if not source then
    return nil, message, code, retry_ms, rule
  end
  entry.kind, entry.ttl_ms = entry.kind or "fact", memory._settings.ttl or nil
  entry.from = add_here(self.session, table.move(entry.from or {}, 1, #(entry.from or {}), 1, {}))
  entry.pending = self.pending
  if source == "tool" and entry.source ~= "tool" and not self.admits_tools then
    entry.pending = true
    entry.metadata = options.add(options.add({}, entry.metadata), {
      pending_because = "it has a tool's words" })
  end
  entry.source = source
  local why = old and access.guarded(old)
  if why then
    entry.pending = true
    entry.metadata = options.add(options.add({}, entry.metadata), {
      contradicts = core.array { old.id },
      pending_because = "it would replace an entry that is " .. why })
  end
  if entry.pending then
    entry.was = nil -- nothing is replaced before a person agrees
  end
  return entry
end

--- Writes entries and ends others, as one commit. list: {{entry, old}, …}; old: the live entry that
--- it takes the place of, if any; ends: ids. Returns how many wait for a person, and the ids; nil,
--- message, code.
function Access:apply(list, ends)
  local memory, message, code, retry_ms, rule = memories.of_writes(self.both, self.share)
  local ids = memory
  if memory and #list > 0 then
    ids, message, code, retry_ms, rule = memory_of.check_enabled(memory)
  end
  if not ids then
    return nil, message, code, retry_ms, rule
  end
  local entries, waiting = {}, 0
  for i, one in ipairs(list) do
    entries[i], message, code, retry_ms, rule = complete(self, memory, one[1], one[2])
    if not entries[i] then
      return nil, message, code, retry_ms, rule
    end
    waiting = waiting + (entries[i].pending and 1 or 0)
  end
  local chosen
  chosen, message, code, retry_ms, rule =
    memory_runs.policy("sessile.tools.memory", memory._store, memory._agent)
  if chosen and chosen.handle and #entries > 0 then -- `admit` has the last word
    local changes
    changes, message, code, retry_ms, rule = memory_of.admit(memory, entries, chosen)
    ids, waiting = changes and {}, 0
    for i, change in ipairs(changes or {}) do
      ids[i], waiting = change.id, waiting + (change.state == "pending" and 1 or 0)
    end
  elseif chosen then
    ids, message, code, retry_ms, rule =
      memory._core:apply { entries = entries, ends = ends or {}, to = "deleted",
      by = self.session.agent, reason = "its tool was called", only_live = true }
  else
    ids = nil
  end
  if code == "ECONFLICT" then
    return nil, "it was changed meanwhile, and nothing was written: read it again", code
  elseif not ids then
    return nil, message, code, retry_ms, rule
  end
  return waiting, ids
end

--- An id in the words of a tool: user/2a. A row is of the session's memories.
function access.name(row)
  return ("%s/%s"):format(row.memory, (row.id:gsub("^0+(.)", "%1")))
end

--- The entry that a name or a key means; nil, message, code.
function Access:find(name)
  if type(name) ~= "string" or name == "" then
    return nil, "name an entry: its key, or its id as search shows it, such as user/2a", "EINVALID"
  end
  local memory, id = name:match "^(%l+)/(%x+)$"
  if (memory == "user" or memory == "agent") and #id <= 8 then
    local row = self.both:get { id = ("%08x"):format(tonumber(id, 16)), memory = memory }
    if row then
      return row
    end
  end
  return self.both:read(name)
end

--- Deletes an entry. true; nil, message, code.
function Access:delete(row)
  local why = access.guarded(row)
  if row.memory ~= self.own then
    return nil, "it is kept for all users of the agent: only a person deletes it here", "EDENIED"
  elseif why then
    return nil, ("the entry is %s: only a person deletes it"):format(why), "EDENIED"
  elseif row.state ~= "live" and row.state ~= "pending" then
    return nil, "it is not there any more: it is " .. row.state, "ENOTFOUND"
  end
  local changed, message, code, retry_ms, rule = self.both:delete(row, { by = self.session.agent,
    reason = "its tool was called" })
  return changed ~= nil or nil, message, code, retry_ms, rule
end

--- An option of a call that is a text; nil, message.
function access.text(args, name, is_optional)
  local value = args[name]
  if value == core.null then
    value = nil
  end
  if value == nil and is_optional then
    return ""
  elseif type(value) ~= "string" then
    return nil, ("'%s' is missing: a text is wanted"):format(name)
  end
  return value
end

return access
