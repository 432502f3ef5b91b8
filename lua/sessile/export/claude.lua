--- claude: the conversation as a session of Claude Code (JSON Lines), to be continued there.
--
-- Owns: the lines, a chain from the root to the head. What came from Claude Code keeps its uuid,
-- its times and its other members. Must never write a block that Anthropic's API refuses.
--
-- A compaction is a compact_boundary, then the messages that it wrote. Messages that stayed are not
-- written again: preservedMessages of the boundary names them in their order, and the reader links
-- them after the anchor, the last line before them. A reader that does not know them continues with
-- the whole conversation.

local dialect = require "sessile.dialect"
local blocks_in = require "sessile.export.anthropic_message"
local conversation = require "sessile.export.conversation"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local transcript = require "sessile.export.transcript"

local math = dialect.math

local VERSION = "2.1.0" -- of Claude Code, whose lines these are

local Writer = {}
Writer.__index = Writer

-- ---------------------------------------------------------------- lines

-- A line with this uuid. inside: its own members.
local function line_of(self, uuid, parent, inside)
  return ('{"parentUuid":%s,"isSidechain":false,"sessionId":"%s",%s,"uuid":"%s"}\n'):format(
    parent and '"' .. parent .. '"' or "null", self.origin.id, inside:gsub("[\r\n]", " "), uuid)
end

-- The members that all lines of ours have.
local function common(self, kind)
  return ('"userType":"external","cwd":%s,"version":"%s","gitBranch":%s,"type":"%s",'
    .. '"timestamp":"%s"'):format(span.quote(self.origin.cwd), VERSION,
    span.quote(self.origin.branch or ""), kind, parts.stamp(self.time))
end

-- The members of the line and of the message that Claude Code recorded, or {}, {}.
local function recorded(said)
  local _, own = span.object(said.fields.claude or "null")
  own = type(own) == "table" and own or {}
  local lines = span.array(own.lines or "null")
  if lines then -- a line for each block: this message is the last of them
    _, own = span.object(lines[#lines] or "null")
    own = type(own) == "table" and own or {}
  end
  return span.object(own.line or "{}") or {}, span.object(own.message or "{}") or {}
end

local OURS = { parentUuid = 1, logicalParentUuid = 1, isSidechain = 1, sessionId = 1, agentId = 1,
  uuid = 1, message = 1 }

-- ---------------------------------------------------------------- messages

local function usage_of(raw)
  local n = conversation.usage_reader(raw)
  return ('{"input_tokens":%d,"output_tokens":%d,"cache_read_input_tokens":%d,'
    .. '"cache_creation_input_tokens":%d}'):format(n "input", n "output", n "cache_read",
    n "cache_write")
end

-- The message of a line, as JSON; nil if nothing of it is left.
local function message_of(self, said, uuid, rest)
  if said.role == "assistant" then
    local blocks = blocks_in.blocks(said, self)
    for _, call in ipairs(said.calls) do
      blocks[#blocks + 1] = blocks_in.call(call, self)
    end
    local model = said.fields.model and span.string(said.fields.model) and said.fields.model
    rest = rest ~= "" and rest or ('"id":"msg_%s","type":"message","stop_reason":"%s",'
      .. '"stop_sequence":null,"usage":%s'):format(uuid:gsub("-", ""), #said.calls > 0
      and "tool_use" or "end_turn", usage_of(said.fields.usage))
    return #blocks > 0 and ('{"role":"assistant","model":%s,"content":[%s],%s}'):format(
      model or '"unknown"', table.concat(blocks, ","), rest) or nil
  end
  local blocks = {}
  for i, result in ipairs(said.results) do
    blocks[i] = blocks_in.result(result, self)
  end
  if #blocks == 0 then
    self.system = self.system + (said.role == "system" and 1 or 0)
    blocks = blocks_in.blocks(said, self)
  end
  local content = said.text and #said.results == 0 and said.text
    or "[" .. table.concat(blocks, ",") .. "]"
  return #blocks > 0 and ('{"role":"user","content":%s%s}'):format(content,
    rest ~= "" and "," .. rest or "") or nil
end

-- What tells a message that the user did not write.
local function flag_of(said, is_summary)
  local _, metadata = span.object(said.fields.metadata or "null")
  local kind = type(metadata) == "table" and metadata.kind
  if is_summary then
    return ',"isCompactSummary":true,"isVisibleInTranscriptOnly":true'
  end
  return (kind or said.role == "system") and said.role ~= "assistant" and ',"isMeta":true' or ""
end

-- The uuid that Claude Code recorded, else one that is always the same.
local function uuid_of(self, said, line)
  local recorded_one
  for _, member in ipairs(not said.is_part and line or {}) do
    recorded_one = member.key == "uuid" and span.string(member.raw) or recorded_one
  end
  local uuid, n = recorded_one, 0
  while not uuid or self.taken[uuid] do
    uuid = transcript.uuid(self.origin.id, said.key, tostring(n))
    n = n + 1
  end
  self.taken[uuid] = true
  return uuid
end

-- A message behind `parent`: its line and its uuid; nil if nothing is left of it.
local function message_line(self, said, parent, is_summary)
  local line, message = recorded(said)
  local uuid = uuid_of(self, said, line)
  local text = message_of(self, said, uuid, parts.rest(message, {}))
  self.names[said.key] = self.names[said.key] or {} -- its results may have a line of their own
  table.insert(self.names[said.key], text and uuid)
  if not text then
    self.empty = self.empty + 1
    return nil
  end
  self.time = transcript.time(said) or self.time
  local rest = parts.rest(line, OURS)
  if rest == "" then
    rest = common(self, said.role == "assistant" and "assistant" or "user")
      .. flag_of(said, is_summary)
  end
  return line_of(self, uuid, parent, rest .. ',"message":' .. text), uuid
end

function Writer:message(said)
  local line, uuid = message_line(self, said, self.last)
  if line then
    self.write(line)
    self.last, self.ends = uuid, false
  end
end

-- ---------------------------------------------------------------- compactions

local function boundary_line(self, entry, uuid, kept, anchor)
  local _, data = span.object(entry.data)
  local list = '["' .. table.concat(kept, '","') .. '"]'
  local preserved = ',"preservedMessages":{"anchorUuid":"%s","uuids":%s,"allUuids":%s}'
  local about = ('{"trigger":"manual","preTokens":%d%s}'):format(
    math.tointeger(tonumber(data.tokens_before)) or 0,
    #kept > 0 and preserved:format(anchor, list, list) or "")
  return line_of(self, uuid, nil, ('%s,"subtype":"compact_boundary","isMeta":false,"level":"info",'
    .. '"content":"Conversation compacted"%s,"compactMetadata":%s'):format(common(self, "system"),
    self.last and ',"logicalParentUuid":"' .. self.last .. '"' or "", about))
end

-- Writes the boundary, then the lines of the messages that are new.
function Writer:compaction(entry, list)
  local boundary = transcript.uuid(self.origin.id, span.string(entry.id))
  local anchor, kept, new, there = boundary, {}, {}, {}
  for i, said in ipairs(list) do
    local key = said.key
    if there[key] == nil then
      there[key] = self.names[key] ~= nil
      table.move(self.names[key] or {}, 1, #(self.names[key] or {}), #kept + 1, kept)
    end
    if not there[key] then
      local is_summary = i == 1 and said.role == "user" and key:find(".", 1, true)
      local line, uuid = message_line(self, said, #kept == 0 and anchor or boundary, is_summary)
      new[#new + 1] = line
      if #kept > 0 then
        kept[#kept + 1] = uuid
      else
        anchor = uuid or anchor
      end
    end
  end
  self.write(boundary_line(self, entry, boundary, kept, anchor))
  for _, line in ipairs(new) do
    self.write(line)
  end
  self.last, self.ends = kept[#kept] or anchor, #kept > 0
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local origin = transcript.origin(source.session, source.cwd, source.redactor)
  local self = setmetatable({ write = write, origin = origin, names = {}, taken = {},
    time = origin.created, left_out = 0, empty = 0, wrapped = 0, system = 0 }, Writer)
  local mended = transcript.each(source, self)
  if self.ends then
    -- The reader continues at the last line that has no successor. Without this line, that may be a
    -- message that an undone compaction wrote.
    write(line_of(self, transcript.uuid(origin.id, "end"), self.last, common(self, "system")
      .. ',"subtype":"informational","content":"Exported by sessile","isMeta":false,'
      .. '"level":"info"'))
  end
  if source.facts.title and source.facts.title ~= "" then
    write(('{"type":"custom-title","sessionId":"%s","customTitle":%s}\n'):format(origin.id,
      span.quote(source.facts.title)))
  end
  local notes = {}
  transcript.tell(mended, notes)
  conversation.tell_left_out(self, notes)
  conversation.note(notes, self.wrapped,
    "%d call has arguments that are no object: they stand in one",
    "%d calls have arguments that are no object: they stand in one")
  conversation.note(notes, self.system, "%d system message is the user's there",
    "%d system messages are the user's there")
  return { notes = notes }
end
