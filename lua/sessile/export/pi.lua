--- pi: the whole session with all branches in the format of the pi coding agent (JSON Lines).
--
-- Owns: the lines. Lines that were imported from pi are written unchanged; entries that were added
-- since are written as version 3, so that pi gives a model the same messages as the session. Must
-- never change a line of pi, except that a list (version 1) that has become a tree gets ids.
--
-- A compaction that pi does not have (one that keeps older messages, edits some, or takes another
-- one back) becomes a branch: it begins at the line whose context is the longest beginning of the
-- new one, and the other messages are copied there.

local dialect = require "sessile.dialect"
local contexts = require "sessile.export.pi_context"
local conversation = require "sessile.export.conversation"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local pi_message = require "sessile.export.pi_message"
local span = require("sessile.core").span

local math = dialect.math

local Writer = {}
Writer.__index = Writer

-- ---------------------------------------------------------------- lines in the order of the file

-- A turn is written at one time, so lines from between its messages come after it in the log. Lines
-- within this window are sorted by their numbers.
local function flush(self)
  local window = self.window
  for i, one in ipairs(window) do
    one.order = i
    one.at = one.at or i > 1 and window[i - 1].at or 0
  end
  table.sort(window, function(a, b)
    return a.at < b.at or a.at == b.at and a.order < b.order
  end)
  for _, one in ipairs(window) do
    -- Arguments are in the line as the model wrote them, perhaps over several lines; within
    -- strings JSON has no line breaks.
    self.write(one.text:gsub("[\r\n]", " ") .. "\n")
    self.leaf = one.name or self.leaf
  end
  self.window = {}
end

-- A list that has become a tree keeps the order of the log: a parent precedes its children.
local function put(self, text, at, name)
  table.insert(self.window, { text = text, at = not self.needs_ids and at or nil, name = name })
end

-- ---------------------------------------------------------------- ids and parents

-- The id of the parent in pi, as JSON: above, or that of the entry's parent.
local function parent_of(self, entry)
  return entry.above or self.names[entry.parent] or "null"
end

-- A line of pi, with an id and a parent if it needs them and has none, or if it is a copy.
local function with_ids(self, line_raw, entry)
  local inside = line_raw:match "^%s*{(.*)}%s*$" or ""
  local members, fields = span.object(line_raw)
  if entry.copy then
    inside = parts.rest(members or {}, { id = 1, parentId = 1 })
  elseif fields.id or not self.needs_ids then
    return inside, fields.id, fields.parentId
  end
  local name, parent = '"' .. entry.id .. '"', parent_of(self, entry)
  return ('"id":%s,"parentId":%s%s'):format(name, parent, inside ~= "" and "," .. inside or ""),
    name, parent
end

-- Records a line that has an id. facts: as for Contexts:line.
local function know(self, entry, name, parent, facts)
  if name then
    self.contexts:line(name, parent ~= "null" and parent or nil, facts)
    self.names[entry.id] = name
  end
end

-- Adds a line for a new entry. facts: what the line does to the context.
local function put_new(self, kind, entry, rest, facts)
  if not self.has_ids then
    return put(self, ('{"type":"%s","timestamp":%s%s}'):format(kind, entry.timestamp, rest))
  end
  local name, parent = '"' .. entry.id .. '"', parent_of(self, entry)
  put(self, ('{"type":"%s","id":%s,"parentId":%s,"timestamp":%s%s}'):format(kind, name, parent,
    entry.timestamp, rest), nil, name)
  know(self, entry, name, parent, facts)
end

-- ---------------------------------------------------------------- messages

local function put_original(self, entry, fields, own)
  local line_raw = own.line or "{}"
  local _, line = span.object(line_raw)
  local inside, name, parent = with_ids(self, line_raw, entry)
  know(self, entry, name, parent, { key = entry.key })
  if line.type then
    return put(self, "{" .. inside .. "}", nil, name)
  end
  put(self, ('{"type":"message"%s,"message":%s}'):format(inside ~= "" and "," .. inside or "",
    pi_message.original(fields, own)), nil, name)
end

local function put_message(self, entry, message, start)
  put_new(self, "message", entry, ',"message":' .. message, { key = entry.key, start = start })
end

-- The results of a message, a line for each. Returns the entry of the rest of the message, which
-- follows them, and the name of the first line.
local function put_results(self, entry, said, fields, has_more)
  local start
  for i, result in ipairs(said.results) do
    local is_last = i == #said.results and not has_more
    local own = is_last and entry or { id = ("%s-%d"):format(entry.id, i), above = entry.above,
      parent = entry.parent, timestamp = entry.timestamp }
    local name = fields.name or self.tools[span.string(result.id)] or '"unknown"'
    put_message(self, own, pi_message.result(result, name, fields, entry), start)
    start = start or self.names[own.id]
    entry = is_last and entry or { id = entry.id, key = entry.key, parent = own.id,
      timestamp = entry.timestamp }
  end
  return entry, start
end

-- A message of anybody else.
local function put_other(self, entry, raw, fields)
  local said = conversation.read(raw)
  local _, metadata = span.object(fields.metadata or "null")
  local kind = type(metadata) == "table" and span.string(metadata.kind or nil)
  for _, call in ipairs(said.calls) do
    self.tools[span.string(call.id)] = call.name
  end
  local has_more = said.role ~= "tool" and said.blocks ~= nil and #said.blocks > 0
  local start
  entry, start = put_results(self, entry, said, fields, has_more)
  if #said.results > 0 and not has_more then
    return
  elseif said.role == "assistant" then
    put_message(self, entry, pi_message.assistant(said, fields, entry), start)
  elseif kind == "branch_summary" then
    local from = self.names[span.string(metadata.from or nil)] or '"root"'
    put_new(self, "branch_summary", entry, (',"fromId":%s,"summary":%s'):format(from,
      said.text or '""'), { key = entry.key, start = start })
  elseif said.role == "user" and not kind then
    put_message(self, entry, pi_message.user(said, fields, entry), start)
  else
    put_new(self, "custom_message", entry, (',"customType":%s,"content":%s,"display":true')
      :format(span.quote(kind or said.role), pi_message.blocks(said)),
      { key = entry.key, start = start })
  end
end

-- Where a message of ours was imported from, if that was a compaction of pi.
local function of_a_compaction(raw)
  local _, fields = span.object(raw)
  local _, metadata = span.object(fields.metadata or "null")
  local _, imported = span.object(type(metadata) == "table" and metadata.imported or "null")
  return type(imported) == "table" and span.string(imported.from or nil) == "pi"
end

local function put_any(self, entry, raw)
  local _, fields = span.object(raw)
  local members, own = span.object(fields.pi or "null")
  if members and (own.line or own.message) then
    put_original(self, entry, fields, own)
  else
    put_other(self, entry, raw, fields)
  end
end

local KINDS = {}

function KINDS.message(self, entry, raw)
  if self.after_turn then
    flush(self)
    self.after_turn = false
  end
  if of_a_compaction(raw) and not self.needs_ids then
    self.compaction = { entry = entry, key = entry.id } -- its own line comes next
    return
  end
  put_any(self, entry, raw)
end

KINDS.branch_summary = KINDS.message

-- A turn stores the lines that its messages came from.
function KINDS.turn(self, _, raw)
  local _, data = span.object(raw)
  local _, metadata = span.object(data.metadata or "null")
  local _, own = span.object(type(metadata) == "table" and metadata.imported or "null")
  if type(own) == "table" and span.string(own.from or nil) == "pi" and not self.needs_ids then
    local lines = span.array(own.lines or "[]") or {}
    local first = #self.window - #lines
    for i, line in ipairs(lines) do
      local one = self.window[first + i]
      if one then
        one.at = math.tointeger(tonumber(line))
      end
    end
  end
  self.after_turn = true
end

-- ---------------------------------------------------------------- compactions

-- The text of a message that pi's summary can stand for, as JSON.
local function summary_of(self, key)
  if not (key or ""):find(".", 1, true) then
    return nil
  end
  local _, fields = span.object((conversation.by_key(self.source, key)))
  return span.string(fields.role) == "user" and fields.content and span.string(fields.content)
    and fields.content or nil
end

-- Copies the messages of `list` after the first `count` behind a line.
local function put_copies(self, entry, list, above, count)
  for i = count + 1, #list do
    local copy = { id = ("%s-%d"):format(entry.id, i), key = list[i], copy = true,
      above = above or "null", timestamp = entry.timestamp }
    put_any(self, copy, (conversation.by_key(self.source, list[i])))
    above = self.names[copy.id]
  end
  self.copies = self.copies + #list - count
  return above
end

-- Whether a compaction repeats one of pi.
local function repeats(data)
  for _, one in ipairs(span.array(data.inserted or "[]") or {}) do
    local _, fields = span.object(one)
    if of_a_compaction(fields.message) then
      return true
    end
  end
  return false
end

function KINDS.compaction(self, entry, raw)
  flush(self)
  local list = self.contexts:after(entry.id)
  local _, data = span.object(raw)
  if repeats(data) and not self.needs_ids then
    self.compaction = { entry = entry, list = list } -- its own line comes next
    return
  elseif not list or not self.has_ids then
    return
  end
  local before = self.names[entry.parent]
  local above, count = self.contexts:longest_beginning(before, list)
  local undone = span.string(data.uncompacts or nil)
  if undone then
    local was, most = self.contexts:longest_beginning(self.names[self.contexts.parents[undone]],
      list)
    above, count = most > count and was or above, math.max(count, most)
  end
  local first = count < #list and self.contexts:first_kept(before, list)
  local summary = first and summary_of(self, list[1])
  if summary then
    put_new(self, "compaction", entry, (',"summary":%s,"firstKeptEntryId":%s,"tokensBefore":%s')
      :format(summary, first ~= "" and first or '""', data.tokens_before or "0"), { list = list })
  else
    self.names[entry.id] = put_copies(self, entry, list, above, count) or false
  end
end

-- ---------------------------------------------------------------- other entries

-- A line that was kept.
local function put_kept(self, entry, read)
  local line = read.line
  local _, fields = span.object(line)
  fields = type(fields) == "table" and span.valid(line) and fields or {}
  local kind = fields.type and span.string(fields.type)
  local name, parent
  if kind == "label" and self.label then
    self.label = nil
  elseif kind == "session" then
    if self.needs_ids then
      line = '{"version":3,' .. parts.rest(span.object(line), { version = 1 }) .. "}"
    end
  elseif kind == "compaction" and self.needs_ids then
    return -- it counts lines of a list; the entry before it says the same
  end
  if kind and kind ~= "session" then
    local inside
    inside, name, parent = with_ids(self, line, entry)
    line = self.needs_ids and "{" .. inside .. "}" or line
  end
  -- A piece of a long line is continued in the next one.
  local last = self.window[#self.window]
  if read.part and read.part > 1 and last then
    last.text = last.text .. line
    return
  end
  put(self, line, read.at, name)
  local own = kind == "compaction" and self.compaction
  if own then
    know(self, own.entry, name, parent, own)
    self.compaction = nil
  else
    know(self, entry, name, parent)
  end
end

function KINDS.custom(self, entry, raw)
  local read = kept.read(raw)
  if read and read.from == "pi" then
    return put_kept(self, entry, read)
  end
  put_new(self, "custom", entry, (',"customType":%s,"data":%s'):format(
    span.quote(read and read.from or "sessile"), raw))
end

function KINDS.label(self, entry, raw)
  local _, data = span.object(raw)
  local target = self.names[entry.parent]
  if target and span.string(data.label or nil) then
    self.label = { entry, (',"targetId":%s%s'):format(target,
      data.off == "true" and "" or ',"label":' .. data.label) }
  end
end

-- A label whose own line did not come.
local function put_label(self)
  local label = self.label
  self.label = nil
  if label then
    put_new(self, "label", label[1], label[2])
  end
end

-- pi continues at the last line of the file.
local function put_head(self, head)
  local name = self.names[head] or nil
  if self.has_ids and self.contexts:nearest(self.leaf) ~= self.contexts:nearest(name) then
    put_new(self, "custom", { id = "head-" .. head, parent = head,
      timestamp = ('"%s"'):format(parts.stamp(self.source.facts.modified)) },
      ',"customType":"sessile","data":{}')
    flush(self)
  end
end

-- ---------------------------------------------------------------- what has to be known first

-- Whether a list of version 1 has become a tree, and whether there is a header.
local function look(self, source)
  local version, moved, strange = nil, false, false
  for text in source:texts() do
    local _, entry = span.object(text)
    local kind = span.string(entry.type)
    if kind == "custom" and not self.has_header then
      local read = kept.read(entry.data)
      local _, fields = span.object(read and read.from == "pi" and read.line or "null")
      if type(fields) == "table" and span.string(fields.type or nil) == "session" then
        self.has_header, version = true, math.tointeger(tonumber(fields.version)) or 1
      end
    elseif kind == "head" then
      moved = true
    elseif kind == "compaction" then
      local _, data = span.object(entry.data)
      strange = strange or not repeats(data)
    elseif kind == "message" then
      local _, fields = span.object(entry.data)
      local _, own = span.object(fields.pi or "null")
      strange = strange or type(own) ~= "table" and not of_a_compaction(entry.data)
    end
  end
  self.needs_ids = version == 1 and (moved or strange)
  self.has_ids = self.needs_ids or version ~= 1
end

local PATH = { message = true, turn = true, compaction = true, branch_summary = true }

local function put_entry(self, text)
  local _, entry = span.object(text)
  local one = { id = span.string(entry.id), parent = span.string(entry.parent_id) or "",
    timestamp = entry.timestamp }
  one.key = one.id
  local kind = span.string(entry.type)
  if kind ~= "custom" then
    put_label(self)
  end
  if PATH[kind] then
    self.contexts:entry(one, kind, entry.data)
  end
  if KINDS[kind] then
    KINDS[kind](self, one, entry.data)
  end
  if self.names[one.id] == nil then
    self.names[one.id] = self.names[one.parent]
  end
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local self = setmetatable({ source = source, write = write, window = {}, names = {}, tools = {},
    contexts = contexts.new(), copies = 0, after_turn = false }, Writer)
  look(self, source)
  if not self.has_header then
    write(('{"type":"session","version":3,"id":%s,"timestamp":"%s","cwd":"/"}\n'):format(
      span.quote(source.facts.id), parts.stamp(source.facts.created)))
  end
  for text in source:texts() do
    put_entry(self, text)
  end
  put_label(self)
  flush(self)
  put_head(self, source.facts.head)
  local notes = {}
  if self.needs_ids then
    notes[1] = "the recording was a list (version 1); it is a tree now (version 3)"
  end
  conversation.note(notes, self.copies,
    "%d message is there twice: pi has no compaction like the one that kept it",
    "%d messages are there twice: pi has no compaction like those that kept them")
  return { notes = notes }
end
