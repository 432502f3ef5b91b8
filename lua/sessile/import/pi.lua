--- pi: reads sessions of the pi coding agent (JSON Lines, one entry on each line).
--
-- Owns: the conversion of pi's entries in all three versions: 1 is a list, 2 and 3 are trees of ids
-- and parents. Must never encode a recorded value again: text, arguments and numbers are cut out of
-- the line (span.lua).
--
-- What maps:
--   user, assistant, system    the same role, unchanged content
--   toolResult                 role tool: tool_call_id, name, is_error, content
--   block {type:"toolCall"}    an element of tool_calls; arguments becomes the JSON text
--   usage                      input, output, cache_read, cache_write
--   bashExecution, custom, hookMessage, custom_message, branch_summary
--                              a user message with a metadata.kind, as pi shows it to the model
--   compaction                 a compaction with that summary
--   label, session_info, model_change, thinking_level_change   label, title, settings
-- Other fields of a message or its line are kept under "pi": {"line": {…}, "message": {…}}, with
-- the original usage, and with the places of calls that were not last. A line that is not a
-- message, or that cannot be converted without loss, becomes a custom entry with the whole line.

local dialect = require "sessile.dialect"
local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local math = dialect.math

local pi = { has_name = true }

local ROLE = {
  user = "user", assistant = "assistant", system = "system",
  developer = "developer", toolResult = "tool",
}

-- Separates calls from the other blocks of the assistant. Returns the content, the calls and their
-- places (empty if they were last); nil if a call is malformed.
local function split_blocks(content)
  local blocks = span.array(content)
  if not blocks then
    return nil
  end
  local stay, calls, places = {}, {}, {}
  local in_order = true
  for i, block in ipairs(blocks) do
    local members, fields = span.object(block)
    if members and span.string(fields.type) == "toolCall" then
      members, fields = parts.members(block)
      if not (members and span.string(fields.id) and span.string(fields.name)
              and fields.arguments) then
        return nil
      end
      local rest = parts.rest(members, { type = 1, id = 1, name = 1, arguments = 1 })
      calls[#calls + 1] = ('{"id":%s,"name":%s,"arguments":%s%s}'):format(
        fields.id, fields.name, span.quote(fields.arguments),
        rest ~= "" and ',"pi":{' .. rest .. "}" or "")
      places[#places + 1] = i - 1
    else
      stay[#stay + 1] = block
      in_order = in_order and #calls == 0
    end
  end
  return "[" .. table.concat(stay, ",") .. "]", calls,
    in_order and "" or "[" .. table.concat(places, ",") .. "]"
end

-- What the model saw of a command that the person ran.
local function bash_text(fields)
  local command, output = span.string(fields.command), span.string(fields.output)
  if not command then
    return nil
  end
  local text = ("Ran `%s`\n%s"):format(command,
    output and output ~= "" and "```\n" .. output .. "\n```" or "(no output)")
  local code = fields.exitCode
  if fields.cancelled == "true" then
    text = text .. "\n\n(command cancelled)"
  elseif code and code ~= "null" and code ~= "0" then
    text = text .. "\n\nCommand exited with code " .. code
  end
  return text
end

-- Messages of pi's own roles: their content and their metadata.kind.
local OWN = {
  bashExecution = function(fields)
    local text = fields.excludeFromContext ~= "true" and bash_text(fields)
    return text and span.quote(text), "bash"
  end,
  custom = function(fields) return fields.content, "custom" end,
  branchSummary = function(fields) return fields.summary, "branch_summary" end,
  compactionSummary = function(fields) return fields.summary, "summary" end,
}
OWN.hookMessage = OWN.custom

local function is_content(raw)
  local kind = raw and span.kind(raw)
  return kind == "string" or kind == "array"
end

-- The time of a message, else of its line.
local function time_of(timestamp, stamp)
  if timestamp and span.kind(timestamp) == "number" then
    return timestamp
  end
  local ms = parts.time(span.string(stamp))
  return ms and tostring(ms)
end

-- A user message of that kind, with all fields of the original.
local function shown(content, kind, timestamp, line, message)
  return parts.object {
    { "role", '"user"' }, { "content", content }, { "timestamp", timestamp },
    { "metadata", ('{"kind":"%s"}'):format(kind) },
    { "pi", parts.object { { "line", line }, { "message", message } } },
  }
end

--- Converts a message of pi; nil if that would lose something.
---@param line_members sessile.span.member[]
---@param raw string  the value of "message"
---@param stamp string?  the value of the line's "timestamp"
---@return string? json
---@return table? facts
---@return boolean? meant  it is nothing that a model was to see
function pi.message(line_members, raw, stamp)
  local members, fields = parts.members(raw)
  local name = members and span.string(fields.role) or ""
  local line = parts.braced(parts.rest(line_members, { type = 1, message = 1 }))
  if members and OWN[name] then
    local content, kind = OWN[name](fields)
    if is_content(content) then
      return shown(content, kind, time_of(fields.timestamp, stamp), line, raw), {}
    end
    return nil, nil, fields.excludeFromContext == "true"
  end
  local role = members and ROLE[name]
  if not role then
    return nil
  end
  local taken, calls, places = { role = 1 }, nil, nil
  local content = fields.content
  if content then
    taken.content = 1
    if not is_content(content) then
      return nil
    end
    if span.kind(content) == "array" and role == "assistant" then
      content, calls, places = split_blocks(content)
      if not content then
        return nil
      end
    end
  end
  local out = {
    { "role", '"' .. role .. '"' }, { "content", content },
    { "tool_calls", calls and #calls > 0 and "[" .. table.concat(calls, ",") .. "]" or nil },
  }
  local function move(theirs, ours, kind)
    local value = fields[theirs]
    if value and kind:find(span.kind(value), 1, true) then
      taken[theirs] = 1
      out[#out + 1] = { ours, value }
    end
  end
  if role == "tool" then
    move("toolCallId", "tool_call_id", "string")
    move("toolName", "name", "string")
    move("isError", "is_error", "true false")
  end
  move("model", "model", "string")
  taken.timestamp = fields.timestamp and span.kind(fields.timestamp) == "number" and 1 or nil
  out[#out + 1] = { "timestamp", time_of(fields.timestamp, stamp) }

  -- The whole usage is also kept under "pi": it has costs and perhaps more.
  local usage = turns.usage(fields.usage)
  out[#out + 1] = { "usage", usage and turns.usage_json(usage) }
  local others = parts.object {
    { "line", line }, { "message", parts.braced(parts.rest(members, taken)) },
    { "calls_at", places },
  }
  out[#out + 1] = { "pi", others ~= "{}" and others or nil }
  return parts.object(out), {
    starts_turn = role == "user", usage = usage, model = span.string(fields.model),
  }
end

-- What entries do that are not messages. Returns true if the line is kept.
local KINDS = {}

function KINDS.session(collector, _, fields)
  collector.version = math.tointeger(tonumber(fields.version)) or 1
  collector.settings.model = span.string(fields.modelId) or collector.settings.model
  collector.settings.thinking = span.string(fields.thinkingLevel) or collector.settings.thinking
  collector:session(span.string(fields.id), span.string(fields.title or fields.name))
  collector:ran(span.string(fields.cwd))
end

function KINDS.session_info(collector, _, fields)
  collector.title = span.string(fields.name) or collector.title
end

function KINDS.model_change(collector, _, fields)
  collector.settings.model = span.string(fields.modelId) or collector.settings.model
end

function KINDS.thinking_level_change(collector, _, fields)
  collector.settings.thinking = span.string(fields.thinkingLevel) or collector.settings.thinking
end

function KINDS.label(collector, line, fields, link)
  local target, name = span.string(fields.targetId), span.string(fields.label)
  local names = collector.label_names
  if not names then
    names = {}
    collector.label_names = names
  end
  link()
  if target and name then
    names[target] = name
    collector:label(line, target, name)
  else
    collector:label(line, target, target and names[target], true)
  end
  return true
end

function KINDS.compaction(collector, line, fields, _, key, parent)
  local summary = span.string(fields.summary)
  if not summary then
    return false, "its compaction has no summary"
  end
  local first = span.string(fields.firstKeptEntryId)
  local index = math.tointeger(tonumber(fields.firstKeptEntryIndex))
  collector:compaction {
    key = key, parent = parent, summary = summary, line = line,
    first = first or index and "#" .. index, time = parts.time(span.string(fields.timestamp)),
  }
  return true
end

-- Entries that are in the context and are not messages.
local SHOWN = {
  custom_message = function(fields) return fields.content, "custom" end,
  branch_summary = function(fields) return fields.summary, "branch_summary" end,
}

-- The key and the parent of an entry. In version 1 the key is its place in the list, which
-- compactions use.
local function names_of(collector, fields)
  local id = span.string(fields.id)
  if id then
    return id, span.string(fields.parentId) or false
  end
  collector.index = collector.index or 0
  return "#" .. collector.index, nil
end

local function feed_entry(collector, line, members, fields)
  local kind = span.string(fields.type)
  local key, parent = names_of(collector, fields)
  local facts = { key = key, parent = parent }
  local function link()
    if span.string(fields.id) and kind ~= "session" then
      collector:link(key, parent, true) -- pi continues at the last line, whatever it is
    end
  end
  if kind == "message" and fields.message then
    local json, own, hidden = pi.message(members, fields.message, fields.timestamp)
    if json then
      collector.settings.model = own.model or collector.settings.model
      own.key, own.parent = key, parent
      return collector:message(json, own)
    end
    link()
    return collector:keep(line,
      not hidden and "it holds no message that can be taken without loss" or nil)
  elseif SHOWN[kind] then
    local content, what = SHOWN[kind](fields)
    if is_content(content) then
      return collector:message(shown(content, what, time_of(nil, fields.timestamp), line), facts)
    end
    link()
    return collector:keep(line, "it holds no content")
  elseif KINDS[kind] then
    local done, why = KINDS[kind](collector, line, fields, link, key, parent)
    if done then
      return nil
    end
    link()
    return collector:keep(line, why)
  end
  link()
  return collector:keep(line)
end

local function feed(collector, line)
  local members, fields = parts.members(line)
  if not members and not span.valid(line) then
    return collector:keep(line, kept.unreadable(line))
  elseif not (members and span.string(fields.type)) then
    collector:keep(line, "it is no entry: it has no type, or a key twice")
  else
    feed_entry(collector, line, members, fields)
  end
  collector.index = (collector.index or 0) + 1
end

--- Whether a file with this first line has the format.
---@param fields table<string, string>  of that line
---@return boolean
function pi.recognises(fields)
  local kind = span.string(fields.type)
  return kind == "session" and not fields.data or kind == "message" and fields.message ~= nil
    and not fields.sessionId
end

--- The records of a recorded session.
---@param lines fun(): string?, integer?, integer?
---@return sessile.import.records
function pi.records(lines)
  return turns.records(lines, "pi", feed)
end

return pi
