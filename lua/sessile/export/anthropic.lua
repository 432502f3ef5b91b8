--- anthropic: the conversation as a request of Anthropic's Messages API: {"system", "messages"}.
--
-- Owns: the form of a message, the alternation of user and assistant, and the separate system
-- prompt. Must never write what that API refuses: see conversation.lua. A session that was imported
-- from a document gets the other members of the document back.

local conversation = require "sessile.export.conversation"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span

-- The API allows only these characters in names of calls.
local function clean_id(raw)
  return span.quote((span.string(raw):gsub("[^%w_-]", "_")))
end

local function image_of(raw)
  local _, fields = span.object(raw)
  local media, data = span.string(fields.mimeType), span.string(fields.data)
  local _, nested = span.object(fields.image_url or "null")
  local url = span.string(type(nested) == "table" and nested.url or fields.image_url or nil)
  if url and not data then
    media, data = url:match "^data:([^;,]+);base64,(.*)$"
  end
  if media and data then
    return ('{"type":"image","source":{"type":"base64","media_type":%s,"data":%s}}'):format(
      span.quote(media), span.quote(data))
  end
  return url and '{"type":"image","source":{"type":"url","url":' .. span.quote(url) .. "}}" or nil
end

local PASS = { document = 1, redacted_thinking = 1, search_result = 1, server_tool_use = 1,
  web_search_tool_result = 1, code_execution_tool_result = 1, container_upload = 1 }

-- A block in the form of this API; nil if it has none or refuses it.
local function block_of(raw, counts)
  local members, fields = span.object(raw)
  local kind = members and span.string(fields.type)
  if kind == "text" and span.string(fields.text) then
    if not span.string(fields.text):find "%S" then
      return nil -- an empty text is refused
    end
    local rest = parts.rest(members, { type = 1, text = 1, textSignature = 1, annotations = 1,
      logprobs = 1 })
    return ('{"type":"text","text":%s%s}'):format(fields.text, rest ~= "" and "," .. rest or "")
  elseif kind == "thinking" and span.string(fields.thinking) then
    local signature = fields.signature or fields.thinkingSignature
    if span.string(signature or nil) then
      return ('{"type":"thinking","thinking":%s,"signature":%s}'):format(fields.thinking, signature)
    end
  elseif kind == "image" and fields.source or PASS[kind] then
    return raw
  elseif kind == "image" or kind == "image_url" or kind == "input_image" then
    local image = image_of(raw)
    if image then
      return image
    end
  end
  counts.left_out = counts.left_out + 1
  return nil
end

-- The blocks of a content, which is a text or blocks.
local function blocks_of(said, counts)
  if said.text then
    local is_empty = not span.string(said.text):find "%S"
    return is_empty and {} or { '{"type":"text","text":' .. said.text .. "}" }
  end
  local out = {}
  for _, raw in ipairs(said.blocks or {}) do
    out[#out + 1] = block_of(raw, counts)
  end
  return out
end

local function call_block(call, counts)
  local input = call.input
  if not input then
    local is_object = span.valid(call.arguments) and span.kind(call.arguments) == "object"
    input = is_object and call.arguments or '{"arguments":' .. span.quote(call.arguments) .. "}"
    counts.wrapped = counts.wrapped + (is_object and 0 or 1)
  end
  local more = ""
  if call.input then
    local members = span.object(call.raw)
    more = parts.rest(members, { type = 1, id = 1, name = 1, input = 1 })
  end
  return ('{"type":"tool_use","id":%s,"name":%s,"input":%s%s}'):format(clean_id(call.id), call.name,
    input, more ~= "" and "," .. more or "")
end

local function result_block(result, counts)
  if result.raw then
    local members = span.object(result.raw)
    local rest = parts.rest(members, { type = 1, tool_use_id = 1 })
    return ('{"type":"tool_result","tool_use_id":%s%s}'):format(clean_id(result.id),
      rest ~= "" and "," .. rest or "")
  end
  local content = result.content
  local list = content and span.array(content)
  if list then
    local out = {}
    for _, raw in ipairs(list) do
      out[#out + 1] = block_of(raw, counts)
    end
    content = #out > 0 and "[" .. table.concat(out, ",") .. "]" or nil
  elseif not span.string(content or nil) then
    content = nil
  end
  return parts.object {
    { "type", '"tool_result"' }, { "tool_use_id", clean_id(result.id) }, { "content", content },
    { "is_error", result.is_error and "true" or nil },
  }
end

-- ---------------------------------------------------------------- turns

local Writer = {}
Writer.__index = Writer

-- Writes the message that was collected.
local function flush(self)
  local role, text, blocks = self.role, self.text, self.blocks
  self.role, self.text, self.blocks = nil, nil, {}
  if not role then
    return
  elseif self.first and role == "assistant" then
    self.write '\n{"role":"user","content":"(The conversation begins with an answer.)"}'
    self.first, self.begun = false, true
  end
  self.write(('%s{"role":"%s","content":%s}'):format(self.first and "\n" or ",\n", role,
    text or "[" .. table.concat(blocks, ",") .. "]"))
  self.first = false
end

-- Adds to the message of that role. text: the original content, if it is the only one.
local function add(self, role, blocks, text)
  if #blocks == 0 then
    self.empty = self.empty + 1
    return
  elseif self.role ~= role then
    flush(self)
    self.role, self.text = role, text
  else
    self.text = nil
  end
  for _, block in ipairs(blocks) do
    self.blocks[#self.blocks + 1] = block
  end
end

function Writer:put(said)
  local blocks = {}
  if said.role == "tool" and #said.results > 0 then
    for i, result in ipairs(said.results) do
      blocks[i] = result_block(result, self)
    end
    return add(self, "user", blocks)
  elseif said.role == "system" then
    self.system_later = self.system_later + 1
  end
  blocks = blocks_of(said, self)
  if said.role ~= "assistant" then
    return add(self, "user", blocks, said.role ~= "tool" and said.text or nil)
  end
  for _, call in ipairs(said.calls) do
    blocks[#blocks + 1] = call_block(call, self)
  end
  return add(self, "assistant", blocks, #said.calls == 0 and said.text or nil)
end

-- The system messages at the beginning: a single one unchanged, several as blocks.
local function system_of(list, counts)
  if #list == 1 then
    local content = list[1].fields.content
    return list[1].text and span.string(content):find "%S" and content
      or #blocks_of(list[1], counts) > 0 and "[" .. table.concat(blocks_of(list[1], {
        left_out = 0 }), ",") .. "]" or nil
  end
  local blocks = {}
  for _, said in ipairs(list) do
    for _, block in ipairs(blocks_of(said, counts)) do
      blocks[#blocks + 1] = block
    end
  end
  return #blocks > 0 and "[" .. table.concat(blocks, ",") .. "]" or nil
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local rest, imported = conversation.rest(source, "anthropic")
  local self = setmetatable({ write = write, first = true, blocks = {}, left_out = 0, empty = 0,
    wrapped = 0, system_later = 0 }, Writer)
  local opening, is_list = {}, nil
  local function begin()
    local system = system_of(opening, self)
    is_list = imported and #rest == 0 and not system
    write(is_list and "[" or "{")
    write(system and '"system":' .. system .. ",\n" or "")
    write(is_list and "" or '"messages":[')
    opening = nil
  end
  local mended = conversation.each(source, function(said)
    if opening and said.role == "system" then
      opening[#opening + 1] = said
    else
      if opening then
        begin()
      end
      self:put(said)
    end
  end)
  if opening then
    begin()
  end
  flush(self)
  write "\n]"
  for _, member in ipairs(not is_list and rest or {}) do
    if member.key ~= "messages" and member.key ~= "system" then
      write(",\n" .. member.raw_key .. ":" .. member.raw)
    end
  end
  write(is_list and "\n" or "}\n")
  local notes = {}
  conversation.tell(mended, notes)
  conversation.tell_left_out(self, notes)
  conversation.note(notes, self.wrapped,
    "%d call has arguments that are no object: they stand in one",
    "%d calls have arguments that are no object: they stand in one")
  conversation.note(notes, self.system_later,
    "%d system message comes after others: it is the user's there",
    "%d system messages come after others: they are the user's there")
  if self.begun then
    notes[#notes + 1] = "a message of the user was put before the answer that came first"
  end
  return { notes = notes }
end
