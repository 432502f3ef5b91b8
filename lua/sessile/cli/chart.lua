--- chart: bar charts of text.
--
-- Owns: the length of a bar and the number of rows. A number above 0 must never be drawn as an
-- empty bar.

local chart = {}

local EIGHTHS = { "▏", "▎", "▍", "▌", "▋", "▊", "▉" }

--- The bar of `value`; `most` would be `columns` long.
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

--- Splits a list into at most `rows` groups of the same size; only the last may be smaller.
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
