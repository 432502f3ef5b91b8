--- words: the type words of the registry, read into trees.
--
--   string integer number boolean     what JSON calls so (integer: a number without a fraction)
--   json                              any value, kept as the text that came
--   object                            an object, kept as the text that came
--   Name                              a type of types.lua
--   'fail'                            this word
--   T[]    T?    A|B                  a list, may be left out or null, either
--
-- A tree is {kind = "list", of = tree}, {kind = "either", of = {tree, …}}, {kind = "word", word =},
-- or {kind = the word itself}; with `optional` where a "?" stood.

local words = {}

local read = {} -- by text

local function single(text)
  local inner = text:match "^(.*)%[%]$"
  if inner then
    return { kind = "list", of = single(inner) }
  end
  local word = text:match "^'([^']*)'$"
  if word then
    return { kind = "word", word = word }
  end
  assert(text:find "^%a%w*$", "no type word: " .. text)
  return { kind = text }
end

--- The tree of a text of type words.
---@param text string
---@return table
function words.read(text)
  if read[text] then
    return read[text]
  end
  local bare, optional = text:match "^(.-)(%??)$"
  local trees = {}
  for part in bare:gmatch "[^|]+" do
    trees[#trees + 1] = single(part)
  end
  local tree = #trees == 1 and trees[1] or { kind = "either", of = trees }
  tree.optional = optional == "?"
  tree.text = bare
  read[text] = tree
  return tree
end

-- The kinds that are kept as the text that came.
local SPANS = { json = true, object = true, Message = true, WriteEntry = true }

--- Whether a value of this type is kept as text until it is looked at.
---@param tree table
---@return boolean
function words.is_span(tree)
  if tree.kind == "list" then
    return words.is_span(tree.of)
  elseif tree.kind == "either" then
    for _, one in ipairs(tree.of) do
      if words.is_span(one) then
        return true
      end
    end
    return false
  end
  return SPANS[tree.kind] or false
end

return words
