--- tree: the messages of a session as lines to pick from, with its branches.

local messages = require "sessile_nvim.messages"

local tree = {}

local SIGN = { user = "?", assistant = "!", tool = "=", system = "§" }

-- What a node says, in one line.
local function says(entry)
  local data = entry and entry.data or {}
  local call = data.tool_calls and data.tool_calls[1]
  if call and (data.content == "" or data.content == nil) then
    return ("calls %s"):format(call.name)
  end
  return messages.line(data.content)
end

--- Rows in the order of the conversation: {id, text}. Where a conversation has two continuations,
--- each is indented; `*` is the path to the head. nodes: of session/tree. entries: of
--- session/entries.
function tree.rows(nodes, entries)
  local of, children, rows = {}, {}, {}
  for _, entry in ipairs(entries) do
    of[entry.id] = entry
  end
  for _, node in ipairs(nodes) do
    local parent = node.parent or ""
    children[parent] = children[parent] or {}
    table.insert(children[parent], node)
  end
  local stack = {}
  local function push(parent, depth)
    local list = children[parent] or {}
    for i = #list, 1, -1 do
      stack[#stack + 1] = { node = list[i], depth = depth + (#list > 1 and 1 or 0) }
    end
  end
  push("", 0)
  while #stack > 0 do
    local top = table.remove(stack)
    local node = top.node
    rows[#rows + 1] = { id = node.id, text = ("%s%s%s %s"):format(node.on_path and "* " or "  ",
      ("  "):rep(top.depth), SIGN[node.role] or "·", says(of[node.id])) }
    push(node.id, top.depth)
  end
  return rows
end

return tree
