--- pi: the whole session with all branches in the format of the pi coding agent (JSON Lines).
--
-- Owns: the form of an entry. Lines that were imported from pi are written unchanged; entries that
-- were added since are written as version 3. Must never change a line of pi, except that a list
-- (version 1) that has become a tree gets ids.

local conversation = require "sessile.export.conversation"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span

local ROLE = { tool = "toolResult" }

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
    self.write(one.text .. "\n")
  end
  self.window = {}
end

-- A list that has become a tree keeps the order of the log: a parent precedes its children.
local function put(self, text, at)
  table.insert(self.window, { text = text, at = not self.needs_ids and at or nil })
end

-- ---------------------------------------------------------------- ids and parents

-- The id of the parent in pi, as JSON.
local function parent_of(self, id)
  return self.names[id] or "null"
end

-- A line of pi, with an id and a parent if it needs them and has none.
local function with_ids(self, inside, fields, entry)
  if fields.id or not self.needs_ids then
    return inside, fields.id
  end
  return ('"id":"%s","parentId":%s%s'):format(entry.id, parent_of(self, entry.parent),
    inside ~= "" and "," .. inside or ""), '"' .. entry.id .. '"'
end

-- The beginning of a new entry.
local function head_of(self, kind, entry)
  if not self.has_ids and not self.needs_ids then
    return ('{"type":"%s","timestamp":%s'):format(kind, entry.timestamp)
  end
  return ('{"type":"%s","id":"%s","parentId":%s,"timestamp":%s'):format(kind, entry.id,
    parent_of(self, entry.parent), entry.timestamp)
end

-- ---------------------------------------------------------------- messages that came from pi

-- Puts calls back to their places among the blocks.
local function content_with_calls(fields, places)
  local blocks = span.array(fields.content or "[]") or {}
  local calls = span.array(fields.tool_calls or "null")
  if not calls then
    return fields.content
  end
  local at = span.array(places or "null")
  local out, stays, next_call = {}, 1, 1
  for i = 1, #blocks + #calls do
    local is_call = at and math.tointeger(tonumber(at[next_call])) == i - 1
      or not at and stays > #blocks
    if is_call and calls[next_call] or not blocks[stays] then
      local _, own = span.object(calls[next_call])
      local inside = own.pi and own.pi:match "^{(.*)}$" or ""
      next_call = next_call + 1
      out[i] = ('{"type":"toolCall","id":%s,"name":%s,"arguments":%s%s}'):format(own.id, own.name,
        span.string(own.arguments), inside ~= "" and "," .. inside or "")
    else
      out[i] = blocks[stays]
      stays = stays + 1
    end
  end
  return "[" .. table.concat(out, ",") .. "]"
end

local function original(fields, own)
  local _, message = span.object(own.message or "null")
  if type(message) == "table" and message.role then
    return own.message
  end
  local role = span.string(fields.role)
  local is_tool = role == "tool"
  local rest = own.message and own.message:match "^{(.*)}$" or ""
  local text = parts.object {
    { "role", '"' .. (ROLE[role] or role) .. '"' },
    { "content", role == "assistant" and content_with_calls(fields, own.calls_at)
      or fields.content },
    { "toolCallId", is_tool and fields.tool_call_id or nil },
    { "toolName", is_tool and fields.name or nil },
    { "isError", is_tool and fields.is_error or nil },
    { "model", fields.model }, { "timestamp", fields.timestamp },
  }
  return rest ~= "" and text:sub(1, -2) .. "," .. rest .. "}" or text
end

local function put_original(self, entry, fields, own)
  local line_raw = own.line or "{}"
  local _, line = span.object(line_raw)
  local inside, name = with_ids(self, line_raw:match "^{(.*)}$" or "", line, entry)
  self.names[entry.id] = name
  if line.type then
    return put(self, "{" .. inside .. "}")
  end
  put(self, ('{"type":"message"%s,"message":%s}'):format(inside ~= "" and "," .. inside or "",
    original(fields, own)))
end

-- ---------------------------------------------------------------- messages of anybody else

local ZERO = '{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}'

local function usage_of(raw)
  local _, usage = span.object(raw or "null")
  usage = type(usage) == "table" and usage or {}
  local function n(name)
    return math.tointeger(tonumber(usage[name])) or 0
  end
  return ('{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,"cost":%s}'):format(n "input",
    n "output", n "cache_read", n "cache_write", ZERO)
end

-- The time of the message, else of the entry, in ms.
local function time_of(fields, entry)
  return fields.timestamp and math.tointeger(tonumber(fields.timestamp))
    or parts.time(span.string(entry.timestamp)) or 0
end

-- Thinking and pictures have other names in pi.
local function block_of(raw)
  local members, fields = span.object(raw)
  local kind = members and span.string(fields.type)
  if kind == "thinking" and fields.signature and not fields.thinkingSignature then
    local rest = parts.rest(members, { type = 1, signature = 1 })
    return '{"type":"thinking",' .. (rest ~= "" and rest .. "," or "") .. '"thinkingSignature":'
      .. fields.signature .. "}"
  elseif kind == "image" and fields.source then
    local _, own = span.object(fields.source)
    if type(own) == "table" and own.data and own.media_type then
      return ('{"type":"image","data":%s,"mimeType":%s}'):format(own.data, own.media_type)
    end
  end
  return raw
end

local function list_of(said)
  if said.text then
    return { ('{"type":"text","text":%s}'):format(said.text) }
  end
  local out = {}
  for i, raw in ipairs(said.blocks or {}) do
    out[i] = block_of(raw)
  end
  return out
end

local function blocks_of(said)
  return "[" .. table.concat(list_of(said), ",") .. "]"
end

local function assistant(said, fields, entry)
  local list = list_of(said)
  for _, call in ipairs(said.calls) do
    local value = span.valid(call.arguments) and call.arguments or span.quote(call.arguments)
    list[#list + 1] = ('{"type":"toolCall","id":%s,"name":%s,"arguments":%s}'):format(call.id,
      call.name, value)
  end
  return parts.object {
    { "role", '"assistant"' }, { "content", "[" .. table.concat(list, ",") .. "]" },
    { "api", '"sessile"' }, { "provider", '"sessile"' }, { "model", fields.model or '"unknown"' },
    { "usage", usage_of(fields.usage) },
    { "stopReason", #said.calls > 0 and '"toolUse"' or '"stop"' },
    { "timestamp", tostring(time_of(fields, entry)) },
  }
end

local function put_message(self, entry, message)
  put(self, head_of(self, "message", entry) .. ',"message":' .. message .. "}")
  self.names[entry.id] = self.has_ids and '"' .. entry.id .. '"' or nil
end

local function put_result(self, entry, result, fields)
  local content = result.content
  if content and span.string(content) then
    content = ('[{"type":"text","text":%s}]'):format(content)
  elseif not content or span.kind(content) ~= "array" then
    content = "[]"
  end
  put_message(self, entry, parts.object {
    { "role", '"toolResult"' }, { "toolCallId", result.id },
    { "toolName", fields.name or self.tools[span.string(result.id)] or '"unknown"' },
    { "content", content }, { "isError", result.is_error and "true" or "false" },
    { "timestamp", tostring(time_of(fields, entry)) },
  })
end

local function put_other(self, entry, raw, fields)
  local said = conversation.read(raw)
  local _, metadata = span.object(fields.metadata or "null")
  local kind = type(metadata) == "table" and span.string(metadata.kind or nil)
  for _, call in ipairs(said.calls) do
    self.tools[span.string(call.id)] = call.name
  end
  local has_more = said.role ~= "tool" and said.blocks ~= nil and #said.blocks > 0
  for i, result in ipairs(said.results) do
    if i == #said.results and not has_more then
      put_result(self, entry, result, fields)
    else -- one message of ours, several of pi's: each but the last has a name of its own
      local own = { id = ("%s-%d"):format(entry.id, i), parent = entry.parent,
        timestamp = entry.timestamp }
      put_result(self, own, result, fields)
      entry = { id = entry.id, parent = own.id, timestamp = entry.timestamp }
    end
  end
  if #said.results > 0 and not has_more then
    return
  elseif said.role == "assistant" then
    put_message(self, entry, assistant(said, fields, entry))
  elseif kind == "branch_summary" then
    put(self, ('%s,"fromId":"root","summary":%s}'):format(head_of(self, "branch_summary", entry),
      said.text or '""'))
    self.names[entry.id] = self.has_ids and '"' .. entry.id .. '"' or nil
  elseif said.role == "user" and not kind then
    put_message(self, entry, parts.object {
      { "role", '"user"' }, { "content", blocks_of(said) },
      { "timestamp", tostring(time_of(fields, entry)) },
    })
  else
    put(self, ('%s,"customType":%s,"content":%s,"display":true}'):format(
      head_of(self, "custom_message", entry), span.quote(kind or said.role), blocks_of(said)))
    self.names[entry.id] = self.has_ids and '"' .. entry.id .. '"' or nil
  end
end

-- ---------------------------------------------------------------- other entries

local KINDS = {}

function KINDS.message(self, entry, raw)
  if self.after_turn then
    flush(self)
    self.after_turn = false
  end
  local _, fields = span.object(raw)
  local members, own = span.object(fields.pi or "null")
  if members and (own.line or own.message) then
    put_original(self, entry, fields, own)
  else
    put_other(self, entry, raw, fields)
  end
end

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

function KINDS.custom(self, entry, raw)
  local read = kept.read(raw)
  if not (read and read.from == "pi") then
    put(self, ('%s,"customType":%s,"data":%s}'):format(head_of(self, "custom", entry),
      span.quote(read and read.from or "sessile"), raw))
    return
  end
  local line = read.line
  local _, fields = span.object(line)
  fields = type(fields) == "table" and span.valid(line) and fields or {}
  if fields.type and self.label and span.string(fields.type) == "label" then
    self.label = nil
  end
  if fields.type and span.string(fields.type) == "session" and self.needs_ids then
    local members = span.object(line)
    line = '{"version":3,' .. parts.rest(members, { version = 1 }) .. "}"
  elseif fields.type and self.needs_ids and not fields.id then
    local inside = line:match "^%s*{(.*)}%s*$"
    line = "{" .. with_ids(self, inside, fields, entry) .. "}"
  end
  -- A piece of a long line is continued in the next one.
  local last = self.window[#self.window]
  if read.part and read.part > 1 and last then
    last.text = last.text .. line
  else
    put(self, line, read.at)
  end
end

function KINDS.compaction(self, entry, raw)
  flush(self)
  local _, data = span.object(raw)
  for _, one in ipairs(span.array(data.inserted or "[]") or {}) do
    local _, fields = span.object(one)
    if (fields.message or ""):find('"imported":{', 1, true)
      and fields.message:find('"from":"pi"', 1, true) then
      return -- its own line comes next
    end
  end
  if not data.context then
    return
  end
  local first = span.string(data.firstKeptEntryId or nil)
  put(self, ('%s,"summary":%s,"firstKeptEntryId":%s,"tokensBefore":%s}'):format(
    head_of(self, "compaction", entry),
    data.summary and span.string(data.summary) and data.summary
      or '"(Older messages were left out.)"',
    first and self.names[first] or '""', data.tokens_before or "0"))
  self.names[entry.id] = self.has_ids and '"' .. entry.id .. '"' or nil
end

function KINDS.label(self, entry, raw)
  local _, data = span.object(raw)
  local target = self.names[entry.parent]
  if target and span.string(data.label or nil) then
    self.label = ('%s,"targetId":%s%s}'):format(head_of(self, "label", entry), target,
      data.off == "true" and "" or ',"label":' .. data.label)
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
    elseif kind == "message" then
      local _, fields = span.object(entry.data)
      local _, own = span.object(fields.pi or "null")
      strange = strange or type(own) ~= "table"
    end
  end
  self.needs_ids = version == 1 and (moved or strange)
  self.has_ids = self.needs_ids or version ~= 1
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local self = setmetatable({ write = write, window = {}, names = {}, tools = {},
    after_turn = false }, Writer)
  look(self, source)
  if not self.has_header then
    write(('{"type":"session","version":3,"id":%s,"timestamp":"%s","cwd":"/"}\n'):format(
      span.quote(source.facts.id), parts.stamp(source.facts.created)))
  end
  for text in source:texts() do
    local _, entry = span.object(text)
    local one = { id = span.string(entry.id), parent = span.string(entry.parent_id) or "",
      timestamp = entry.timestamp }
    local kind = span.string(entry.type)
    if self.label and kind ~= "custom" then
      put(self, self.label)
      self.label = nil
    end
    if KINDS[kind] then
      KINDS[kind](self, one, entry.data)
    end
    self.names[one.id] = self.names[one.id] or self.names[one.parent]
  end
  if self.label then
    put(self, self.label)
  end
  flush(self)
  local notes = {}
  if self.needs_ids then
    notes[1] = "the recording was a list (version 1); it is a tree now (version 3)"
  end
  return { notes = notes }
end
