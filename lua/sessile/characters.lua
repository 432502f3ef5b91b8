-- characters.lua: text out of bytes that are not UTF-8.
--
-- Repaired text has U+FFFD for each such byte. Escaped text has a character of its own for each, so
-- that it can be parsed as text and the bytes can be restored.
--
-- Characters that mean something to a terminal or a page are handled where a text is shown.

local core = require "sessile.core"

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

return characters
