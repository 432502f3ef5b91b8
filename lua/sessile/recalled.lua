-- recalled.lua: a message that quotes entries of memories: which ones.

local recalled = {}

--- The entries that a message quotes: {{memory = "user" or "agent", id}, …}; nil: it is no such
--- message.
function recalled.of(message)
  local metadata = type(message) == "table" and message.metadata
  if type(metadata) ~= "table" or metadata.kind ~= "memory" or type(metadata.of) ~= "table" then
    return nil
  end
  local list = {}
  for _, one in ipairs(metadata.of) do
    if type(one) == "table" and (one.memory == "user" or one.memory == "agent")
      and type(one.id) == "string" and one.id:find "^%x+$" then
      list[#list + 1] = { memory = one.memory, id = one.id }
    end
  end
  return list
end

--- "2a, 2b of the user's memory; 7 of the agent's memory"; "" without any.
function recalled.text(list)
  local parts = {}
  for _, memory in ipairs { "user", "agent" } do
    local ids = {}
    for _, one in ipairs(list) do
      ids[#ids + 1] = one.memory == memory and one.id:gsub("^0+(.)", "%1") or nil
    end
    if #ids > 0 then
      parts[#parts + 1] = ("%s of the %s's memory"):format(table.concat(ids, ", "), memory)
    end
  end
  return table.concat(parts, "; ")
end

return recalled
