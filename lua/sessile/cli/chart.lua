--- chart: numbers as bars of text.
--
-- Owns: how long a bar is, and how many rows a picture has. Must never draw a number that is
-- there as nothing: the least of them is a sliver.

local chart = {}

local EIGHTHS = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }

--- A bar of at most `columns` for `value` of `most`.
---@param value number
---@param most number
---@param columns integer
---@return string
function chart.bar(value, most, columns)
  if value <= 0 or most <= 0 then
    return ""
  end
  local eighths = math.max(1, math.floor(value / most * columns * 8 + 0.5))
  return ("█"):rep(eighths // 8) .. (EIGHTHS[eighths % 8] or "")
end

--- At most `rows` groups of neighbours, of the same size but for the last.
---@generic T
---@param list T[]
---@param rows integer  1 or more
---@return T[][]
function chart.groups(list, rows)
  local size = math.max(1, (#list + rows - 1) // rows)
  local groups = {}
  for i = 1, #list, size do
    groups[#groups + 1] = table.move(list, i, math.min(i + size - 1, #list), 1, {})
  end
  return groups
end

return chart
