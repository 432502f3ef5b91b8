--- write: writes the records of a recording into a session, and goes on where it was stopped.
--
-- Owns: one write for each recorded turn, no policy, and nothing lost: what the engine will not
-- take as a message is kept as a custom entry; branches; compactions that others made. Must
-- never open a store that people see, or print.
--
-- Each write says what it holds: a turn's metadata.imported = {from, source, lines, bytes}, a
-- custom entry's {from, at, source}, a summary's metadata.imported = {from, source, at}. Who
-- imports again reads these, runs through the recording from its beginning, and writes what is
-- not there.

local sessile = require "sessile"
local compaction = require "sessile.import.compaction"
local kept = require "sessile.import.kept"
local progress = require "sessile.import.done"
local span = require "sessile.import.span"
local turns = require "sessile.import.turns"

local write = {}

---@class sessile.import.counts
---@field messages integer
---@field turns integer
---@field customs integer  lines that are no message, kept as custom entries
---@field refused integer  messages that the engine would not take, kept as custom entries
---@field unread integer   lines that could not be read as messages: refused, or not even that
---@field first {at: integer?, why: string}?  the first of those
---@field compactions integer  that the recording tells of and the session now has
---@field summaries integer    of compactions that could not be repeated, kept as messages
---@field branches integer     places where it went on from somewhere else
---@field strays integer       messages whose parent is not there: each begins a conversation
---@field before integer       messages that an earlier import had brought
---@field resumed boolean?     it went on with a session that an earlier import had begun
---@field unchanged boolean?   it was skipped

local Writer = {}
Writer.__index = Writer

-- How much may come before the first message; a file of other things is not read to its end.
local MOST_WAITING, MOST_WAITING_BYTES = 100000, 16 << 20

local ROOT = "00000000"

-- Counts a line that could not be read as a message; what is counted first is told.
local function count_unread(self, at, why)
  local counts = self.counts
  counts.unread = counts.unread + 1
  if not counts.first or at and counts.first.at and at < counts.first.at then
    counts.first = { at = at, why = why }
  end
end

local function place_of(self, at, part)
  return { from = self.from, source = self.records.source, at = at, part = part }
end

-- Writes the data of a custom entry; when the engine does not take it (nested too deep, a key
-- given twice, too long), its text, in pieces if need be.
local function put_custom(self, json, at, text)
  local id, message, code = self.session:custom(sessile.json(json))
  if not id and (code == "EINVALID" or code == "ELIMIT") then
    local read = not text and kept.read(json)
    text = text or read and read.line or json
    local size = 1 << 20
    for part = 1, (#text + size - 1) // size do
      local piece = text:sub((part - 1) * size + 1, part * size)
      local place = place_of(self, at, #text > size and part or nil)
      if not self.done:has_custom(place) then
        id, message, code = self.session:custom(sessile.json(kept.custom(place, piece, true)))
        if not id then
          return nil, message, code
        end
      end
    end
  elseif not id then
    return nil, message, code
  end
  self.counts.customs = self.counts.customs + 1
  return true
end

-- ---------------------------------------------------------------- where it goes on

-- The entry that a record's parent stands for.
local function base_of(self, parent)
  if parent == nil then
    return self.newest or self.base
  end
  return parent and self.entries[parent] or self.base
end

local function go_to(self, target)
  if self.session:head() == target then
    return true
  end
  local outcome, message, code = self.session:branch(target, { policy = false })
  if not outcome then
    return nil, message, code
  end
  self.counts.branches = self.counts.branches + 1
  return true
end

-- Remembers what a key stands for.
local function name_entry(self, keys, entry)
  for _, key in ipairs(type(keys) == "table" and keys or { keys or nil }) do
    self.entries[key] = entry
  end
  self.newest = entry
end

-- ---------------------------------------------------------------- turns

local function imported(self, record)
  local lines = {}
  for i, line in ipairs(record.lines) do
    lines[i] = type(line) == "table" and "[" .. table.concat(line, ",") .. "]" or tostring(line)
  end
  return ('{"from":%s,"source":%s,"lines":[%s]%s}'):format(span.quote(self.from),
    span.quote(self.records.source or ""), table.concat(lines, ","),
    record.offset and (',"bytes":%d'):format(record.offset) or "")
end

-- What the recording says of the turn, and where it came from.
local function metadata(self, record)
  local parts = {}
  for _, member in ipairs(record.metadata and span.object(record.metadata) or {}) do
    parts[#parts + 1] = (member.key == "imported" and '"imported_before"' or member.raw_key)
      .. ":" .. member.raw
  end
  parts[#parts + 1] = '"imported":' .. imported(self, record)
  return sessile.json("{" .. table.concat(parts, ",") .. "}")
end

-- The messages as values that the engine writes as they stand.
local function verbatim(list)
  local out = {}
  for i, json in ipairs(list) do
    out[i] = sessile.json(json)
  end
  return out
end

-- Those messages of a turn for which wanted(i) holds, as a turn.
local function part_of(record, wanted)
  local part = { kind = "turn", messages = {}, lines = {}, keys = {}, usages = {} }
  for _, name in ipairs { "parent", "model", "metadata", "offset" } do
    part[name] = record[name]
  end
  for i, json in ipairs(record.messages) do
    if wanted(i) then
      local n = #part.messages + 1
      part.messages[n], part.lines[n] = json, record.lines and record.lines[i] or i
      part.keys[n] = record.keys and record.keys[i] or false
      part.usages[n] = record.usages and record.usages[i] or false
    end
  end
  part.usage = (record.stated_usage or #part.messages == #record.messages) and record.usage
    or turns.usage_of(part.usages)
  return part
end

-- Tells the messages that the engine takes from those it does not, in a session that
-- nobody will see. good: by index; bad: {index, why}, …
local function sieve(record)
  local store = assert(sessile.open("ram:", { key = false }))
  local scratch = assert(store:create {})
  local good, bad = {}, {}
  for i, json in ipairs(record.messages) do
    local id, message, code = scratch:append(sessile.json(json))
    if id then
      good[i] = true
    elseif code == "EINVALID" or code == "ELIMIT" then
      bad[#bad + 1] = { index = i, why = message }
    else
      return nil, message, code
    end
  end
  scratch:close()
  store:close()
  return good, bad
end

-- Keeps messages that the engine does not take.
local function put_bad(self, record, bad)
  for _, one in ipairs(bad) do
    local line = record.lines[one.index]
    local at, json = type(line) == "table" and line[1] or line, record.messages[one.index]
    local ok, message, code =
      put_custom(self, kept.custom(place_of(self, at), json, true), at, json)
    if not ok then
      return nil, message, code
    end
    name_entry(self, record.keys[one.index], self.newest or self.base)
    self.counts.refused = self.counts.refused + 1
    count_unread(self, at, one.why)
  end
  return true
end

local function append(self, record)
  local ok, message, code = go_to(self, base_of(self, record.parent))
  if not ok then
    return nil, message, code
  end
  local outcome
  outcome, message, code = self.session:turn(verbatim(record.messages), {
    policy = false, usage = record.usage and sessile.json(record.usage),
    model_name = record.model, metadata = metadata(self, record),
  })
  if not outcome then
    return nil, message, code
  end
  for i, id in ipairs(outcome.ids) do
    name_entry(self, record.keys[i], id)
  end
  -- The turn's own entry comes last: what goes on from the last message goes on from there.
  name_entry(self, record.keys[#outcome.ids], self.session:head())
  self.counts.turns = self.counts.turns + 1
  self.counts.messages = self.counts.messages + #record.messages
  return true
end

-- The messages that no earlier import brought; those it did bring are found again.
local function put_turn(self, record)
  record = part_of(record, function() return true end)
  local missing, parent = {}, record.parent
  local known, why = self.done:check(record)
  if not known then
    return nil, why, "ECONFLICT"
  end
  for i in ipairs(record.messages) do
    local entry = self.done:message(record.lines[i])
    if entry then
      name_entry(self, record.keys[i], entry)
      self.counts.before = self.counts.before + 1
      parent = nil
    elseif self.done:has_custom(place_of(self, type(record.lines[i]) == "table"
      and record.lines[i][1] or record.lines[i])) then
      name_entry(self, record.keys[i], self.newest or self.base)
    else
      missing[i] = true
    end
  end
  record = part_of(record, function(i) return missing[i] end)
  record.parent = parent
  if #record.messages == 0 then
    return true
  end
  local ok, message, code = append(self, record)
  if ok or code ~= "EINVALID" and code ~= "ELIMIT" then
    return ok, message, code
  end
  local good, bad, failed = sieve(record)
  if not good then
    return nil, bad, failed
  elseif #bad == 0 and #record.messages == 1 then
    return nil, message, code -- the fault is not in a message
  end
  local rest = part_of(record, function(i) return good[i] end)
  if #rest.messages > 0 then
    ok, message, code = append(self, rest)
  else
    ok = go_to(self, base_of(self, record.parent))
  end
  if not ok then
    return nil, message, code
  end
  return put_bad(self, record, bad)
end

-- ---------------------------------------------------------------- other records

-- A line that is no message.
local function put_line(self, record)
  local done
  if record.plain then
    done = self.done:take_plain(record.json)
  else
    done = self.done:has_custom(place_of(self, record.at, record.part))
  end
  if done then
    return true
  elseif record.why then
    count_unread(self, record.at, record.why)
  end
  local label = record.label
  local target = label and self.entries[label.target]
  if target then
    local ok, message, code = self.done:set_label(self.session, target, label)
    if not ok then
      return nil, message, code
    end
  end
  return put_custom(self, record.json, record.at)
end

-- A summary that takes the place of what came before; where the laws of context forbid that,
-- a message that holds it.
local function put_compaction(self, record)
  local place = place_of(self, record.at)
  local entry = self.done:message(record.at) or self.done:compaction(record.at)
  if entry or self.done:has_custom(place) then
    name_entry(self, record.key, entry or base_of(self, record.parent))
    return put_line(self, record)
  end
  local done, message, code = go_to(self, base_of(self, record.parent))
  local first = record.first and self.entries[record.first] or nil
  local there = first and self.session:entry(first)
  if there and there.type == "turn" then
    first = ("%08x"):format(tonumber(first, 16) - 1) -- its last message stands before it
  end
  if done then
    done, message, code = compaction.apply(self.session, record.summary, place, first)
  end
  if done then
    self.counts.compactions = self.counts.compactions + 1
    name_entry(self, record.key, self.session:head())
  elseif done == false then
    done, message, code = put_turn(self, {
      messages = { compaction.message(record.summary, place) }, lines = { record.at },
      keys = { record.key or false }, usages = {}, parent = record.parent,
    })
    self.counts.messages = self.counts.messages - 1
    self.counts.summaries = self.counts.summaries + 1
  end
  if not done then
    return nil, message, code
  end
  return put_line(self, record)
end

local PUT = { turn = put_turn, custom = put_line, compaction = put_compaction }

-- ---------------------------------------------------------------- the session

-- A session of that name is there: does it come from this recording?
local function resume(self, options, skip)
  local session, message, code = self.store:resume(options)
  if not session then
    return nil, message, code
  end
  local own = session:metadata()
  own = type(own) == "table" and own.imported
  if type(own) ~= "table" or own.source ~= self.records.source or own.from ~= self.from then
    session:close()
    return nil, ("a session '%s' is there, and it is not of this recording"):format(options.id),
      "EEXISTS"
  end
  self.unchanged = skip and own.bytes and own.bytes == self.records.size
  return session
end

local function make_session(self)
  local options = self.options
  local id = options.id or self.recorded_id or options.default_id
  local session, message, code = self.store:create {
    id = id, title = options.title or self.recorded_title, agent = options.agent,
    metadata = { imported = { from = self.from, source = self.records.source } },
  }
  if not session and code == "EEXISTS" and self.records.source then
    session, message, code = resume(self, { id = id, agent = options.agent },
      options.skip_unchanged)
    self.resumed = session ~= nil
  elseif session then
    self.made = true
  end
  if not session then
    return nil, message, code
  end
  self.session = session
  return self.unchanged or self:read_session()
end

-- Reads what earlier imports brought.
function Writer:read_session()
  local done, message, code = progress.read(self.session, self.from, self.records.source)
  if not done then
    return nil, message, code
  end
  self.done = done
  self.base = done.base or (self.made or self.resumed) and ROOT or self.session:head()
  self.head = self.session:head()
  self.newest = nil
  return true
end

-- A title of at most 1,000 bytes.
local function clip(text)
  local stop = math.min(#text, 1000)
  while stop > 0 and stop < #text and text:byte(stop + 1) & 0xC0 == 0x80 do
    stop = stop - 1
  end
  return text:sub(1, stop)
end

-- Until a message turns up that the engine takes, there is no session: everything waits.
local function wait(self, record)
  table.insert(self.waiting, record)
  self.waiting_bytes = (self.waiting_bytes or 0) + #(record.json or "")
  if record.kind == "custom" then
    self.why = self.why or record.why and { at = record.at, why = record.why }
    if #self.waiting > MOST_WAITING or self.waiting_bytes > MOST_WAITING_BYTES then
      return nil, ("none of its first %d lines is a message"):format(record.at or #self.waiting),
        "EINVALID"
    end
    return true
  end
  local list = record.kind == "turn" and record
    or { messages = { compaction.message(record.summary, place_of(self, record.at)) } }
  local good, message, code = sieve(list)
  if not good then
    return nil, message, code
  elseif next(good) == nil then
    local first = message[1]
    self.why = self.why or { at = record.lines and record.lines[first.index], why = first.why }
    return true
  end
  local ok
  ok, message, code = make_session(self)
  local waiting = not self.unchanged and self.waiting or {}
  self.waiting = {}
  for _, one in ipairs(ok and waiting or {}) do
    if ok then
      ok, message, code = PUT[one.kind](self, one)
    end
  end
  return ok, message, code
end

local function put(self, record)
  if record.kind == "session" then
    if not self.session then
      local id = record.id
      if id and id ~= "" and id ~= "last" and #id <= 1000 then
        self.recorded_id = self.recorded_id or id
      end
      self.recorded_title = self.recorded_title or record.title and clip(record.title)
    end
    return true
  elseif self.session and not self.done then
    local ok, message, code = self:read_session()
    if not ok then
      return nil, message, code
    end
  end
  if self.session then
    return PUT[record.kind](self, record)
  end
  return wait(self, record)
end

-- Why nothing came of it.
local function nothing(self)
  if #self.waiting == 0 then
    return "there is nothing in it"
  end
  local first = self.why
  local at = first and first.at
  return "none of its lines is a message"
    .. (first and ("; line %d: %s"):format(type(at) == "table" and at[1] or at or 1, first.why)
      or "")
end

-- What the recording says of itself as a whole, and how much of it was read.
local function finish(self)
  local session, records = self.session, self.records
  local leaf = records.leaf and self.entries[records.leaf]
  local target = self.head ~= self.base and self.done.newest ~= self.head
    and not self.made and self.head -- somebody went on with the session meanwhile
    or leaf or self.newest
  local ok, message, code = true, nil, nil
  if target and session:head() ~= target then
    ok, message, code = go_to(self, target)
  end
  if ok and records.title and session.title == "" and not self.options.session then
    ok, message, code = session:set_title(clip(records.title))
  end
  if ok and not self.options.session then
    local now, settings = session:settings() or {}, {}
    for name, value in pairs(records.settings) do
      settings[name] = now[name] ~= value and value or nil
    end
    if next(settings) then
      ok, message, code = session:settings(settings)
    end
    local own = (session:metadata() or {}).imported
    if ok and records.offset > 0 and (type(own) ~= "table" or own.bytes ~= records.offset) then
      ok, message, code = session:metadata {
        imported = { from = self.from, source = records.source, bytes = records.offset },
      }
    end
  end
  self.counts.strays = records.strays or 0
  return ok, message, code
end

--- Writes records into a session of the store, a new one unless it began as an import of the same
--- recording; returns it, still open. It is called what it was called when it was recorded,
--- unless options.id is given.
---@param store table
---@param records sessile.import.records
---@param options {from: string, id: string?, title: string?, agent: string?, session: table?,
--- default_id: string?, skip_unchanged: boolean?, on_step: fun(offset: integer, size: integer?)?}
--- session: write into this one; default_id: of a recording that has none; skip_unchanged: of one
--- that was imported to its end and has the same length, only the beginning is read
---@return table? session
---@return sessile.import.counts|string counts_or_message
---@return string? code
function write.into(store, records, options)
  if type(records) == "function" then
    local next_record = records
    records = setmetatable({ offset = 0, settings = {} }, { __call = function()
      return next_record()
    end })
  end
  local self = setmetatable({
    store = store, options = options, from = options.from, records = records,
    session = options.session, entries = {}, waiting = {},
    counts = { messages = 0, turns = 0, customs = 0, refused = 0, unread = 0, compactions = 0,
      summaries = 0, branches = 0, strays = 0, before = 0 },
  }, Writer)
  local ok, message, code = true, nil, nil
  for record in records do
    ok, message, code = put(self, record)
    if not ok or self.unchanged then
      break
    end
    if options.on_step then
      options.on_step(records.offset, records.size)
    end
  end
  if ok and records.failed then
    ok, message, code = nil, records.failed, "EIO"
  end
  if ok and not self.session then
    return nil, nothing(self), "EINVALID"
  end
  self.counts.resumed = self.resumed
  self.counts.unchanged = self.unchanged or nil
  if ok and self.done then
    ok, message, code = finish(self)
  end
  if not ok then
    if self.session and self.done and code ~= "EEXISTS" then
      local count = self.counts.messages
      message = ("%s (after %d messages, which are in '%s')"):format(message, count,
        self.session.id)
    end
    if self.session and not options.session then
      self.session:close()
    end
    return nil, message, code
  end
  return self.session, self.counts
end

return write
