--- codex: reads the rollouts of the Codex agent (JSON Lines).
--
-- Owns: the meaning of its lines, in the current form ({timestamp, type, payload}) and the first
-- one (a header, then bare items). Must never take an event for a message: the messages are in the
-- items.
--
-- What maps:
--   session_meta                the session's id, folder and git branch, and who began it
--   thread_name_updated         the title
--   response_item               see items.lua
--   turn_context                settings: model, thinking
--   event_msg token_count       the usage of the assistant's last message
--   compacted                   a compaction: to its replacement_history, else to that summary
-- All lines except items are also kept as custom entries, and so are unknown lines.

local dialect = require "sessile.dialect"
local items = require "sessile.import.items"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local math = dialect.math

local codex = { has_name = true }

local function whole(raw)
  return math.tointeger(tonumber(raw or "")) or 0
end

-- In Codex the input includes what came from the cache.
local function usage_of(raw)
  local _, info = parts.members(raw)
  local members, last = parts.members(info and info.last_token_usage)
  if not members then
    return nil
  end
  local cached = math.max(0, math.min(whole(last.cached_input_tokens), whole(last.input_tokens)))
  return {
    input = math.max(0, whole(last.input_tokens)) - cached,
    output = math.max(0, whole(last.output_tokens)), cache_read = cached, cache_write = 0,
  }
end

-- What lines do that are also kept as custom entries.
local KINDS = {}

-- The first one is of this session. A session that continues another one has the lines of both.
function KINDS.session_meta(collector, payload)
  if collector.named then
    return
  end
  local _, source = parts.members(payload.source)
  local _, kind = parts.members(source and source.subagent)
  local _, spawned = parts.members(kind and kind.thread_spawn)
  local _, git = parts.members(payload.git)
  collector.named = true
  collector:session(span.string(payload.id), nil,
    spawned and span.string(spawned.parent_thread_id) or nil)
  collector:ran(span.string(payload.cwd), git and span.string(git.branch))
end

function KINDS.turn_context(collector, payload)
  local model, effort = span.string(payload.model), span.string(payload.effort)
  collector.model = model or collector.model
  collector.settings.model = model or collector.settings.model
  collector.settings.thinking = effort or collector.settings.thinking
end

function KINDS.event_msg(collector, payload)
  local kind = span.string(payload.type)
  if kind == "thread_name_updated" then
    collector.title = span.string(payload.thread_name) or collector.title
  end
  local usage = kind == "token_count" and usage_of(payload.info)
  if usage and collector.assistant then
    collector.assistant.usage = usage
  elseif usage then
    collector:usage(usage)
  end
end

-- The summary of a compaction; without one, the text that replaced the history.
local function summary_of(payload)
  local text = span.string(payload.message)
  if text and text ~= "" then
    return text
  end
  local texts = {}
  for _, item in ipairs(span.array(payload.replacement_history or "") or {}) do
    local _, fields = parts.members(item)
    for _, block in ipairs(span.array(fields and fields.content or "") or {}) do
      local _, own = parts.members(block)
      texts[#texts + 1] = own and span.string(own.text)
    end
  end
  return #texts > 0 and table.concat(texts, "\n\n") or nil
end

-- The messages that replaced the history; nil if the recording does not tell.
local function history_of(collector, payload)
  local list = {}
  local reader = { from = collector.from, at = collector.at, usage_json = turns.usage_json,
    message = function(_, json) list[#list + 1] = { json = json } end }
  for _, item in ipairs(span.array(payload.replacement_history or "") or {}) do
    items.feed(reader, item)
  end
  items.flush(reader)
  return #list > 0 and list or nil
end

local function feed_line(collector, line, members, fields)
  local kind = span.string(fields.type)
  local _, payload = parts.members(fields.payload)
  if kind == "response_item" and payload then
    local timestamp = parts.time(span.string(fields.timestamp))
    local done, why = items.feed(collector, fields.payload,
      parts.rest(members, { type = 1, payload = 1 }), timestamp)
    if not done then
      collector:keep(line, why)
    end
    return
  elseif kind == "compacted" and payload then
    items.flush(collector)
    local summary = summary_of(payload)
    if summary then
      return collector:compaction {
        summary = summary, history = history_of(collector, payload), line = line,
        time = parts.time(span.string(fields.timestamp)),
      }
    end
  elseif payload and KINDS[kind] then
    KINDS[kind](collector, payload)
  end
  collector:keep(line)
end

local function feed(collector, line)
  local members, fields = parts.members(line)
  if not members then
    return collector:keep(line, not span.valid(line) and kept.unreadable(line)
      or "it is no JSON object, or has a key twice")
  elseif fields.payload then
    return feed_line(collector, line, members, fields)
  elseif not fields.type and fields.id and fields.timestamp then
    KINDS.session_meta(collector, fields)
    return collector:keep(line)
  end
  local done, why = items.feed(collector, line)
  if not done then
    collector:keep(line, why)
  end
end

--- Whether a file with this first line has the format.
---@param fields table<string, string>  of that line
---@return boolean
function codex.recognises(fields)
  local kind = span.string(fields.type)
  return fields.payload ~= nil and (kind == "session_meta" or kind == "response_item"
      or kind == "event_msg" or kind == "turn_context" or kind == "compacted")
    or not kind and not fields.role and fields.id ~= nil and fields.timestamp ~= nil
      and (fields.instructions ~= nil or fields.git ~= nil)
end

--- The records of a rollout.
---@param lines fun(): string?, integer?, integer?
---@return sessile.import.records
function codex.records(lines)
  local records = turns.records(lines, "codex", feed, items.flush)
  records.usage_json = turns.usage_json
  return records
end

return codex
