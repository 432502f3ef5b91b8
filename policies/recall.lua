-- recall: chooses which entries are quoted to the model, and in which order.
--
-- Use it   as a policy of memories, to spend the budget of recall on different things.
-- Cost     one pass over what was found, at most 24 entries. Asks no model.
-- Does     orders by score; of entries with nearly the same score, the more trusted are first. Of
--          entries with nearly the same words, one is left: the most trusted, then the newest. What
--          is at the start, pinned entries and procedures, stays there.
-- Never    changes an entry, or adds one that was not found.

local RANKS = { system = 3, user = 2, agent = 1, tool = 0 }
local STEPS = 20 -- scores are 0 to about 1; those in the same twentieth are nearly the same

local function words_of(row)
  local set, count = {}, 0
  for word in row.value:lower():gmatch("[%w\x80-\xff]+") do
    if not set[word] then set[word], count = true, count + 1 end
  end
  return { set = set, count = count }
end

-- The share of the words of two texts that both have.
local function likeness(a, b)
  local both = 0
  for word in pairs(a.set) do both = both + (b.set[word] and 1 or 0) end
  local all = a.count + b.count - both
  return all == 0 and 0 or both / all
end

-- Whether a goes before b.
local function is_better(a, b)
  local a_step, b_step = math.floor(a.row.score * STEPS), math.floor(b.row.score * STEPS)
  if a_step ~= b_step then return a_step > b_step end
  local a_rank, b_rank = RANKS[a.row.source], RANKS[b.row.source]
  if a_rank ~= b_rank then return a_rank > b_rank end
  if a.row.score ~= b.row.score then return a.row.score > b.row.score end
  return a.at < b.at
end

-- Which of two with nearly the same words is quoted.
local function is_preferred(a, b)
  local a_rank, b_rank = RANKS[a.row.source], RANKS[b.row.source]
  if a_rank ~= b_rank then return a_rank > b_rank end
  return a.row.time > b.row.time
end

return {
  name = "recall", version = 1,
  about = "Quote the best of what was found, each thing once.",
  options = {
    limit = { type = "integer", default = 8, min = 1, max = 24, about = "entries that are quoted" },
    alike = { type = "number", default = 0.8, min = 0.1, max = 1, about = "share of words" },
  },
  recall = function(_, found, ctx)
    local chosen, kept, list = {}, {}, {}
    for i, row in ipairs(found) do
      local one = { row = row, at = i, words = words_of(row) }
      if not row.score then -- it is there from the start, not for the question
        chosen[#chosen + 1], kept[#kept + 1] = row, one
      else
        list[#list + 1] = one
      end
    end
    local first = #kept
    table.sort(list, is_better)
    for _, one in ipairs(list) do
      local twin
      for i, other in ipairs(kept) do
        twin = twin or likeness(one.words, other.words) >= ctx.options.alike and i
      end
      if not twin then
        kept[#kept + 1] = one
      elseif twin > first and is_preferred(one, kept[twin]) then
        kept[twin] = one -- in the place of its twin
      end
    end
    for i = first + 1, math.min(#kept, ctx.options.limit) do chosen[#chosen + 1] = kept[i].row end
    return chosen
  end,
}
