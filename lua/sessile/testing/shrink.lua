--- shrink: finds the smallest conversation that still fails.
--
-- Delta debugging (Zeller and Hildebrandt, 2002) over turns, then over the messages of turns, then
-- over their texts. The result always fails.

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

local function with(table, i, value)
  local copy = setmetatable({}, getmetatable(table))
  for key, other in pairs(table) do
    copy[key] = other
  end
  copy[i] = value
  return copy
end

-- Removes smaller and smaller pieces of a list while `fails` is true of the rest.
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

-- The first half of a text, whole characters; nil when it is short.
local function half(text)
  if type(text) ~= "string" or #text <= 4 then
    return nil
  end
  local first = text:sub(1, #text // 2)
  return first:sub(1, (utf8.offset(first, 0, #first) or #first + 1) - 1)
end

-- A message with its text, or one of the texts in its blocks, cut to half; or nil. `k` is the
-- block.
local function shorter_text(message, k)
  local content = message.content
  if type(content) == "table" then
    local block = content[k]
    local field = type(block) == "table"
      and (type(block.text) == "string" and "text" or type(block.content) == "string" and "content")
    local text = field and half(block[field])
    return text and with(message, "content", with(content, k, with(block, field, text)))
  end
  local text = k == 1 and half(content)
  return text and with(message, "content", text)
end

local function blocks_of(message)
  return type(message.content) == "table" and #message.content or 1
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
      for k = 1, blocks_of(turns[i][j]) do
        local copy = shorter_text(turns[i][j], k)
        while copy and try(with(turns, i, with(turns[i], j, copy))) do
          turns = with(turns, i, with(turns[i], j, copy))
          copy = shorter_text(turns[i][j], k)
        end
      end
    end
  end
  return turns
end

return shrink
