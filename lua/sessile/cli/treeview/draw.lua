--- draw: what is on the screen: rows, an entry beside them, the status, the help.
--
-- Owns: the layout, and what is left out if there is little room. Must never read an entry of a row
-- that is not on the screen.

local find = require "sessile.cli.treeview.find"
local nodes = require "sessile.cli.treeview.nodes"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local draw = {}

--- On a smaller terminal only a sentence is shown.
draw.ROWS, draw.COLUMNS = 10, 40

-- From WIDE columns the list and an entry are side by side; from TALL rows one above the other.
local WIDE, TALL = 110, 18

-- ---------------------------------------------------------------- text in cells

-- Puts safe text into `columns` columns, cut with an ellipsis. Returns the columns it took.
local function put(screen, y, x, text, style, columns)
  if columns < 1 then
    return 0
  end
  local used = screen:put(y, x, text, style, columns)
  if used >= columns - 1 and terminal.width(text) > columns then
    -- The text makes room for the ellipsis, even if that cuts a wide character.
    screen:put(y, x, text, style, columns - 1)
    screen:put(y, x + columns - 1, "…", style, 1)
    return columns
  end
  return used
end

-- The same, with a style of its own for the text that was searched for.
local function put_found(screen, y, x, text, style, found, columns, finder)
  if not finder then
    return put(screen, y, x, text, style, columns)
  end
  text = terminal.cut(find.shown(text, finder, columns), columns)
  local used = 0
  for _, piece in ipairs(find.pieces(text, finder)) do
    if used < columns then
      used = used + screen:put(y, x + used, piece[1], piece[2] and found or style, columns - used)
    end
  end
  return used
end

local function fill(screen, y, x, columns, style)
  screen:put(y, x, (" "):rep(columns), style, columns)
end

--- A bar across the screen, with a text at the left and one at the right; the left is cut first.
function draw.bar(screen, y, columns, left, right, style)
  fill(screen, y, 1, columns, style)
  local room = columns - terminal.width(right) - 1
  put(screen, y, 2, left, style, room - 2)
  screen:put(y, math.max(room + 1, 1), right, style)
end

--- 1234 as "1.2k".
local function short(n)
  if n < 1000 then
    return n > 0 and tostring(n) or ""
  elseif n < 9950 then
    return ("%.1fk"):format(n / 1000)
  elseif n < 999500 then
    return ("%.0fk"):format(n / 1000)
  end
  return ("%.1fM"):format(n / 1000000)
end

-- The age of a time, in at most four columns.
local function age(ms, now)
  local seconds = math.max((now - ms) // 1000, 0)
  for _, unit in ipairs { { 31536000, "y" }, { 86400, "d" }, { 3600, "h" }, { 60, "m" } } do
    if seconds >= unit[1] then
      return ("%d%s"):format(seconds // unit[1], unit[2])
    end
  end
  return "now"
end

-- ---------------------------------------------------------------- the list

-- Shorter names of types that are too long for the column.
local NAMES = { branch_summary = "summary", tombstone = "lost" }

-- The lines before a row: a corner where a branch begins, then a vertical line.
local function guide(row, columns)
  local most = math.max(columns // 16, 2)
  local depth = math.min(row.depth, most)
  if depth == 0 then
    return ""
  end
  local more = row.depth > most and "⋯" or " "
  return ("│ "):rep(depth - 1) .. (row.starts and "├─" or row.fact and " " .. more or "│" .. more)
end

-- The texts at the right of a row.
local function notes(view, row)
  local parts = nodes.tags(row.node)
  if view.model:is_folded(row) then
    table.insert(parts, 1, "+" .. terminal.number(row.under))
  end
  if row.node.id == view.model.tree.current then
    parts[#parts + 1] = "← head"
  elseif row.node.id == view.model.head_at then
    parts[#parts + 1] = "← head in it"
  end
  return table.concat(parts, " ")
end

local function said(view, node, columns)
  local search = view.model.search
  if search and search.hits[node.id] then
    return nodes.said(view.session, node), search.finder
  end
  local message, text, why = nodes.read(view.session, node)
  if why then
    return terminal.line(why)
  elseif message then
    return render.brief(message, math.max(columns, 4))
  end
  return terminal.line(text:sub(1, 2000))
end

local function draw_row(view, y, columns, row, selected)
  local screen, node = view.screen, row.node
  local style = nodes.colour(node)
  local found = "found"
  if selected then
    style = "reverse"
    found = "reverse bold underline"
    fill(screen, y, 1, columns, style)
  end
  local x = 1 + put(screen, y, 1, guide(row, columns), selected and style or "dim", columns)
  local id = node.id:match "^0*(.+)$"
  x = x + put(screen, y, x, ("%s %s%s%s "):format(nodes.mark(node),
    (" "):rep(view.digits - #id), id, view.model:is_folded(row) and "▸" or " "), style, columns)
  local name = columns < 60 and 9 or 11
  put(screen, y, x, NAMES[node.type] or nodes.name(node), style, name - 1)
  x = x + name

  local right = columns
  if columns >= 46 then
    local text = ("%5s"):format(age(node.time, view.now))
    right = right - 5
    screen:put(y, right + 1, text, selected and style or "dim", 5)
  end
  if columns >= 64 then
    right = right - 6
    screen:put(y, right + 1, ("%6s"):format(nodes.is_said(node) and short(node.tokens) or ""),
      selected and style or "dim", 6)
  end
  local after = notes(view, row)
  if after ~= "" then
    local room = math.max(math.min(terminal.width(after), (right - x) * 2 // 3), 0)
    right = right - room - 1
    put(screen, y, right + 2, after, selected and style or "bold", room)
  end
  local room = right - x
  if room > 3 then
    local text, finder = said(view, node, room)
    local is_plain = not selected and nodes.is_said(node) and style ~= "dim"
    put_found(screen, y, x, text, is_plain and "" or style, found, room, finder)
  end
end

-- ---------------------------------------------------------------- panes

--- The layout of the screen: the list's rows and columns, and the place of the entry beside it.
function draw.panes(view, rows, columns)
  local height = rows - 2
  if not view.shows_preview or #view.model.visible == 0 then
    return { height = height, columns = columns }
  elseif columns >= WIDE then
    local left = math.max(columns * 55 // 100, 64)
    return { height = height, columns = left, is_beside = true,
      page = { y = 1, x = left + 4, height = height, columns = columns - left - 3 } }
  elseif rows >= TALL then
    local below = rows * 2 // 5
    return { height = height - below, columns = columns,
      page = { y = height - below + 2, x = 2, height = below - 1, columns = columns - 2 } }
  end
  return { height = height, columns = columns }
end

--- Lines of a page from `top` on.
function draw.page(view, page, at, top)
  local search = view.model and view.model.search
  for i = 0, at.height - 1 do
    local text, style = page:line(top + i)
    if not text then
      break
    end
    put_found(view.screen, at.y + i, at.x, text, style, "found", at.columns,
      search and search.finder)
  end
end

--- The list, and the entry that is selected.
function draw.tree(view, rows, columns)
  local model, screen = view.model, view.screen
  local panes = draw.panes(view, rows, columns)
  model:scroll(panes.height)
  for i = 0, panes.height - 1 do
    local index = model.visible[model.top + i]
    if not index then
      break
    end
    draw_row(view, i + 1, panes.columns, model.rows[index], model.top + i == model.at)
  end
  if #model.visible == 0 then
    put(screen, 1, 2, "There is no entry of this kind: t shows others.", "dim", columns - 2)
  end
  if panes.is_beside then
    for y = 1, panes.height do
      screen:put(y, panes.columns + 2, "│", "dim")
    end
  elseif panes.page then
    screen:put(panes.page.y - 1, 1, ("─"):rep(columns), "dim")
  end
  if panes.page then
    local page = view:page(panes.page.columns)
    view.preview_top = math.max(math.min(view.preview_top, (page:known())), 1)
    draw.page(view, page, panes.page, view.preview_top)
  end
  return panes
end

-- ---------------------------------------------------------------- help

local HEADING = 11

--- The help, wrapped to a number of columns: two keys in a line if there is room, with the
--- headings at their left.
---@param list string[][]
---@param columns integer
---@return {[1]: string, [2]: string}[]
function draw.help(list, columns)
  local lines, count, heading = {}, 0, nil
  local each = math.max((columns - HEADING) // 2, 30)
  local pairs_up = columns - HEADING >= 60
  local function pad(text, width)
    return text .. (" "):rep(width - terminal.width(text))
  end
  for _, row in ipairs(list) do
    if not row[2] then
      heading, count = row[1], 0
    else
      local text = pad(row[1], 9) .. row[2]
      if pairs_up and count % 2 == 1 then
        lines[#lines] = { pad(lines[#lines][1], HEADING + each) .. text, "" }
      else
        lines[#lines + 1] = { pad(heading, HEADING) .. text, "" }
        heading = ""
      end
      count = count + 1
    end
  end
  return lines
end

--- A question on the last line and the typed answer; without a text only the question.
---@param cursor integer?  bytes of the text before it
function draw.prompt(screen, y, columns, label, text, cursor)
  fill(screen, y, 1, columns, "")
  local x = 1 + put(screen, y, 1, label, "bold", text and columns * 2 // 3 or columns - 1)
  local room = columns - x
  local before = text and text:sub(1, cursor) or ""
  while terminal.width(before) >= room and before ~= "" do
    before = before:sub(utf8.offset(before, 2))
  end
  local used = screen:put(y, x, before, "", room)
  if text then
    screen:put(y, x + used, text:sub(cursor + 1), "", room - used)
  end
  screen:cursor(y, x + used)
end

draw.put = put

return draw
