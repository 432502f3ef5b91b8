-- encoded.lua: texts in the encodings in which orders are hidden from people and filters.

local encoded = {}

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

function encoded.base64(text)
  return (text:gsub("..?.?", function(bytes)
    local a, b, c = bytes:byte(1, 3)
    local bits, out = a << 16 | (b or 0) << 8 | (c or 0), {}
    for i = 1, 4 do
      local at = (bits >> (24 - 6 * i) & 63) + 1
      out[i] = i > #bytes + 1 and "=" or ALPHABET:sub(at, at)
    end
    return table.concat(out)
  end))
end

--- The text in lines of so many characters.
function encoded.lines(text, width)
  return (text:gsub(("."):rep(width), "%0\n"))
end

function encoded.hex(text)
  return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

--- Each letter moved on in the alphabet.
function encoded.rotated(text, by)
  return (text:gsub("%a", function(c)
    local first = c:find "%l" and 97 or 65
    return string.char(first + (c:byte() - first + by) % 26)
  end))
end

--- A character between each two.
function encoded.between(text, between)
  return (text:gsub(".", "%0" .. between))
end

function encoded.tags(text)
  return (text:gsub(".", function(c) return utf8.char(0xe0000 + c:byte()) end))
end

function encoded.selectors(text)
  return (text:gsub(".", function(c) return utf8.char(0xe0100 + c:byte() - 16) end))
end

local ALIKE = { a = "а", e = "е", o = "о", c = "с", p = "р", x = "х", y = "у", i = "і", s = "ѕ" }

--- Letters replaced by Cyrillic ones.
function encoded.alike(text)
  return (text:gsub("%l", ALIKE))
end

function encoded.entities(text)
  return (text:gsub(".", function(c) return ("&#%d;"):format(c:byte()) end))
end

function encoded.percents(text)
  return (text:gsub(".", function(c) return ("%%%02X"):format(c:byte()) end))
end

function encoded.escapes(text)
  return (text:gsub(".", function(c) return ("\\u%04x"):format(c:byte()) end))
end

return encoded
