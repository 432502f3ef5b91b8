-- page.lua: a part of a session that fits into a number of bytes.
--
-- Owns: a message as one text, where a part begins, and how to go on. A position is the id of an
-- entry; `ID+` is what follows it, and `ID@N` the text of that message from byte N on.

local clean = require "sessile.mcp.clean"
local facts = require "sessile.facts"
local parts = require "sessile.export.parts"
local speaker = require "sessile.speaker"

local page = {}

local FORMS = {
  thinking = "[thinking] %s", image = "[image: %s]", data = "[data] %s", text = "%s",
}

local function form(part)
  if part.kind == "call" then
    return ("[call of %s] %s"):format(part.name, part.text)
  elseif part.kind == "result" then
    return ("[result%s%s] %s"):format(part.name and " of " .. part.name or "",
      part.error and ", an error" or "", part.text)
  end
  return FORMS[part.kind]:format(part.text)
end

--- A message as one text.
---@param data table
---@return string
function page.flat(data)
  local texts = {}
  for i, part in ipairs(parts.of(data)) do
    texts[i] = form(part)
  end
  return table.concat(texts, "\n")
end

--- What a message says, redacted and visible: its text, and who speaks.
---@param redaction table  of clean.lua
---@param message table    as it was read
---@return string text
---@return string role
function page.text(redaction, message)
  local found = redaction:message(message)
  if not found then
    return "", "?"
  end
  return clean.visible(page.flat(found)), clean.line(speaker.of(found))
end

--- A time as a text; nil: it is not known.
---@param ms integer?
---@return string?
function page.time(ms)
  return ms and ms > 0 and os.date("!%Y-%m-%dT%H:%M:%SZ", ms // 1000) or nil
end

--- The beginning of a text in whole characters, at most `most` bytes and at least one character.
---@param text string  UTF-8
---@param most integer
---@return string
function page.cut(text, most)
  if #text <= most then
    return text
  end
  local stop = utf8.offset(text, 0, most + 1)
  return text:sub(1, math.max(stop, utf8.offset(text, 2)) - 1)
end

--- An id in full, from the number that people type; other names are returned as they are.
---@param text string
---@return string
function page.full(text)
  local digits, rest = text:match "^(%x+)(%.?%d*)$"
  if not digits or #digits > 8 then
    return text
  end
  return ("%08x%s"):format(tonumber(digits, 16), rest)
end

--- What a position says: the entry, whether only what follows it is meant, and the first byte.
---@param text string
---@return string entry
---@return boolean after
---@return integer from
function page.position(text)
  local entry, from = text:match "^(.+)@(%d+)$"
  if entry and #from < 10 then
    return page.full(entry), false, math.max(math.tointeger(tonumber(from)), 1)
  end
  entry = text:match "^(.+)%+$"
  return page.full(entry or text), entry ~= nil, 1
end

local function key_of(message)
  return facts.within(message).key
end

--- The index of a message in a list; nil: it is not there.
---@param list table[]
---@param key string
---@return integer?
function page.index(list, key)
  for i, message in ipairs(list) do
    if key_of(message) == key then
      return i
    end
  end
end

-- The first message before `index` that fits, with those up to it, into `room` bytes.
local function first_before(redaction, list, index, room)
  local first = index
  while first > 1 do
    room = room - #page.text(redaction, list[first - 1])
    if room < 0 then
      break
    end
    first = first - 1
  end
  return first
end

-- The position after the newest of the first `last` messages that has a key. A result that the
-- engine adds has none.
local function after(list, last)
  for i = last, 1, -1 do
    if key_of(list[i]) then
      return key_of(list[i]) .. "+"
    end
  end
end

-- One message as a row, from byte `from` on, in at most `room` bytes. Second: whether it was cut.
local function row_of(redaction, message, from, room)
  local text, role = page.text(redaction, message)
  local all = text
  if from > 1 then
    local start = from <= #text and utf8.offset(text, 0, from) or #text + 1
    text = text:sub(start)
    from = start
  end
  local shown = page.cut(text, room)
  local known = facts.within(message)
  local cut = #shown < #text
  return {
    entry = known.key or "", role = role, text = shown, time = page.time(known.time),
    next = cut and known.key and ("%s@%d"):format(known.key, from + #shown) or nil,
    of_bytes = (cut or from > 1) and #all or nil,
  }, cut
end

--- Messages of a list within `bytes`.
---@param redaction table
---@param list table[]    messages, oldest first
---@param start {index: integer, from: integer, around: boolean}
---@param bytes integer
---@return table[] rows
---@return string? next   the position that goes on
---@return integer first  the index of the first row
function page.fill(redaction, list, start, bytes)
  local first = start.around and first_before(redaction, list, start.index, bytes // 3)
    or start.index
  local rows, room = {}, bytes
  for i = first, #list do
    if room <= 0 then
      return rows, after(list, i - 1), first
    end
    local row, cut = row_of(redaction, list[i], i == start.index and start.from or 1, room)
    if cut and #rows > 0 and i > start.index and #row.text < bytes // 4 then
      return rows, after(list, i - 1), first -- the next part has all of it
    end
    rows[#rows + 1] = row
    room = room - #row.text
    if cut then
      return rows, row.next, first
    end
  end
  return rows, nil, first
end

--- The index of the first of the newest messages that fit into `bytes`; at most `most` of them.
---@param redaction table
---@param list table[]
---@param most integer
---@param bytes integer
---@return integer
function page.newest(redaction, list, most, bytes)
  local first, room = #list + 1, bytes
  while first > 1 and #list - first + 1 < most do
    room = room - #page.text(redaction, list[first - 1])
    if room < 0 and first <= #list then
      break
    end
    first = first - 1
  end
  return math.max(first, 1)
end

return page
