--- threads: the tree of a session as lists: the conversation up to the head, then each other branch
--- from
-- where it begins.
--
-- Owns: the order. Must never recurse: a session may branch ten thousand times.

local threads = {}

---@class sessile.export.thread
---@field from string?             where it parts; nil: the conversation itself
---@field nodes sessile.Node[]     path entries, oldest first
---@field messages integer

local ROOT = "00000000"

local function new_thread(from)
  return { from = from, nodes = {}, messages = 0 }
end

local function add(thread, node)
  thread.nodes[#thread.nodes + 1] = node
  thread.messages = thread.messages + (node.type == "message" and 1 or 0)
end

-- The newest child of a node that is not in a thread yet.
local function next_of(node, taken)
  for i = #node.children, 1, -1 do
    local child = node.children[i]
    if child.is_path and not taken[child.id] then
      return child
    end
  end
  return nil
end

--- The threads of a tree, and the threads that begin at each node.
---@param tree sessile.Tree
---@return sessile.export.thread[]
---@return table<string, integer[]> parting  indexes of threads by the id of the node
function threads.of(tree)
  local taken, list, parting = {}, { new_thread(nil) }, {}
  for _, node in ipairs(tree.list) do
    if node.is_path and node.on_path then
      taken[node.id] = true
      if node.id ~= ROOT and node.type ~= "session" then
        add(list[1], node)
      end
    end
  end
  for _, node in ipairs(tree.list) do
    if node.is_path and not taken[node.id] and node.type ~= "session" then
      local thread = new_thread(node.parent)
      local at = node
      while at do
        taken[at.id] = true
        add(thread, at)
        at = next_of(at, taken)
      end
      list[#list + 1] = thread
      local key = node.parent or ROOT
      parting[key] = parting[key] or {}
      table.insert(parting[key], #list)
    end
  end
  return list, parting
end

return threads
