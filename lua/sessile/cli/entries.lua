--- entries: which entry somebody means.
--
-- Owns: how the number of an entry is typed. Must never guess: what is no number is said.

local hints = require "sessile.cli.hints"

local entries = {}

--- "2a" as "0000002a", "16.1" as "00000016.1"; nil, sentence, code when it is neither.
---@param text string
---@param written boolean?  a message that a compaction wrote may be meant
---@return string? key
---@return string? message
---@return string? code
function entries.key(text, written)
  local id, n = text:match "^(%x+)$", nil
  if not id and written then
    id, n = text:match "^(%x+)%.([1-9]%d*)$"
  end
  if not id or #id > 8 then
    return nil, ("'%s' is no entry: entries are numbered with 1 to 8 hexadecimal digits%s"):format(
      hints.shown(text), written and ", what a compaction wrote like 16.1" or ""), "EUSAGE"
  end
  return ("0"):rep(8 - #id) .. id:lower() .. (n and "." .. n or "")
end

return entries
