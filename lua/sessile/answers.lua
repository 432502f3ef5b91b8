-- answers.lua: converts what models and tools return to messages.
--
-- A host's model may return a text, a message, or a provider's nested tool calls; a tool may return
-- any value. This file makes one kind of message of them. It never writes and never calls anybody.

local characters = require "sessile.characters"
local core = require "sessile.core"

local answers = {}

--- The value of a JSON text; nil and the error. names: a set of members that stay texts.
function answers.decode(text, names)
  local value = core.decode(text, names)
  if value == nil then
    return nil, "not JSON"
  end
  return value
end

-- {"type":"function","function":{"name":…,"arguments":…}} and the like become flat, keeping
-- what else the call has. Arguments are a JSON text.
local function flat_call(call, fallback)
  local flat = {}
  for key, value in pairs(call) do
    flat[key] = value
  end
  local inner = call["function"]
  if type(inner) == "table" then
    flat["function"], flat.type = nil, nil
    flat.name = flat.name or inner.name
    if flat.arguments == nil then
      flat.arguments = inner.arguments
    end
  end
  flat.id = flat.id or fallback
  if flat.arguments == nil then
    flat.arguments = "{}"
  elseif type(flat.arguments) == "table" then
    flat.arguments = core.text(flat.arguments)
  end
  return flat
end

--- A model's answer as a message of the assistant. name: the prefix of ids for calls without one.
--- nil and a reason if it is neither a text nor a message.
function answers.message(answer, name)
  if type(answer) == "string" then
    return { role = "assistant", content = answer }
  end
  if type(answer) ~= "table" then
    return nil, ("the model answered with a %s, not with a text or a message")
      :format(type(answer))
  end
  local message = {}
  for key, value in pairs(answer) do
    message[key] = value
  end
  if message.json and message.role == nil then
    local decoded = answers.decode(message.json)
    if type(decoded) ~= "table" then
      return nil, "the model's answer is not a JSON object"
    end
    message = decoded
  end
  message.role = message.role or "assistant"
  if message.role ~= "assistant" and message.role ~= "model" then
    return nil, ("the model answered as '%s'"):format(tostring(message.role))
  end
  if message.content == nil and message.tool_calls == nil then
    return nil, "the model's answer has neither content nor tool_calls"
  end
  if type(message.tool_calls) == "table" then
    local calls = {}
    for i, call in ipairs(message.tool_calls) do
      if type(call) ~= "table" then
        return nil, "the model's answer has a tool call that is not a table"
      end
      calls[i] = flat_call(call, ("%s_%d"):format(name, i))
      if type(calls[i].name) ~= "string" or type(calls[i].arguments) ~= "string" then
        return nil, "the model's answer has a tool call without a name or arguments"
      end
    end
    message.tool_calls = #calls > 0 and calls or nil
  end
  return message
end

--- The text of a message: its content, or its text blocks.
function answers.text(message)
  local content = type(message) == "table" and message.content or message
  if type(content) ~= "table" then
    return type(content) == "string" and content or ""
  end
  local parts = {}
  for _, block in ipairs(content) do
    if type(block) == "table" and block.type == "text" and type(block.text) == "string" then
      parts[#parts + 1] = block.text
    end
  end
  return table.concat(parts, "\n")
end

--- The members of a message in which endpoints report a model's reasoning as text.
answers.reasoning_members = { "reasoning_content", "reasoning" }

--- The reasoning of a message as text; nil: it has none.
function answers.reasoning(message)
  for _, name in ipairs(answers.reasoning_members) do
    if type(message[name]) == "string" and message[name] ~= "" then
      return message[name]
    end
  end
end

--- The calls of a message that it does not answer itself: {id, name, arguments}, each id once.
--- arguments: JSON text, or the table of a content block.
function answers.calls(message)
  local list, known = {}, {}
  local function add(id, name, arguments)
    if type(id) == "string" and not known[id] then
      known[id] = true
      list[#list + 1] = { id = id, name = name, arguments = arguments }
    end
  end
  if type(message.tool_calls) == "table" then
    for _, call in ipairs(message.tool_calls) do
      if call.output == nil then
        add(call.id, call.name, call.arguments)
      else
        known[call.id] = true
      end
    end
  end
  if type(message.content) == "table" then
    for _, block in ipairs(message.content) do
      if type(block) == "table" and block.type == "tool_use" then
        add(block.id, block.name, block.input or {})
      end
    end
  end
  return list
end

--- The ids of the calls that a message answers, or nil if it contains anything else.
function answers.answered(message)
  if message.role == "tool" or message.role == "function" then
    return { message.tool_call_id }
  end
  if type(message.content) ~= "table" or #message.content == 0 then
    return nil
  end
  local ids = {}
  for i, block in ipairs(message.content) do
    if type(block) ~= "table" or block.type ~= "tool_result" then
      return nil
    end
    ids[i] = block.tool_use_id
  end
  return ids
end

local DEEPEST = 200 -- more than JSON may be nested; a table that contains itself ends there

-- A value with change(text, at) instead of each text in it: the same table if nothing changes, else
-- a copy. at: a JSON pointer.
local function with_texts(value, at, change, depth)
  if type(value) == "string" then
    return change(value, at)
  elseif type(value) ~= "table" or depth > DEEPEST then
    return value
  end
  local copy, changed = {}, false
  for key, inner in pairs(value) do
    local own = with_texts(inner, ("%s/%s"):format(at, type(key) == "number" and key - 1 or key),
      change, depth + 1)
    local name = type(key) == "string" and change(key, at) or key
    copy[name], changed = own, changed or own ~= inner or name ~= key
  end
  return changed and setmetatable(copy, getmetatable(value)) or value
end

--- The message that answers a call. failed: the text says what went wrong. Content that is not
--- UTF-8 becomes readable, and `metadata.bytes` keeps its bytes: {at, b64}, ….
function answers.result(call, content, failed)
  local kept = {}
  content = with_texts(content, "/content", function(bytes, at)
    local text, original = characters.readable(bytes, at)
    kept[#kept + 1] = original
    return text
  end, 1)
  return {
    role = "tool", tool_call_id = call.id, author = call.name, content = content,
    metadata = (failed or #kept > 0)
      and { error = failed or nil, bytes = #kept > 0 and kept or nil } or nil,
  }
end

-- A list of content blocks: each a table with a type.
local function is_blocks(value)
  if #value == 0 then
    return false
  end
  for _, block in ipairs(value) do
    if type(block) ~= "table" or type(block.type) ~= "string" then
      return false
    end
  end
  return true
end

--- The message that answers a call, from what its tool returned.
function answers.of_tool(call, value, reason)
  local kind = type(value)
  if kind == "string" then
    return answers.result(call, value)
  elseif kind == "nil" or value == false and reason ~= nil then
    if reason == nil then
      return answers.result(call, "done")
    end
    return answers.result(call, tostring(reason), true)
  elseif kind == "number" or kind == "boolean" then
    return answers.result(call, tostring(value))
  elseif kind == "table" and is_blocks(value) then
    return answers.result(call, value)
  end
  local text, message = core.text(value)
  if not text then
    text = core.text(with_texts(value, "", characters.escaped, 1))
    text = text and characters.bytes(text)
  end
  if not text then
    return answers.result(call, "the tool's result cannot be written: " .. message, true)
  end
  return answers.result(call, text)
end

local overflows = {
  "context.length", "context.window", "maximum context", "prompt is too long",
  "input is too long", "too many tokens", "exceeds? the model'?s? context",
}

--- Whether a model failed because the request was too long.
function answers.overflow(reason, code)
  if code == "EOVERFLOW" then
    return true
  elseif code == "ELIMIT" or code == "EDENIED" or code == "ECANCELLED" then
    return false -- whatever the sentence says: too many tokens a minute are not too long
  end
  local text = tostring(reason):lower()
  for _, pattern in ipairs(overflows) do
    if text:find(pattern) then
      return true
    end
  end
  return false
end

return answers
