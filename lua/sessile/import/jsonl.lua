--- jsonl: reads JSON Lines with one message or one exported entry on each line.
--
-- Must never change a message: its text is written to the log unchanged. A message of an exported
-- entry gets the entry's time if it has none.
--
-- A message is an object with a known role. An exported entry is an object with id, type and data:
-- the data of a message entry is a message, a turn entry ends its turn, a session entry names the
-- session, a custom entry is written again with its data. Anything else becomes a custom entry with
-- the whole line. Messages are in the order of the file; those of an exported log keep their
-- parents, so its branches are restored.

local characters = require "sessile.characters"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local jsonl = {}

local ROLES = {
  system = 1, developer = 1, user = 1, assistant = 1, model = 1, tool = 1, ["function"] = 1,
}

-- As in the engine: a user message that has more than results, and no metadata.kind.
--- Whether a message with these fields begins a turn.
---@param fields table<string, string>
---@return boolean
function jsonl.starts_turn(fields)
  if span.string(fields.role) ~= "user" then
    return false
  end
  if fields.metadata then
    local members, metadata = span.object(fields.metadata)
    if members and metadata.kind then
      return false
    end
  end
  local blocks = fields.content and span.array(fields.content)
  if not blocks or #blocks == 0 then
    return true
  end
  for _, block in ipairs(blocks) do
    local members, own = span.object(block)
    if not members or span.string(own.type) ~= "tool_result" then
      return true
    end
  end
  return false
end

-- True; or false and a sentence if it is not a message.
local function message(collector, raw, key, parent)
  local members, fields = span.object(raw)
  if not members then
    return false, "it is no JSON object"
  elseif not fields.role then
    return false, "it has no role"
  elseif not ROLES[span.string(fields.role) or ""] then
    return false, "unknown role " .. fields.role:sub(1, 40)
  end
  collector:message(raw, {
    starts_turn = jsonl.starts_turn(fields),
    usage = turns.usage(fields.usage),
    model = span.string(fields.model),
    key = key, parent = parent,
  })
  return true
end

-- A message without a time gets that of its entry, since another log gives it another.
local function with_time(raw, stamp)
  local members, fields = span.object(raw)
  local ms = members and not fields.timestamp and parts.time(span.string(stamp))
  return ms and ('{%s,"timestamp":%d}'):format(parts.rest(members, {}), ms) or raw
end

-- Entries on the path that are not messages: their children get their parents.
local BETWEEN = { turn = true, compaction = true, branch_summary = true }

-- True; or false and, if it is an invalid message, a sentence.
local function entry(collector, fields)
  local kind, key = span.string(fields.type), span.string(fields.id)
  local parent = span.string(fields.parent_id) or nil
  if kind == "message" then
    return message(collector, with_time(fields.data, fields.timestamp), key, parent)
  elseif kind == "session" then
    collector:link(key, false)
  elseif BETWEEN[kind] then
    collector:link(key, parent or false)
  end
  local members, data = span.object(fields.data)
  if not members then
    return false
  elseif kind == "turn" then
    collector:finish {
      usage = data.usage,
      model = span.string(data.model),
      metadata = data.metadata,
    }
    return true
  elseif kind == "session" then
    collector:session(span.string(data.session), span.string(data.title))
    return false -- the line itself is kept too
  elseif kind == "custom" and not characters.has_escapes(fields.data) then
    collector:custom(fields.data, nil, { plain = true })
    return true
  end
  return false
end

local function feed(collector, line)
  local members, fields = span.object(line)
  local done, why
  if not members then
    why = kept.unreadable(line)
  elseif span.string(fields.id) and fields.type and fields.data then
    done, why = entry(collector, fields)
  else
    done, why = message(collector, line)
  end
  if not done then
    collector:keep(line, why)
  end
end

--- Whether a file with this first line has the format.
---@param fields table<string, string>  of that line
---@return boolean
function jsonl.recognises(fields)
  return fields.role ~= nil or fields.type ~= nil and fields.data ~= nil
end

--- The records of a file.
---@param lines fun(): string?, integer?, integer?
---@return sessile.import.records
function jsonl.records(lines)
  return turns.records(lines, "jsonl", feed)
end

return jsonl
