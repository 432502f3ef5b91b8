--- span: finds the parts of a JSON text as they stand in it.
--
-- Owns: where a value begins and ends, and what a string says. An importer cuts pieces out
-- of a recorded line with it, so that 9007199254740993, 1.50 and "\u00e9" reach the log as
-- they were written. Must never print a value anew: whoever needs a number gets its text.
--
-- Strict (RFC 8259): what is not JSON gives nil and the place where it stops being so. The
-- input may be any bytes; whether strings are UTF-8 is asked of span.valid alone.

local span = {}

--- Nesting deeper than this is no JSON here; the engine's own limit.
span.max_depth = 128

local LITERAL = { t = "true", f = "false", n = "null" }
local ESCAPE = {
  ['"'] = '"', ["\\"] = "\\", ["/"] = "/",
  b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
}

-- The end of the string whose opening quote is at i.
local function string_end(text, i)
  local at = i + 1
  while true do
    local stop = text:find('[%z\1-\31"\\]', at)
    if not stop then
      return nil, #text + 1
    end
    local byte = text:byte(stop)
    if byte == 34 then
      return stop
    elseif byte ~= 92 then
      return nil, stop
    end
    local letter = text:sub(stop + 1, stop + 1)
    if letter == "u" then
      if not text:find("^%x%x%x%x", stop + 2) then
        return nil, stop
      end
      at = stop + 6
    elseif ESCAPE[letter] then
      at = stop + 2
    else
      return nil, stop
    end
  end
end

local function number_end(text, i)
  local _, stop = text:find("^-?[1-9]%d*", i)
  if not stop then
    _, stop = text:find("^-?0", i)
  end
  if not stop then
    return nil, i
  end
  local _, fraction = text:find("^%.%d+", stop + 1)
  stop = fraction or stop
  local _, exponent = text:find("^[eE][+-]?%d+", stop + 1)
  return exponent or stop
end

local value_end

-- Walks an array or object that opens at i. `visit` may be nil; it is called with the ends
-- of each element: visit(value_from, value_to, key_from, key_to).
local function walk(text, i, depth, visit)
  local is_object = text:byte(i) == 123
  local close = is_object and "}" or "]"
  if depth > span.max_depth then
    return nil, i
  end
  local at = text:find("[^ \t\r\n]", i + 1)
  if at and text:sub(at, at) == close then
    return at
  end
  while at do
    local key_from, key_to
    if is_object then
      if text:byte(at) ~= 34 then
        return nil, at
      end
      local stop, wrong = string_end(text, at)
      if not stop then
        return nil, wrong
      end
      key_from, key_to = at, stop
      local colon = text:match("^[ \t\r\n]*()[:]", stop + 1)
      if not colon then
        return nil, stop + 1
      end
      at = text:find("[^ \t\r\n]", colon + 1)
      if not at then
        break
      end
    end
    local stop, wrong = value_end(text, at, depth)
    if not stop then
      return nil, wrong
    end
    if visit then
      visit(at, stop, key_from, key_to)
    end
    local next_at = text:find("[^ \t\r\n]", stop + 1)
    local mark = next_at and text:sub(next_at, next_at)
    if mark == close then
      return next_at
    elseif mark ~= "," then
      return nil, next_at or #text + 1
    end
    at = text:find("[^ \t\r\n]", next_at + 1)
  end
  return nil, #text + 1
end

function value_end(text, i, depth)
  local first = text:sub(i, i)
  if first == '"' then
    return string_end(text, i)
  elseif first == "{" or first == "[" then
    return walk(text, i, depth + 1)
  elseif LITERAL[first] then
    local word = LITERAL[first]
    if text:sub(i, i + #word - 1) == word then
      return i + #word - 1
    end
    return nil, i
  end
  return number_end(text, i)
end

local function whole(text, visit)
  local from = text:find("[^ \t\r\n]")
  if not from then
    return nil, 1
  end
  local stop, wrong
  if visit then
    stop, wrong = walk(text, from, 1, visit)
  else
    stop, wrong = value_end(text, from, 0)
  end
  if not stop then
    return nil, wrong
  end
  local rest = text:find("[^ \t\r\n]", stop + 1)
  if rest then
    return nil, rest
  end
  return from, stop
end

--- Is this one JSON value in UTF-8, and nothing else?
---@param text string
---@return boolean
function span.valid(text)
  return whole(text) ~= nil and utf8.len(text) ~= nil
end

--- "object", "array", "string", "number", "true", "false", "null", by the first character.
---@param raw string
---@return string?
function span.kind(raw)
  local first = raw:match("^[ \t\r\n]*(.)")
  if first == "{" then return "object" end
  if first == "[" then return "array" end
  if first == '"' then return "string" end
  return first and (LITERAL[first] or "number")
end

---@class sessile.span.member
---@field key string      the key, decoded
---@field raw_key string  the key as written, quotes included
---@field raw string      the value as written

--- The members of an object, in order. `fields` maps a key to the value as written (of a
--- key that occurs twice: the last).
---@param text string
---@return sessile.span.member[]? members
---@return table<string, string>|integer fields  or where the text goes wrong
function span.object(text)
  if span.kind(text) ~= "object" then
    return nil, 1
  end
  local members, fields = {}, {}
  local from, wrong = whole(text, function(value_from, value_to, key_from, key_to)
    local raw_key = text:sub(key_from, key_to)
    local raw = text:sub(value_from, value_to)
    local key = span.string(raw_key)
    members[#members + 1] = { key = key, raw_key = raw_key, raw = raw }
    fields[key] = raw
  end)
  if not from then
    return nil, wrong
  end
  return members, fields
end

--- The elements of an array, each as written.
---@param text string
---@return string[]?
---@return integer? wrong
function span.array(text)
  if span.kind(text) ~= "array" then
    return nil, 1
  end
  local list = {}
  local from, wrong = whole(text, function(value_from, value_to)
    list[#list + 1] = text:sub(value_from, value_to)
  end)
  if not from then
    return nil, wrong
  end
  return list
end

local function code_point(text, at)
  local unit = tonumber(text:sub(at + 2, at + 5), 16)
  if unit >= 0xD800 and unit <= 0xDBFF then
    local low = text:match("^\\u(%x%x%x%x)", at + 6)
    local second = low and tonumber(low, 16)
    if second and second >= 0xDC00 and second <= 0xDFFF then
      return 0x10000 + (unit - 0xD800) * 0x400 + (second - 0xDC00), at + 12
    end
  end
  if unit >= 0xD800 and unit <= 0xDFFF then
    unit = 0xFFFD -- half a pair means nothing
  end
  return unit, at + 6
end

--- What a JSON string says; nil when raw is none.
---@param raw string?
---@return string?
function span.string(raw)
  if not raw or raw:byte(1) ~= 34 then
    return nil
  end
  local stop = string_end(raw, 1)
  if stop ~= #raw then
    return nil
  end
  if not raw:find("\\", 1, true) then
    return raw:sub(2, -2)
  end
  local out, at = {}, 2
  while at < stop do
    local slash = raw:find("\\", at, true)
    if not slash then
      out[#out + 1] = raw:sub(at, stop - 1)
      break
    end
    out[#out + 1] = raw:sub(at, slash - 1)
    local letter = raw:sub(slash + 1, slash + 1)
    if letter == "u" then
      local code, following = code_point(raw, slash)
      out[#out + 1] = utf8.char(code)
      at = following
    else
      out[#out + 1] = ESCAPE[letter]
      at = slash + 2
    end
  end
  return table.concat(out)
end

local QUOTED = {
  ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t",
}

--- Text as a JSON string. The text is UTF-8; other bytes pass as they are.
---@param text string
---@return string
function span.quote(text)
  return '"' .. text:gsub('[%z\1-\31"\\\127]', function(c)
    return QUOTED[c] or ("\\u%04x"):format(c:byte())
  end) .. '"'
end

--- A JSON value as a Lua value, for people's eyes and for comparing: null is span.null,
--- numbers are what tonumber makes of them. What goes into a log is never made from this.
---@param raw string
---@return any
function span.decode(raw)
  local kind = span.kind(raw)
  if kind == "object" then
    local members = span.object(raw)
    if not members then return nil end
    local out = {}
    for _, member in ipairs(members) do
      out[member.key] = span.decode(member.raw)
    end
    return out
  elseif kind == "array" then
    local list = span.array(raw)
    if not list then return nil end
    for i = 1, #list do
      list[i] = span.decode(list[i])
    end
    return list
  elseif kind == "string" then
    return span.string(raw:match("^[ \t\r\n]*(.-)[ \t\r\n]*$"))
  elseif kind == "true" or kind == "false" then
    return kind == "true"
  elseif kind == "null" then
    return span.null
  end
  return tonumber(raw)
end

--- Stands for JSON's null in what span.decode returns.
span.null = setmetatable({}, { __name = "sessile.null", __tostring = function() return "null" end })

return span
