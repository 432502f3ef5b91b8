-- characters.lua: text out of bytes that are not UTF-8.
--
-- Repaired text has U+FFFD for each such byte. Escaped text has a character of its own for each, so
-- that it can be parsed as text and the bytes can be restored.
--
-- Quoted text is a JSON string in which every character can be seen.
--
-- Characters that mean something to a terminal or a page are handled where a text is shown.

local core = require "sessile.core"
local dialect = require "sessile.dialect"

local utf8 = dialect.utf8

local characters = {}

-- The character of a byte is U+10FF00 + byte, for private use. In escaped text it means nothing
-- else: where it occurs in the original, each of its four bytes is escaped.
local FIRST = 0x10FF00
local ESCAPE, BEGIN = "\xF4\x8F[\xBC-\xBF][\x80-\xBF]", "\xF4\x8F"

-- Replaces each byte that is not part of valid UTF-8.
local function replace(bytes, by)
  if utf8.len(bytes) then
    return bytes
  end
  local out, at = {}, 1
  while at <= #bytes do
    local length, wrong = utf8.len(bytes, at)
    if length then
      out[#out + 1] = bytes:sub(at)
      break
    end
    out[#out + 1] = bytes:sub(at, wrong - 1)
    out[#out + 1] = by(bytes:byte(wrong))
    at = wrong + 1
  end
  return table.concat(out)
end

--- Replaces each byte that is not part of valid UTF-8 with U+FFFD.
---@param bytes string
---@return string
function characters.repaired(bytes)
  return replace(bytes, function() return "\u{FFFD}" end)
end

local function escape(byte)
  return utf8.char(FIRST + byte)
end

--- Valid UTF-8 from which characters.bytes makes the same bytes again.
---@param bytes string
---@return string text
function characters.escaped(bytes)
  if not characters.has_escapes(bytes) then
    return replace(bytes, escape)
  end
  local out, at = {}, 1
  for from, to in bytes:gmatch("()" .. ESCAPE .. "()") do
    out[#out + 1] = replace(bytes:sub(at, from - 1), escape)
    out[#out + 1] = bytes:sub(from, to - 1):gsub(".", function(byte) return escape(byte:byte()) end)
    at = to
  end
  out[#out + 1] = replace(bytes:sub(at), escape)
  return table.concat(out)
end

--- Whether escaped text contains escapes.
---@param text string
---@return boolean
function characters.has_escapes(text)
  return text:find(BEGIN, 1, true) ~= nil and text:find(ESCAPE) ~= nil
end

--- The bytes of escaped text.
---@param text string
---@return string
function characters.bytes(text)
  if not characters.has_escapes(text) then
    return text
  end
  return (text:gsub(ESCAPE, function(one) return string.char(utf8.codepoint(one) - FIRST) end))
end

--- Bytes as a text. If it is not the same, what `metadata.bytes` of its message keeps of them.
---@param bytes string
---@param at string  where the text is in the message: a JSON pointer
---@return string text
---@return {at: string, b64: string}? kept
function characters.readable(bytes, at)
  if utf8.len(bytes) then
    return bytes
  end
  return characters.repaired(bytes), { at = at, b64 = core.base64(bytes) }
end

-- Characters that nobody sees, that end a line, or that change the direction of writing: the list
-- in engine/memory/quote.c, where it says which and why.
local HIDDEN = {
  { 0, 0x1F }, { 0x7F, 0x9F }, { 0xAD, 0xAD }, { 0x34F, 0x34F }, { 0x61C, 0x61C },
  { 0x115F, 0x1160 }, { 0x17B4, 0x17B5 }, { 0x180B, 0x180F }, { 0x200B, 0x200B },
  { 0x200E, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0x3164, 0x3164 },
  { 0xFE00, 0xFE0E }, { 0xFEFF, 0xFEFF }, { 0xFFA0, 0xFFA0 }, { 0xFFF0, 0xFFFB },
  { 0x1BCA0, 0x1BCA3 }, { 0x1D173, 0x1D17A }, { 0xE0000, 0xE0FFF },
}

--- Whether a character is one that a reader does not see as such.
---@param code integer
---@return boolean
function characters.is_hidden(code)
  for _, range in ipairs(HIDDEN) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

--- Text with by(code) in the place of each hidden character beyond ASCII.
---@param text string  UTF-8
---@param by fun(code: integer): string
---@return string
function characters.without_hidden(text, by)
  return (text:gsub("[\xC2-\xF4][\x80-\xBF]+", function(one)
    local code = utf8.len(one) == 1 and utf8.codepoint(one)
    return code and characters.is_hidden(code) and by(code) or nil
  end))
end

--- JSON with what nobody sees, and what ends a line, as escapes: the same value on one line.
---@param json string
---@return string
function characters.inert(json)
  return characters.without_hidden(json:gsub("\127", "\\u007f"), function(code)
    if code < 0x10000 then
      return ("\\u%04x"):format(code)
    end
    code = code - 0x10000
    return ("\\u%04x\\u%04x"):format(0xD800 + math.floor(code / 0x400), 0xDC00 + code % 0x400)
  end)
end

--- A text as a JSON string: one line, in which <, > and hidden characters are escaped, as the
--- engine quotes entries of memories.
---@param text string  UTF-8
---@return string
function characters.quoted(text)
  local json = core.text(characters.repaired(text)):gsub("[<>\x7F]", function(one)
    return ("\\u%04x"):format(one:byte())
  end)
  return characters.inert(json)
end

return characters
