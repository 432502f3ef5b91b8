--- bytes: messages of recordings that are not UTF-8.
--
-- Owns: what becomes of the escapes of such a line (sessile.characters) in the message that was
-- made of it: the text gets U+FFFD, the message keeps the bytes in `metadata.bytes`. Must never
-- change another text.

local characters = require "sessile.characters"
local span = require("sessile.core").span

local bytes = {}

local function readable(raw, at, kept)
  local kind = characters.has_escapes(raw) and span.kind(raw)
  local out = {}
  if not kind then
    return raw
  elseif kind == "string" then
    local text
    text, kept[#kept + 1] = characters.readable(characters.bytes(span.string(raw)), at)
    return span.quote(text)
  elseif kind == "array" then
    for i, one in ipairs(span.array(raw)) do
      out[i] = readable(one, ("%s/%d"):format(at, i - 1), kept)
    end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for i, member in ipairs(span.object(raw)) do
    local pointer = at .. "/" .. member.key:gsub("~", "~0"):gsub("/", "~1")
    out[i] = readable(member.raw_key, at, kept) .. ":" .. readable(member.raw, pointer, kept)
  end
  return "{" .. table.concat(out, ",") .. "}"
end

-- The object with a member more.
local function with(raw, key, value)
  local inside = raw:match "^%s*{%s*(.-)%s*}%s*$"
  return ("{%s%s%s:%s}"):format(inside, inside ~= "" and "," or "", span.quote(key), value)
end

--- A message of escaped text as it is written: readable, with the bytes beside it.
---@param json string
---@return string json
function bytes.message(json)
  local kept = {}
  local text = readable(json, "", kept)
  if #kept == 0 then
    return text
  end
  for i, one in ipairs(kept) do
    kept[i] = ('{"at":%s,"b64":"%s"}'):format(span.quote(characters.repaired(
      characters.bytes(one.at))), one.b64)
  end
  local list = "[" .. table.concat(kept, ",") .. "]"
  local members, fields = span.object(text)
  if not (fields.metadata and span.kind(fields.metadata) == "object") then
    return with(text, "metadata", with("{}", "bytes", list))
  end
  local out = {}
  for i, member in ipairs(members) do
    out[i] = member.raw_key .. ":" .. (member.key == "metadata" and with(member.raw, "bytes", list)
      or member.raw)
  end
  return "{" .. table.concat(out, ",") .. "}"
end

--- Escaped text that is not a message, for people to read.
---@param text string?
---@return string?
function bytes.text(text)
  return text and characters.repaired(characters.bytes(text))
end

return bytes
