-- characters.lua: replaces bytes that are not UTF-8, so that any bytes become a text.
--
-- Characters that mean something to a terminal or a page are handled where a text is shown.

local characters = {}

--- Replaces each byte that is not part of valid UTF-8 with U+FFFD.
---@param bytes string
---@return string
function characters.repaired(bytes)
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
    out[#out + 1] = "\u{FFFD}"
    at = wrong + 1
  end
  return table.concat(out)
end

return characters
