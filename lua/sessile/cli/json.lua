--- json: what commands print with --json.
--
-- Owns: writing Lua values as JSON, with sorted keys. Must never change text that is JSON already:
-- json.raw(text) is printed unchanged, so that a stored message keeps its numbers and escapes. The
-- only exception are characters that a terminal executes; they are printed as escapes of the same
-- value.

local span = require("sessile.core").span

local json = {}

local Raw, List = {}, {}

--- A value that is JSON text already.
---@param text string
---@return table
function json.raw(text)
  return setmetatable({ text = text }, Raw)
end

--- Marks a table as a list, so that it is one even when empty.
---@param items any[]
---@return table
function json.list(items)
  return setmetatable(items, List)
end

-- Delete and the C1 controls (U+007F to U+009F), and characters that reorder text (U+061C, U+200E,
-- U+200F, U+202A to U+202E, U+2066 to U+2069). In JSON they occur only in strings, and never after
-- a single backslash.
--- The same JSON with these characters as escapes.
---@param text string
---@return string
function json.inert(text)
  local function escaped(c)
    return ("\\u%04x"):format(utf8.codepoint(c))
  end
  return (text:gsub("\127", escaped):gsub("\xC2[\x80-\x9F]", escaped)
    :gsub("\xD8\x9C", escaped)
    :gsub("\xE2\x80[\x8E\x8F\xAA-\xAE]", escaped):gsub("\xE2\x81[\xA6-\xA9]", escaped))
end

local function number(n)
  if math.type(n) == "integer" then
    return ("%d"):format(n)
  elseif n ~= n or n == math.huge or n == -math.huge then
    return "null" -- an unlimited window
  end
  local text = ("%.15g"):format(n)
  return tonumber(text) == n and text or ("%.17g"):format(n)
end

-- Ids, paths and names may be any bytes; JSON has to be UTF-8.
local function quoted(text)
  return span.quote(utf8.len(text) and text or text:gsub("[\128-\255]", "\u{FFFD}"))
end

--- The keys of a table, sorted.
---@param value table
---@return string[]
function json.keys(value)
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local write

local function write_table(value, indent)
  local inner = indent .. "  "
  local parts = {}
  if getmetatable(value) == List or #value > 0 then
    for i = 1, #value do
      parts[i] = inner .. write(value[i], inner)
    end
    return #parts == 0 and "[]" or "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
  end
  for i, key in ipairs(json.keys(value)) do
    parts[i] = inner .. quoted(tostring(key)) .. ": " .. write(value[key], inner)
  end
  return #parts == 0 and "{}" or "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

function write(value, indent)
  local kind = type(value)
  if kind == "string" then
    return quoted(value)
  elseif kind == "number" then
    return number(value)
  elseif kind == "boolean" then
    return tostring(value)
  elseif kind ~= "table" then
    return "null"
  elseif getmetatable(value) == Raw then
    return value.text
  end
  return write_table(value, indent)
end

--- A table of strings, raw values and such tables as JSON on one line, keys sorted. Raw JSON has no
--- line break, because stored text has none.
---@param value table
---@return string
function json.line(value)
  local parts = {}
  for key, field in pairs(value) do
    local nested = type(field) == "table" and getmetatable(field) ~= Raw
    parts[#parts + 1] = quoted(key) .. ":" .. (nested and json.line(field) or write(field, ""))
  end
  table.sort(parts)
  return json.inert("{" .. table.concat(parts, ",") .. "}")
end

--- A Lua value as JSON text, indented.
---@param value any
---@return string
function json.write(value)
  return json.inert(write(value, ""))
end

return json
