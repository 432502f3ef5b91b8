--- pages: a text on the whole screen: an entry that was opened, the help.
--
-- Owns: scrolling. Must never wrap more of an entry than was shown.

local draw = require "sessile.cli.treeview.draw"
local keys = require "sessile.cli.treeview.keys"
local nodes = require "sessile.cli.treeview.nodes"
local preview = require "sessile.cli.treeview.preview"

local pages = {}

local KEYS = keys.actions(keys.text)

local HINTS = {
  { "↓ ↑", "scroll" }, { "← →", "entries" }, { "/", "search" }, { "q", "back" }, { "?", "help" },
}

-- ---------------------------------------------------------------- a page in a view

-- Keeps the first shown line within the page.
local function settle(page, top, height)
  while top > 1 and not page:line(top + height - 1) do
    local known = page:known()
    top = math.max(math.min(top - 1, known - height + 1), 1)
  end
  return top
end

-- How many lines each key scrolls on a screen of that height.
local STEPS = {
  down = function() return 1 end,
  up = function() return -1 end,
  page_down = function(height) return math.max(height - 2, 1) end,
  page_up = function(height) return -math.max(height - 2, 1) end,
  half_down = function(height) return math.max(height // 2, 1) end,
  half_up = function(height) return -math.max(height // 2, 1) end,
}

-- Shows pages until the person leaves them. make(columns) returns the page and its name;
-- other(action) does every other action, and returns whether the page has changed.
local function show(view, make, other, hints)
  local screen, top, made, width = view.screen, 1, nil, nil
  local name
  local painted = { screen = screen }
  setmetatable(painted, { __index = view })
  function painted:paint()
    local rows, columns = screen:size()
    local height = math.max(rows - 2, 1)
    if not made or width ~= columns then
      made, name = make(columns - 2)
      width = columns
    end
    top = settle(made, top, height)
    screen:clear()
    draw.page(view, made, { y = 1, x = 2, height = height, columns = columns - 2 }, top)
    local known, whole = made:known()
    draw.bar(screen, rows - 1, columns, name, (" %d–%d of %d%s "):format(
      math.min(top, known), math.min(top + height - 1, known), known, whole and "" or "+"),
      "reverse")
    view.last_line(view, rows, columns, hints)
    return height
  end
  while not view.done do
    local height = painted:paint()
    screen:refresh()
    local key = screen:key()
    local action = key and KEYS[key]
    if key ~= "resize" and key ~= "resume" then
      view.message = nil
    end
    if action == "leave" then
      return
    elseif action == "quit" then
      view:quit()
    elseif action == "redraw" then
      screen:redraw()
    elseif action == "first" then
      top = 1
    elseif action == "last" then
      top = made:count()
    elseif STEPS[action] then
      top = math.max(top + STEPS[action](height), 1)
    elseif action and other(action, painted) then
      made, top = nil, 1
    end
    view.done = view.done or view.gone or painted.gone
  end
end

-- ---------------------------------------------------------------- what is shown

--- The entry that is selected; the keys to the sides select others.
function pages.entry(view)
  local moves = {
    next_entry = "down", previous_entry = "up", next_hit = "next_hit",
    previous_hit = "previous_hit",
  }
  show(view, function(columns)
    local node = view.model:node()
    return preview.of(view.session, node, columns, view.now, true),
      ("%s  %s"):format(node.id, nodes.name(node))
  end, function(action, painted)
    if action == "help" then
      pages.help(view, keys.text)
      return false
    elseif action == "search" then
      view.search(painted)
      while view.model:scan(function() return true end) do end
      return true
    end
    view[moves[action]](view)
    return true
  end, HINTS)
end

--- The help of a view.
function pages.help(view, groups)
  show(view, function(columns)
    local lines = draw.help(keys.help(groups), columns)
    return {
      line = function(_, i)
        if lines[i] then
          return lines[i][1], lines[i][2]
        end
      end,
      count = function() return #lines end,
      known = function() return #lines, true end,
    }, "Keys"
  end, function() return false end, { { "↓ ↑", "scroll" }, { "q", "back" } })
end

return pages
