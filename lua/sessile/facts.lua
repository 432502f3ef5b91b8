-- facts.lua: the engine's fields of a message, an entry, settings or metadata that was read.
--
-- A message that was read answers m.id, m.key, m.tokens, m.time and m.json from its metatable,
-- unless it has a field of that name itself: a provider's message may have an `id`. Code that has
-- to work for every message asks here.

local facts = {}

-- The names of the metatables that the binding gives to what is read.
local classes = {
  ["sessile.Message"] = true, ["sessile.Entry"] = true, ["sessile.Settings"] = true,
  ["sessile.Metadata"] = true,
}

--- {id, key, tokens, time, json} of a message that was read, {json} of an entry, settings or
--- metadata; nil for any other value.
---@param value any
---@return table?
function facts.of(value)
  local meta = type(value) == "table" and getmetatable(value)
  if type(meta) ~= "table" or not classes[rawget(meta, "__name")] then
    return nil
  end
  return rawget(meta, "__index")
end

--- The same; a table that was not read is returned itself, with what fields it has.
---@param value table
---@return table
function facts.within(value)
  return facts.of(value) or value
end

return facts
