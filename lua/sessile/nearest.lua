-- nearest.lua: the name that somebody probably meant, for "did you mean".

local LONGEST = 100 -- bytes: a longer word is no misspelled name

-- The edit distance of two words: insert, remove, replace, swap two neighbours.
local function distance(a, b)
  local before, row = {}, {}
  for j = 0, #b do row[j] = j end
  for i = 1, #a do
    local two_before = before
    before, row = row, { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], two_before[j - 2] + 1)
      end
    end
  end
  return row[#b]
end

-- Whether one is an abbreviation of the other: "prev" of "preview"; "windows" has "window" in it.
local function begins(word, name)
  return name:sub(1, #word) == word or #name >= 3 and word:sub(1, #name) == name
end

--- The name in `names` (a set) that is most similar to `word`; nil: none is similar enough.
---@param word any
---@param names table<string, any>
---@return string?
return function(word, names)
  if type(word) ~= "string" or #word > LONGEST then
    return nil
  end
  local most = #word <= 4 and 1 or math.max(2, math.floor(#word / 3)) -- mistakes in the word
  local best, least = nil, math.min(most + 1, #word)
  for name in pairs(names) do
    local d = begins(word, name) and 1 or distance(word, name)
    if d < least or d == least and best and name < best then
      best, least = name, d
    end
  end
  return best
end
