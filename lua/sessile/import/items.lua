--- items: the items of OpenAI's Responses API, which Codex records too.
--
-- Owns: how items become messages. Consecutive items of the assistant (reasoning, text, calls)
-- become one message, since its calls are answered together. Must never lose the boundaries of
-- items: their other fields are in `items` of the message.
--
-- What maps:
--   message                     its role; input_text and output_text become text blocks
--   reasoning, calls that the provider runs itself    a content block, as it stands
--   function_call, custom_tool_call, local_shell_call  an element of tool_calls
--   …_output                    a message of role tool

local parts = require "sessile.import.parts"
local span = require("sessile.core").span

local items = {}

local ROLES = { user = true, assistant = true, system = true, developer = true }

-- The types of text blocks.
local TEXT = { input_text = true, output_text = true }

local function block_of(raw, names)
  local members, fields = parts.members(raw)
  local kind = members and span.string(fields.type)
  if not TEXT[kind] then
    names[#names + 1] = "null"
    return raw
  end
  names[#names + 1] = fields.type
  local rest = parts.rest(members, { type = 1 })
  return '{"type":"text"' .. (rest ~= "" and "," .. rest or "") .. "}"
end

-- Converts content; also returns the types of its blocks if they are not the usual ones.
local function content_of(raw, usual)
  if not raw then
    return nil
  elseif span.kind(raw) == "string" then
    return raw
  end
  local blocks = span.array(raw)
  if not blocks then
    return nil
  end
  local out, names, odd = {}, {}, false
  for i, block in ipairs(blocks) do
    out[i] = block_of(block, names)
    odd = odd or names[i] ~= "null" and names[i] ~= usual
  end
  return "[" .. table.concat(out, ",") .. "]",
    odd and "[" .. table.concat(names, ",") .. "]" or nil, out
end

-- ---------------------------------------------------------------- the assistant's message

local function open_message(collector)
  local message = collector.assistant
  if not message then
    message = { lines = {}, blocks = {}, calls = {}, items = {} }
    collector.assistant = message
  end
  local last = message.lines[#message.lines]
  if last ~= collector.at then
    message.lines[#message.lines + 1] = collector.at
  end
  message.offset = collector.line_end
  return message
end

--- Ends the assistant's message that is being collected.
---@param collector table
function items.flush(collector)
  local message = collector.assistant
  collector.assistant = nil
  if not message then
    return
  end
  local content = message.text or "[" .. table.concat(message.blocks, ",") .. "]"
  collector:message(parts.object {
    { "role", '"assistant"' }, { "content", content },
    { "tool_calls", #message.calls > 0 and "[" .. table.concat(message.calls, ",") .. "]" or nil },
    { "model", collector.model and span.quote(collector.model) },
    { "timestamp", message.timestamp and tostring(message.timestamp) },
    { "usage", message.usage and collector.usage_json(message.usage) },
    { collector.from, '{"items":[' .. table.concat(message.items, ",") .. "]}" },
  }, {
    lines = #message.lines > 1 and message.lines or message.lines[1], offset = message.offset,
    usage = message.usage, model = collector.model,
  })
end

-- The other fields of an item, as JSON.
local function describe(fields, members, taken, more, wrapper)
  taken.type = 1
  return parts.object {
    { "type", fields.type },
    { "line", wrapper and wrapper ~= "" and "{" .. wrapper .. "}" or nil },
    { "item", parts.braced(parts.rest(members, taken)) },
    { more and more[1] or "blocks", more and more[2] },
    { "names", more and more[3] },
  }
end

-- ---------------------------------------------------------------- kinds of items

local KINDS = {}

local function put_block(collector, raw, fields, wrapper, timestamp)
  local message = open_message(collector)
  if message.text then
    message.blocks[1] = '{"type":"text","text":' .. message.text .. "}"
    message.text = nil
  end
  message.blocks[#message.blocks + 1] = raw
  message.timestamp = message.timestamp or timestamp
  table.insert(message.items, parts.object {
    { "type", fields.type }, { "line", parts.braced(wrapper) }, { "blocks", "1" },
  })
  return true
end

function KINDS.message(collector, raw, members, fields, wrapper, timestamp)
  local role = span.string(fields.role)
  if not ROLES[role or ""] then
    return false, fields.role and "unknown role " .. fields.role:sub(1, 40) or "it has no role"
  end
  local assistant = role == "assistant"
  local content, names, blocks = content_of(fields.content,
    assistant and '"output_text"' or '"input_text"')
  if not content then
    return false, "its content is neither text nor blocks"
  end
  if not assistant then
    items.flush(collector)
    local first = blocks and #blocks == 1 and select(2, parts.members(blocks[1])) or {}
    local text = span.string(first.text or not blocks and content or nil) or ""
    local context = role == "user" and (text:find "^<environment_context>"
      or text:find "^<user_instructions>") ~= nil
    local others = describe(fields, members, { role = 1, content = 1 },
      { "names", names }, wrapper)
    collector:message(parts.object {
      { "role", fields.role }, { "content", content },
      { "timestamp", timestamp and tostring(timestamp) },
      { "metadata", context and '{"kind":"context"}' or nil },
      { collector.from, (wrapper ~= "" or fields.type or others ~= "{}") and others ~= "{}"
        and others or nil },
    }, { starts_turn = role == "user" and not context })
    return true
  end
  local message = open_message(collector)
  if not blocks and #message.blocks == 0 and not message.text then
    message.text = content
  else
    if message.text then
      message.blocks[1] = '{"type":"text","text":' .. message.text .. "}"
      message.text = nil
    end
    for _, block in ipairs(blocks or { '{"type":"text","text":' .. content .. "}" }) do
      message.blocks[#message.blocks + 1] = block
    end
  end
  message.timestamp = message.timestamp or timestamp
  table.insert(message.items, describe(fields, members, { role = 1, content = 1 },
    { "blocks", blocks and tostring(#blocks) or '"text"', names }, wrapper))
  return true
end

function KINDS.reasoning(collector, raw, _, fields, wrapper, timestamp)
  return put_block(collector, raw, fields, wrapper, timestamp)
end

-- Adds a call. name and arguments are JSON strings.
local function put_call(collector, members, fields, wrapper, timestamp, call)
  local id = span.string(fields.call_id) and fields.call_id or span.string(fields.id) and fields.id
  if not (id and call.name and call.arguments) then
    return false, "its call has no id, name or arguments"
  end
  local message = open_message(collector)
  message.timestamp = message.timestamp or timestamp
  message.calls[#message.calls + 1] = ('{"id":%s,"name":%s,"arguments":%s}'):format(id, call.name,
    call.arguments)
  table.insert(message.items, describe(fields, members, call.taken, { "call", fields.call_id and "1"
    or '"id"' }, wrapper))
  return true
end

-- A call whose arguments are the text in the field `name`.
local function call_with(name)
  return function(collector, _, members, fields, wrapper, timestamp)
    local is_text = span.string(fields[name]) and span.string(fields.name)
    return put_call(collector, members, fields, wrapper, timestamp, {
      name = is_text and fields.name, arguments = is_text and fields[name],
      taken = { name = 1, [name] = 1, call_id = 1 },
    })
  end
end

KINDS.function_call = call_with "arguments"
KINDS.custom_tool_call = call_with "input"

function KINDS.local_shell_call(collector, _, members, fields, wrapper, timestamp)
  return put_call(collector, members, fields, wrapper, timestamp, {
    name = '"local_shell"', arguments = fields.action and span.quote(fields.action),
    taken = { action = 1, call_id = 1 },
  })
end

-- The result of a call: a text, blocks, or an object with a text.
local function put_output(collector, _, members, fields, wrapper, timestamp)
  if not span.string(fields.call_id) or not fields.output then
    return false, "its output names no call"
  end
  items.flush(collector)
  local content, names = content_of(fields.output, '"input_text"')
  local taken = { call_id = 1, output = 1 }
  if not content then
    local _, inner = parts.members(fields.output)
    content = inner and span.string(inner.content) and inner.content or span.quote(fields.output)
    taken.output = nil
  end
  collector:message(parts.object {
    { "role", '"tool"' }, { "tool_call_id", fields.call_id }, { "content", content },
    { "timestamp", timestamp and tostring(timestamp) },
    { collector.from, describe(fields, members, taken, { "names", names }, wrapper) },
  }, {})
  return true
end

KINDS.function_call_output = put_output
KINDS.custom_tool_call_output = put_output
KINDS.local_shell_call_output = put_output

for _, name in ipairs { "web_search_call", "file_search_call", "code_interpreter_call",
  "image_generation_call", "mcp_call", "mcp_list_tools" } do
  KINDS[name] = KINDS.reasoning
end

--- Whether this is the type of an item.
---@param kind string?
---@return boolean
function items.is_kind(kind)
  return KINDS[kind or ""] ~= nil
end

--- Adds one item. Returns true; or false and, if it is an invalid item, a sentence.
---@param collector table
---@param raw string
---@param wrapper string?     the inside of what stood around it
---@param timestamp integer?  ms
---@return boolean taken
---@return string? why
function items.feed(collector, raw, wrapper, timestamp)
  local members, fields = parts.members(raw)
  if not members then
    return false, "it is no JSON object, or has a key twice"
  end
  local kind = span.string(fields.type) or fields.role and "message"
  local put = KINDS[kind or ""]
  if not put then
    return false
  end
  return put(collector, raw, members, fields, wrapper or "", timestamp)
end

return items
