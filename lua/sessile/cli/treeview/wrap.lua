--- wrap: text in lines of a given width. Lines are made when they are read.
--
-- Owns: where a line ends. Must never wrap more of a long text than is shown.

local terminal = require "sessile.cli.terminal"

local wrap = {}

---@class sessile.cli.treeview.lines
---@field made string[]
---@field text string       safe
---@field from integer?     where to continue in it; nil: everything is wrapped
---@field columns integer
local lines = {}
lines.__index = lines

-- The number of bytes of a too wide line that fit into `columns`: up to a space, if there is one;
-- at least one character.
local function bytes_that_fit(line, columns)
  local width, last, space = 0, 0, nil
  local ascii = not line:find "[\128-\255]"
  if ascii then
    last = columns
    local head = line:sub(1, columns + 1)
    space = head:match "^.*() "
  else
    for at, code in utf8.codes(line) do
      local char = utf8.char(code)
      width = width + terminal.width(char)
      if width > columns and at > 1 then
        space = char == " " and at or space
        break
      end
      last = at + #char - 1
      space = char == " " and at or space
    end
  end
  if space and space > columns // 2 then
    return space - 1, space + 1
  end
  return last, last + 1
end

local function add(self, line)
  while terminal.width(line) > self.columns do
    -- Looks only at the beginning of a line, which may have megabytes.
    local last, after = bytes_that_fit(line, self.columns)
    self.made[#self.made + 1] = line:sub(1, last)
    line = line:sub(after)
  end
  self.made[#self.made + 1] = line
end

-- A longer line is wrapped in parts: cutting off the rest each time would be slow.
local PART = 4096

local function make_next(self)
  local stop = self.text:find("\n", self.from, true)
  local last = (stop or #self.text + 1) - 1
  if last - self.from >= PART then
    last = self.from + PART - 1
    while (self.text:byte(last + 1) or 0) & 0xC0 == 0x80 do
      last = last - 1
    end
    local space = self.text:sub(self.from, last):match "^.*() "
    stop = space and self.from + space - 1 or last
    last = space and stop - 1 or last
  end
  add(self, (self.text:sub(self.from, last):gsub("\t", "    ")))
  self.from = stop and stop + 1
  if self.from and self.from > #self.text then
    self.from = nil
  end
end

--- The line with that number; nil after the last one.
---@param i integer
---@return string?
function lines:line(i)
  while self.from and #self.made < i do
    make_next(self)
  end
  return self.made[i]
end

--- The number of lines; makes all of them.
---@return integer
function lines:count()
  while self.from do
    make_next(self)
  end
  return #self.made
end

--- Whether all lines are made, and how many are.
---@return boolean whole
---@return integer made
function lines:known()
  return self.from == nil, #self.made
end

--- The lines of a safe text.
---@param text string
---@param columns integer
---@return sessile.cli.treeview.lines
function wrap.lines(text, columns)
  return setmetatable({ made = {}, text = text, from = text ~= "" and 1 or nil,
    columns = math.max(columns, 4) }, lines)
end

return wrap
