--- notes: a sentence for each entry that is not a message.
--
-- Owns: the sentences. They are plain text; the caller escapes them.

local core = require "sessile.core"
local dialect = require "sessile.dialect"

local math = dialect.math

local notes = {}

--- 1234567 as "1,234,567".
---@param n number
---@return string
function notes.number(n)
  local text = ("%d"):format(n):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""):gsub("^-,", "-"))
end

local number = notes.number

--- A time in ms, or an entry's timestamp, for people.
---@param time integer|string|nil
---@return string
function notes.time(time)
  if type(time) == "string" then
    local day, minute = time:match "^(%d%d%d%d%-%d%d%-%d%d)T(%d%d:%d%d)"
    return day and day .. " " .. minute .. " UTC" or ""
  elseif math.type(time) ~= "integer" or time <= 0 or time > 253402300799999 then
    return ""
  end
  return os.date("!%Y-%m-%d %H:%M UTC", math.floor(time / 1000)) --[[@as string]]
end

--- The time of a message: its own, else that of its entry.
---@param entry table
---@return string
function notes.said(entry)
  local own = type(entry.data) == "table" and notes.time(entry.data.timestamp) or ""
  return own ~= "" and own or notes.time(entry.timestamp)
end

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

local function count(value)
  return math.type(value) == "integer" and value or nil
end

local function usage(of)
  local list = {}
  for _, name in ipairs { "input", "output", "cache_read", "cache_write" } do
    local n = type(of) == "table" and count(of[name])
    if n and n > 0 then
      list[#list + 1] = name:gsub("_", " ") .. " " .. number(n)
    end
  end
  return #list > 0 and table.concat(list, ", ") or nil
end

-- Joins the parts that are not nil, as "a, b".
local function joined(...)
  local list = {}
  for i = 1, select("#", ...) do
    list[#list + 1] = (select(i, ...))
  end
  return table.concat(list, ", ")
end

local function policies(data)
  local names = {}
  for _, one in ipairs(type(data.policy) == "table" and data.policy or {}) do
    names[#names + 1] = type(one) == "table" and text(one.name) or nil
  end
  return #names > 0 and table.concat(names, ", ") or nil
end

-- How many messages left the context, for a row of session:log.
local function left(row)
  local parts = {}
  for _, name in ipairs { "covered", "replaced", "lost", "undone", "restored" } do
    if row and (row[name] or 0) > 0 then
      parts[#parts + 1] = ("%s %s"):format(number(row[name]), name == "lost" and "dropped" or name)
    end
  end
  return #parts > 0 and "messages: " .. table.concat(parts, ", ") or nil
end

local says = {}

function says.turn(data)
  return "Turn", joined(text(data.model) or "", usage(data.usage) or ""):gsub("^, ", "")
    :gsub(", $", "")
end

function says.compaction(data, row)
  local before, after = count(data.tokens_before), count(data.tokens_after)
  local parts = {
    data.uncompacts and "takes " .. tostring(data.uncompacts) .. " back" or false,
    policies(data) or false, text(data.reason) or false,
    before and after and ("%s → %s tokens"):format(number(before), number(after)) or false,
    left(row) or false,
    row and row.in_force == "no" and "no longer in force" or false,
  }
  local list = {}
  for _, part in ipairs(parts) do
    list[#list + 1] = part or nil
  end
  return "Compaction", table.concat(list, ", ")
end

function says.checkpoint(data)
  return "Checkpoint", joined(text(data.name) or "no name", "at " .. tostring(data.head),
    text(data.reason))
end

function says.label(data)
  local name = text(data.label) or text(data.name) or core.text(data) or ""
  return data.off and "Label removed" or name == "pinned" and "Pin" or "Label", name
end

function says.head(data)
  return "Head", "moved to " .. tostring(data.head) .. (data.restored
    and ", where checkpoint " .. tostring(data.restored) .. " stands" or "")
end

function says.suspend(data)
  return data.off and (data.cancelled and "Suspension cancelled" or "Resumed") or "Suspended",
    text(data.reason) or ""
end

function says.pending_run(data)
  return data.off and "Pending run ended" or "Pending run: waits for a model", ""
end

function says.refusal(data)
  return "Compaction refused", joined(policies(data), text(data.law_name), text(data.message))
end

function says.tombstone()
  return "Lost", "an entry that could not be read stood here"
end

--- The heading and the text of an entry; nil for a message. If its type is unknown or its data is
--- the host's, the text is JSON, and `is_json` is true.
---@param entry table
---@param row table?  of session:log
---@return string? title
---@return string? sentence
---@return boolean? is_json
function notes.of(entry, row)
  if entry.type == "message" or entry.type == "branch_summary" then
    return nil
  end
  local data = type(entry.data) == "table" and entry.data or {}
  local say = says[entry.type]
  if say then
    local title, sentence = say(data, row)
    return title, sentence, false
  end
  local kind = type(entry.type) == "string" and entry.type or "entry"
  return kind:sub(1, 1):upper() .. kind:sub(2), core.text(data) or "", true
end

return notes
