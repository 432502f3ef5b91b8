--- flow: an answer on its way to the terminal: words wrapped at its width, Markdown as styles.
--
-- Owns: where a line ends, and which marks become styles. It gets inert text in pieces and prints
-- each word as soon as it is known how. Must never print a sequence other than the painter's, nor
-- lose a word: a mark that is not closed is printed as it stands.

local terminal = require "sessile.cli.terminal"

local flow = {}
flow.__index = flow

local LONGEST_SPAN, LONGEST_WORD = 400, 4096 -- bytes that wait for the end of a span, of a word

---@class sessile.cli.chat.flow
---@field out fun(text: string)
---@field columns integer
---@field paint fun(text: string, colour: string): string

--- An answer that begins at the left edge. given: out, columns, and paint if Markdown becomes
--- styles.
function flow.open(given)
  return setmetatable({ out = given.out, columns = math.max(given.columns, 20),
    paint = given.paint, rest = "", column = 0, indent = 0, gap = "" }, flow)
end

-- ---------------------------------------------------------------- words

local function painted(self, text, style)
  return style and self.paint and self.paint(text, style) or text
end

-- Prints a word, which is a list of {text, style}, on this line or on the next one.
local function put_word(self, word)
  local width = 0
  for _, part in ipairs(word) do
    width = width + terminal.width(part[1])
  end
  if self.column > self.indent and self.column + #self.gap + width > self.columns then
    self.out("\n" .. (" "):rep(self.indent))
    self.column = self.indent
  else
    self.out(self.gap)
    self.column = self.column + #self.gap
  end
  self.gap = ""
  for _, part in ipairs(word) do
    self.out(painted(self, part[1], part[2]))
  end
  -- The terminal breaks a word that is wider than it.
  self.column = (self.column + math.max(width, 1) - 1) % self.columns + 1
end

-- Prints a list of {text, style}, word by word.
local function put(self, parts)
  local word = {}
  for _, part in ipairs(parts) do
    for space, text in part[1]:gmatch "([ \t]*)([^ \t]*)" do
      if space ~= "" then
        if #word > 0 then
          put_word(self, word)
          word = {}
        end
        self.gap = self.gap .. space:gsub("\t", "    ")
      end
      if text ~= "" then
        word[#word + 1] = { text, part[2] }
      end
    end
  end
  if #word > 0 then
    put_word(self, word)
  end
end

local function end_line(self)
  self.out "\n"
  self.column, self.indent, self.gap, self.block = 0, 0, "", nil
end

-- ---------------------------------------------------------------- spans

-- The first mark that opens a span in a text: its first and last byte, the pattern of its end, and
-- the style.
local function opening(text, at)
  local from, to = text:find("`+", at)
  local bold = text:find("%*%*[^%s*]", at)
  if bold and (not from or bold < from) then
    return bold, bold + 1, "[^%s]()%*%*", "bold"
  elseif from then
    return from, to, "()" .. text:sub(from, to), "cyan"
  end
end

-- Divides a text into parts {text, style}, as far as it is known: the rest waits for what follows.
-- final: nothing follows.
local function spans(self, text, final)
  local parts, at, known, known_parts = {}, 1, 1, 0
  -- A word is known when a space follows it.
  local function plain(to)
    local piece = text:sub(at, to)
    local space = piece:match "^.*()[ \t]"
    if space and not final then
      parts[#parts + 1] = { piece:sub(1, space) }
      known, known_parts = at + space, #parts
      piece = piece:sub(space + 1)
    end
    parts[#parts + 1] = piece ~= "" and { piece } or nil
  end
  while self.paint do
    local from, to, ending, style = opening(text, at)
    if not from then
      break
    end
    local inner_end = text:match(ending, to + 1)
    if inner_end then
      plain(from - 1)
      parts[#parts + 1] = { text:sub(to + 1, inner_end - 1), style }
      at = inner_end + to - from + 1
    elseif final or #text - from > LONGEST_SPAN then
      plain(to)
      at = to + 1
    else
      plain(from - 1)
      at = #text + 1
    end
  end
  plain(#text)
  if final then
    return parts, ""
  end
  return table.move(parts, 1, known_parts, 1, {}), text:sub(known)
end

-- ---------------------------------------------------------------- lines

-- What begins with the head of a line: a list of its kind (code, whole, text), what is printed for
-- its mark, and where the text begins. Nil: more of the line is needed.
local function block_of(self, head, final)
  if self.fence then
    return "code"
  elseif not final and not head:find "^%s*%S+%s" then
    return nil
  elseif head:find "^ ? ? ?```" or head:find "^ ? ? ?~~~" then
    return "code"
  elseif head:find "^ ? ? ?#+[ \t]" or head:find "^%s*|" then
    return "whole"
  end
  local space, mark, gap = head:match "^([ \t]*)([-*+])([ \t]+)"
  if not mark then
    space, mark, gap = head:match "^([ \t]*)(%d+[.)])([ \t]+)"
  end
  if mark and #space < self.columns // 2 then
    local shown = self.paint and #mark == 1 and "•" or mark
    return "text", #space + #mark + #gap, space .. shown .. gap
  end
  return "text"
end

local function put_code(self, line)
  local mark = line:match "^ ? ? ?(```+)" or line:match "^ ? ? ?(~~~+)"
  local is_end = self.fence and mark and #mark >= #self.fence
    and mark:sub(1, 1) == self.fence:sub(1, 1) and line:find "^%s*[`~]+%s*$"
  if is_end then
    self.fence = nil
  elseif not self.fence then
    self.fence = mark
  else
    self.out(painted(self, line, "cyan"))
    return
  end
  self.out(painted(self, line, "dim"))
end

local function put_whole(self, line)
  local title = self.paint and line:match "^%s*#+[ \t]+(.-)[ \t]*#*$"
  if title then
    put(self, { { (title:gsub("%*%*", "")), "bold" } })
  else
    self.out(line) -- a table: its columns are the writer's
  end
end

-- Prints what is known of the line in `rest`. final: it is all of it.
local function go_on(self, final)
  if not self.block then
    local indent, mark
    self.block, indent, mark = block_of(self, self.rest, final)
    if mark then
      self.out(mark)
      self.column, self.indent, self.rest = indent, indent, self.rest:sub(indent + 1)
    end
  end
  if self.block == "text" then
    local parts, rest = spans(self, self.rest, final or #self.rest > LONGEST_WORD)
    put(self, parts)
    self.rest = rest
  elseif final and self.block then
    (self.block == "code" and put_code or put_whole)(self, self.rest)
    self.rest = ""
  end
end

--- Prints a piece of the answer.
---@param text string  inert
function flow:feed(text)
  if self.reasons then
    self:finish()
    self.out "\n"
  end
  for line, stop in text:gmatch "([^\n]*)(\n?)" do
    self.rest = self.rest .. line
    go_on(self, stop ~= "")
    if stop ~= "" then
      end_line(self)
    end
  end
end

--- Prints a piece of the model's reasoning, dimmed.
---@param text string  inert
function flow:reasoning(text)
  if not self.reasons and (self.rest ~= "" or self.column > 0) then
    self:finish()
  end
  self.reasons = true
  for line, stop in text:gmatch "([^\n]*)(\n?)" do
    local all = self.rest .. line
    local known = stop ~= "" and #all or (all:match "^.*()[ \t]" or 0)
    put(self, { { all:sub(1, known), "dim" } })
    self.rest = all:sub(known + 1)
    if stop ~= "" then
      end_line(self)
    end
  end
end

--- Prints what is left, and ends the line.
function flow:finish()
  if self.reasons then
    put(self, { { self.rest, "dim" } })
  elseif self.rest ~= "" then
    go_on(self, true)
  end
  self.rest, self.reasons = "", nil
  if self.column > 0 or self.block then
    end_line(self)
  end
end

return flow
