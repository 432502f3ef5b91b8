--- text: the entries of a session as a tree, in lines of text.
--
-- Owns: the layout. The path to the head runs down the left; a branch hangs off the
-- entry where it left the path and is drawn before the path continues; facts (such as refusals) are
-- under the entry that they are about. In a long session, the middle of each run of messages and
-- turns becomes one line and is not read. Must never read more of an entry than it shows, except to
-- search it.

local find = require "sessile.cli.treeview.find"
local hints = require "sessile.cli.hints"
local nodes = require "sessile.cli.treeview.nodes"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local text = {}

-- A session of up to FEW entries is shown whole. In a longer one, a run is cut to HEAD entries at
-- its beginning and TAIL at its end, and the end of a branch to LAST entries.
local FEW = 150
local HEAD, TAIL, LAST = 3, 4, 12
-- Nested branches are indented up to this depth.
local DEPTH = 16
-- The format of times, and the one for few columns.
local TIME, SHORT_TIME, NARROW = "!%Y-%m-%d %H:%M", "!%m-%d %H:%M", 100

-- ---------------------------------------------------------------- drawing

local function prefix_of(depth)
  local more = depth > DEPTH and ("+%d "):format(depth - DEPTH) or ""
  return ("│ "):rep(math.min(depth, DEPTH)) .. more
end

-- The text that was searched for has its own colour.
local function painted(view, said, colour)
  if not view.finder then
    return view.paint(said, colour)
  end
  local parts = {}
  for i, piece in ipairs(find.pieces(said, view.finder)) do
    parts[i] = view.paint(piece[1], piece[2] and "reverse" or colour)
  end
  return table.concat(parts)
end

-- One row: an entry, or the line of a run of entries. `said` is safe text, or a function of the
-- number of columns.
local function write(view, depth, row, said)
  local name = terminal.cut(row.name, 14)
  name = name .. (" "):rep(14 - terminal.width(name))
  local time = row.time .. (" "):rep(view.time == TIME and 16 - #row.time or 11 - #row.time)
  local left = ("%s%s %s %s %s %7s  "):format(prefix_of(depth), row.mark, row.id, name, time,
    row.tokens > 0 and terminal.number(row.tokens) or "")
  local after = row.after or ""
  local columns = math.max(view.columns - terminal.width(left) - terminal.width(after) - 2, 20)
  said = type(said) == "function" and said(columns) or said
  said = terminal.cut(view.finder and find.shown(said, view.finder, columns) or said, columns)
  if said == "" then
    left = left:gsub(" +$", "")
  end
  view.out(view.paint(left, row.colour) .. (said ~= "" and painted(view, said, row.colour) or "")
    .. (after ~= "" and view.paint("  " .. after, "bold") or "") .. "\n")
end

local function row(node, depth, view)
  if view.wanted and not view.wanted(node) then
    return
  end
  local message, said, why, code = nodes.read(view.session, node)
  if why then
    error { why, code }
  end
  local after = nodes.tags(node)
  if node.id == view.head then
    after[#after + 1] = "← head"
  end
  write(view, depth, {
    mark = nodes.mark(node), id = node.id, name = nodes.name(node), tokens = node.tokens,
    time = os.date(view.time, node.time // 1000), after = table.concat(after, " "),
    colour = nodes.colour(node),
  }, view.finder and nodes.said(view.session, node)
    or message and function(columns) return render.brief(message, columns) end
    or terminal.line(said))
end

-- One line for several entries.
local function folded(run, first, last, depth, view)
  local messages, tokens = 0, 0
  for i = first, last do
    messages = messages + (nodes.is_said(run[i]) and 1 or 0)
    tokens = tokens + run[i].tokens
  end
  write(view, depth, {
    mark = view.in_context[run[first]] and "●" or "○", id = "⋮       ", name = "", time = "",
    tokens = tokens, colour = "dim",
  }, ("%s messages, %s to %s"):format(terminal.number(messages), run[first].id, run[last].id))
end

-- ---------------------------------------------------------------- walking

-- Whether a node has only its own text to show: no facts, branches or labels.
local function is_plain(node, facts, branches, view)
  return (node.type == "message" or node.type == "turn") and #facts == 0 and #branches == 0
    and #node.labels == 0 and node.id ~= view.head
end

-- A run of plain entries, with its middle in one line if it is long.
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

-- Walks along a path without recursion, and recurses only into branches. A turn has the indent of
-- the messages before it.
local function draw(node, depth, view)
  local run, run_in_context = {}, nil
  while node do
    local facts, branches, next_node = nodes.around(node)
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

-- ---------------------------------------------------------------- JSON

local function as_json(app, session, tree, wanted)
  local list = {}
  for _, node in ipairs(tree.list) do
    if not wanted or wanted(node) then
      local message, said, why, code = nodes.read(session, node)
      if why then
        error { why, code }
      end
      local is_said = nodes.is_said(node)
      list[#list + 1] = {
        id = node.id, parent = node.parent, type = node.type, role = node.role,
        tokens = is_said and node.tokens or nil, total_tokens = node.total_tokens,
        time = node.time, on_path = node.on_path, in_context = is_said and node.in_context or nil,
        labels = #node.labels > 0 and app.array(node.labels) or nil,
        text = message and terminal.line(render.text(message):sub(1, 400)) or said,
      }
    end
  end
  app:print_json { session = session.id, head = tree.current, entries = app.array(list) }
end

--- Prints the tree of a session.
---@param app sessile.cli.app
---@param session sessile.Session
---@param asked {types: string[]?, labelled: boolean?, search: string?, all: boolean?}
---@return nil
---@return string? message
---@return string? code
function text.print(app, session, asked)
  local tree, message, code = session:tree { types = asked.types, labelled = asked.labelled }
  if not tree then
    return nil, message, code
  end
  local finder = asked.search and find.finder(asked.search)
  local count = 0
  local columns = terminal.columns() or 100
  local view = {
    session = session, head = tree.current, paint = app.paint, finder = finder,
    columns = columns, in_context = {}, time = columns < NARROW and SHORT_TIME or TIME,
    folds = not asked.all and not finder and not asked.questions and #tree.list > FEW,
    out = function(line) app:out(line) end,
    wanted = (finder or asked.questions) and function(node)
      local found = (not asked.questions or nodes.is_question(node))
        and (not finder or finder(nodes.words(session, node)) ~= nil)
      count = count + (found and 1 or 0)
      return found
    end,
  }
  local readable, why = pcall(function()
    if app.json then
      as_json(app, session, tree, view.wanted)
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
    app:note "⋮ marks messages that are not shown: --all shows them."
  elseif view.wanted and count == 0 and not app.json then
    app:note(finder and "No entry has that in it." or "Nobody said anything yet.")
  elseif #tree.list == 0 and not app.json then
    app:note("No entry is of that type. All of them: sessile tree " .. hints.id(session.id))
  end
end

return text
