--- shrink: the smallest conversation that still fails.
--
-- Owns: delta debugging (Zeller and Hildebrandt, 2002) over turns, then over the messages of
-- turns, then over their texts. Must never show a conversation that does not fail.

local shrink = {}

local function without(list, first, count)
  local rest = {}
  for i, value in ipairs(list) do
    if i < first or i >= first + count then
      rest[#rest + 1] = value
    end
  end
  return rest
end

local function with(list, i, value)
  local copy = { table.unpack(list) }
  copy[i] = value
  return copy
end

-- Takes ever smaller pieces out of a list as long as `fails` holds of the rest.
local function fewer(list, fails)
  local size = math.max(1, #list // 2)
  while size >= 1 do
    local i, gone = 1, false
    while i <= #list do
      local rest = without(list, i, size)
      if #rest > 0 and fails(rest) then
        list, gone = rest, true
      else
        i = i + size
      end
    end
    if not gone or size > #list then
      size = size // 2
    end
  end
  return list
end

local function shorter_text(message)
  if type(message.content) ~= "string" or #message.content <= 4 then
    return nil
  end
  local copy = {}
  for key, value in pairs(message) do
    copy[key] = value
  end
  local half = message.content:sub(1, #message.content // 2)
  copy.content = half:sub(1, (utf8.offset(half, 0, #half) or #half + 1) - 1)
  return copy
end

--- The smallest turns found for which fails(turns) is still true, after at most `most` tries.
---@param turns sessile.Message[][]
---@param fails fun(turns: sessile.Message[][]): boolean
---@param most integer?
function shrink.turns(turns, fails, most)
  local left = most or 400
  local function try(candidate)
    if left <= 0 then
      return false
    end
    left = left - 1
    return fails(candidate)
  end
  local before
  repeat
    before = 0
    for _, turn in ipairs(turns) do
      before = before + #turn
    end
    turns = fewer(turns, try)
    for i = 1, #turns do
      turns = with(turns, i, fewer(turns[i], function(turn)
        return try(with(turns, i, turn))
      end))
    end
    local after = 0
    for _, turn in ipairs(turns) do
      after = after + #turn
    end
  until after == before or left <= 0
  for i = 1, #turns do
    for j = 1, #turns[i] do
      local copy = shorter_text(turns[i][j])
      while copy and try(with(turns, i, with(turns[i], j, copy))) do
        turns = with(turns, i, with(turns[i], j, copy))
        copy = shorter_text(turns[i][j])
      end
    end
  end
  return turns
end

return shrink
