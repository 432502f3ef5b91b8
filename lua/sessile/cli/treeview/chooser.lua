--- chooser: the sessions of a store on a terminal, to open one.
--
-- Owns: the list and its keys. Must never open a session before it was chosen, nor hide one
-- that cannot be read.

local draw = require "sessile.cli.treeview.draw"
local find = require "sessile.cli.treeview.find"
local keys = require "sessile.cli.treeview.keys"
local pages = require "sessile.cli.treeview.pages"
local prompt = require "sessile.cli.treeview.prompt"
local sessions = require "sessile.cli.sessions"
local terminal = require "sessile.cli.terminal"

local chooser = {}
local methods = {}
local meta = { __index = methods }

local KEYS = keys.actions(keys.sessions)

local HINTS = {
  { "Enter", "open" }, { "/", "search" }, { "?", "help" }, { "q", "leave" },
}

--- A chooser; set its `screen` before it runs. options: list (a function: the rows, or nil and
--- a message), now.
---@return table? chooser
---@return string? message
---@return string? code
function chooser.new(options)
  local self = setmetatable({
    list = options.list, clock = options.now, at = 1, top = 1, filter = "",
  }, meta)
  local ok, message, code = self:load()
  if not ok then
    return nil, message, code
  end
  return self
end

function methods:load()
  local rows, message, code = self.list()
  if not rows then
    return nil, message, code
  end
  self.rows, self.short = rows, sessions.short_ids(rows)
  self:arrange()
  return true
end

-- The sessions that have the typed text in their id or title.
function methods:arrange()
  local chosen = self.visible and self.visible[self.at]
  local finder = find.finder(self.filter)
  self.visible, self.at = {}, 1
  for _, row in ipairs(self.rows) do
    local words = terminal.line((row.id or "") .. " " .. (row.title or ""))
    if self.filter == "" or finder(words) then
      self.visible[#self.visible + 1] = row
      if chosen and row.id == chosen.id and row.agent == chosen.agent then
        self.at = #self.visible
      end
    end
  end
end

-- ---------------------------------------------------------------- drawing

local function draw_row(self, y, columns, row, selected, now)
  local screen = self.screen
  local style = selected and "reverse" or row.message and "red" or ""
  if selected then
    screen:put(y, 1, (" "):rep(columns), style)
  end
  local width = math.min(self.widest, columns // 3)
  draw.put(screen, y, 2, self.short[row] or "?", selected and style or "cyan", width)
  local x, right = width + 4, columns - 1
  local function at_right(text, columns_of_it)
    right = right - columns_of_it - 2
    screen:put(y, right + 1, (" "):rep(columns_of_it - terminal.width(text)) .. text,
      selected and style or "dim")
  end
  local message = row.message and row.message ~= "" and row.message
  if not message then
    at_right(terminal.ago(row.modified, now), 12)
    if columns >= 60 then
      at_right(terminal.number(row.messages)
        .. (row.messages == 1 and " message " or " messages"), 16)
    end
    if columns >= 80 and row.status ~= "active" then
      at_right(terminal.line(row.status or ""), 10)
    end
  end
  draw.put(screen, y, x, terminal.line(message or row.title or ""), style, right - x)
end

function methods:paint()
  local screen = self.screen
  local rows, columns = screen:size()
  screen:clear()
  if rows < draw.ROWS or columns < draw.COLUMNS then
    screen:put(1, 1, ("Too small: %d by %d are needed."):format(draw.COLUMNS,
      draw.ROWS))
    screen:put(2, 1, "q leaves")
    return
  end
  self.height = rows - 2
  self.widest = 1
  for _, row in ipairs(self.visible) do
    self.widest = math.max(self.widest, terminal.width(self.short[row] or "?"))
  end
  self.top = math.max(math.min(self.top, self.at, #self.visible - self.height + 1),
    self.at - self.height + 1, 1)
  for i = 0, self.height - 1 do
    local row = self.visible[self.top + i]
    if row then
      draw_row(self, i + 1, columns, row, self.top + i == self.at, self.clock())
    end
  end
  if #self.visible == 0 then
    draw.put(screen, 1, 2, "No session has that in its id or title. / searches again.", "dim",
      columns - 2)
  end
  local right = (" %s%d/%d "):format(
    self.filter ~= "" and "/" .. terminal.cut(self.filter, 16) .. "  " or "", self.at,
    #self.visible)
  draw.bar(screen, rows - 1, columns, "Sessions: which one?", right, "reverse")
  self:last_line(rows, columns, HINTS)
end

methods.last_line = require "sessile.cli.treeview.view".last_line

-- ---------------------------------------------------------------- keys

local function move(self, n)
  self.at = math.max(math.min(self.at + n, #self.visible), math.min(1, #self.visible))
end

function methods:down() move(self, 1) end
function methods:up() move(self, -1) end
function methods:page_down() move(self, math.max((self.height or 2) - 1, 1)) end
function methods:page_up() move(self, -math.max((self.height or 2) - 1, 1)) end
function methods:half_down() move(self, math.max((self.height or 2) // 2, 1)) end
function methods:half_up() move(self, -math.max((self.height or 2) // 2, 1)) end
function methods:first() move(self, -#self.visible) end
function methods:last() move(self, #self.visible) end

function methods:search()
  local text = prompt.line(self, "/", self.filter)
  if text then
    self.filter = text
    self:arrange()
  end
end

function methods:reload()
  local ok, message = self:load()
  if not ok then
    self.message, self.is_wrong = terminal.line(message), true
  end
end

function methods:redraw()
  self.screen:redraw()
end

function methods:help()
  pages.help(self, keys.sessions)
end

function methods:open()
  self.chosen = self.visible[self.at]
  self.done = self.chosen ~= nil
end

function methods:leave()
  if self.filter ~= "" and self.key == "escape" then
    self.filter = ""
    self:arrange()
  else
    self.done = true
  end
end

function methods:quit()
  self.done = true
end

--- Runs until a session is chosen: its row; nil when it was left. It can be run again.
---@param said string?  what to say first: why the one that was chosen does not open
---@return table? row
function methods:run(said)
  self.chosen, self.done = nil, false
  self.message, self.is_wrong = said and terminal.line(said), true
  while not self.done do
    self:paint()
    self.screen:refresh()
    local key = self.screen:key()
    if key ~= "resize" and key ~= "resume" then
      self.message, self.key = nil, key
      if KEYS[key] then
        self[KEYS[key]](self)
      end
    end
    self.done = self.done or self.gone
  end
  return self.chosen
end

return chooser
