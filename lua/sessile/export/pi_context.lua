--- pi_context: the contexts of the session, and those that pi finds in the file that is written.
--
-- Owns: what pi gives a model at each line: the messages on the path to it, or, after a compaction,
-- its summary, the path's messages from its firstKeptEntryId, and what follows. From this, where a
-- context of ours begins in pi's tree. Must never keep the text of a message: contexts are lists of
-- keys.

local span = require("sessile.core").span

local pi_context = {}

local Contexts = {}
Contexts.__index = Contexts

-- ---------------------------------------------------------------- of the session

--- Adds an entry of the session. Messages and compactions change the context.
---@param entry {id: string, parent: string}
---@param kind string
---@param data string  JSON text
function Contexts:entry(entry, kind, data)
  self.parents[entry.id] = entry.parent
  self.is_message[entry.id] = kind == "message" or kind == "branch_summary" or nil
  if kind == "compaction" then
    self.lists[entry.id] = self:read_list(entry, data)
  end
end

-- The messages of the path from `low` (nil: the root; it is not included) to `high`.
function Contexts:between(low, high)
  local found, at = {}, high
  while at and at ~= low do
    if self.is_message[at] then
      table.insert(found, 1, at)
    end
    at = self.parents[at]
  end
  return found
end

-- The context after a compaction; nil if it leaves the context as it was.
function Contexts:read_list(entry, data)
  local _, fields = span.object(data)
  local names = span.array(fields.context or "null")
  if not names then
    return nil
  end
  local list = {}
  for _, raw in ipairs(names) do
    local name = span.string(raw) or ""
    local first, last = name:match "^(%x+)%-(%x+)$"
    if first then
      local range = self:between(self.parents[first], last)
      table.move(range, 1, #range, #list + 1, list)
    else
      list[#list + 1] = name
    end
  end
  local later = self:between(span.string(fields.upto or nil) or entry.parent, entry.parent)
  return table.move(later, 1, #later, #list + 1, list)
end

--- The keys of the context after a compaction; nil if it leaves the context as it was.
---@param id string
---@return string[]?
function Contexts:after(id)
  return self.lists[id]
end

-- ---------------------------------------------------------------- of the file

--- Adds a line of the file. key: the message that it gives the model; list: the context after it,
--- if it is a compaction; start: the first line of a message that has several.
---@param name string     its id, as JSON
---@param parent string?  the id of its parent, as JSON
---@param facts {key: string?, list: string[]?, start: string?}?
function Contexts:line(name, parent, facts)
  facts = facts or {}
  self.lines[name] = { name = name, parent = parent, key = facts.key, list = facts.list,
    start = facts.start or name }
end

--- The nearest line, from this one to the root, that changes the context.
---@param name string?
---@return string?
function Contexts:nearest(name)
  local line = self.lines[name]
  while line and not (line.key or line.list) do
    line = self.lines[line.parent]
  end
  return line and line.name
end

-- The lines from the root to this one.
local function path_to(self, name)
  local path, line = {}, self.lines[name]
  while line do
    path[#path + 1] = line
    line = self.lines[line.parent]
  end
  for i = 1, #path / 2 do
    path[i], path[#path + 1 - i] = path[#path + 1 - i], path[i]
  end
  return path
end

local function begins_with(list, first)
  for i, key in ipairs(first) do
    if list[i] ~= key then
      return false
    end
  end
  return true
end

--- The line on the path to `name` whose context is the longest beginning of `list`, and the length
--- of that. nil, 0: only the root has one.
---@param name string?
---@param list string[]
---@return string? line
---@return integer count
function Contexts:longest_beginning(name, list)
  local best, most, matched, alive = nil, 0, 0, true
  for _, line in ipairs(path_to(self, name)) do
    if line.list then
      alive, matched = begins_with(list, line.list), #line.list
    elseif line.key then
      alive, matched = alive and list[matched + 1] == line.key, matched + 1
    end
    if alive and matched > most and (line.list or line.key) then
      best, most = line.name, matched
    end
  end
  return best, most
end

--- Whether `list` is what a compaction of pi makes of the path to `name`: one message that replaces
--- the older ones, then the newest messages of the path. Returns the first line of those; "" if
--- there are none; nil if it is not.
---@param name string?
---@param list string[]
---@return string?
function Contexts:first_kept(name, list)
  local line, first, i = self.lines[name], "", #list
  while i > 1 and line do
    if line.key then
      if line.key ~= list[i] then
        return nil
      end
      first, i = line.start, i - 1
    end
    line = self.lines[line.parent]
  end
  return i == 1 and first or nil
end

--- Contexts of a session and a file to which entries and lines are added in their order.
function pi_context.new()
  return setmetatable({ parents = {}, is_message = {}, lists = {}, lines = {} }, Contexts)
end

return pi_context
