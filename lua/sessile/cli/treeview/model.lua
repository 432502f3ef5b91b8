--- model: which rows of a session's tree are visible, and which one is selected.
--
-- Owns: folding, the kinds of entries, what was searched for, the selection, the first row on the
-- screen. Identifies rows by the ids of their entries, so that a reload keeps all of this. Must
-- never draw, and reads an entry only to search it.

local find = require "sessile.cli.treeview.find"
local nodes = require "sessile.cli.treeview.nodes"
local rows = require "sessile.cli.treeview.rows"

---@class sessile.cli.treeview.model
---@field tree sessile.Tree
---@field rows sessile.cli.treeview.row[]
---@field visible integer[]   indexes into rows
---@field at integer          the selection: an index into visible; 0: there is nothing
---@field top integer         the first on the screen, likewise
---@field kind string         one of nodes.kinds
---@field head_at string?     the head, or what is folded over it
---@field folded table<string, boolean>  by id
---@field search table?       {text, finder, hits: table<string, boolean>, count, next, from}
local model = {}
model.__index = model

--- A model of a tree, the head selected. words: what a search looks through.
---@param tree sessile.Tree
---@param words fun(node: sessile.Node): string
---@return sessile.cli.treeview.model
function model.new(tree, words)
  local self = setmetatable({ kind = "all", folded = {}, words = words, top = 1, at = 0 }, model)
  self:load(tree)
  self:go_to(tree.current)
  return self
end

-- ---------------------------------------------------------------- visible rows

-- Finds the visible rows; `near`: the index in rows of the selection. If that row is hidden now,
-- selects the row that folds it, otherwise the row before it.
local function arrange(self, near)
  local list, kind, folded = self.rows, self.kind, self.folded
  local shown, hidden = {}, {}
  local at
  for i, row in ipairs(list) do
    local up = row.up
    -- Only a visible row can be unfolded, so only visible rows fold others.
    hidden[i] = up and (hidden[up] or folded[list[up].node.id] and nodes.is_of(list[up].node, kind))
      or false
    if not hidden[i] and nodes.is_of(row.node, kind) then
      shown[#shown + 1] = i
      if near and i <= near then
        at = #shown
      end
    end
  end
  self.visible = shown
  self.at = at or math.min(1, #shown)
  while near and hidden[near] do
    near = list[near].up
  end
  if near then
    self:select_row(near)
  end
  local head = self.index[self.tree.current]
  while head and hidden[head] do
    head = list[head].up
  end
  self.head_at = head and list[head].node.id
end

--- Replaces the tree by one that was read again.
---@param tree sessile.Tree
function model:load(tree)
  local selected = self:node()
  self.tree, self.rows, self.index, self.forks = tree, rows.of(tree), {}, 0
  for i, row in ipairs(self.rows) do
    self.index[row.node.id] = i
    self.forks = self.forks + row.forks
  end
  if self.search then
    self:find(self.search.text, true)
  end
  arrange(self, selected and self.index[selected.id])
end

--- The selected row; nil if no row is visible.
---@return sessile.cli.treeview.row?
function model:row()
  return self.visible and self.rows[self.visible[self.at]]
end

--- Its node.
---@return sessile.Node?
function model:node()
  local row = self:row()
  return row and row.node
end

--- Selects the row of that index, or the last visible one before it.
function model:select_row(index)
  local low, high = 1, #self.visible
  while low < high do -- the last that is not after it
    local middle = (low + high + 1) // 2
    if self.visible[middle] <= index then
      low = middle
    else
      high = middle - 1
    end
  end
  self.at = math.min(low, #self.visible)
end

--- How many rows of `height` lines are above the selection: scrolls as little as needed
--- to keep some rows around the selection visible.
---@param height integer
function model:scroll(height)
  local margin = math.min(2, (height - 1) // 2)
  local top = math.max(self.top, self.at + margin - height + 1)
  top = math.min(top, self.at - margin)
  self.top = math.max(math.min(top, #self.visible - height + 1), 1)
end

-- ---------------------------------------------------------------- moving

--- Moves the selection by a number of rows; false at an end.
---@param n integer
---@return boolean
function model:move(n)
  local was = self.at
  self.at = math.max(math.min(self.at + n, #self.visible), math.min(1, #self.visible))
  return self.at ~= was
end

--- Selects an entry, unfolding what hides it; false when it is not among the kinds that are
--- shown, or not there.
---@param id string?
---@return boolean
function model:go_to(id)
  local index = self.index[id]
  if not index or not nodes.is_of(self.rows[index].node, self.kind) then
    return false
  end
  local up, changed = self.rows[index].up, false
  while up do
    local above = self.rows[up].node.id
    changed = changed or self.folded[above] ~= nil
    self.folded[above] = nil
    up = self.rows[up].up
  end
  if changed then
    arrange(self, index)
  end
  self:select_row(index)
  return true
end

--- Selects the nearest visible ancestor of the selection in the conversation.
---@return boolean
function model:parent()
  local node = self:node()
  local id = node and node.parent
  while id do
    if self:go_to(id) then
      return true
    end
    id = self.tree.nodes[id] and self.tree.nodes[id].parent
  end
  return false
end

--- Selects the next row (1) or the one before (-1) that is wanted and of the kind that is shown.
---@param direction 1|-1
---@param wanted fun(row: sessile.cli.treeview.row): boolean?
---@return boolean
function model:go(direction, wanted)
  local i = (self.visible[self.at] or 0) + direction
  while self.rows[i] do
    local row = self.rows[i]
    if wanted(row) and self:go_to(row.node.id) then
      return true
    end
    i = i + direction
  end
  return false
end

--- Selects the next place (1) or the one before (-1) where the conversation branches: the entry,
--- or where a branch begins.
---@param direction 1|-1
---@return boolean
function model:branch(direction)
  return self:go(direction, function(row) return row.forks > 0 or row.starts end)
end

--- Selects the next (1) or the previous (-1) question of a person.
---@param direction 1|-1
---@return boolean
function model:question(direction)
  return self:go(direction, function(row) return nodes.is_question(row.node) end)
end

-- ---------------------------------------------------------------- folding

--- Whether a row is folded.
---@param row sessile.cli.treeview.row
---@return boolean
function model:is_folded(row)
  return row.under > 0 and self.folded[row.node.id] == true
end

--- Folds the selection; if it cannot be folded (further), selects the row that folds it.
---@return boolean
function model:fold()
  local row = self:row()
  if not row then
    return false
  elseif row.under > 0 and not self:is_folded(row) then
    self.folded[row.node.id] = true
    arrange(self, self.visible[self.at])
    return true
  end
  local was = self.at
  if row.up then
    self:select_row(row.up)
  end
  return self.at ~= was
end

--- Unfolds the selection; if it is unfolded, selects the first row that it could fold.
---@return boolean
function model:unfold()
  local row = self:row()
  if row and self:is_folded(row) then
    self.folded[row.node.id] = nil
    arrange(self, self.visible[self.at])
    return true
  end
  return row ~= nil and row.under > 0 and self:move(1)
end

--- Folds it, or unfolds it.
---@return boolean
function model:toggle()
  local row = self:row()
  if row and self:is_folded(row) then
    return self:unfold()
  end
  return self:fold()
end

--- Folds all that can be folded, or nothing.
---@param all boolean
function model:fold_all(all)
  local selected = self.visible[self.at]
  self.folded = {}
  for _, row in ipairs(all and self.rows or {}) do
    if row.under > 0 then
      self.folded[row.node.id] = true
    end
  end
  arrange(self, selected)
end

-- ---------------------------------------------------------------- kinds

--- Shows only entries of one kind.
---@param kind string
function model:show(kind)
  local selected = self.visible[self.at]
  self.kind = kind
  if self.search then
    self:find(self.search.text, true)
  end
  arrange(self, selected)
end

--- The next kind (1) or the one before (-1).
---@param direction 1|-1
function model:next_kind(direction)
  for i, kind in ipairs(nodes.kinds) do
    if kind == self.kind then
      self:show(nodes.kinds[(i - 1 + direction) % #nodes.kinds + 1])
      return
    end
  end
end

-- ---------------------------------------------------------------- searching

--- Starts a search for a text at the selection, also in folded rows; scan does the work. An empty
--- text ends the search. again: keeps its direction.
---@param text string
---@param again boolean?
function model:find(text, again)
  if text == "" then
    self.search = nil
    return
  end
  self.search = {
    text = text, finder = find.finder(text), hits = {}, count = 0, done = 0,
    from = math.max(self.visible and self.visible[self.at] or 1, 1),
    jumps = not again,
  }
end

--- Searches the next rows until more() says that the time is over, and selects the first hit when
--- it is found. Returns whether rows are left to search.
---@param more fun(): boolean
---@return boolean
function model:scan(more)
  local search = self.search
  if not search then
    return false
  end
  local total = #self.rows
  while search.done < total do
    local index = (search.from - 1 + search.done) % total + 1
    local node = self.rows[index].node
    search.done = search.done + 1
    if nodes.is_of(node, self.kind) and search.finder(self.words(node)) then
      search.hits[node.id] = true
      search.count = search.count + 1
      if search.jumps then
        search.jumps = false
        self:go_to(node.id)
      end
    end
    if not more() then
      break
    end
  end
  return search.done < total
end

--- Selects the next hit (1) or the previous (-1), from the other end if there is none.
--- Returns false if there is none at all, and whether it wrapped around.
---@param direction 1|-1
---@return boolean found
---@return boolean? wrapped
function model:next_hit(direction)
  local search, total = self.search, #self.rows
  if not search or search.count == 0 then
    return false
  end
  local from = self.visible[self.at] or 1
  for n = 1, total do
    local index = (from - 1 + n * direction) % total + 1
    local id = self.rows[index].node.id
    if search.hits[id] and self:go_to(id) then
      return true, (index - from) * direction <= 0
    end
  end
  return false
end

--- Which of the hits is selected, and how many there are.
---@return integer? which
---@return integer count
function model:hit()
  local search = self.search
  local node = self:node()
  if not search then
    return nil, 0
  elseif not node or not search.hits[node.id] then
    return nil, search.count
  end
  local which = 0
  for i = 1, self.visible[self.at] do
    which = which + (search.hits[self.rows[i].node.id] and 1 or 0)
  end
  return which, search.count
end

return model
