--- turns: collects recorded messages into turns, one record for each.
--
-- Owns: where a turn begins (at a user message), its usage, and the order of records. Must never
-- know a format: the modules of formats say what a line is.
--
-- A line that is not a message waits until its turn is complete, since a turn is one write. Its
-- number in the file ("at") tells its place.
--
-- A recording may be a tree: a message names its parent, and a turn ends if the next message does
-- not follow the last one. A message whose parent was not read yet waits for it, up to a limit.

local dialect = require "sessile.dialect"
local bytes = require "sessile.import.bytes"
local characters = require "sessile.characters"
local kept = require "sessile.import.kept"
local paths = require "sessile.paths"
local source = require "sessile.import.source"
local span = require("sessile.core").span

local math = dialect.math

local turns = {}

-- Our names of usage fields, and those of providers.
local USAGE = {
  input = { "input", "input_tokens", "prompt_tokens" },
  output = { "output", "output_tokens", "completion_tokens" },
  cache_read = { "cache_read", "cacheRead", "cache_read_input_tokens" },
  cache_write = { "cache_write", "cacheWrite", "cache_creation_input_tokens" },
}
local ORDER = { "input", "output", "cache_read", "cache_write" }

-- What a request cost in US dollars, if its usage says so: a number, or an object with `total`.
local function cost_of(raw)
  if raw and span.kind(raw) == "object" then
    local _, fields = span.object(raw)
    raw = fields and fields.total
  end
  local cost = raw and span.kind(raw) == "number" and tonumber(raw)
  return cost and cost >= 0 and cost < math.huge and cost or nil
end

--- Reads a provider's usage object; nil if it has none of the four fields.
---@param raw string?  JSON text
---@return table<string, number>?  {input, output, cache_read, cache_write, cost?}
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
  usage.cost = cost_of(fields.cost)
  return found and usage or nil
end

--- The four numbers as JSON, in a fixed order, then the cost, followed by the members in `more`.
---@param usage table<string, number>
---@param more string?
---@return string
function turns.usage_json(usage, more)
  local parts = {}
  for i, name in ipairs(ORDER) do
    parts[i] = ('"%s":%d'):format(name, usage[name])
  end
  parts[#parts + 1] = usage.cost and ('"cost":%.12g'):format(usage.cost)
  parts[#parts + 1] = more
  return "{" .. table.concat(parts, ",") .. "}"
end

---@class sessile.import.record
---@field kind "session"|"turn"|"custom"|"compaction"
---@field id string?        session: the recorded id
---@field title string?     session
---@field begun_by string?  session: of a sub-agent, the id of the session that began it
---@field messages string[]? turn: JSON texts
---@field lines (integer|integer[])[]?  turn: the lines that each message was made of
---@field keys (string|string[]|false)[]? turn: what the recording calls each message
---@field usages (table|false)[]? turn: the usage of each message
---@field parent string|false|nil turn, compaction: the key of what it follows; false: it begins
---                         the conversation; nil: it follows the turn before
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
---@field key string|string[]|nil  compaction: what the recording calls it
---@field time integer?     compaction: when, in ms
---@field history {key: string?, json: string?}[]?  compaction: the new context, if it is recorded.
---                         A key and json: a new message; a key: one that stays; json: either
---@field summary string?   compaction: the text
---@field first string|false|nil compaction: the key of the first message that stays; nil: none

---@class sessile.import.records  called for the next record
---@field from string
---@field source string?  what tells the recording from others; known with the first record
---@field has_name boolean?  the recording has a name of its own, which its first line tells
---@field path string?    where it is; nil: nobody knows
---@field salt string?    what identifies it besides its first line
---@field offset integer  bytes that were read
---@field size integer?   of the whole recording, in bytes
---@field title string?   its newest title
---@field about {cwd: string?, branch: string?}?  where it ran
---@field is_empty boolean?  it was read to its end and has no message
---@field looks_like string?  a sentence, if it may be of another format
---@field settings {model: string?, thinking: string?}
---@field head string|false|nil  the key of the message that the recording continues from; false:
---                       it starts a new conversation
---@field strays integer  messages whose parent is not there
---@field failed string?  why reading ended early
local collector = {}
collector.__index = collector

-- Limits of memory: for a turn, and for messages that wait for their parents.
local MOST_TOKENS, MOST_SUM = 1125899906842624, 9007199254740992 -- 2^50, 2^53
local MOST_MESSAGES, MOST_BYTES, MOST_CUSTOMS, MOST_WAITING = 256, 4 * 1048576, 1024, 16 * 1048576

local function push(self, record)
  self.last = self.last + 1
  self.queue[self.last] = record
end

--- The usage of several messages: the last one, and the sum; nil if none reports any.
---@param usages (table|false)[]
---@return string? json
function turns.usage_of(usages)
  local total, newest = { input = 0, output = 0, cache_read = 0, cache_write = 0, cost = 0 }, nil
  for _, usage in ipairs(usages) do
    local size = 0
    for _, name in ipairs(usage and ORDER or {}) do
      -- A recording may have any numbers; sums stay integers.
      total[name] = math.min(total[name] + math.max(0, math.min(usage[name], MOST_TOKENS)),
        MOST_SUM)
      size = size + usage[name]
    end
    if usage then -- a sum of which a part is not known says nothing
      total.cost = total.cost and usage.cost and total.cost + usage.cost or nil
    end
    if size ~= 0 then
      newest = usage -- an aborted answer reports zeros, which say nothing of the context
    end
  end
  return newest and turns.usage_json(newest, '"total":' .. turns.usage_json(total))
end

--- Ends the turn that is being collected. stated: the fields of a recorded turn entry.
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

-- Makes a key known: as itself (true), as another key, or as the beginning (false). What waited for
-- it is placed.
local function know(self, keys, means)
  local work = {}
  for _, key in ipairs(type(keys) == "table" and keys or { keys }) do
    self.known[key] = means
    work[#work + 1] = self.orphans[key]
    self.orphans[key] = nil
  end
  return work
end

-- Places an item after its parent, then everything that waited for it. Without recursion, since a
-- chain may have millions of items.
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

-- Their parents will not come: the oldest of each chain begins a conversation.
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

-- Removes placed items from the front of the list of waiting ones.
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
  json = bytes.message(json)
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

--- Records the parent of a line that is not a message, for the lines that name it as their parent.
---@param key string
---@param parent string|false|nil
---@param is_head boolean?  the recording continues from here if this is its last line
function collector:link(key, parent, is_head)
  settle(self, {
    key = key, parent = parent, bytes = 200,
    put = function(found)
      if is_head then
        self.head = found or false
      end
      return found or false
    end,
  })
end

--- Adds a compaction: the messages before it were replaced by a summary.
---@param fields {key: string|string[]|nil, parent: string|false|nil, summary: string,
--- first: string|false|nil, line: string, at: integer?, side: boolean?, time: integer?,
--- history: {key: string?, json: string?}[]?}
function collector:compaction(fields)
  local at = fields.at or self.at
  local where = { from = self.from, source = self.source, at = at }
  local json = kept.custom(where, characters.bytes(fields.line))
  settle(self, {
    key = fields.key or {}, parent = fields.parent, bytes = #json + 200,
    put = function(parent)
      self:finish()
      local first = fields.first and self.known[fields.first]
      push(self, {
        kind = "compaction", key = fields.key, parent = parent, at = at, json = json,
        time = fields.time, history = fields.history, summary = bytes.text(fields.summary),
        first = first == true and fields.first or first,
      })
      local key = type(fields.key) == "table" and fields.key[#fields.key] or fields.key
      self.head = not fields.side and key or self.head
      return true
    end,
  })
end

--- Sets what tells the recording from others. A `salt` of the records is part of it.
---@param digest string
function collector:identify(digest)
  self.source = self.salt and kept.digest(self.salt, digest) or digest
end

--- Adds the data of a custom entry. why: a sentence if the line is an invalid message.
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

--- Keeps a line that is not a message as a custom entry.
---@param line string
---@param why string?  why it could not be read as a message
---@param more table?
function collector:keep(line, why, more)
  local where = { from = self.from, source = self.source, at = self.at, part = self.part }
  self:custom(kept.custom(where, characters.bytes(line)), why, more)
end

--- Sets or removes a label, and keeps the line.
---@param line string
---@param target string?  a key
---@param name string?
---@param off boolean?
function collector:label(line, target, name, off)
  local means = target and self.known[target]
  target = means == true and target or means
  self:keep(line, nil, target and name
    and { label = { target = target, name = bytes.text(name), off = off } } or nil)
end

--- Sets the usage of the last message, or of the one that is being collected.
---@param usage table<string, integer>
function collector:usage(usage)
  local turn = self.turn
  if turn and not turn.usages[#turn.messages] then
    turn.usages[#turn.messages] = usage
  end
end

--- Sets the name of the recorded session. parent: the id of the session that began it.
function collector:session(id, title, parent)
  push(self, { kind = "session", id = bytes.text(id), title = bytes.text(title),
    begun_by = bytes.text(parent) })
end

--- Sets where the session ran: cwd, the folder where it began, and branch, of git, the latest. A
--- folder that is no absolute path, as paths.is_folder has it, is none.
---@param cwd string?
---@param branch string?
function collector:ran(cwd, branch)
  local about = self.about or {}
  self.about = about
  about.cwd = about.cwd or paths.is_folder(cwd) and cwd or nil
  about.branch = branch ~= "" and branch or about.branch
end

-- ---------------------------------------------------------------- records

local records = {}
records.__index = records
for name, method in pairs(collector) do
  records[name] = method
end
records.__index = records

-- The next record; nil at the end.
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

--- An iterator over the records that `step` adds. step(collector) adds what it finds, and returns
--- false at the end; then close() is called once.
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

--- An iterator over the records of lines. feed(collector, line, number) is called for each line.
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
      self:identify(kept.digest(from, line))
    end
    if part then
      self:keep(line, part == 1 and source.too_long or nil)
    elseif line:find "[^ \t\r]" then
      feed(self, characters.escaped(line), at)
    end
    return true
  end, close)
end

return turns
