--- reasons: why messages of the conversation are not in the context.
--
-- Asks session:why once for all messages that left together: each call walks through every
-- compaction, so ten thousand calls would take minutes. If a compaction was undone, it asks for
-- each message, since the answers may differ.

local reasons = {}

local methods = {}
methods.__index = methods

-- Calls `see` for each entry of a range such as "00000003-00000009" or "00000003". Messages that a
-- compaction wrote ("00000016.1") are skipped. most: the newest entry.
local function each(names, most, see)
  for _, name in ipairs(type(names) == "table" and names or {}) do
    local from, to = tostring(name):match "^(%x+)-?(%x*)$"
    local first = from and #from == 8 and tonumber(from, 16) or nil
    local last = first and (#to == 8 and tonumber(to, 16) or first) or 0
    for id = first or 1, math.min(last, most) do
      see(id)
    end
  end
end

-- Records which messages a compaction removed together.
local function note(self, n, data, most)
  local function mark(what)
    return function(id)
      self.left[id] = (self.left[id] or "") .. (" %d%s"):format(n, what)
    end
  end
  for kind, one in pairs(type(data.account) == "table" and data.account or {}) do
    each(type(one) == "table" and one.entries, most, mark(tostring(kind)))
  end
  for i, put in ipairs(type(data.inserted) == "table" and data.inserted or {}) do
    if type(put) == "table" then
      each(put.covers, most, mark("c" .. i))
      each(put.replaces, most, mark("r" .. i))
    end
  end
end

--- Reads the compactions of a session.
---@param from table  of sessile.export.source
---@param nodes sessile.Node[]  the conversation, oldest first
---@param most integer          how many entries there are
function reasons.new(from, nodes, most)
  local self = setmetatable({ source = from, left = {}, told = {}, singly = false }, methods)
  for _, row in ipairs(from.facts.compactions) do
    self.singly = self.singly or row.uncompacts ~= nil or (row.restored or 0) > 0
      or (row.undone or 0) > 0
  end
  for n, node in ipairs(self.singly and {} or nodes) do
    local data = node.type == "compaction" and from.session:entry(node.id)
    if data and type(data.data) == "table" then
      note(self, n, data.data, most)
    end
  end
  return self
end

local function ask(self, id)
  local found = self.source.session:why(id)
  if not found or found.in_context then
    return {}
  end
  local told = {}
  for _, step in ipairs(found.steps) do
    if step.kind ~= "said" then
      told.words = step.text:gsub("^" .. id .. " ", "")
      told.compaction = step.compaction and step.compaction.id
      told.shared = step.key ~= id or step.kind == "left"
    end
  end
  local redactor = self.source.redactor
  told.words = told.words and redactor and redactor:text(told.words) or told.words
  return told
end

--- Why a message is not in the context, and the compaction that removed it; nil if it is in the
--- context or the reason is not known.
---@param id string
---@return string? words
---@return string? compaction
function methods:of(id)
  local group = not self.singly and self.left[tonumber(id, 16)]
  local told = group and self.told[group]
  if not told then
    told = ask(self, id)
    if group and told.shared then -- it is said of all that left with it
      self.told[group] = told
    end
  end
  return told.words, told.compaction
end

return reasons
