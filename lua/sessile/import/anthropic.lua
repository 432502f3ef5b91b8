--- anthropic: reads documents of Anthropic's Messages API: {system, messages, tools, …} or a list
--- of messages.
--
-- Owns: that `system` becomes the first message. Must never change a message: the engine knows
-- blocks of type tool_use and tool_result as calls and results.

local document = require "sessile.import.document"
local jsonl = require "sessile.import.jsonl"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local anthropic = {}

anthropic.enter = { messages = true }
local ROLES = { user = true, assistant = true, system = true }

local function feed(collector, text)
  local members, fields = parts.members(text)
  if not members then
    return collector:keep(text, "it is no JSON object, or has a key twice")
  end
  local role = span.string(fields.role)
  local kind = fields.content and span.kind(fields.content)
  if not ROLES[role or ""] or kind ~= "string" and kind ~= "array" then
    return collector:keep(text, not fields.role and "it has no role"
      or not ROLES[role or ""] and "unknown role " .. fields.role:sub(1, 40)
      or "its content is neither text nor blocks")
  end
  collector:message(text, {
    starts_turn = jsonl.starts_turn(fields), usage = turns.usage(fields.usage),
    model = span.string(fields.model),
  })
end

--- Whether a file with this beginning has the format.
---@param shape sessile.import.shape
---@param head string
---@return boolean
function anthropic.recognises(shape, head)
  if not (shape.by_path.messages or shape.by_path[""]) then
    return false
  end
  local model = shape.by_path.model and span.string(shape.by_path.model.raw)
  return shape.by_path.system ~= nil or shape.by_path.anthropic_version ~= nil
    or (model or ""):find "claude" ~= nil
    or head:find '"type"%s*:%s*"tool_use"' ~= nil or head:find '"type"%s*:%s*"tool_result"' ~= nil
    or head:find '"type"%s*:%s*"thinking"' ~= nil
end

--- The records of a document.
---@param opened sessile.import.source
---@param shape sessile.import.shape
---@return sessile.import.records records
function anthropic.document(opened, shape)
  local arrays = document.arrays(shape)
  local system = shape.by_path.system and shape.by_path.system.raw
  local is_text = system and span.valid(system)
    and (span.kind(system) == "string" or span.kind(system) == "array")
  local source = document.digest("anthropic", opened, arrays)
  return document.records("anthropic", opened, function(collector)
    collector:identify(source)
    collector.settings.model = shape.by_path.model and span.string(shape.by_path.model.raw)
    document.keep_rest(collector, shape, opened, { system = is_text or nil })
    if is_text then
      collector.at = 0
      collector:message('{"role":"system","content":' .. system .. "}", {})
    end
    document.feed(collector, opened, shape, arrays, feed)
  end)
end

return anthropic
