--- conversation: the messages from the root to the head, for the formats of other programs.
--
-- Owns: which parts of a message are calls and results, in any known form, and that each call gets
-- its result before the next message: what a provider would refuse is changed as in the context,
-- and counted. Must never hold more than one message and the open calls.

local span = require("sessile.core").span
local dialect = require "sessile.dialect"

local math = dialect.math

local conversation = {}

---@class sessile.export.call
---@field id string         JSON text, as are name and arguments
---@field name string
---@field arguments string  the text of the arguments, decoded: what the model wrote
---@field input string?     JSON text, when they were written as a value
---@field raw string?       the element of tool_calls, or the block

---@class sessile.export.result
---@field id string        JSON text
---@field content string?  JSON text
---@field is_error boolean?
---@field raw string?      the block, when it was one
---@field fields table<string, string>?  of the message, when it was one

---@class sessile.export.said
---@field role "system"|"user"|"assistant"|"tool"
---@field entry string?
---@field key string?     of the message in its context; of one that stands in for missing results,
---                        the same words each time
---@field time string?    when its entry was written
---@field is_part boolean?  the results of a message whose other content comes next
---@field fields table<string, string>  JSON texts
---@field members sessile.span.member[]
---@field text string?       JSON text of the content, when it is a text
---@field blocks string[]?   those that are neither calls nor results
---@field calls sessile.export.call[]
---@field results sessile.export.result[]

local NOT_ANSWERED = '"not answered"'

local function call_of(raw)
  local _, fields = span.object(raw)
  if type(fields) ~= "table" or not span.string(fields.id) then
    return nil
  end
  local _, inner = span.object(fields["function"] or "null")
  local name = fields.name or type(inner) == "table" and inner.name
  local arguments = fields.arguments or type(inner) == "table" and inner.arguments
  if not span.string(name or nil) then
    return nil
  end
  return { id = fields.id, name = name, raw = raw,
    arguments = span.string(arguments or nil) or arguments or "{}" }
end

-- Sorts the blocks of a message.
local function sort_blocks(said, list)
  said.blocks = {}
  for _, raw in ipairs(list) do
    local _, fields = span.object(raw)
    fields = type(fields) == "table" and fields or {}
    local kind = span.string(fields.type)
    if kind == "tool_use" and span.string(fields.id) and span.string(fields.name) then
      table.insert(said.calls, { id = fields.id, name = fields.name, raw = raw,
        input = fields.input or "{}", arguments = fields.input or "{}" })
    elseif kind == "tool_result" and span.string(fields.tool_use_id) then
      table.insert(said.results, { id = fields.tool_use_id, content = fields.content, raw = raw,
        is_error = fields.is_error == "true" })
    else
      table.insert(said.blocks, raw)
    end
  end
end

local ROLES = { developer = "system", model = "assistant", ["function"] = "tool" }

--- The parts of a message.
---@param raw string  its JSON text
---@return sessile.export.said
function conversation.read(raw)
  local members, fields = span.object(raw)
  local role = span.string(fields.role)
  local said = { role = ROLES[role] or role, fields = fields, members = members, calls = {},
    results = {} }
  local content = fields.content
  local list = content and span.array(content)
  if said.role == "tool" and span.string(fields.tool_call_id) then
    said.results[1] = { id = fields.tool_call_id, content = content, fields = fields,
      is_error = fields.is_error == "true" }
  elseif list then
    sort_blocks(said, list)
  elseif content and span.string(content) then
    said.text = content
  end
  for _, one in ipairs(span.array(fields.tool_calls or "null") or {}) do
    said.calls[#said.calls + 1] = call_of(one)
  end
  return said
end

-- ---------------------------------------------------------------- mending

local Mender = {}
Mender.__index = Mender

-- Adds results for open calls before another message.
local function answer_rest(self)
  local missing, key = {}, "not answered"
  for _, call in ipairs(self.open) do
    if not self.answered[span.string(call.id)] then
      key = key .. " " .. call.id
      missing[#missing + 1] = { id = call.id, content = NOT_ANSWERED, is_error = true,
        mended = true, name = call.name }
    end
  end
  self.open, self.answered = {}, {}
  if #missing > 0 then
    self.unanswered = self.unanswered + #missing
    self.emit { role = "tool", key = key, calls = {}, results = missing, fields = {},
      members = {} }
  end
end

-- The results of open calls; at most one for each.
local function take_results(self, said)
  local good = {}
  for _, result in ipairs(said.results) do
    local id = span.string(result.id)
    local call
    for _, one in ipairs(self.open) do
      call = call or span.string(one.id) == id and one
    end
    if call and not self.answered[id] then
      self.answered[id], result.name = true, call.name
      good[#good + 1] = result
    else
      self.orphans = self.orphans + 1
    end
  end
  return good
end

function Mender:put(said)
  if #said.results > 0 then
    local good = take_results(self, said)
    if #good > 0 then
      self.emit { role = "tool", entry = said.entry, fields = said.fields, key = said.key,
        time = said.time, members = said.members, calls = {}, results = good,
        is_part = said.role ~= "tool" and said.blocks ~= nil and #said.blocks > 0 }
    end
    if said.role == "tool" or not said.blocks or #said.blocks == 0 then
      return
    end
    said.results = {}
  end
  answer_rest(self)
  self.open = said.calls
  self.emit(said)
end

--- Takes messages with put(said), in order, and passes them on with emit(said): results of calls
--- separated from other content, and nothing that a provider would refuse. It counts `unanswered`
--- and `orphans`.
---@param emit fun(said: sessile.export.said)
---@return table
function conversation.mender(emit)
  return setmetatable({ emit = emit, open = {}, answered = {}, unanswered = 0, orphans = 0 },
    Mender)
end

-- A message that a compaction wrote: the entry's `inserted` has it.
local function inserted(source, id, n)
  local _, entry = span.object(source:entry(id).json)
  local _, data = span.object(entry.data)
  for _, raw in ipairs(span.array(data.inserted or "[]") or {}) do
    local _, one = span.object(raw)
    if one.n == n then
      return one.message, entry
    end
  end
  error(("EDAMAGED: compaction %s wrote no message %s"):format(id, n), 0)
end

--- A message of a context, as JSON, and the fields of the entry that has it.
---@param source table
---@param key string  an entry's id, or "id.n" of a message that a compaction wrote
---@return string raw
---@return table<string, string> entry
function conversation.by_key(source, key)
  local id, n = key:match "^(%x+)%.(%d+)$"
  if id then
    return inserted(source, id, n)
  end
  local _, entry = span.object(source:entry(key).json)
  return entry.data, entry
end

--- Calls emit(said) for each message of the path in order. Results are separated from the other
--- content of a message. Returns the numbers of changes: {unanswered, orphans}.
---@param source table  of sessile.export.source
---@param emit fun(said: sessile.export.said)
---@return {unanswered: integer, orphans: integer}
function conversation.each(source, emit)
  local on_path = {}
  local self = conversation.mender(emit)
  if source.context_only then
    for raw in source:context() do
      self:put(conversation.read(raw))
    end
    return self
  end
  for _, id in ipairs(source.session:path() or {}) do
    on_path[id] = true
  end
  for text in source:texts() do
    local id = text:match '^{"id":"(%x+)"'
    if on_path[id] then
      local _, fields = span.object(text)
      local kind = span.string(fields.type)
      if kind == "message" or kind == "branch_summary" then
        local said = conversation.read(fields.data)
        said.entry = id
        self:put(said)
      end
    end
  end
  return self
end

--- Adds a sentence about n things if n > 0: `one` for a single one, else `many`.
---@param notes string[]
---@param n integer
---@param one string
---@param many string
function conversation.note(notes, n, one, many)
  if n > 0 then
    notes[#notes + 1] = (n == 1 and one or many):format(n)
  end
end

--- Sentences about the changes.
---@param mended {unanswered: integer, orphans: integer}
---@param notes string[]
function conversation.tell(mended, notes)
  conversation.note(notes, mended.unanswered,
    "%d call has no answer: it is answered 'not answered'",
    "%d calls have no answer: they are answered 'not answered'")
  conversation.note(notes, mended.orphans, "%d result answers no call and is left out",
    "%d results answer no call and are left out")
end

--- Sentences about what was left out because the API has no such thing.
---@param counts {left_out: integer, empty: integer}
---@param notes string[]
function conversation.tell_left_out(counts, notes)
  conversation.note(notes, counts.left_out, "%d block is left out that this API does not take",
    "%d blocks are left out that this API does not take")
  conversation.note(notes, counts.empty, "%d empty message is left out",
    "%d empty messages are left out")
end

--- A function that returns a count of a message's usage by its name; 0: it is not reported.
---@param raw string?  the usage, as written
---@return fun(name: string): integer
function conversation.usage_reader(raw)
  local _, usage = span.object(raw or "null")
  usage = type(usage) == "table" and usage or {}
  return function(name)
    return math.tointeger(tonumber(usage[name])) or 0
  end
end

--- The members that an imported document had beside its messages, unchanged.
---@param source table
---@param from string
---@return sessile.span.member[] members
---@return boolean imported  the session came of such a document
function conversation.rest(source, from)
  local kept = require "sessile.import.kept"
  local found = {}
  local own = source.session:metadata()
  own = type(own) == "table" and own.imported
  local imported = type(own) == "table" and own.from == from and not source.context_only
  for text in source:texts() do
    local _, fields = span.object(text)
    local kind = span.string(fields.type)
    if kind == "message" or not imported then
      break -- what is around the messages was written before them
    elseif kind == "custom" then
      local read = kept.read(fields.data)
      if read and read.from == from and (read.at or 0) < 0 and not read.part then
        for _, member in ipairs(span.object(read.line) or {}) do
          found[#found + 1] = member
        end
      end
    end
  end
  return found, imported
end

--- Writes the end of a document: those members but the ones in `written`, or, of a list, none.
---@param write fun(text: string)
---@param rest sessile.span.member[]
---@param is_list boolean
---@param written table<string, true>
function conversation.finish(write, rest, is_list, written)
  write "\n]"
  for _, member in ipairs(not is_list and rest or {}) do
    if not written[member.key] then
      write(",\n" .. member.raw_key .. ":" .. member.raw)
    end
  end
  write(is_list and "\n" or "}\n")
end

return conversation
