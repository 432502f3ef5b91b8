--- document: reads a JSON document of any size without holding it in memory.
--
-- Owns: where its members and elements begin and end. Must never build a value: it returns texts,
-- which may be invalid JSON; the format checks that.
--
-- A document is read twice: first its shape (the members, and where long arrays begin), then each
-- array. So a `system` that comes after the messages is known in time.

local characters = require "sessile.characters"
local kept = require "sessile.import.kept"
local source = require "sessile.import.source"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local document = {}

---@class sessile.import.reader
---@field opened sessile.import.source
---@field text string   what is held of it
---@field at integer    the next byte in text, from 1
---@field base integer  bytes before text
local Reader = {}
Reader.__index = Reader

local function reader(opened, offset)
  local ok, message, code, retry_ms, rule = opened:seek(offset)
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  local self = setmetatable({ opened = opened, text = "", at = 1, base = offset }, Reader)
  opened.reader = self
  return self
end

-- Drops what was read and reads the next block; false at the end.
function Reader:more()
  if self.opened.reader ~= self then -- somebody read elsewhere meanwhile
    if not self.opened:seek(self.base + #self.text) then
      return false
    end
    self.opened.reader = self
  end
  local block = self.opened:block()
  if not block then
    return false
  end
  self.base = self.base + #self.text
  self.text, self.at = block, self.at - #self.text
  return true
end

-- The offset of the next byte.
function Reader:offset()
  return self.base + self.at - 1
end

-- The next character that is not white space; "" at the end.
function Reader:peek()
  while true do
    local found = self.text:find("[^ \t\r\n]", self.at)
    if found then
      self.at = found
      return self.text:sub(found, found)
    end
    self.at = #self.text + 1
    if not self:more() then
      return ""
    end
  end
end

-- Skips one value. keep: returns its text if it has at most source.longest bytes, else nil and its
-- length. nil, nil if it does not end.
function Reader:value(keep)
  local first = self:peek()
  if first == "" then
    return nil
  end
  local begin, depth, in_string = self:offset(), 0, false
  local pieces, held = keep and {}, 0
  local is_scalar = not first:find '[%[{"]'
  local from = self.at -- in text, of what is not in pieces yet
  local done = false
  while not done do
    local pattern = in_string and '["\\]' or is_scalar and "[,%]}%s]" or '["%[%]{}]'
    local found = self.text:find(pattern, self.at)
    if found then
      local c = self.text:byte(found)
      self.at = found + 1
      if is_scalar then
        self.at, done = found, true
      elseif c == 92 then -- a backslash takes the next byte with it
        self.at = found + 2
      elseif c == 34 then
        in_string = not in_string
        done = not in_string and depth == 0
      else
        depth = depth + ((c == 91 or c == 123) and 1 or -1)
        done = depth <= 0
      end
    else
      self.at = math.max(self.at, #self.text + 1)
    end
    if done or self.at > #self.text then
      local last = done and self.at - 1 or #self.text
      held = held + last - from + 1
      if pieces and held <= source.longest then
        pieces[#pieces + 1] = self.text:sub(from, last)
      else
        pieces = nil
      end
      if not done then
        if not self:more() then
          if is_scalar then
            break
          end
          return nil
        end
        from = 1
      end
    end
  end
  if not keep then
    return "", begin, self:offset()
  elseif not pieces then
    return nil, begin, self:offset()
  end
  return table.concat(pieces), begin, self:offset()
end

-- The text between two offsets, in pieces.
local function pieces_of(opened, from, to)
  local ok, message, code, retry_ms, rule = opened:seek(from)
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  opened.reader = nil
  local left = to - from
  return function()
    local piece = left > 0 and opened.file:read(math.min(left, source.piece))
    left = left - (piece and #piece or 0)
    return piece or nil
  end
end

-- ---------------------------------------------------------------- the shape

---@class sessile.import.member
---@field path string     "messages", "values.messages"; "": of the document itself
---@field raw string?     its text; nil of an array that is read later, and of what is too long
---@field array integer?  the offset of the array's bracket
---@field from integer
---@field to integer

---@class sessile.import.shape
---@field kind "object"|"array"
---@field members sessile.import.member[]
---@field by_path table<string, sessile.import.member>
---@field broken integer?  the offset where it stops being JSON
---@field rest integer?    the offset of what follows the document

local function read_object(self, shape, prefix, enter)
  self.at = self.at + 1 -- the brace
  if self:peek() == "}" then
    self.at = self.at + 1
    return true
  end
  while true do
    local key = self:peek() == '"' and self:value(true)
    local name = key and span.string(key)
    if not name or self:peek() ~= ":" then
      return false
    end
    self.at = self.at + 1
    local path, mark = prefix .. name, self:peek()
    local member = { path = path, from = self:offset() }
    if enter[path] and mark == "{" then
      if not read_object(self, shape, path .. ".", enter) then
        return false
      end
    else
      if enter[path] and mark == "[" then
        member.array = member.from
      end
      table.insert(shape.members, member)
      shape.by_path[path] = shape.by_path[path] or member
      local raw, _, to = self:value(not member.array)
      if not to then
        return false
      end
      member.raw, member.to = not member.array and raw or nil, to
    end
    mark = self:peek()
    self.at = self.at + 1
    if mark == "}" then
      return true
    elseif mark ~= "," then
      return false
    end
  end
end

local function shape_of(self, enter)
  local shape = { members = {}, by_path = {} }
  local first = self:peek()
  if first == "[" then
    local member = { path = "", array = self:offset(), from = self:offset() }
    shape.kind, shape.members[1], shape.by_path[""] = "array", member, member
    local _, _, to = self:value(false)
    member.to = to
    shape.broken = not to and self:offset() or nil
  elseif first == "{" then
    shape.kind = "object"
    if not read_object(self, shape, "", enter) then
      shape.broken = self:offset()
    end
  else
    return nil
  end
  if not shape.broken and self:peek() ~= "" then
    shape.rest = self:offset()
  end
  return shape
end

--- The shape of a document; nil if it is none. enter: the paths of arrays that are read later, and
--- of the objects around them.
---@param opened sessile.import.source
---@param enter table<string, boolean>
---@return sessile.import.shape? shape
---@return string? message
---@return string? code
function document.shape(opened, enter)
  local ok, message, code, retry_ms, rule = opened:make_seekable()
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  local self
  self, message, code, retry_ms, rule = reader(opened, opened.begin)
  if not self then
    return nil, message, code, retry_ms, rule
  end
  local shape = shape_of(self, enter)
  if not shape then
    return nil, "it is no JSON document: it does not begin with { or [", "EINVALID"
  end
  return shape
end

--- The shape of the object that begins at an offset.
---@param opened sessile.import.source
---@param offset integer
---@param enter table<string, boolean>
---@return sessile.import.shape? shape
---@return string? message
---@return string? code
function document.shape_at(opened, offset, enter)
  local self, message, code, retry_ms, rule = reader(opened, offset)
  if not self then
    return nil, message, code, retry_ms, rule
  end
  local shape = { members = {}, by_path = {}, kind = "object" }
  if self:peek() ~= "{" or not read_object(self, shape, "", enter) then
    return nil
  end
  return shape
end

--- The shape of the first bytes of a document.
---@param head string
---@param enter table<string, boolean>
---@return sessile.import.shape?
function document.peek(head, enter)
  local given = false
  local opened = { block = function()
    local block = not given and head or nil
    given = true
    return block
  end }
  local self = setmetatable({ text = "", at = 1, base = 0, opened = opened }, Reader)
  opened.reader = self
  return shape_of(self, enter)
end

--- An iterator over the elements of an array: the text (nil if it is too long) and its offsets. It
--- ends early where the text is not JSON; then `state.broken` is the offset.
---@param opened sessile.import.source
---@param offset integer  of the bracket
---@param state {broken: integer?}
---@param extents boolean?  only where they are
---@return fun(): string|false|nil, integer?, integer?
function document.elements(opened, offset, state, extents)
  local self = assert(reader(opened, offset))
  self:peek()
  self.at = self.at + 1
  local first, ended = true, false
  return function()
    if ended then
      return nil
    end
    local mark = self:peek()
    if first and mark == "]" or mark == "" then
      ended, state.broken = true, mark == "" and self:offset() or nil
      return nil
    end
    first = false
    local begin = self:offset()
    local raw, from, to = self:value(not extents)
    mark = to and self:peek() or ""
    if not to or to == begin or mark ~= "," and mark ~= "]" then
      ended, state.broken = true, begin
      return nil
    end
    self.at = self.at + 1
    ended = mark == "]"
    return raw or false, from, to
  end
end

-- ---------------------------------------------------------------- records

--- Keeps the text between two offsets, in pieces.
function document.keep_range(collector, opened, from, to, why)
  collector.part = 0
  for piece in pieces_of(opened, from, to) do
    collector.part = collector.part + 1
    collector:keep(piece, collector.part == 1 and why or nil)
  end
  collector.part = nil
end

--- The arrays whose elements are read later, in order.
---@param shape sessile.import.shape
---@return sessile.import.member[]
function document.arrays(shape)
  local list = {}
  for _, member in ipairs(shape.members) do
    list[#list + 1] = member.array and member or nil
  end
  return list
end

--- Keeps the members around the elements: as one JSON text if it is short, else each by itself.
---@param collector table
---@param shape sessile.import.shape
---@param opened sessile.import.source
---@param taken table<string, boolean>  paths that messages came of
---@param number (fun(): integer)?  gives each its number; else -1, -2, …
function document.keep_rest(collector, shape, opened, taken, number)
  local list, size, at = {}, 0, 0
  number = number or function()
    at = at - 1
    return at
  end
  local function flush()
    if #list > 0 then
      collector.at = number()
      collector:keep("{" .. table.concat(list, ",") .. "}")
      list, size = {}, 0
    end
  end
  for _, member in ipairs(shape.members) do
    local is_rest = not member.array and not taken[member.path]
    if is_rest and member.raw and span.valid(member.raw) then
      list[#list + 1] = span.quote(member.path) .. ":" .. member.raw
      size = size + #member.raw
      if size > source.piece then
        flush()
      end
    elseif is_rest and member.to then
      collector.at = number()
      document.keep_range(collector, opened, member.from, member.to, "it is no JSON, or too long")
    end
  end
  flush()
end

--- Keeps the rest of a document that is not JSON to its end, or that other text follows.
function document.keep_tail(collector, opened, from, why)
  if from and opened.size > from then
    collector.at = (collector.at or 0) + 1
    document.keep_range(collector, opened, from, opened.size, why)
  end
end

--- The records of a document. `run(collector)` is called as a coroutine; it calls coroutine.yield()
--- where the records found so far may be taken.
---@param from string
---@param opened sessile.import.source
---@param run fun(collector: table)
---@return sessile.import.records
function document.records(from, opened, run)
  local thread = coroutine.wrap(function(collector)
    run(collector)
    collector.offset = opened.size
    return "ended"
  end)
  return turns.collect(from, function(collector)
    return thread(collector) ~= "ended"
  end)
end

--- Calls feed(collector, text, index) for each element of the arrays, and keeps the rest.
---@param collector table
---@param opened sessile.import.source
---@param shape sessile.import.shape
---@param arrays sessile.import.member[]
---@param feed fun(collector: table, text: string)
function document.feed(collector, opened, shape, arrays, feed)
  local at, broken = 0, nil
  for _, member in ipairs(arrays) do
    local state = {}
    for text, from, to in document.elements(opened, member.array, state) do
      at = at + 1
      collector.at, collector.offset = at, to
      if text then
        feed(collector, characters.escaped(text))
      else
        document.keep_range(collector, opened, from, to, source.too_long)
      end
      coroutine.yield()
    end
    broken = broken or state.broken
  end
  collector.at = at
  document.keep_tail(collector, opened, broken or shape.broken or shape.rest,
    (broken or shape.broken) and "the document stops being JSON here"
      or "it stands behind the document")
end

--- Identifies a document by the first elements of its arrays.
---@param from string
---@param opened sessile.import.source
---@param arrays sessile.import.member[]
---@param prefix string?  what else does
---@return string
function document.digest(from, opened, arrays, prefix)
  for _, member in ipairs(arrays) do
    local text = document.elements(opened, member.array, {})()
    if text then
      return kept.digest(from, (prefix or "") .. text)
    end
  end
  return kept.digest(from, prefix or "")
end

return document
