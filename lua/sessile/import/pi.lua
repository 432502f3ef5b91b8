--- pi: reads sessions recorded by the pi coding agent (JSON Lines, one entry a line).
--
-- Owns: how pi's messages map to ours. Must never print a recorded value anew: text,
-- arguments and numbers are cut out of the line (span.lua) and put where they belong.
--
-- What maps:
--   user, assistant, system    the same role, content as it stands
--   toolResult                 role tool: tool_call_id, name, is_error, content
--   block {type:"toolCall"}    an element of tool_calls; arguments becomes the JSON text
--   usage                      input, output, cache_read, cache_write
-- Everything else that a message or its line says is kept under "pi": {"line": {…},
-- "message": {…}}, with the original usage, and where calls stood when they did not stand
-- last. A line that is no message, or that would lose something here, becomes a custom
-- entry with the whole line.

local span = require "sessile.import.span"
local turns = require "sessile.import.turns"

local pi = {}

local ROLE = {
  user = "user", assistant = "assistant", system = "system",
  developer = "developer", toolResult = "tool",
}

-- Members of an object, unless a key occurs twice: then one of them would get lost.
local function members_of(raw)
  local members, fields = span.object(raw)
  if not members then
    return nil
  end
  local seen = {}
  for _, member in ipairs(members) do
    if seen[member.key] then
      return nil
    end
    seen[member.key] = true
  end
  return members, fields
end

-- The members whose keys are not taken, as the inside of an object.
local function rest_of(members, taken)
  local parts = {}
  for _, member in ipairs(members) do
    if not taken[member.key] then
      parts[#parts + 1] = member.raw_key .. ":" .. member.raw
    end
  end
  return table.concat(parts, ",")
end

-- Splits assistant blocks into those that stay and calls. Returns the content, the calls
-- and where the calls stood (empty when they stood last); nil when a call is malformed.
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
      members, fields = members_of(block)
      if not (members and span.string(fields.id) and span.string(fields.name)
              and fields.arguments) then
        return nil
      end
      local rest = rest_of(members, { type = 1, id = 1, name = 1, arguments = 1 })
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
    in_order and "" or '"calls_at":[' .. table.concat(places, ",") .. "]"
end

--- One pi message as one of ours; nil when it is not to be mapped without loss.
---@param line_members sessile.span.member[]
---@param raw string  the value of "message"
---@return string? json
---@return table? facts
function pi.message(line_members, raw)
  local members, fields = members_of(raw)
  local role = members and ROLE[span.string(fields.role) or ""]
  if not role then
    return nil
  end
  local out = { ('"role":"%s"'):format(role) }
  local taken = { role = 1 }
  local places = ""

  local content = fields.content
  if content then
    taken.content = 1
    local kind = span.kind(content)
    if kind ~= "string" and kind ~= "array" then
      return nil
    end
    local calls
    if kind == "array" and role == "assistant" then
      content, calls, places = split_blocks(content)
      if not content then
        return nil
      end
    end
    out[#out + 1] = '"content":' .. content
    if calls and #calls > 0 then
      out[#out + 1] = '"tool_calls":[' .. table.concat(calls, ",") .. "]"
    end
  end

  local function move(theirs, ours, kind)
    local value = fields[theirs]
    if value and kind:find(span.kind(value), 1, true) then
      taken[theirs] = 1
      out[#out + 1] = ('"%s":%s'):format(ours, value)
    end
  end
  if role == "tool" then
    move("toolCallId", "tool_call_id", "string")
    move("toolName", "name", "string")
    move("isError", "is_error", "true false")
  end
  move("model", "model", "string")
  move("timestamp", "timestamp", "number")

  -- usage stays whole under "pi" as well: it has costs and perhaps more.
  local usage = turns.usage(fields.usage)
  if usage then
    out[#out + 1] = '"usage":' .. turns.usage_json(usage)
  end

  local line_rest = rest_of(line_members, { type = 1, message = 1 })
  local message_rest = rest_of(members, taken)
  local kept = {}
  if line_rest ~= "" then kept[#kept + 1] = '"line":{' .. line_rest .. "}" end
  if message_rest ~= "" then kept[#kept + 1] = '"message":{' .. message_rest .. "}" end
  if places ~= "" then kept[#kept + 1] = places end
  if #kept > 0 then
    out[#out + 1] = '"pi":{' .. table.concat(kept, ",") .. "}"
  end
  return "{" .. table.concat(out, ",") .. "}", {
    starts_turn = role == "user",
    usage = usage,
    model = span.string(fields.model),
  }
end

local function feed(collector, line, at)
  if not span.valid(line) then
    return collector:custom(turns.custom("pi", at, line), turns.unreadable(line))
  end
  local members, fields = members_of(line)
  local kind, why = members and span.string(fields.type), nil
  if kind == "message" and fields.message then
    local json, facts = pi.message(members, fields.message)
    if json then
      return collector:message(json, facts)
    end
    why = "it holds no message that can be taken without loss"
  elseif not kind then
    why = "it is no entry: it has no type, or a key twice"
  elseif kind == "session" then
    collector:session(span.string(fields.id), span.string(fields.title or fields.name))
  end
  collector:custom(turns.custom("pi", at, line), why)
end

--- Does a file that begins with this line look like pi's?
---@param line string
---@return boolean
function pi.recognises(line)
  local members, fields = span.object(line)
  if not members then
    return false
  end
  local kind = span.string(fields.type)
  return kind == "session" and not fields.data or kind == "message" and fields.message ~= nil
end

--- The records of a recorded session.
---@param lines fun(): string?
---@return fun(): sessile.import.record?
function pi.records(lines)
  return turns.records(lines, feed)
end

return pi
