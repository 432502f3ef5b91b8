--- done: what earlier imports of a recording added to a session.
--
-- Reads it from the session's entries. Must never write.

local dialect = require "sessile.dialect"
local kept = require "sessile.import.kept"
local span = require("sessile.core").span

local math = dialect.math

local done = {}
done.__index = done

local function hex(id)
  return tonumber(id, 16)
end

local function is_of(fields, from, source)
  return span.string(fields.from) == from and span.string(fields.source) == source
end

-- An entry of this import: in another session, equal custom entries before it are not of it.
local function begin(self)
  if self.is_into and not self.begun then
    self.plain = {}
  end
  self.begun = true
end

-- A turn entry: the lines that its messages came from.
local function read_turn(self, entry, data, from, source)
  local _, metadata = span.object(data.metadata or "")
  local members, own = span.object(type(metadata) == "table" and metadata.imported or "")
  if not members or not is_of(own, from, source) or not span.string(data.first) then
    return
  end
  begin(self)
  local lines = span.array(own.lines or "") or {}
  local first = hex(span.string(data.first))
  for i, raw in ipairs(lines) do
    local id = i == #lines and entry.id or ("%08x"):format(first + i - 1)
    for _, line in ipairs(span.array(raw) or { raw }) do
      local at = math.tointeger(tonumber(line))
      if at then
        self.messages[at] = id
        self.ends[at] = i == #lines and math.tointeger(tonumber(own.bytes)) or nil
      end
    end
  end
  self.base = self.base or self.parents[first]
  self.newest = entry.id
end

local function read_compaction(self, entry, data, from, source)
  for _, put in ipairs(span.array(data.inserted or "") or {}) do
    local _, fields = span.object(put)
    local _, message = span.object(type(fields) == "table" and fields.message or "")
    local _, metadata = span.object(type(message) == "table" and message.metadata or "")
    local members, own = span.object(type(metadata) == "table" and metadata.imported or "")
    local at = members and is_of(own, from, source) and math.tointeger(tonumber(own.at))
    if at then
      begin(self)
      self.compactions[at] = entry.id
      self.newest = entry.id
    end
  end
end

-- A custom entry: a line that was kept, the mark of an import, or anything else.
local function read_custom(self, json, from, source)
  local read = kept.read(json)
  if read and read.source then
    if read.from == from and read.source == source and read.at then
      begin(self)
      -- A compaction that wrote no message is known by its line, which follows it.
      self.compactions[read.at] = self.compactions[read.at] or self.compacted
      self.customs[read.at] = math.max(self.customs[read.at] or 0, read.part or 1)
    end
    return
  end
  local _, fields = span.object(json)
  local members, own = span.object(fields and fields.imported or "")
  if members and is_of(own, from, source) then
    return begin(self)
  end
  local digest = kept.digest("", json)
  self.plain[digest] = (self.plain[digest] or 0) + 1
end

--- Reads a session. is_into: it is not a session of this recording alone.
---@param session table
---@param from string
---@param source string?
---@param is_into boolean
---@return table? done
---@return string? message
---@return string? code
function done.read(session, from, source, is_into)
  local self = setmetatable({
    messages = {}, ends = {}, customs = {}, compactions = {}, plain = {}, parents = {},
    source = source, labels = nil, is_into = is_into,
  }, done)
  local entries, message, code, retry_ms, rule = session:entries()
  if not entries then
    return nil, message, code, retry_ms, rule
  end
  local compacted
  for entry in entries do
    if entry.type == "custom" then
      self.compacted = compacted
    end
    compacted = entry.type == "compaction" and entry.id or nil
    if entry.type == "message" and not self.base then
      -- Only the first message of a turn is looked up.
      self.parents[hex(entry.id)] = tostring(entry.parent_id)
    elseif source and (entry.type == "turn" or entry.type == "compaction") then
      local _, fields = span.object(entry.json)
      local _, data = span.object(fields.data)
      if entry.type == "turn" then
        read_turn(self, entry, data, from, source)
        self.parents = {}
      else
        read_compaction(self, entry, data, from, source)
      end
    elseif source and entry.type == "custom" then
      local _, fields = span.object(entry.json)
      read_custom(self, fields.data, from, source)
    end
  end
  return self
end

--- The entry of the message that came from this line, or these lines.
---@param lines integer|integer[]
---@return string?
function done:message(lines)
  if type(lines) ~= "table" then
    return self.messages[lines]
  end
  return self.messages[lines[1]]
end

--- The compaction that came from this line.
function done:compaction(at)
  return self.compactions[at]
end

--- Whether the line was kept.
---@param place sessile.import.place
---@return boolean
function done:has_custom(place)
  return place.at ~= nil and (self.customs[place.at] or 0) >= (place.part or 1)
end

--- Takes one custom entry with this data; false if there is none left. Such an entry does not say
--- where it came from.
---@param json string
---@return boolean
function done:take_plain(json)
  local digest = kept.digest("", json)
  local count = self.plain[digest] or 0
  self.plain[digest] = count > 0 and count - 1 or nil
  return count > 0
end

-- The labels of the session. They are read once, since a recording may set many.
local function labels_of(self, session)
  if not self.labels then
    local list, message, code, retry_ms, rule = session:labels()
    if not list then
      return nil, message, code, retry_ms, rule
    end
    self.labels = {}
    for _, one in ipairs(list) do
      self.labels[one.id .. " " .. one.name] = true
    end
  end
  return self.labels
end

--- Sets or removes a label, if that changes something.
---@param session table
---@param target string
---@param label {name: string, off: boolean?}
function done:set_label(session, target, label)
  if label.name:find "^screen:" then
    return true -- what a screen found is not for a recording to say; the line is kept
  end
  local there, message, code, retry_ms, rule = labels_of(self, session)
  if not there then
    return nil, message, code, retry_ms, rule
  end
  local name = target .. " " .. label.name
  if (there[name] or false) == not label.off then
    return true
  end
  local act = label.off and session.unlabel or session.label
  local ok
  ok, message, code, retry_ms, rule = act(session, target, label.name)
  if ok then
    there[name] = not label.off or nil
  elseif code == "EINVALID" or code == "ELIMIT" then
    return true -- a name that no label can have; the line is kept
  end
  return ok, message, code, retry_ms, rule
end

--- Whether the imported part of the recording is unchanged: every turn must end at the same place
--- of the file.
---@param record sessile.import.record
---@return boolean? ok
---@return string? message
function done:check(record)
  local line = record.lines[#record.lines]
  local last = type(line) == "table" and line[#line] or line
  local was = self.ends[last]
  if was and record.offset and was ~= record.offset then
    return nil, ("the recording was changed before line %d since it was imported: "
      .. "import it under another name"):format(last + 1)
  end
  return true
end

return done
