--- rows: a tree of entries as the rows of an outline.
--
-- Owns: which row is under which, how far to the right, and what folds what. The path to the
-- head is at the left whatever its length; only branches and facts are indented. Must never
-- read an entry, nor recurse: a branch may be as deep as a session is long.
--
-- What folds what: a user's message folds all up to the next one, but for compactions; the first
-- entry of a branch folds the branch; an entry folds the facts and branches at it.

local nodes = require "sessile.cli.treeview.nodes"

local rows = {}

---@class sessile.cli.treeview.row
---@field node sessile.Node
---@field depth integer      how often it is set in
---@field up integer?        the row that folds it; always one before it
---@field starts boolean     the first of a branch
---@field fact boolean
---@field forks integer      branches at it
---@field under integer      rows that it folds, and those that they fold

local function add(list, node, depth, up, kind)
  list[#list + 1] = {
    node = node, depth = depth, up = up, starts = kind == "branch", fact = kind == "fact",
    forks = 0, under = 0,
  }
  return #list
end

-- One node of a path and what hangs off it. `at` says where: node, depth, first (the row that
-- began this branch), said (the row of the user's message before it).
local function place(list, at, waiting)
  local node, up = at.node, at.above
  local begins = up ~= nil
  local asks = node.starts_turn
  if not begins then
    up = not asks and node.type ~= "compaction" and at.said or at.first
  end
  local index = add(list, node, at.depth, up, begins and "branch" or "path")
  local facts, branches, next_node = nodes.around(node)
  for _, fact in ipairs(facts) do
    add(list, fact, at.depth + 1, index, "fact")
  end
  list[index].forks = #branches
  if next_node then
    waiting[#waiting + 1] = {
      node = next_node, depth = at.depth, first = begins and index or at.first,
      said = not begins and (asks and index or at.said) or nil,
    }
  end
  for i = #branches, 1, -1 do
    waiting[#waiting + 1] = { node = branches[i], depth = at.depth + 1, above = index }
  end
end

--- The rows of a tree, top to bottom.
---@param tree sessile.Tree
---@return sessile.cli.treeview.row[]
function rows.of(tree)
  local list, waiting = {}, {}
  for i = #tree.list, 1, -1 do
    if not tree.list[i].parent then
      waiting[#waiting + 1] = { node = tree.list[i], depth = 0 }
    end
  end
  while #waiting > 0 do
    local at = waiting[#waiting]
    waiting[#waiting] = nil
    place(list, at, waiting)
  end
  for i = #list, 1, -1 do
    local up = list[i].up
    if up then
      list[up].under = list[up].under + list[i].under + 1
    end
  end
  return list
end

return rows
