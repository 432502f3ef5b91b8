--- openai: reads documents of OpenAI's APIs: a list of messages, {messages, …}, or the items of
-- the Responses API: a list, {input, instructions, …} or {output, …}.
--
-- Owns: the form of calls: {id, type, function: {name, arguments}}. Must never change another field
-- of a message.

local document = require "sessile.import.document"
local items = require "sessile.import.items"
local jsonl = require "sessile.import.jsonl"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local openai = {}

openai.enter = { messages = true, input = true, output = true }

local ROLES = {
  system = true, developer = true, user = true, assistant = true, tool = true,
  ["function"] = true,
}

-- Converts a call; nil if it has an unknown form.
local function call_of(raw)
  local members, fields = parts.members(raw)
  local kind = members and (span.string(fields.type) or "function")
  local inner, own = parts.members(members and fields[kind])
  local text = kind == "custom" and "input" or "arguments"
  if not inner or not span.string(fields.id) or not span.string(own.name)
    or not span.string(own[text]) then
    return nil
  end
  local rest = parts.rest(members, { id = 1, [kind] = 1, type = kind == "function" or nil })
  local inner_rest = parts.rest(inner, { name = 1, [text] = 1 })
  local others = parts.object {
    { "call", parts.braced(rest) }, { kind, parts.braced(inner_rest) },
    { "no_type", not fields.type and "true" or nil },
  }
  return ('{"id":%s,"name":%s,"arguments":%s%s}'):format(fields.id, own.name, own[text],
    others ~= "{}" and ',"openai":' .. others or "")
end

local function with_calls(text, members, fields)
  local list, calls = span.array(fields.tool_calls or "null"), {}
  for i, raw in ipairs(list or {}) do
    calls[i] = call_of(raw)
    if not calls[i] then
      return text
    end
  end
  if not list then
    return text
  end
  local out = {}
  for i, member in ipairs(members) do
    out[i] = member.raw_key .. ":" .. (member.key == "tool_calls"
      and "[" .. table.concat(calls, ",") .. "]" or member.raw)
  end
  return "{" .. table.concat(out, ",") .. "}"
end

--- Adds a message as the API has it; keeps anything else. Returns whether it is one.
---@param collector table
---@param text string
---@param facts sessile.import.facts
---@return boolean
function openai.message(collector, text, facts)
  local members, fields = parts.members(text)
  local role = members and span.string(fields.role) or ""
  if not ROLES[role] then
    collector:keep(text, not members and "it is no JSON object, or has a key twice"
      or not fields.role and "it has no role" or "unknown role " .. fields.role:sub(1, 40))
    return false
  end
  facts.starts_turn, facts.usage = jsonl.starts_turn(fields), turns.usage(fields.usage)
  facts.model = span.string(fields.model)
  collector:message(with_calls(text, members, fields), facts)
  return true
end

local function feed(collector, text)
  local members, fields = parts.members(text)
  if members and items.is_kind(span.string(fields.type)) then
    local done, why = items.feed(collector, text)
    return not done and collector:keep(text, why) or nil
  end
  items.flush(collector)
  openai.message(collector, text, {})
end

--- Whether a file with this beginning has the format.
---@param shape sessile.import.shape
---@param head string
---@return boolean
function openai.recognises(shape, head)
  if shape.kind == "array" then
    return head:find '^%s*%[%s*{' ~= nil
      and (head:find '"role"%s*:' ~= nil or head:find '"type"%s*:%s*"function_call' ~= nil)
  end
  local messages = shape.by_path.messages
  local output, input = shape.by_path.output, shape.by_path.input
  return messages ~= nil and messages.array ~= nil
    or output ~= nil and output.array ~= nil and shape.by_path.object ~= nil
    or input ~= nil and (input.array ~= nil or shape.by_path.model ~= nil)
end

-- Adds a text that is given instead of a list of items.
local function put_text(collector, member, role)
  if member and member.raw and span.string(member.raw) and span.valid(member.raw) then
    collector.at = 0
    collector:message(parts.object { { "role", '"' .. role .. '"' }, { "content", member.raw } },
      { starts_turn = role == "user" })
  end
end

--- The records of a document.
---@param opened sessile.import.source
---@param shape sessile.import.shape
---@return sessile.import.records records
function openai.document(opened, shape)
  local by_path, arrays = shape.by_path, document.arrays(shape)
  local instructions, input = by_path.instructions, by_path.input
  local function is_text(member)
    return member and member.raw and span.string(member.raw) and span.valid(member.raw) or nil
  end
  local source = document.digest("openai", opened, arrays,
    is_text(input) and input.raw or nil)
  local records = document.records("openai", opened, function(collector)
    collector:identify(source)
    collector.model = by_path.model and span.string(by_path.model.raw)
    collector.settings.model = collector.model
    document.keep_rest(collector, shape, opened,
      { instructions = is_text(instructions), input = is_text(input) })
    put_text(collector, instructions, "system")
    put_text(collector, input, "user")
    document.feed(collector, opened, shape, arrays, feed)
    items.flush(collector)
  end)
  records.usage_json = turns.usage_json
  return records
end

return openai
