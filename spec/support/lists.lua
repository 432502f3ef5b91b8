-- lists.lua: one field of every item of a list.

local lists = {}

--- The values of a field, in order; fails the test when there is no list.
function lists.field(list, name)
  local values = {}
  for i, item in ipairs(assert(list)) do
    values[i] = item[name]
  end
  return values
end

--- The same as one text, with spaces between.
function lists.words(list, name)
  return table.concat(lists.field(list, name), " ")
end

return lists
