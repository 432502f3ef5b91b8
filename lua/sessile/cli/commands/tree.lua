--- tree: the entries of a session as a tree, in text.
--
-- Owns: the layout. The path to the head runs down the left; what was abandoned hangs off
-- the entry where it left the path, drawn before the path goes on; facts (labels, notes of
-- the host, refusals) stand under the entry they are about. Must never read more of an
-- entry than it shows.

local render = require "sessile.cli.render"
local span = require "sessile.import.span"
local terminal = require "sessile.cli.terminal"

local PATH = {
  session = true, message = true, turn = true, compaction = true, branch_summary = true,
}

-- What a compaction says of itself.
local function compaction_text(data)
  local names = {}
  for i, policy in ipairs(type(data.policy) == "table" and data.policy or {}) do
    names[i] = type(policy) == "table" and tostring(policy.name) or "?"
  end
  local text = #names > 0 and table.concat(names, " + ") or "compacted"
  local before, after = math.tointeger(data.tokens_before), math.tointeger(data.tokens_after)
  if not data.context then
    return text .. ": its notes only"
  elseif before and after then
    text = ("%s: %s → %s tokens"):format(text, terminal.number(before), terminal.number(after))
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

-- One entry: what is drawn of it.
local function read(entry)
  local kind = type(entry.type) == "string" and entry.type or "?"
  local data = type(entry.data) == "table" and entry.data or {}
  local node = {
    id = entry.id, parent = entry.parentId, type = kind, is_path = PATH[kind] or false,
    tokens = type(entry.tokens) == "table" and math.tointeger(entry.tokens[1]) or nil,
    children = {}, facts = {},
  }
  if kind == "message" then
    node.role, node.message = data.role, data
  elseif kind == "compaction" then
    node.text = compaction_text(data)
  elseif kind == "turn" then
    node.text = turn_text(data)
  elseif kind == "session" then
    node.text = type(data.title) == "string" and data.title or ""
  elseif kind == "refusal" then
    node.text = type(data.message) == "string" and data.message or ""
  else
    local _, fields = span.object(render.facts(entry).json)
    node.text = type(fields) == "table" and fields.data or ""
  end
  return node
end

local function build(session)
  local nodes, order, root = {}, {}, nil
  for entry in session:entries() do
    local node = read(entry)
    if type(node.id) == "string" then
      nodes[node.id], order[#order + 1] = node, node
      local parent = nodes[node.parent]
      if not parent then
        root = root or node
      elseif node.is_path then
        parent.children[#parent.children + 1] = node
      else
        parent.facts[#parent.facts + 1] = node
      end
    end
  end
  return nodes, order, root
end

local function mark_path(nodes, head)
  local node = nodes[head]
  while node do
    node.on_path = true
    node = nodes[node.parent]
  end
end

local COLOUR = { compaction = "yellow", turn = "dim", session = "bold", branch_summary = "yellow" }

local function label_of(node)
  return node.type == "message" and node.role or node.type
end

-- Draws one row. mark: how it stands to the context: "●" in it, "○" on the path but not
-- shown to the model, "·" a fact.
local function row(node, prefix, view)
  local mark = "·"
  if node.is_path then
    mark = node.type ~= "message" and "─" or view.shown[node.id] and "●" or "○"
  end
  local label = terminal.cut(terminal.line(label_of(node) or "?"), 14)
  label = label .. (" "):rep(14 - terminal.width(label))
  local tokens = node.tokens and node.tokens > 0 and terminal.number(node.tokens) or ""
  local left = ("%s%s %s %s %7s  "):format(prefix, mark, node.id, label, tokens)
  local columns = math.max(view.columns - terminal.width(left) - 8, 20)
  local text = node.message and render.brief(node.message, columns)
    or terminal.cut(terminal.line(node.text or ""), columns)
  local colour = node.message and render.colour(node.message) or COLOUR[node.type] or "dim"
  if node.message and mark == "○" then colour = "dim" end
  local head = node.id == view.head and view.paint("  ← head", "bold") or ""
  view.out((view.paint(left .. text, colour):gsub(" +$", "")) .. head .. "\n")
end

-- Walks without recursion along a path, and with it only into branches.
local function draw(node, prefix, view)
  while node do
    row(node, prefix, view)
    for _, fact in ipairs(node.facts) do
      row(fact, prefix .. "  ", view)
    end
    local next_node
    for i, child in ipairs(node.children) do
      if child.on_path or (not next_node and i == #node.children) then
        next_node = child
      end
    end
    for _, child in ipairs(node.children) do
      if child ~= next_node then
        draw(child, prefix .. "│ ", view)
      end
    end
    node = next_node
  end
end

local function as_json(app, session, order, view)
  local list = {}
  for i, node in ipairs(order) do
    list[i] = {
      id = node.id, parent = node.parent, type = node.type, role = node.role,
      tokens = node.tokens, on_path = node.on_path or false,
      in_context = node.type == "message" and (view.shown[node.id] or false) or nil,
      text = node.message and terminal.line(render.text(node.message):sub(1, 400)) or node.text,
    }
  end
  app:print_json { session = session.id, head = view.head, entries = app.array(list) }
end

return {
  name = "tree",
  summary = "the entries of a session as a tree",
  usage = "tree [ID]",
  examples = {
    { "sessile tree last", "● is in the context, ○ was compacted away" },
    { "sessile tree bug-42 --json | jq '.entries[] | select(.type == \"compaction\")'",
      "for a program" },
  },
  arguments = { { "id", "a session's id, a beginning of it, its title, or `last`", "?" } },
  run = function(app, args)
    local session, message, code, step = app:session(args.id or "last")
    if not session then
      return nil, message, code, step
    end
    local _ <close> = setmetatable({}, { __close = function() session:close() end })
    local context
    context, message, code = session:context()
    if not context then
      return nil, message, code
    end
    local view = {
      shown = {}, head = session:head(), paint = app.paint,
      columns = terminal.columns() or 100,
      out = function(text) app:out(text) end,
    }
    for _, found in ipairs(context) do
      local key = render.facts(found).key
      if key then view.shown[key] = true end
    end
    local readable, nodes, order, root = pcall(build, session)
    if not readable then
      return nil, nodes, "EDAMAGED" -- the iterator raises for what cannot be read
    end
    mark_path(nodes, view.head)
    if app.json then
      as_json(app, session, order, view)
    elseif root then
      draw(root, "", view)
    end
  end,
}
