-- memory_named.lua: which entry of a memory a caller means: by a row, an id, or a key.
--
-- A key means its live entry. Where it has none, a verdict that is about other entries means one of
-- those: what ended last is restored, what waits is approved or rejected.

local options = require "sessile.options"

local named = {}

--- Whether a text is an id: eight hexadecimal digits. The engine's mark of "no entry" is none.
---@param text string
---@return boolean
function named.is_id(text)
  return text:find "^%x%x%x%x%x%x%x%x$" ~= nil and text:lower() ~= "ffffffff"
end

--- Whether a text is an id, and no key of eight hexadecimal digits, such as the day 20260101. An id
--- goes first, so that no key that a model chose stands for another entry.
---@param self sessile.Memory
---@param text string
---@return boolean
function named.means_id(self, text)
  return named.is_id(text)
    and (self._core:get(text) ~= nil or not self._core:history(text))
end

-- States of the entries that a verdict is about where a key has no live entry.
local WAITING = { "pending" }
local ABOUT = {
  approved = WAITING, rejected = WAITING,
  restored = { "replaced", "deleted", "rejected", "expired" },
}

-- The newest of the key's entries in these states: the one that ended last, if they have ended.
local function newest(self, key, states)
  local best, at
  for _, row in ipairs(self._core:list { states = states, prefix = key } or {}) do
    local since = row.ended_by or row.id
    if row.key == key and (not best or since > at) then
      best, at = row, since
    end
  end
  return best
end

--- The row that a key means for a verdict. to: "deleted", "restored", …; nil: the live entry. What
--- waits goes first for an approval. nil, message, code.
---@param self sessile.Memory
---@param key string
---@param to string?
function named.row(self, key, to)
  local waiting = to == "approved" and newest(self, key, WAITING)
  if waiting then
    return waiting
  end
  local row, message, code, retry_ms, rule = self._core:read(key)
  if not row and code == "ENOTFOUND" and ABOUT[to] then
    row = newest(self, key, ABOUT[to])
  end
  return row, message, code, retry_ms, rule
end

--- The id of an entry: an id, a row, or a key. to: as for named.row. nil, message, code; raises for
--- other types.
---@param self sessile.Memory
---@param who string
---@param entry string|table
---@param to string?
function named.id(self, who, entry, to)
  local is_row = type(entry) == "table"
  entry = is_row and entry.id or entry
  options.expect("string", entry, who .. ": a key, an id or a row")
  if is_row or named.means_id(self, entry) then
    return entry
  end
  local row, message, code, retry_ms, rule = named.row(self, entry, to)
  if not row then
    return nil, message, code, retry_ms, rule
  end
  return row.id
end

return named
