--- turns: gathers recorded messages into turns, one record for each.
--
-- Owns: where a turn begins (at a user message), what its usage is, and the order in which
-- records leave. Must never look into a format: pi.lua and jsonl.lua tell it what a line is.
--
-- A line that is no message waits until the turn it stands in is complete: a turn is one
-- write. Its number in the file ("at") says where it stood.
--
-- A recording may be a tree: a message names its parent, and a turn ends where the next message
-- does not follow the last one. One whose parent was not seen yet waits for it, up to a limit.

local kept = require "sessile.import.kept"
local span = require("sessile.core").span

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

---@class sessile.import.record
---@field kind "session"|"turn"|"custom"|"compaction"
---@field id string?        session: the recorded id
---@field title string?     session
---@field messages string[]? turn: JSON texts
---@field lines (integer|integer[])[]?  turn: the lines that each message was made of
---@field keys (string|string[]|false)[]? turn: what the recording calls each message
---@field usages (table|false)[]? turn: the usage of each message
---@field parent string|false|nil turn, compaction: the key of what it follows; false: it begins
---                         the conversation; nil: it goes on where the one before ended
---@field usage string?     turn: JSON text
---@field model string?     turn
---@field metadata string?  turn: JSON text, as it was recorded
---@field offset integer?   turn: where the line of its last message ends
---@field json string?      custom: the entry's data
---@field at integer?       custom, compaction: the number of its line
---@field part integer?     custom: which piece of the line
---@field plain boolean?    custom: the data of an entry of ours, which names no line
---@field why string?       custom: why the line could not be read as a message; nil when it
---                         was not meant to be one
---@field label {target: string, name: string, off: boolean?}? custom: to be set first
---@field key string?       compaction: what the recording calls it
---@field summary string?   compaction: the text
---@field first string|false|nil compaction: the key of the first message that stays; nil: none

---@class sessile.import.records  called for the next record
---@field from string
---@field source string?  what tells the recording from others; known with the first record
---@field offset integer  bytes that were read
---@field size integer?   of all
---@field title string?   what it was called last
---@field settings {model: string?, thinking: string?}
---@field head string?    the key of the message that the recording continues from
---@field strays integer  messages whose parent is not there
---@field failed string?  why reading ended early
local collector = {}
collector.__index = collector

-- Limits of what is held: a turn, and messages that wait for their parents.
local MOST_MESSAGES, MOST_BYTES, MOST_CUSTOMS, MOST_WAITING = 256, 4 << 20, 1024, 16 << 20

local function push(self, record)
  self.last = self.last + 1
  self.queue[self.last] = record
end

--- The usage of several messages: of the last that reports any, and the sum; nil: none does.
---@param usages (table|false)[]
---@return string? json
function turns.usage_of(usages)
  local total, newest = { input = 0, output = 0, cache_read = 0, cache_write = 0 }, nil
  for _, usage in ipairs(usages) do
    local size = 0
    for _, name in ipairs(usage and ORDER or {}) do
      -- A recording may claim what it likes; sums stay integers.
      total[name] = math.min(total[name] + math.max(0, math.min(usage[name], 1 << 50)), 1 << 53)
      size = size + usage[name]
    end
    if size ~= 0 then
      newest = usage -- an aborted answer reports zeros, which say nothing of the context
    end
  end
  return newest and turns.usage_json(newest, '"total":' .. turns.usage_json(total))
end

--- Ends the turn that is being gathered; `stated` has what a recorded turn entry says.
function collector:finish(stated)
  local turn = self.turn
  self.turn = nil
  if turn then
    turn.usage = stated and stated.usage or turns.usage_of(turn.usages)
    turn.stated_usage = stated and stated.usage ~= nil
    turn.model = stated and stated.model or turn.model
    turn.metadata = stated and stated.metadata
    push(self, turn)
  end
  for _, record in ipairs(self.waiting) do
    push(self, record)
  end
  self.waiting, self.waiting_bytes = {}, 0
end

local function add_message(self, json, facts, parent)
  local turn = self.turn
  if turn and (facts.starts_turn or parent ~= nil and not turn.ends[parent]
      or #turn.messages >= MOST_MESSAGES or turn.bytes >= MOST_BYTES) then
    self:finish()
    turn = nil
  end
  if not turn then
    turn = {
      kind = "turn", messages = {}, lines = {}, keys = {}, usages = {}, bytes = 0,
      parent = parent,
    }
    self.turn = turn
  end
  local n = #turn.messages + 1
  turn.messages[n] = json
  turn.lines[n] = facts.lines
  turn.keys[n] = facts.key or false
  turn.usages[n] = facts.usage or false
  turn.bytes, turn.offset = turn.bytes + #json, facts.offset
  turn.model = facts.model or turn.model
  turn.ends = {}
  for _, key in ipairs(type(facts.key) == "table" and facts.key or { facts.key }) do
    turn.ends[key] = true
  end
end

-- ---------------------------------------------------------------- parents

local place

-- A key is known from now on: by what it stands for, which is true (itself), a key or false.
-- Whoever waited for it comes in.
local function know(self, keys, means)
  local work = {}
  for _, key in ipairs(type(keys) == "table" and keys or { keys }) do
    self.known[key] = means
    work[#work + 1] = self.orphans[key]
    self.orphans[key] = nil
  end
  return work
end

-- Puts an item where its parent is, and then all that waited for it, without recursion: a
-- recording may be a chain of millions.
function place(self, item, parent)
  local work = { { item, parent } }
  while #work > 0 do
    local one = table.remove(work)
    local released = know(self, one[1].key, one[1].put(one[2]))
    for i = #released, 1, -1 do
      for k = #released[i], 1, -1 do
        local child = released[i][k]
        local means = self.known[child.parent]
        if not child.placed then
          self.orphan_bytes, child.placed = self.orphan_bytes - child.bytes, true
          work[#work + 1] = { child, means == true and child.parent or means }
        end
      end
    end
  end
end

-- Nobody brings their parents any more: the oldest of each chain begins a conversation.
local function place_orphans(self)
  local items = self.orphan_list
  self.orphan_list = {}
  for _, item in ipairs(items) do
    if not item.placed then
      item.placed = true
      self.orphan_bytes = self.orphan_bytes - item.bytes
      self.strays = self.strays + 1
      place(self, item, false)
    end
  end
  self.orphans = {}
end

-- Lets those go that were placed: one that waits to the end would hold all that came after it.
local function forget_placed(self)
  local list = {}
  for _, item in ipairs(self.orphan_list) do
    list[#list + 1] = not item.placed and item or nil
  end
  self.orphan_list, self.most_listed = list, math.max(1000, #list * 2)
end

-- item: {key, parent, bytes, put = function(parent) that returns what the key stands for}.
local function settle(self, item)
  local parent = item.parent
  if type(parent) ~= "string" then
    return place(self, item, parent)
  end
  local means = self.known[parent]
  if means ~= nil then
    return place(self, item, means == true and parent or means)
  end
  if self.orphan_bytes == 0 then
    self.orphan_list = {}
  end
  if #self.orphan_list >= self.most_listed then
    forget_placed(self)
  end
  self.orphans[parent] = self.orphans[parent] or {}
  table.insert(self.orphans[parent], item)
  table.insert(self.orphan_list, item)
  self.orphan_bytes = self.orphan_bytes + item.bytes
  if self.orphan_bytes > MOST_WAITING then
    place_orphans(self)
  end
end

-- ---------------------------------------------------------------- what formats say

---@class sessile.import.facts
---@field starts_turn boolean?
---@field usage table<string, integer>?
---@field model string?
---@field lines (integer|integer[])?  the lines it was made of, if not the current one
---@field offset integer?              where the last of them ends
---@field key (string|string[])?      what the recording calls it
---@field parent string|false|nil     the key of what it follows; false: nothing
---@field side boolean?               it is beside the conversation

--- Adds a message. A user message that begins a turn ends the one before.
---@param json string
---@param facts sessile.import.facts
function collector:message(json, facts)
  facts.lines = facts.lines or self.at
  facts.offset = facts.offset or self.line_end
  settle(self, {
    key = facts.key or {}, parent = facts.parent, bytes = #json + 200,
    put = function(parent)
      add_message(self, json, facts, parent)
      if not facts.side then
        self.head = type(facts.key) == "table" and facts.key[#facts.key] or facts.key
      end
      return true
    end,
  })
end

--- Says that a line which is no message stands between its parent and what names it as one.
---@param key string
---@param parent string|false|nil
function collector:link(key, parent)
  settle(self, {
    key = key, parent = parent, bytes = 200,
    put = function(found)
      return found or false
    end,
  })
end

--- Says that what came before was replaced by a summary.
---@param fields {key: string?, parent: string|false|nil, summary: string,
--- first: string|false|nil, line: string, side: boolean?}
function collector:compaction(fields)
  local at = self.at
  local json = kept.custom(self:place(), fields.line)
  settle(self, {
    key = fields.key or {}, parent = fields.parent, bytes = #json + 200,
    put = function(parent)
      self:finish()
      local first = fields.first and self.known[fields.first]
      push(self, {
        kind = "compaction", key = fields.key, parent = parent, at = at, json = json,
        summary = fields.summary, first = first == true and fields.first or first,
      })
      self.head = not fields.side and fields.key or self.head
      return true
    end,
  })
end

-- Where the current line stands.
function collector:place()
  return { from = self.from, source = self.source, at = self.at, part = self.part }
end

--- Adds the data of a custom entry. why: when the line was to be a message.
---@param json string
---@param why string?
---@param more table?  further fields of the record
function collector:custom(json, why, more)
  local record = more or {}
  record.kind, record.json, record.at, record.why = "custom", json, self.at, why
  record.part = self.part
  if not self.turn then
    return push(self, record)
  end
  table.insert(self.waiting, record)
  self.waiting_bytes = self.waiting_bytes + #json
  if #self.waiting >= MOST_CUSTOMS or self.waiting_bytes >= MOST_BYTES then
    self:finish()
  end
end

--- Keeps a line that is no message as a custom entry.
---@param line string
---@param why string?  why it could not be read as a message
---@param more table?
function collector:keep(line, why, more)
  self:custom(kept.custom(self:place(), line), why, more)
end

--- Sets a label, or takes it away, and keeps the line that says so.
---@param line string
---@param target string?  a key
---@param name string?
---@param off boolean?
function collector:label(line, target, name, off)
  local means = target and self.known[target]
  target = means == true and target or means
  self:keep(line, nil, target and name
    and { label = { target = target, name = name, off = off } } or nil)
end

--- Says what the last message, or the one that is being gathered, cost.
---@param usage table<string, integer>
function collector:usage(usage)
  local turn = self.turn
  if turn and not turn.usages[#turn.messages] then
    turn.usages[#turn.messages] = usage
  end
end

--- Says what the recorded session was called.
function collector:session(id, title)
  push(self, { kind = "session", id = id, title = title })
end

-- ---------------------------------------------------------------- records

local records = {}
records.__index = records
for name, method in pairs(collector) do
  records[name] = method
end
records.__index = records

-- The next record; nil when there are no more.
function records:__call()
  while self.first > self.last and not self.ended do
    if not self.step(self) then
      self.ended = true
      if self.close then
        self.close(self)
      end
      place_orphans(self)
      self:finish()
    end
  end
  local record = self.queue[self.first]
  self.queue[self.first] = nil
  self.first = self.first + 1
  return record
end

--- Records that come as `step` brings them: it is called with the collector, says what it found,
--- and returns false when there is no more. close: called once, then.
---@param from string
---@param step fun(collector: table): boolean
---@param close fun(collector: table)?
---@return sessile.import.records
function turns.collect(from, step, close)
  return setmetatable({
    from = from, step = step, close = close, offset = 0, strays = 0,
    settings = {}, queue = {}, first = 1, last = 0, waiting = {}, waiting_bytes = 0,
    known = {}, orphans = {}, orphan_list = {}, orphan_bytes = 0, most_listed = 1000,
  }, records)
end

--- Records of lines: feed(collector, line, number) is called for each.
---@param lines fun(): string?, integer?, integer?
---@param from string
---@param feed fun(collector: table, line: string, at: integer)
---@param close fun(collector: table)?
---@return sessile.import.records
function turns.records(lines, from, feed, close)
  local at = 0
  return turns.collect(from, function(self)
    local line, offset, part = lines()
    if not line then
      return false
    end
    at = at + ((part or 1) == 1 and 1 or 0)
    self.at, self.part = at, part
    self.offset = offset or self.offset + #line + 1
    self.line_end = self.offset
    if not self.source and line:find "[^ \t\r]" then
      self.source = kept.digest(from, line)
    end
    if part then
      self:keep(line, part == 1 and "it is longer than is read as one" or nil)
    elseif line:find "[^ \t\r]" then
      feed(self, line, at)
    end
    return true
  end, close)
end

return turns
