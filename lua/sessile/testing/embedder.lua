--- embedder: vectors for specs, from a table of synonyms.
--
-- Words of one list point in one direction, so two texts without a shared word meet. Every other
-- word has a direction of its own, made from its bytes. The same text has the same vector on
-- every machine.

local random = require "sessile.testing.random"

local embedder = {}

local DIMS = 64

-- An FNV-1a hash of a word.
local function seed_of(word)
  local x = 0xcbf29ce484222325
  for i = 1, #word do
    x = (x ~ word:byte(i)) * 0x100000001b3
  end
  return x
end

-- Adds the direction of a word, a number of -1000 to 1000 in each dimension.
local function add(vector, word)
  local rnd = random.new(seed_of(word))
  for i = 1, #vector do
    vector[i] = vector[i] + rnd:int(-1000, 1000) / 1000
  end
end

local meta = { __name = "sessile.testing.embedder" }

--- The vector of one text.
local function vector_of(self, text)
  local vector = {}
  for i = 1, self.dims do
    vector[i] = 0
  end
  local empty = true
  for word in text:lower():gmatch "[%w\x80-\xff]+" do
    add(vector, self.meaning[word] or word)
    empty = false
  end
  if empty then
    vector[1] = 1
  end
  return vector
end

--- The vectors of texts, as memory.embed gives them.
function meta.__call(self, texts)
  self.calls = self.calls + 1
  local vectors = {}
  for i, text in ipairs(texts) do
    vectors[i] = vector_of(self, text)
  end
  return vectors
end

--- An embedder: a function of a list of texts, with `dims`, and `calls`, which counts.
---@param synonyms string[][]  words of one meaning: { {"car", "automobile"}, … }
---@param options {dims: integer?}?
function embedder.new(synonyms, options)
  local meaning = {}
  for _, list in ipairs(synonyms or {}) do
    for _, word in ipairs(list) do
      meaning[word:lower()] = list[1]:lower()
    end
  end
  return setmetatable({ meaning = meaning, dims = options and options.dims or DIMS, calls = 0 },
    meta)
end

return embedder
