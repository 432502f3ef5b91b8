--- parts: the parts of a message: text, thinking, calls, results.
--
-- Owns: the known shapes (OpenAI's, Anthropic's, pi's). An unknown part is shown as JSON; nothing
-- is left out.

local answers = require "sessile.answers"
local characters = require "sessile.characters"
local core = require "sessile.core"
local text_kit = require "sessile.export.text"

local parts = {}

---@class sessile.export.part
---@field kind "text"|"thinking"|"call"|"result"|"image"|"data"
---@field text string      what it says; of a call its arguments, of data JSON
---@field name string?     of a call or a result: the tool
---@field id string?       of a call, and of the call that a result answers
---@field error boolean?   of a result

local function json_of(value)
  return core.text(value) or "?"
end

local function string_of(value)
  if type(value) == "string" then
    return value
  end
  return value ~= nil and value ~= core.null and json_of(value) or ""
end

local add_content

local function text_of(content)
  local list, texts = {}, {}
  add_content(list, content)
  for i, part in ipairs(list) do
    texts[i] = part.text
  end
  return table.concat(texts, "\n")
end

local function image(block)
  local from = type(block.source) == "table" and block.source
    or type(block.image_url) == "table" and block.image_url or block
  local url = from.url or block.image_url
  local kind = from.media_type or from.mimeType or block.mimeType
  local data = from.data or (type(url) == "string" and url:find "^data:" and url) or nil
  if type(data) == "string" then
    return ("%s, %d bytes of base64"):format(type(kind) == "string" and kind or "image", #data)
  end
  return type(url) == "string" and url or json_of(block)
end

local function call(name, arguments, id)
  return { kind = "call", name = string_of(name), text = string_of(arguments),
    id = type(id) == "string" and id or nil }
end

local shapes = {}

function shapes.text(block)
  return type(block.text) == "string" and { kind = "text", text = block.text }
end
shapes.input_text, shapes.output_text = shapes.text, shapes.text

function shapes.thinking(block)
  local text = block.thinking or block.text
  return type(text) == "string" and { kind = "thinking", text = text }
end
shapes.reasoning = shapes.thinking

function shapes.tool_use(block)
  return call(block.name, block.input, block.id)
end

function shapes.toolCall(block)
  return call(block.name, block.arguments, block.id)
end

function shapes.tool_result(block)
  return { kind = "result", text = text_of(block.content), id = string_of(block.tool_use_id),
    error = block.is_error == true }
end

function shapes.image(block)
  return { kind = "image", text = image(block) }
end
shapes.image_url, shapes.input_image = shapes.image, shapes.image

function add_content(list, content)
  if type(content) == "string" then
    if content ~= "" then
      list[#list + 1] = { kind = "text", text = content }
    end
    return
  elseif type(content) ~= "table" then
    return
  elseif #content == 0 and next(content) ~= nil then
    list[#list + 1] = { kind = "data", text = json_of(content) }
    return
  end
  for _, block in ipairs(content) do
    if type(block) == "string" then
      list[#list + 1] = { kind = "text", text = block }
    else
      local shape = type(block) == "table" and type(block.type) == "string" and shapes[block.type]
      list[#list + 1] = shape and shape(block) or { kind = "data", text = json_of(block) }
    end
  end
end

local RESULTS = { tool = true, ["function"] = true }

--- The parts of a message, in order.
---@param message table
---@return sessile.export.part[]
function parts.of(message)
  local list = {}
  if RESULTS[message.role] then
    return { { kind = "result", text = text_of(message.content),
      name = type(message.name) == "string" and message.name or nil,
      id = type(message.tool_call_id) == "string" and message.tool_call_id or nil,
      error = message.is_error == true or message.isError == true } }
  end
  local reasoning = answers.reasoning(message)
  if reasoning then
    list[1] = { kind = "thinking", text = reasoning }
  end
  add_content(list, message.content)
  if type(message.refusal) == "string" then
    list[#list + 1] = { kind = "text", text = message.refusal }
  end
  for _, one in ipairs(type(message.tool_calls) == "table" and message.tool_calls or {}) do
    if type(one) == "table" then
      local named = type(one["function"]) == "table" and one["function"] or one
      list[#list + 1] = call(named.name, named.arguments, one.id)
    end
  end
  return list
end

--- The first words of a message on one line.
---@param message table
---@param most integer  bytes
---@return string
function parts.brief(message, most)
  for _, part in ipairs(parts.of(message)) do
    local text = part.text:sub(1, most * 4):gsub("%s+", " "):gsub("^ ", "")
    if part.kind == "call" then
      text = "→ " .. part.name
    end
    if text ~= "" then
      return text_kit.cut(characters.repaired(text), most)
    end
  end
  return ""
end

return parts
