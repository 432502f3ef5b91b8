--- view: the tree of a session on a terminal.
--
-- Owns: what each key does, and when the session is read again. Writes to the
-- session only after a key, and waits for nothing else while it is on the screen.

local actions = require "sessile.cli.treeview.actions"
local draw = require "sessile.cli.treeview.draw"
local entries = require "sessile.cli.entries"
local keys = require "sessile.cli.treeview.keys"
local model = require "sessile.cli.treeview.model"
local nodes = require "sessile.cli.treeview.nodes"
local pages = require "sessile.cli.treeview.pages"
local preview = require "sessile.cli.treeview.preview"
local prompt = require "sessile.cli.treeview.prompt"
local terminal = require "sessile.cli.terminal"

local plural = terminal.plural

local view = {}
local methods = {}
local meta = { __index = methods }

-- How often to check whether another writer wrote, in ms; how long a search runs before it checks
-- for a key, in seconds.
local IDLE, SLICE = 2000, 0.04
local PREFIX_WAIT = 1000

local KEYS, PREFIXES = keys.actions(keys.tree)

local HINTS = {
  { "?", "help" }, { "Enter", "open" }, { "/", "search" }, { "t", "types" }, { "{ }", "question" },
  { "← →", "fold" },
  { "@", "head" }, { "L", "label" }, { "p", "pin" }, { "b", "branch" }, { "f", "fork" },
  { "q", "leave" },
}

--- A view of a session. options: screen, session, now (a function), selects (Enter ends it
--- with the entry), kind, search.
---@return table? view
---@return string? message
---@return string? code
function view.new(options)
  local self = setmetatable({
    screen = options.screen, session = options.session, clock = options.now,
    selects = options.selects, shows_preview = true, preview_top = 1, history = {},
    now = options.now(),
  }, meta)
  local tree, message, code = self.session:tree()
  if not tree then
    return nil, message, code
  end
  self.model = model.new(tree, function(node) return nodes.words(self.session, node) end)
  self:seen(tree)
  if options.kind then
    self.model:show(options.kind)
  end
  if options.search then
    self.model:find(options.search)
  end
  return self
end

-- ---------------------------------------------------------------- reading it again

-- The id of the newest entry, which every write changes.
local function stamp(self)
  local _, newest = self.session:watch { timeout_ms = 0 }
  return newest
end

function methods:seen(tree)
  self.stamp, self.pages = stamp(self), nil
  local widest = #tree.list > 0 and tree.list[#tree.list].id:gsub("^0+", "") or ""
  self.digits = math.max(#widest, 3)
  local tokens = self.session:tokens()
  self.tokens = tokens
end

--- Reads the tree again; keeps what is folded, selected and searched for.
function methods:reload()
  local tree, message = self.session:tree()
  if not tree then
    self:say(nil, message)
    return
  end
  local was_head = self.model.tree.current
  local node = self.model:node()
  local follows = node and node.id == was_head
  self.model:load(tree)
  if follows and tree.current ~= was_head then
    self.model:go_to(tree.current)
  end
  self:seen(tree)
end

local function reload_when_changed(self)
  local ok, now = pcall(stamp, self)
  if ok and now ~= self.stamp then
    self:reload()
  end
end

-- ---------------------------------------------------------------- what is on the screen

--- Says something on the last line until the next key: what was done, or what went wrong.
function methods:say(done, wrong)
  local text = done or wrong
  self.message = text and terminal.line(text):gsub('^session "[^"]*": ', "") -- the bar names it
  self.is_wrong = not done
end

--- The entry that is selected, wrapped to a number of columns.
function methods:page(columns)
  local node = self.model:node()
  local name = node.id .. " " .. columns
  if not self.pages or self.pages.name ~= name then
    self.pages = { name = name, page = preview.of(self.session, node, columns, self.now) }
  end
  return self.pages.page
end

-- The texts of the bar, left and right. A part that does not fit is left out.
local function status(self, columns)
  local session, of = self.session, self.model
  local right = {}
  if of.search then
    local which, count = of:hit()
    local whole = of.search.done >= #of.rows
    right[#right + 1] = ("/%s %s%s%s"):format(terminal.cut(terminal.line(of.search.text), 16),
      which and whole and terminal.number(which) .. " of " or "", terminal.number(count),
      whole and "" or "…")
  end
  if of.kind ~= "all" then
    right[#right + 1] = of.kind .. "s"
  end
  right[#right + 1] = ("%s/%s"):format(terminal.number(of.at), terminal.number(#of.visible))
  local at_right = " " .. table.concat(right, "  ") .. " "
  local room = columns - terminal.width(at_right) - 3
  local title = session.title
  local left = terminal.cut(terminal.line(title and title ~= "" and title or session.id),
    math.max(math.min(room, columns // 2), 4))
  for _, words in ipairs { session.damage and "damaged: to be read only" or "",
    plural(#of.rows, "entry", "entries"), plural(of.forks, "branch", "branches"),
    self.tokens and plural(self.tokens, "token", "tokens") or "" } do
    if words ~= "" and terminal.width(left) + 3 + terminal.width(words) <= room then
      left = left .. " · " .. words
    end
  end
  return left, at_right
end

-- The last line: the message, otherwise the most used keys.
function methods:last_line(y, columns, hints)
  if self.message then
    draw.put(self.screen, y, 2, self.message, self.is_wrong and "red bold" or "green", columns - 2)
    return
  end
  local x = 2
  for _, hint in ipairs(hints) do
    local width = terminal.width(hint[1]) + terminal.width(hint[2]) + 3
    if x + width > columns then
      break
    end
    x = x + self.screen:put(y, x, hint[1], "bold") + 1
    x = x + self.screen:put(y, x, hint[2], "dim") + 2
  end
end

--- Draws all of it; false on a terminal that is too small. The caller refreshes.
function methods:paint()
  local screen = self.screen
  local rows, columns = screen:size()
  self.now = self.clock()
  screen:clear()
  if rows < draw.ROWS or columns < draw.COLUMNS then
    screen:put(1, 1, ("Too small: %d by %d are needed."):format(draw.COLUMNS,
      draw.ROWS))
    screen:put(2, 1, "q leaves")
    return false
  end
  local panes = draw.tree(self, rows, columns)
  self.height, self.pane = panes.height, panes.page
  local left, right = status(self, columns)
  draw.bar(screen, rows - 1, columns, left, right, "reverse")
  self:last_line(rows, columns, self.selects and { { "Enter", "select" }, table.unpack(HINTS, 3) }
    or HINTS)
  return true
end

-- ---------------------------------------------------------------- keys

function methods:down() self.model:move(1) end
function methods:up() self.model:move(-1) end
function methods:page_down() self.model:move(math.max((self.height or 2) - 1, 1)) end
function methods:page_up() self.model:move(-math.max((self.height or 2) - 1, 1)) end
function methods:half_down() self.model:move(math.max((self.height or 2) // 2, 1)) end
function methods:half_up() self.model:move(-math.max((self.height or 2) // 2, 1)) end
function methods:first() self.model:move(-math.maxinteger // 2) end
function methods:last() self.model:move(math.maxinteger // 2) end

function methods:fold() self.model:fold() end
function methods:unfold() self.model:unfold() end
function methods:toggle() self.model:toggle() end
function methods:fold_all() self.model:fold_all(true) end
function methods:unfold_all() self.model:fold_all(false) end

function methods:next_kind() self.model:next_kind(1) end
function methods:previous_kind() self.model:next_kind(-1) end

function methods:head()
  if not self.model:go_to(self.model.tree.current) then
    self:say(nil, "The head is of a kind that is hidden: t shows others")
  end
end

function methods:jump()
  local text = prompt.line(self, "Entry (a number, a label, head): ")
  if not text or text == "" then
    return
  end
  local id, message = entries.find(self.session, text)
  if not id then
    self:say(nil, message)
  elseif not self.model:go_to(id) then
    self:say(nil, ("%s is not among the entries that are shown"):format(id))
  end
end

function methods:parent()
  if not self.model:parent() then
    self:say(nil, "Its parent is not shown")
  end
end

function methods:next_branch()
  if not self.model:branch(1) then
    self:say(nil, "There is no branch below")
  end
end

function methods:previous_branch()
  if not self.model:branch(-1) then
    self:say(nil, "There is no branch above")
  end
end

function methods:next_question()
  if not self.model:question(1) then
    self:say(nil, "There is no question below")
  end
end

function methods:previous_question()
  if not self.model:question(-1) then
    self:say(nil, "There is no question above")
  end
end

function methods:preview()
  self.shows_preview = not self.shows_preview
end

-- Scrolls the preview, within its lines.
local function roll(self, n)
  local pane = self.pane
  if not pane then
    return
  end
  local page = self:page(pane.columns)
  local top = self.preview_top + n
  while top > 1 and not page:line(top + pane.height - 1) do
    top = top - 1
  end
  self.preview_top = math.max(top, 1)
end

function methods:preview_down() roll(self, self.pane and self.pane.height // 2 or 1) end
function methods:preview_up() roll(self, -(self.pane and self.pane.height // 2 or 1)) end

function methods:search()
  local text = prompt.line(self, "/", nil, self.history)
  if not text then
    return
  end
  if text ~= "" and self.history[#self.history] ~= text then
    self.history[#self.history + 1] = text
  end
  self.model:find(text)
end

-- Searches until something was found, everything was searched, or a key was typed.
local function scan_to_end(self)
  while self.model:scan(function() return true end) do end
end

local function hit(self, direction)
  if not self.model.search then
    self:say(nil, "There is no search yet: / searches")
    return
  end
  scan_to_end(self)
  local found, wrapped = self.model:next_hit(direction)
  if not found then
    self:say(nil, "No entry has that in it")
  elseif wrapped then
    self:say(direction == 1 and "From the top again" or "From the bottom again")
  end
end

function methods:next_hit() hit(self, 1) end
function methods:previous_hit() hit(self, -1) end

function methods:redraw()
  self.screen:redraw()
end

function methods:help()
  pages.help(self, keys.tree)
end

function methods:open()
  local node = self.model:node()
  if not node then
    return
  elseif self.selects then
    self.chosen, self.done = node.id, true
  else
    pages.entry(self)
  end
end

-- Actions that write: the result is shown and the tree is read again.
for name, act in pairs(actions) do
  methods[name] = function(self)
    local node = self.model:node()
    if not node then
      return
    end
    local done, wrong, id = act(self, node)
    self:say(done or nil, wrong)
    if done then
      self:reload()
      self.model:go_to(id)
    end
  end
end

function methods:leave()
  if self.model.search and self.key == "escape" then
    self.model:find "" -- first removes the marks of the hits
    return
  end
  self.done = true
end

function methods:quit()
  self.done, self.quits = true, true
end

--- Does the action of a key.
---@param key string
function methods:press(key)
  if PREFIXES[key] then
    key = key .. (self.screen:key(PREFIX_WAIT) or "")
  end
  local action = KEYS[key]
  if key ~= "resize" and key ~= "resume" then
    self.message, self.key = nil, key
    local before = self.model:node()
    if action then
      self[action](self)
    end
    if self.model:node() ~= before then
      self.preview_top = 1
    end
  end
end

-- Continues a search while nobody types.
local function scan(self)
  local until_ = os.clock() + SLICE
  local was_found = self.model.search and self.model.search.count > 0
  local more = self.model:scan(function() return os.clock() < until_ end)
  local search = self.model.search
  if search and not more and search.count == 0 and not was_found and not search.told then
    search.told = true
    self:say(nil, ("No entry has '%s' in it"):format(search.text))
  end
  return more
end

--- Runs until it is left. Returns the entry that was selected (only with `selects`), and whether
--- to leave altogether.
---@return string? id
---@return boolean quits
function methods:run()
  while not self.done do
    local busy = scan(self)
    self:paint()
    self.screen:refresh()
    local key = self.screen:key(busy and 0 or IDLE)
    if not key and not busy then
      reload_when_changed(self)
    end
    while key and not self.done do -- those that wait as well, before it is drawn again
      self:press(key)
      if self.gone then
        self:quit()
      end
      key = not self.done and self.screen:key(0) or nil
    end
  end
  return self.chosen, self.quits or false
end

view.last_line = methods.last_line

return view
