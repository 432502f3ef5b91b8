--- nodes: one node of a session's tree in words.
--
-- Owns: marks, the words for each type of entry, which nodes are of a kind. Must never read an
-- entry for what the tree says already.

local render = require "sessile.cli.render"
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"

local nodes = {
  --- What a tree can be filtered by, in the order in which a key selects them.
  kinds = { "all", "question", "message", "checkpoint", "label", "compaction" },
}

--- Whether a node is what a person said.
---@param node sessile.Node
---@return boolean
function nodes.is_question(node)
  return node.type == "message" and node.speaker == "user"
end

--- Whether a node is of a kind. Labels are shown at the entries that they name, not as entries.
---@param node sessile.Node
---@param kind string
---@return boolean
function nodes.is_of(node, kind)
  if kind == "all" then
    return node.type ~= "label"
  elseif kind == "label" then
    return #node.labels > 0
  elseif kind == "question" then
    return nodes.is_question(node)
  end
  return node.type == kind
end

-- ---------------------------------------------------------------- what an entry says

-- What a compaction says of itself.
local function compaction_text(data)
  local names = {}
  for i, policy in ipairs(type(data.policy) == "table" and data.policy or {}) do
    names[i] = type(policy) == "table" and tostring(policy.name) or "?"
  end
  local text = #names > 0 and table.concat(names, " + ")
    or type(data.uncompacts) == "string" and "undoes " .. data.uncompacts or "compacted"
  local before, after = math.tointeger(data.tokens_before), math.tointeger(data.tokens_after)
  if not data.context then
    return text .. ": only the policy's vars"
  elseif before and after then
    text = text .. ": " .. terminal.change { before = before, after = after }
  end
  return text
end

local function turn_text(data)
  local parts = {}
  if type(data.model) == "string" then
    parts[1] = data.model
  end
  local usage = type(data.usage) == "table" and data.usage or {}
  for _, name in ipairs { "input", "output", "cache_read" } do
    local n = math.tointeger(usage[name])
    if n and n > 0 then
      parts[#parts + 1] = ("%s %s"):format(name:gsub("_", " "), terminal.number(n))
    end
  end
  return table.concat(parts, ", ")
end

local function text_or_nothing(value)
  return type(value) == "string" and value or ""
end

--- What a node's entry says: a message, or a text that is not safe yet; nil, nil, a sentence and
--- a code when it cannot be read.
---@param session sessile.Session
---@param node sessile.Node
---@return table? message
---@return string? text
---@return string? why
---@return string? code
function nodes.read(session, node)
  local entry, message, code = session:entry(node.id)
  if not entry then
    return nil, nil, message, code
  end
  local data, kind = type(entry.data) == "table" and entry.data or {}, node.type
  if kind == "message" or kind == "branch_summary" then
    return data
  elseif kind == "compaction" then
    return nil, compaction_text(data)
  elseif kind == "turn" then
    return nil, turn_text(data)
  elseif kind == "session" then
    return nil, text_or_nothing(data.title)
  elseif kind == "refusal" then
    return nil, text_or_nothing(data.message)
  elseif kind == "head" then
    return nil, "moves the head to " .. tostring(data.head)
  elseif kind == "checkpoint" and type(data.head) == "string" then
    return nil, (type(data.name) == "string" and data.name .. ", " or "") .. "of " .. data.head
  end
  local _, fields = span.object(render.facts(entry).json)
  return nil, type(fields) == "table" and fields.data or ""
end

--- All that a message says: its text, then each call on a line.
---@param message table
---@return string not safe yet
function nodes.message_text(message)
  local parts = { (render.text(message):gsub("%s+$", "")) }
  for _, call in ipairs(render.calls(message)) do
    parts[#parts + 1] = ("→ %s(%s)"):format(call.name, call.arguments)
  end
  return table.concat(parts, "\n")
end

--- All that a node says, on one safe line.
---@param session sessile.Session
---@param node sessile.Node
---@return string
function nodes.said(session, node)
  local message, text = nodes.read(session, node)
  return terminal.line(message and nodes.message_text(message) or text or "")
end

--- The same and its labels: what a search looks through.
---@param session sessile.Session
---@param node sessile.Node
---@return string
function nodes.words(session, node)
  local labels = {}
  for i, name in ipairs(node.labels) do
    labels[i] = " [" .. terminal.line(name) .. "]"
  end
  return nodes.said(session, node) .. table.concat(labels)
end

-- ---------------------------------------------------------------- how it looks

local COLOUR = { compaction = "yellow", turn = "dim", session = "bold", branch_summary = "yellow" }

--- Whether the model may be shown it.
---@param node sessile.Node
---@return boolean
function nodes.is_said(node)
  return node.type == "message" or node.type == "branch_summary"
end

--- Its relation to the context: "●" in it, "○" not shown to the model, "─" on the path but not a
--- message, "·" a fact.
---@param node sessile.Node
---@return string
function nodes.mark(node)
  if not node.is_path then
    return "·"
  end
  return not nodes.is_said(node) and "─" or node.in_context and "●" or "○"
end

--- Who speaks in it when it is a message, else its type.
---@param node sessile.Node
---@return string safe
function nodes.name(node)
  return terminal.line(node.type == "message" and node.speaker or node.type)
end

--- The colour of a node, by its role or type; "dim" for what is not in the context.
---@param node sessile.Node
---@return string
function nodes.colour(node)
  if nodes.mark(node) == "○" then
    return "dim"
  end
  return COLOUR[node.type] or nodes.is_said(node) and render.colour { role = node.speaker } or "dim"
end

--- Its labels, as "[name]".
---@param node sessile.Node
---@return string[] safe
function nodes.tags(node)
  local tags = {}
  for i, name in ipairs(node.labels) do
    tags[i] = "[" .. terminal.cut(terminal.line(name), 30) .. "]"
  end
  return tags
end

-- ---------------------------------------------------------------- neighbours

--- Facts and branches of a node, and the child that continues the path: to the head, else the
--- newest. What follows the head is a branch: the next message will make it one.
---@param node sessile.Node
---@return sessile.Node[] facts
---@return sessile.Node[] branches
---@return sessile.Node? next_node
function nodes.around(node)
  local facts, branches, next_node = {}, {}, nil
  for _, child in ipairs(node.children) do
    if not child.is_path then
      facts[#facts + 1] = child.type ~= "label" and child or nil
    elseif child.on_path or not (next_node and next_node.on_path) then
      branches[#branches + 1] = next_node
      next_node = child
    else
      branches[#branches + 1] = child
    end
  end
  if node.is_head then
    branches[#branches + 1], next_node = next_node, nil
  end
  return facts, branches, next_node
end

return nodes
