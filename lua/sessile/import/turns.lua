--- turns: gathers recorded messages into turns, one record for each.
--
-- Owns: where a turn begins (at a user message), what its usage is, and the order in which
-- records leave. Must never look into a format: pi.lua and jsonl.lua tell it what a line is.
--
-- A line that is no message waits until the turn it stands in is complete: a turn is one
-- write. Its number in the file ("at") says where it stood.

local span = require "sessile.import.span"

local turns = {}

-- The names that providers use, by our own.
local USAGE = {
  input = { "input", "input_tokens", "prompt_tokens" },
  output = { "output", "output_tokens", "completion_tokens" },
  cache_read = { "cache_read", "cacheRead", "cache_read_input_tokens" },
  cache_write = { "cache_write", "cacheWrite", "cache_creation_input_tokens" },
}
local ORDER = { "input", "output", "cache_read", "cache_write" }

--- Reads a provider's usage object; nil when it holds none of the four.
---@param raw string?  JSON text
---@return table<string, integer>?
function turns.usage(raw)
  if not raw or span.kind(raw) ~= "object" then
    return nil
  end
  local members, fields = span.object(raw)
  if not members then
    return nil
  end
  local usage, found = {}, false
  for ours, names in pairs(USAGE) do
    usage[ours] = 0
    for _, name in ipairs(names) do
      local n = math.tointeger(tonumber(fields[name]))
      if n then
        usage[ours], found = n, true
        break
      end
    end
  end
  return found and usage or nil
end

--- The four numbers as JSON text, in a fixed order; more is put before the closing brace.
---@param usage table<string, integer>
---@param more string?
---@return string
function turns.usage_json(usage, more)
  local parts = {}
  for i, name in ipairs(ORDER) do
    parts[i] = ('"%s":%d'):format(name, usage[name])
  end
  parts[#parts + 1] = more
  return "{" .. table.concat(parts, ",") .. "}"
end

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function base64(bytes)
  local out = bytes:gsub("..?.?", function(group)
    local a, b, c = group:byte(1, 3)
    local n = a << 16 | (b or 0) << 8 | (c or 0)
    local four = {}
    for i = 1, 4 do
      local six = n >> (24 - 6 * i) & 63
      four[i] = i <= #group + 1 and BASE64:sub(six + 1, six + 1) or "="
    end
    return table.concat(four)
  end)
  return out
end

--- A line that is no message, as the data of a custom entry: the line itself when it is
--- JSON, its text when it is not, its bytes in base64 when they are not even UTF-8.
---@param from string     the format's name
---@param at integer?     the line's number, from 1
---@param line string
---@param as_text boolean?  even if it is JSON
---@return string json
function turns.custom(from, at, line, as_text)
  local head = '{"from":' .. span.quote(from) .. (at and (',"at":%d'):format(at) or "")
  if not as_text and span.valid(line) then
    return head .. ',"line":' .. line .. "}"
  elseif utf8.len(line) then
    return head .. ',"text":' .. span.quote(line) .. "}"
  end
  return head .. ',"b64":"' .. base64(line) .. '"}'
end

--- Why a line is not even an object of JSON.
---@param line string
---@return string
function turns.unreadable(line)
  if span.valid(line) then
    return "it is no JSON object"
  end
  -- Brackets outside of strings: deep enough to be refused for that alone?
  local depth, deepest = 0, 0
  for bracket in line:gsub("\\.", ""):gsub('"[^"]*"', ""):gmatch "[%[%]{}]" do
    depth = depth + (bracket:find "[%[{]" and 1 or -1)
    deepest = math.max(deepest, depth)
  end
  if deepest > span.max_depth then
    return ("it is nested %d levels deep, at most %d are read"):format(deepest, span.max_depth)
  end
  return "it is not JSON"
end

---@class sessile.import.record
---@field kind "session"|"turn"|"custom"
---@field id string?        session: the recorded id
---@field title string?     session
---@field messages string[]? turn: JSON texts
---@field lines integer[]?  turn: the number of the line that each message stood in
---@field usage string?     turn: JSON text
---@field model string?     turn
---@field metadata string?  turn: JSON text
---@field json string?      custom: the entry's data
---@field at integer?       custom: the number of its line
---@field why string?       custom: why the line could not be read as a message; nil when it
---                         was not meant to be one

---@class sessile.import.collector
local collector = {}
collector.__index = collector

local function push(self, record)
  self.last = self.last + 1
  self.queue[self.last] = record
end

--- Ends the turn that is being gathered; `stated` has what a recorded turn entry says.
function collector:finish(stated)
  local turn = self.turn
  self.turn = nil
  if turn then
    local usage = stated and stated.usage
    if not usage and turn.newest then
      usage = turns.usage_json(turn.newest, '"total":' .. turns.usage_json(turn.total))
    end
    push(self, {
      kind = "turn",
      messages = turn.messages,
      lines = turn.lines,
      usage = usage,
      model = stated and stated.model or turn.model,
      metadata = stated and stated.metadata or '{"imported":true}',
    })
  end
  for _, record in ipairs(self.waiting) do
    push(self, record)
  end
  self.waiting = {}
end

--- Adds a message. A user message that begins a turn ends the one before.
---@param json string
---@param facts {starts_turn: boolean, usage: table<string, integer>?, model: string?}
function collector:message(json, facts)
  if facts.starts_turn then
    self:finish()
  end
  local turn = self.turn
  if not turn then
    turn = {
      messages = {}, lines = {},
      total = { input = 0, output = 0, cache_read = 0, cache_write = 0 },
    }
    self.turn = turn
  end
  turn.messages[#turn.messages + 1] = json
  turn.lines[#turn.messages] = self.at
  turn.model = facts.model or turn.model
  local usage = facts.usage
  if not usage then
    return
  end
  local size = 0
  for _, name in ipairs(ORDER) do
    turn.total[name] = turn.total[name] + usage[name]
    size = size + usage[name]
  end
  if size > 0 then
    turn.newest = usage -- an aborted answer reports zeros, which say nothing of the context
  end
end

--- Adds the data of a custom entry. why: when the line was to be a message.
---@param json string
---@param why string?
function collector:custom(json, why)
  local record = { kind = "custom", json = json, at = self.at, why = why }
  if self.turn then
    self.waiting[#self.waiting + 1] = record
  else
    push(self, record)
  end
end

--- Says what the recorded session was called.
function collector:session(id, title)
  push(self, { kind = "session", id = id, title = title })
end

--- An iterator over records: feed(collector, line, number) is called for each line.
---@param lines fun(): string?
---@param feed fun(collector: sessile.import.collector, line: string, at: integer)
---@return fun(): sessile.import.record?
function turns.records(lines, feed)
  local self = setmetatable({ queue = {}, first = 1, last = 0, waiting = {} }, collector)
  local at, ended = 0, false
  return function()
    while self.first > self.last and not ended do
      local line = lines()
      at = at + 1
      if not line then
        ended = true
        self:finish()
      elseif line:find("[^ \t\r]") then
        self.at = at
        feed(self, line, at)
      end
    end
    local record = self.queue[self.first]
    self.queue[self.first] = nil
    self.first = self.first + 1
    return record
  end
end

return turns
