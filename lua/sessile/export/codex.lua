--- codex: the conversation as a rollout of Codex (JSON Lines), to be continued there.
--
-- Owns: the lines, a list from the root to the head. Items that came from Codex are written as they
-- came. Must never write a call without its result before the next message.
--
-- What was said is there twice, as Codex records it: as an item for the model, and as an event for
-- the screen and the list of sessions. A compaction is `compacted`, with the whole new context as
-- replacement_history.

local conversation = require "sessile.export.conversation"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local transcript = require "sessile.export.transcript"

local VERSION = "0.90.0" -- of Codex, whose lines these are

local Writer = {}
Writer.__index = Writer

-- ---------------------------------------------------------------- blocks

-- A block in the form of an item's content; nil if it has none.
local function block_of(raw, kind, counts)
  local members, fields = span.object(raw)
  local own = members and span.string(fields.type)
  if own == "text" and span.string(fields.text) then
    return ('{"type":"%s","text":%s}'):format(kind, fields.text)
  elseif own == "input_image" then
    return raw
  elseif own == "image" or own == "image_url" then
    local _, source = span.object(fields.source or fields.image_url or raw)
    source = type(source) == "table" and source or {}
    local media = span.string(source.media_type or source.mimeType or nil)
    local data, url = span.string(source.data or nil), span.string(source.url or nil)
    url = url or media and data and "data:" .. media .. ";base64," .. data
      or span.string(fields.image_url or nil)
    if url then
      return '{"type":"input_image","image_url":' .. span.quote(url) .. "}"
    end
  end
  counts.left_out = counts.left_out + 1
  return nil
end

local function content_of(said, kind, counts)
  if said.text then
    return { ('{"type":"%s","text":%s}'):format(kind, said.text) }
  end
  local out = {}
  for _, raw in ipairs(said.blocks or {}) do
    out[#out + 1] = block_of(raw, kind, counts)
  end
  return out
end

local function message_item(role, blocks)
  return ('{"type":"message","role":"%s","content":[%s]}'):format(role, table.concat(blocks, ","))
end

-- ---------------------------------------------------------------- items

-- Items that the provider runs itself, and reasoning: blocks of ours, as they came.
local ITEMS = { reasoning = 1, web_search_call = 1, file_search_call = 1, code_interpreter_call = 1,
  image_generation_call = 1, mcp_call = 1, mcp_list_tools = 1 }

-- The kinds of the calls of a message that came from Codex, in their order.
local function call_kinds(said)
  local _, own = span.object(said.fields.codex or "null")
  local kinds = {}
  for _, raw in ipairs(span.array(type(own) == "table" and own.items or "[]") or {}) do
    local _, item = span.object(raw)
    if item.call then
      kinds[#kinds + 1] = { kind = span.string(item.type), item = item.item }
    end
  end
  return kinds
end

local function call_item(self, call, origin)
  local kind = origin and origin.kind or "function_call"
  local rest = origin and origin.item and origin.item:match "^{(.*)}$" or ""
  rest = rest ~= "" and "," .. rest or ""
  self.kinds[span.string(call.id)] = kind
  if kind == "custom_tool_call" then
    return ('{"type":"custom_tool_call","call_id":%s,"name":%s,"input":%s%s}'):format(call.id,
      call.name, span.quote(call.arguments), rest)
  elseif kind == "local_shell_call" and span.valid(call.arguments) then
    return ('{"type":"local_shell_call","call_id":%s,"action":%s%s}'):format(call.id,
      call.arguments, rest)
  end
  return ('{"type":"function_call","call_id":%s,"name":%s,"arguments":%s%s}'):format(call.id,
    call.name, span.quote(call.arguments), rest)
end

local function result_item(self, result)
  local kind = self.kinds[span.string(result.id)] == "custom_tool_call" and "custom_tool_call"
    or "function_call"
  local output = result.content
  local list = output and span.array(output)
  if list then
    local blocks = {}
    for _, raw in ipairs(list) do
      blocks[#blocks + 1] = block_of(raw, "input_text", self)
    end
    output = "[" .. table.concat(blocks, ",") .. "]"
  elseif not output or not span.string(output) then
    output = '""'
  end
  return ('{"type":"%s_output","call_id":%s,"output":%s}'):format(kind, result.id, output)
end

-- The items of an assistant's message: its text between reasoning and calls.
local function assistant_items(self, said)
  local out, blocks = {}, {}
  local function flush()
    if #blocks > 0 then
      out[#out + 1] = message_item("assistant", blocks)
      blocks = {}
    end
  end
  local text = said.text and '{"type":"text","text":' .. said.text .. "}"
  for _, raw in ipairs(said.blocks or { text }) do
    local _, fields = span.object(raw)
    if ITEMS[type(fields) == "table" and span.string(fields.type or nil) or ""] then
      flush()
      out[#out + 1] = raw
    else
      blocks[#blocks + 1] = block_of(raw, "output_text", self)
    end
  end
  flush()
  local kinds = call_kinds(said)
  for i, call in ipairs(said.calls) do
    out[#out + 1] = call_item(self, call, #kinds == #said.calls and kinds[i] or nil)
  end
  return out
end

local ROLE = { system = "developer", user = "user" }

-- The items of a message.
local function items_of(self, said)
  if said.role == "assistant" then
    return assistant_items(self, said)
  end
  local out = {}
  for i, result in ipairs(said.results) do
    out[i] = result_item(self, result)
  end
  if #out == 0 then
    local blocks = content_of(said, "input_text", self)
    out[1] = #blocks > 0 and message_item(ROLE[said.role] or "user", blocks) or nil
  end
  return out
end

-- ---------------------------------------------------------------- lines

local function put(self, kind, payload)
  self.write(('{"timestamp":"%s","type":"%s","payload":%s}\n'):format(parts.stamp(self.time), kind,
    (payload:gsub("[\r\n]", " "))))
end

-- What the screen shows of a message.
local function put_event(self, said)
  local texts = {}
  for _, raw in ipairs(said.blocks or {}) do
    local _, fields = span.object(raw)
    local is_text = type(fields) == "table" and span.string(fields.type or nil) == "text"
    texts[#texts + 1] = is_text and span.string(fields.text or nil) or nil
  end
  local text = said.text or #texts > 0 and span.quote(table.concat(texts, "\n"))
  local _, metadata = span.object(said.fields.metadata or "null")
  if not text or type(metadata) == "table" and metadata.kind then
    return
  elseif said.role == "user" and #said.results == 0 then
    put(self, "event_msg", '{"type":"user_message","message":' .. text .. ',"kind":"plain"}')
  elseif said.role == "assistant" then
    put(self, "event_msg", '{"type":"agent_message","message":' .. text .. "}")
  end
end

function Writer:message(said)
  self.time = transcript.time(said) or self.time
  local items = items_of(self, said)
  self.empty = self.empty + (#items == 0 and 1 or 0)
  for _, item in ipairs(items) do
    put(self, "response_item", item)
  end
  put_event(self, said)
end

function Writer:compaction(_, list)
  local items, summary = {}, ""
  for i, said in ipairs(list) do
    local own = items_of(self, said)
    table.move(own, 1, #own, #items + 1, items)
    if i == 1 and said.role == "user" and said.key:find(".", 1, true) and said.text then
      summary = span.string(said.text)
    end
  end
  put(self, "compacted", ('{"message":%s,"replacement_history":[%s]}'):format(span.quote(summary),
    table.concat(items, ",")))
end

local WRITTEN = { id = 1, session_id = 1, timestamp = 1, cwd = 1, source = 1, originator = 1,
  cli_version = 1, git = 1 }

-- The members of the recorded header that are not written again.
local function recorded_header(source)
  for text in source:texts() do
    local _, entry = span.object(text)
    local read = span.string(entry.type) == "custom" and kept.read(entry.data)
    local _, line = span.object(read and read.from == "codex" and read.line or "null")
    line = type(line) == "table" and line or {}
    if line.payload and span.string(line.type or nil) == "session_meta" then
      return parts.rest(span.object(line.payload) or {}, WRITTEN)
    elseif span.string(entry.type) == "message" then
      return ""
    end
  end
  return ""
end

local function put_header(self, source)
  local origin = self.origin
  local rest = recorded_header(source)
  put(self, "session_meta", ('{"id":"%s","timestamp":"%s","cwd":%s,"originator":"codex_cli_rs",'
    .. '"cli_version":"%s","source":"cli"%s%s}'):format(origin.id, parts.stamp(origin.created),
    span.quote(origin.cwd), VERSION, origin.branch and ',"git":{"branch":'
    .. span.quote(origin.branch) .. "}" or "", rest ~= "" and "," .. rest or ""))
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local origin = transcript.origin(source.session, source.cwd, source.redactor)
  local self = setmetatable({ write = write, origin = origin, kinds = {}, time = origin.created,
    left_out = 0, empty = 0 }, Writer)
  put_header(self, source)
  local mended = transcript.each(source, self)
  local title = source.facts.title
  if title and title ~= "" then
    put(self, "event_msg", ('{"type":"thread_name_updated","thread_id":"%s","thread_name":%s}')
      :format(origin.id, span.quote(title)))
  end
  local notes = {}
  transcript.tell(mended, notes)
  conversation.tell_left_out(self, notes)
  return { notes = notes }
end
