--- finetune: reads files for fine-tuning (JSON Lines), with a conversation on each line:
--- {"messages": […], …}.
--
-- Owns: that each conversation begins at the root, so that they are branches of one session. Must
-- never change a message but its calls, as openai.lua does.
--
-- A line has many messages. So a message is identified by its number in the file, and the rest of a
-- line by the line's number below 0.

local openai = require "sessile.import.openai"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local finetune = {}

local function feed(collector, line, number)
  local members, fields = parts.members(line)
  local list = members and fields.messages and span.array(fields.messages)
  local rest = list and parts.braced(parts.rest(members, { messages = 1 })) or line
  if rest ~= "" then
    collector.at = -number
    collector:keep(rest, not list and "it has no list of messages" or nil)
  end
  local parent = false
  for i, text in ipairs(list or {}) do
    collector.count = (collector.count or 0) + 1
    collector.at = collector.count
    local key = ("%d.%d"):format(number, i)
    if openai.message(collector, text, { key = key, parent = parent }) then
      parent = key
    end
  end
end

--- Whether a file with this first line has the format. A file of one line is a document.
---@param fields table<string, string>  of that line
---@param head string
---@return boolean
function finetune.recognises(fields, head)
  return fields.messages ~= nil and span.kind(fields.messages) == "array" and not fields.role
    and head:find "^%s*[^\n]*\n%s*{" ~= nil
end

--- The records of a file.
---@param lines fun(): string?, integer?, integer?
---@return sessile.import.records
function finetune.records(lines)
  return turns.records(lines, "finetune", function(collector, line, number)
    feed(collector, line, number)
    collector.at = number
  end)
end

return finetune
