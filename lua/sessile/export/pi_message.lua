--- pi_message: the forms that messages have in pi.
--
-- Owns: a message that came from pi, put together again, and the blocks, usage and calls of anybody
-- else's in pi's words. Must never write a line: pi.lua does.

local dialect = require "sessile.dialect"
local conversation = require "sessile.export.conversation"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span

local math = dialect.math

local pi_message = {}

local ROLE = { tool = "toolResult" }

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

--- A message that came from pi.
---@param fields table<string, string>  of ours
---@param own table<string, string>  what was kept of pi's
---@return string json
function pi_message.original(fields, own)
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

local ZERO = '{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}'

local function usage_of(raw)
  local n = conversation.usage_reader(raw)
  return ('{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,"cost":%s}'):format(n "input",
    n "output", n "cache_read", n "cache_write", ZERO)
end

--- The time of the message, else of the entry, in ms.
function pi_message.time(fields, entry)
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

--- The content of a message: blocks.
function pi_message.blocks(said)
  return "[" .. table.concat(list_of(said), ",") .. "]"
end

--- A message of the assistant.
function pi_message.assistant(said, fields, entry)
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
    { "timestamp", tostring(pi_message.time(fields, entry)) },
  }
end

--- A tool's result.
---@param result sessile.export.result
---@param name string  of the tool, as JSON
---@param fields table<string, string>
---@param entry table
---@return string json
function pi_message.result(result, name, fields, entry)
  local content = result.content
  if content and span.string(content) then
    content = ('[{"type":"text","text":%s}]'):format(content)
  elseif not content or span.kind(content) ~= "array" then
    content = "[]"
  end
  return parts.object {
    { "role", '"toolResult"' }, { "toolCallId", result.id }, { "toolName", name },
    { "content", content }, { "isError", result.is_error and "true" or "false" },
    { "timestamp", tostring(pi_message.time(fields, entry)) },
  }
end

--- A message of the user.
function pi_message.user(said, fields, entry)
  return parts.object {
    { "role", '"user"' }, { "content", pi_message.blocks(said) },
    { "timestamp", tostring(pi_message.time(fields, entry)) },
  }
end

return pi_message
