--- kept: custom entries for lines of a recording that are not messages.
--
-- Owns: their shape, {"from", "at", "part", "line" | "text" | "b64", "source"}, and the conversion
-- back to bytes. Must never interpret a line.

local core = require "sessile.core"
local dialect = require "sessile.dialect"

local math, utf8 = dialect.math, dialect.utf8

local span = core.span

local kept = {}

---@class sessile.import.place
---@field from string     the format's name
---@field source string?  what tells this recording from others
---@field at integer?     the line's number, from 1; 0: what is around the elements of a document
---@field part integer?   of a line in pieces, from 1

--- The data of a custom entry for a line: the line itself if it is JSON, its text if it is UTF-8,
--- else its bytes in base64.
---@param place sessile.import.place
---@param line string
---@param as_text boolean?  even if it is JSON
---@return string json
function kept.custom(place, line, as_text)
  local head = ('{"from":%s'):format(span.quote(place.from))
    .. (place.at and (',"at":%d'):format(place.at) or "")
    .. (place.part and (',"part":%d'):format(place.part) or "")
  local tail = place.source and ',"source":' .. span.quote(place.source) .. "}" or "}"
  if not as_text and not place.part and span.valid(line) then
    return head .. ',"line":' .. line .. tail
  elseif utf8.len(line) then
    return head .. ',"text":' .. span.quote(line) .. tail
  end
  return head .. ',"b64":"' .. core.base64(line) .. '"' .. tail
end

--- The line that a custom entry keeps; nil if it is not one of these entries.
---@param raw string  the entry's data
---@return {from: string, source: string?, at: integer?, part: integer?, line: string}?
function kept.read(raw)
  local members, fields = span.object(raw)
  local from = members and span.string(fields.from)
  local line = from and (fields.line or span.string(fields.text)
    or fields.b64 and core.base64_bytes(span.string(fields.b64) or ""))
  if not line then
    return nil
  end
  return {
    from = from, line = line, source = span.string(fields.source),
    at = math.tointeger(tonumber(fields.at)), part = math.tointeger(tonumber(fields.part)),
  }
end

--- Identifies a recording by its beginning: 16 hex digits.
---@param from string   the format
---@param text string   its first line, or element
---@return string
function kept.digest(from, text)
  return core.sha256(from .. ":" .. text:sub(1, 4096)):sub(1, 16)
end

--- A sentence about a line that is not a JSON object.
---@param line string
---@return string
function kept.unreadable(line)
  if span.valid(line) then
    return "it is no JSON object"
  end
  -- Counts brackets outside strings: it may be nested too deep.
  local depth, deepest = 0, 0
  for bracket in line:gsub("\\.", ""):gsub('"[^"]*"', ""):gmatch "[%[%]{}]" do
    depth = depth + (bracket:find "[%[{]" and 1 or -1)
    deepest = math.max(deepest, depth)
  end
  if deepest > span.max_depth then
    return ("it is nested %d levels deep, at most %d are read"):format(deepest, span.max_depth)
  end
  return "it is not JSON"
end

return kept
