-- digest.lua: a short name for bytes of any length: the same for the same bytes.
--
-- Source: FNV-1a, 64 bits. For names alone: who chooses both texts can make two that meet, so
-- whoever uses one looks at what it is the name of, or loses nothing by a mistake.

--- 16 hex digits.
---@param bytes string
---@return string
return function(bytes)
  local hash = 0xcbf29ce484222325
  for at = 1, #bytes do
    hash = (hash ~ bytes:byte(at)) * 0x100000001b3
  end
  return ("%016x"):format(hash)
end
