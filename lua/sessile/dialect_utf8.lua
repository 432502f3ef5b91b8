-- dialect_utf8.lua: the functions of Lua 5.4's library utf8 that this module uses, for LuaJIT.
--
-- They accept, refuse and return what Lua's own do without their argument `lax`. A spec compares
-- them with those.

local utf8 = {}

local unpack = rawget(_G, "unpack") or rawget(table, "unpack")
local LEAST = { 0, 0x80, 0x800, 0x10000 } -- of a sequence of 1, 2, 3, 4 bytes

-- The character at a byte and where the next one begins; nil: the bytes are none.
local function decode(text, at)
  local first = text:byte(at)
  if not first then
    return nil
  elseif first < 0x80 then
    return first, at + 1
  elseif first < 0xC2 or first > 0xF4 then
    return nil
  end
  local size = first < 0xE0 and 2 or first < 0xF0 and 3 or 4
  local code = first % 2 ^ (7 - size)
  for i = at + 1, at + size - 1 do
    local byte = text:byte(i)
    if not byte or byte < 0x80 or byte > 0xBF then
      return nil
    end
    code = code * 64 + byte % 64
  end
  if code < LEAST[size] or code > 0x10FFFF or code >= 0xD800 and code <= 0xDFFF then
    return nil
  end
  return code, at + size
end

local function position(text, at)
  return at < 0 and math.max(#text + at + 1, 0) or at
end

local function is_continuation(text, at)
  local byte = text:byte(at)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

--- The number of characters that begin between two bytes; nil and the first byte that is none.
function utf8.len(text, from, to)
  local at, last = position(text, from or 1), position(text, to or -1)
  assert(at >= 1 and at <= #text + 1, "initial position out of bounds")
  assert(last <= #text, "final position out of bounds")
  local count = 0
  while at <= last do
    local plain = text:match("^[%z\1-\127]+()", at) -- a run of ASCII at once
    if plain then
      plain = math.min(plain, last + 1)
      count, at = count + plain - at, plain
    else
      local code, after = decode(text, at)
      if not code then
        return nil, at
      end
      count, at = count + 1, after
    end
  end
  return count
end

--- The characters that begin between two bytes, as numbers.
function utf8.codepoint(text, from, to)
  local at = position(text, from or 1)
  local last = position(text, to or at)
  assert(at >= 1 and last <= #text, "out of bounds")
  local codes = {}
  while at <= last do
    local code, after = decode(text, at)
    if not code then
      error("invalid UTF-8 code", 2)
    end
    codes[#codes + 1], at = code, after
  end
  return unpack(codes)
end

local function encode(code)
  if code < 0x80 then
    return string.char(code)
  elseif code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64,
      0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
    0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

--- The text of characters.
function utf8.char(...)
  local parts = { ... }
  for i, code in ipairs(parts) do
    assert(code >= 0 and code <= 0x10FFFF, "value out of range")
    parts[i] = encode(code)
  end
  return table.concat(parts)
end

--- Where the n-th character from a byte on begins; with n = 0, the one that contains the byte. nil:
--- there is none.
function utf8.offset(text, n, from)
  local at = position(text, from or (n > 0 and 1 or #text + 1))
  assert(at >= 1 and at <= #text + 1, "position out of bounds")
  if n == 0 then
    while at > 1 and is_continuation(text, at) do
      at = at - 1
    end
    return at
  end
  if is_continuation(text, at) then
    error("initial position is a continuation byte", 2)
  end
  while n < 0 and at > 1 do
    repeat
      at = at - 1
    until at == 1 or not is_continuation(text, at)
    n = n + 1
  end
  n = n > 0 and n - 1 or n
  while n > 0 and at <= #text do
    repeat
      at = at + 1
    until not is_continuation(text, at)
    n = n - 1
  end
  return n == 0 and at or nil
end

return utf8
