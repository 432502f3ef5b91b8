--- anthropic_message: the forms of blocks in Anthropic's Messages API.
--
-- Owns: what of a message that API takes: its blocks, calls and results. Claude Code records the
-- same blocks. Must never write a message: anthropic.lua and claude.lua do.

local parts = require "sessile.import.parts"
local span = require("sessile.core").span

local anthropic_message = {}

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

--- The blocks of a content, which is a text or blocks. `counts.left_out` counts what has no form.
---@param said sessile.export.said
---@param counts {left_out: integer}
---@return string[]
function anthropic_message.blocks(said, counts)
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

--- A call. `counts.wrapped` counts arguments that are no object.
---@param call sessile.export.call
---@param counts {wrapped: integer}
---@return string
function anthropic_message.call(call, counts)
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

--- A result.
---@param result sessile.export.result
---@param counts {left_out: integer}
---@return string
function anthropic_message.result(result, counts)
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

return anthropic_message
