--- put: writes one record of a recording into its session.
--
-- Owns: one write for each recorded turn, without a policy; custom entries for messages that the
-- engine refuses; where a branch begins; skipping what an earlier import wrote. Must never choose
-- the session: write.lua does.

local sessile = require "sessile"
local compaction = require "sessile.import.compaction"
local kept = require "sessile.import.kept"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local put = {}

-- Counts a line that could not be read as a message. The first one is reported.
local function count_unread(self, at, why)
  local counts = self.counts
  counts.unread = counts.unread + 1
  if not counts.first or at and counts.first.at and at < counts.first.at then
    counts.first = { at = at, why = why }
  end
end

function put.place_of(self, at, part)
  return { from = self.from, source = self.records.source, at = at, part = part }
end

-- Writes the data of a custom entry. If the engine refuses it (nested too deep, a duplicate key,
-- too long), writes its text, in pieces if necessary.
local function put_custom(self, json, at, text)
  local id, message, code, retry_ms, rule = self.session:custom(sessile.json(json))
  if not id and (code == "EINVALID" or code == "ELIMIT") then
    local read = not text and kept.read(json)
    text = text or read and read.line or json
    local size = 1048576
    for part = 1, math.ceil(#text / size) do
      local piece = text:sub((part - 1) * size + 1, part * size)
      local place = put.place_of(self, at, #text > size and part or nil)
      if not self.done:has_custom(place) then
        id, message, code, retry_ms, rule =
          self.session:custom(sessile.json(kept.custom(place, piece, true)))
        if not id then
          return nil, message, code, retry_ms, rule
        end
      end
    end
  elseif not id then
    return nil, message, code, retry_ms, rule
  end
  self.counts.customs = self.counts.customs + 1
  return true
end

-- ---------------------------------------------------------------- where the import continues

-- The entry of a record's parent. In another session, what follows the part that was imported
-- earlier follows everything that came meanwhile.
local function base_of(self, parent)
  local base = parent == nil and self.newest or parent and self.entries[parent] or self.base
  return self.done.is_into and base == self.done.newest and self.top or base
end

function put.go_to(self, target)
  if self.session:head() == target then
    if target == self.head then
      -- An interrupted import has moved the head; nobody else did.
      self.head = self.base
    end
    return true
  end
  local outcome, message, code, retry_ms, rule = self.session:branch(target, { policy = false })
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  self.counts.branches = self.counts.branches + 1
  return true
end

-- Records the entry of a key.
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

-- The options of the turn: what the recording says about it, and its origin.
local function metadata(self, record)
  local parts = {}
  for _, member in ipairs(record.metadata and span.object(record.metadata) or {}) do
    parts[#parts + 1] = (member.key == "imported" and '"imported_before"' or member.raw_key)
      .. ":" .. member.raw
  end
  parts[#parts + 1] = '"imported":' .. imported(self, record)
  return sessile.json("{" .. table.concat(parts, ",") .. "}")
end

-- The messages as values that the engine writes unchanged.
local function verbatim(list)
  local out = {}
  for i, json in ipairs(list) do
    out[i] = sessile.json(json)
  end
  return out
end

-- A turn with only the messages for which wanted(i) is true.
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

-- Finds the messages that the engine accepts, with a temporary session. good: by index; bad:
-- {index, why}, …
function put.sieve(record)
  local store = assert(sessile.open("ram:", { key = false }))
  local scratch = assert(store:create {})
  local good, bad = {}, {}
  for i, json in ipairs(record.messages) do
    local id, message, code, retry_ms, rule = scratch:append(sessile.json(json))
    if id then
      good[i] = true
    elseif code == "EINVALID" or code == "ELIMIT" then
      bad[#bad + 1] = { index = i, why = message }
    else
      return nil, message, code, retry_ms, rule
    end
  end
  scratch:close()
  store:close()
  return good, bad
end

-- Keeps messages that the engine refuses as custom entries.
local function put_bad(self, record, bad)
  for _, one in ipairs(bad) do
    local line = record.lines[one.index]
    local at, json = type(line) == "table" and line[1] or line, record.messages[one.index]
    local ok, message, code, retry_ms, rule =
      put_custom(self, kept.custom(put.place_of(self, at), json, true), at, json)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
    name_entry(self, record.keys[one.index], self.newest or self.base)
    self.counts.refused = self.counts.refused + 1
    count_unread(self, at, one.why)
  end
  return true
end

local function append(self, record)
  local ok, message, code, retry_ms, rule = put.go_to(self, base_of(self, record.parent))
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  local outcome
  outcome, message, code, retry_ms, rule = self.session:turn(verbatim(record.messages), {
    policy = false, usage = record.usage and sessile.json(record.usage),
    model_name = record.model, metadata = metadata(self, record),
  })
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  for i, id in ipairs(outcome.ids) do
    name_entry(self, record.keys[i], id)
  end
  -- The turn entry comes last: what follows the last message follows it.
  name_entry(self, record.keys[#outcome.ids], self.session:head())
  self.counts.turns = self.counts.turns + 1
  self.counts.messages = self.counts.messages + #record.messages
  return true
end

-- The messages that no earlier import wrote; the entries of the others are looked up.
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
    elseif self.done:has_custom(put.place_of(self, type(record.lines[i]) == "table"
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
  local ok, message, code, retry_ms, rule = append(self, record)
  if ok or code ~= "EINVALID" and code ~= "ELIMIT" then
    return ok, message, code, retry_ms, rule
  end
  local good, bad, failed = put.sieve(record)
  if not good then
    return nil, bad, failed
  elseif #bad == 0 and #record.messages == 1 then
    return nil, message, code -- the fault is not in a message
  end
  local rest = part_of(record, function(i) return good[i] end)
  if #rest.messages > 0 then
    ok, message, code, retry_ms, rule = append(self, rest)
  else
    ok = put.go_to(self, base_of(self, record.parent))
  end
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  return put_bad(self, record, bad)
end

-- ---------------------------------------------------------------- other records

-- Marks where an import into another session begins, before an entry that does not say where it
-- came from.
local function begin(self)
  if not self.done.is_into or self.done.begun then
    return true
  end
  self.done.begun, self.done.plain = true, {}
  return self.session:custom {
    imported = { from = self.from, source = self.records.source },
  }
end

-- Writes a line that is not a message.
local function put_line(self, record)
  local done
  if record.plain then
    local ok, message, code, retry_ms, rule = begin(self)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
    done = self.done:take_plain(record.json)
  else
    done = self.done:has_custom(put.place_of(self, record.at, record.part))
  end
  if done then
    return true
  elseif record.why then
    count_unread(self, record.at, record.why)
  end
  local label = record.label
  local target = label and self.entries[label.target]
  if target then
    local ok, message, code, retry_ms, rule = self.done:set_label(self.session, target, label)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  return put_custom(self, record.json, record.at)
end

-- The entry of the last message of a turn is that of the turn, which comes after the message.
local function message_entry(self, id)
  local entry = id and self.session:entry(id)
  return entry and entry.type == "turn" and ("%08x"):format(tonumber(id, 16) - 1) or id
end

-- The context that a record tells of, with the keys of our messages.
local function history_of(self, record)
  local list, last = {}, nil
  for _, one in ipairs(record.history) do
    local is_new = one.key and one.json ~= nil
    local key = one.key and not is_new
      and (self.written[one.key] or message_entry(self, self.entries[one.key]))
    if key ~= last or not key then -- several lines may be one message
      list[#list + 1] = (key or one.json) and { key = key, json = one.json, is_new = is_new } or nil
    end
    last = key
  end
  return list
end

-- Records the entry of a compaction: what names one of its keys follows it. The keys of messages
-- that stay or are new keep their messages in `written`, for the next compaction.
local function name_compaction(self, record, entry)
  for _, key in ipairs(type(record.key) == "table" and record.key or {}) do
    self.written[key] = self.written[key] or message_entry(self, self.entries[key])
  end
  name_entry(self, record.key, entry)
  local _, fields = span.object(self.session:entry(entry).json)
  local _, data = span.object(fields.data)
  local inserted = span.array(type(data) == "table" and data.inserted or "[]") or {}
  local next_one = 1
  for _, one in ipairs(record.history or {}) do
    local _, put_one = span.object(one.key and one.json and inserted[next_one] or "null")
    if put_one then
      self.written[one.key], next_one = entry .. "." .. put_one.n, next_one + 1
    end
  end
end

-- Repeats a compaction; if the laws of context forbid it, writes its summary as a message.
local function put_compaction(self, record)
  local place = put.place_of(self, record.at)
  local entry = self.done:message(record.at) or self.done:compaction(record.at)
  if entry or self.done:has_custom(place) then
    name_compaction(self, record, entry or base_of(self, record.parent))
    return put_line(self, record)
  end
  local done, message, code, retry_ms, rule = put.go_to(self, base_of(self, record.parent))
  local first = message_entry(self, record.first and self.entries[record.first] or nil)
  if done then
    done, message, code, retry_ms, rule = compaction.apply(self.session, {
      text = record.summary, place = place, first = first, time = record.time,
      history = record.history and history_of(self, record),
    })
  end
  if done then
    self.counts.compactions = self.counts.compactions + 1
    name_compaction(self, record, self.session:head())
  elseif done == false and record.summary == "" then
    name_entry(self, record.key, base_of(self, record.parent))
  elseif done == false then
    done, message, code, retry_ms, rule = put_turn(self, {
      messages = { compaction.message(record.summary, place, record.time) }, lines = { record.at },
      keys = { record.key or false }, usages = {}, parent = record.parent,
    })
    self.counts.messages = self.counts.messages - 1
    self.counts.summaries = self.counts.summaries + 1
  end
  if done == nil then
    return nil, message, code, retry_ms, rule
  end
  return put_line(self, record)
end

--- The functions that write a record, by its kind: f(writer, record) returns true; or nil, message,
--- code.
put.kinds = { turn = put_turn, custom = put_line, compaction = put_compaction }

return put
