--- tree: the entries of a session as a tree, in text.
--
-- Owns: the layout. The path to the head runs down the left; what was abandoned hangs off
-- the entry where it left the path, drawn before the path goes on; facts (notes of the host,
-- refusals) stand under the entry they are about. Of a long session the middles of runs that
-- hold nothing but messages and turns are one line each, and are not read. Must never read
-- more of an entry than it shows.

local render = require "sessile.cli.render"
local span = require "sessile.import.span"
local terminal = require "sessile.cli.terminal"

-- A session of so many entries is shown whole. Of a longer one, so many are left of a run's
-- beginning and end, and of the end of a branch.
local FEW = 150
local HEAD, TAIL, LAST = 3, 4, 12
-- Branches of branches are drawn to the right until here.
local DEPTH = 16

-- ---------------------------------------------------------------- what an entry says

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

-- What an entry says: a message, or a text.
local function read(session, node)
  local entry, message, code = session:entry(node.id)
  if not entry then
    error { message, code }
  end
  local data, kind = type(entry.data) == "table" and entry.data or {}, node.type
  if kind == "message" or kind == "branch_summary" then
    return data
  elseif kind == "compaction" then
    return nil, compaction_text(data)
  elseif kind == "turn" then
    return nil, turn_text(data)
  elseif kind == "session" then
    return nil, type(data.title) == "string" and data.title or ""
  elseif kind == "refusal" then
    return nil, type(data.message) == "string" and data.message or ""
  elseif kind == "head" then
    return nil, "the head goes to " .. tostring(data.head)
  elseif kind == "checkpoint" and type(data.head) == "string" then
    return nil, (type(data.name) == "string" and data.name .. ", " or "") .. "of " .. data.head
  end
  local _, fields = span.object(render.facts(entry).json)
  return nil, type(fields) == "table" and fields.data or ""
end

-- ---------------------------------------------------------------- drawing

local COLOUR = { compaction = "yellow", turn = "dim", session = "bold", branch_summary = "yellow" }

local function is_said(node)
  return node.type == "message" or node.type == "branch_summary"
end

-- How it stands to the context: "●" in it, "○" not shown to the model, "─" of the path but no
-- message, "·" a fact.
local function mark_of(node)
  if not node.is_path then
    return "·"
  end
  return not is_said(node) and "─" or node.in_context and "●" or "○"
end

local function prefix_of(depth)
  local more = depth > DEPTH and ("+%d "):format(depth - DEPTH) or ""
  return ("│ "):rep(math.min(depth, DEPTH)) .. more
end

-- One row: an entry, or what stands for a run of them.
local function write(view, depth, mark, name, label, tokens, text, colour, after)
  label = terminal.cut(terminal.line(label), 14)
  label = label .. (" "):rep(14 - terminal.width(label))
  local left = ("%s%s %s %s %7s  "):format(prefix_of(depth), mark, name, label,
    tokens > 0 and terminal.number(tokens) or "")
  local columns = math.max(view.columns - terminal.width(left) - terminal.width(after) - 2, 20)
  if type(text) == "function" then
    text = text(columns)
  end
  text = terminal.cut(text, columns)
  view.out((view.paint(left .. text, colour):gsub(" +$", ""))
    .. (after ~= "" and view.paint("  " .. after, "bold") or "") .. "\n")
end

local function row(node, depth, view)
  local message, text = read(view.session, node)
  local after = {}
  for _, name in ipairs(node.labels) do
    after[#after + 1] = "[" .. terminal.cut(terminal.line(name), 30) .. "]"
  end
  if node.id == view.head then
    after[#after + 1] = "← head"
  end
  local mark = mark_of(node)
  local colour = COLOUR[node.type] or message and render.colour(message) or "dim"
  write(view, depth, mark, node.id, node.type == "message" and node.role or node.type,
    node.tokens, message and function(columns) return render.brief(message, columns) end
      or terminal.line(text), mark == "○" and "dim" or colour, table.concat(after, " "))
end

-- Some entries in one line.
local function folded(run, first, last, depth, view)
  local messages, tokens = 0, 0
  for i = first, last do
    messages = messages + (is_said(run[i]) and 1 or 0)
    tokens = tokens + run[i].tokens
  end
  write(view, depth, view.in_context[run[first]] and "●" or "○", "⋮       ", "", tokens,
    ("%s messages, %s to %s"):format(terminal.number(messages), run[first].id, run[last].id),
    "dim", "")
end

-- ---------------------------------------------------------------- walking

-- Facts and branches of a node, and what goes on from it: the path to the head, else the
-- newest.
local function around(node)
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
  return facts, branches, next_node
end

-- Whether nothing but what it says is to be seen at it.
local function is_plain(node, facts, branches, view)
  return (node.type == "message" or node.type == "turn") and #facts == 0 and #branches == 0
    and #node.labels == 0 and node.id ~= view.head
end

-- A run of plain entries, its middle in one line when there is one.
local function draw_run(run, depth, view, is_last)
  local tail = is_last and LAST or TAIL
  local first, last = HEAD + 1, #run - tail
  for i, node in ipairs(run) do
    if not view.folds or last - first < 2 or i < first or i > last then
      row(node, depth, view)
    elseif i == first then
      folded(run, first, last, depth, view)
    end
  end
end

-- Walks without recursion along a path, and with it only into branches. Turns stand where the
-- messages before them stand.
local function draw(node, depth, view)
  local run, run_in_context = {}, nil
  while node do
    local facts, branches, next_node = around(node)
    local plain = is_plain(node, facts, branches, view)
    local in_context = node.in_context
    if node.type == "turn" then
      in_context = run_in_context
    end
    if #run > 0 and not (plain and in_context == run_in_context) then
      draw_run(run, depth, view, false)
      run = {}
    end
    if plain then
      run[#run + 1], run_in_context = node, in_context
      view.in_context[node] = in_context
    else
      row(node, depth, view)
      for _, fact in ipairs(facts) do
        row(fact, depth + 1, view)
      end
    end
    for _, branch in ipairs(branches) do
      draw(branch, depth + 1, view)
    end
    node = next_node
  end
  draw_run(run, depth, view, true)
end

-- ---------------------------------------------------------------- the command

local function as_json(app, session, tree)
  local list = {}
  for i, node in ipairs(tree.list) do
    local message, text = read(session, node)
    list[i] = {
      id = node.id, parent = node.parent, type = node.type, role = node.role,
      tokens = is_said(node) and node.tokens or nil, total_tokens = node.total_tokens,
      time = node.time, on_path = node.on_path,
      in_context = is_said(node) and node.in_context or nil,
      labels = #node.labels > 0 and app.array(node.labels) or nil,
      text = message and terminal.line(render.text(message):sub(1, 400)) or text,
    }
  end
  app:print_json { session = session.id, head = tree.current, entries = app.array(list) }
end

-- The types of --types: given again, or with commas between.
local function types_of(given)
  local types
  for _, words in ipairs(given or {}) do
    for word in words:gmatch "[^,%s]+" do
      types = types or {}
      types[#types + 1] = word
    end
  end
  return types
end

local function run(app, args, session)
  local tree, message, code = session:tree { types = types_of(args.types) }
  if not tree then
    return nil, message, code
  end
  local view = {
    session = session, head = tree.current, paint = app.paint,
    columns = terminal.columns() or 100, in_context = {},
    folds = not args.all and #tree.list > FEW,
    out = function(text) app:out(text) end,
  }
  local readable, why = pcall(function()
    if app.json then
      as_json(app, session, tree)
      return
    end
    for _, node in ipairs(tree.list) do
      if not node.parent then -- the header; of some types only, any that has none above it
        draw(node, 0, view)
      end
    end
  end)
  if not readable and type(why) == "table" then
    return nil, why[1], why[2]
  elseif not readable then
    error(why, 0)
  end
  if view.folds and not app.json then
    app:note "⋮ stands for messages that are not shown: --all shows them."
  end
end

return {
  name = "tree",
  summary = "the entries of a session as a tree",
  usage = "tree [ID] [--types TYPES] [--all]",
  examples = {
    { "sessile tree last", "● is in the context, ○ was compacted away or left behind" },
    { "sessile tree bug-42 --types compaction,branch_summary", "what was made of it" },
    { "sessile tree bug-42 --json | jq '.entries[] | select(.type == \"compaction\")'",
      "for a program" },
  },
  arguments = { { "id", "a session's id, a beginning of it, its title, or `last`", "?" } },
  options = {
    { "--types TYPES", "only entries of these types, commas between", many = true },
    { "--all", "every entry of a long session" },
  },
  run = function(app, args)
    local session, message, code, step = app:session(args.id or "last")
    if not session then
      return nil, message, code, step
    end
    local exit
    exit, message, code, step = run(app, args, session)
    session:close()
    return exit, message, code, step
  end,
}
