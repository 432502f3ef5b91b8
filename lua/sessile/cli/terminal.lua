--- terminal: text for terminals.
--
-- Owns: safe text, its width, colours, tables, dates. Must never pass on a control character of
-- stored text: a message may contain any bytes.

local characters = require "sessile.characters"

local ok, system = pcall(require, "sessile.system")
if not ok then
  system = { isatty = function() return false end, columns = function() return nil end }
end

local terminal = {}

-- ---------------------------------------------------------------- content made inert

-- Characters that reorder or hide text: bidi marks, embeddings, overrides, isolates, line and
-- paragraph separators, zero width characters, the tag block.
local HIDDEN = {
  { 0x7F, 0x9F }, { 0x061C, 0x061C }, { 0x200B, 0x200F }, { 0x2028, 0x202E },
  { 0x2060, 0x206F }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB }, { 0xE0000, 0xE007F },
}

local function within(code, ranges)
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

local function is_hidden(code)
  return code < 0x20 and code ~= 10 and code ~= 9 or code >= 0x20 and within(code, HIDDEN)
end

--- Text without control sequences, control characters (except newline and tab) and characters that
--- reorder or hide text. Of a string sequence (a title, a link) only the introducer is removed, so
--- that no text is hidden.
---@param text string
---@return string
function terminal.safe(text)
  if not text:find("[^\n\t\32-\126]") then
    return text
  end
  text = characters.repaired(text)
  text = text:gsub("\27%[[\48-\63]*[\32-\47]*[\64-\126]", "")
  text = text:gsub("\27[%]PX^_]?", "")
  text = text:gsub("\r\n", "\n")
  return (text:gsub(utf8.charpattern, function(c)
    return is_hidden(utf8.codepoint(c)) and "" or nil
  end))
end

-- How many bytes at the end of a text may be the beginning of a character, a control sequence or a
-- line break of two bytes.
local function unfinished(text)
  local sequence = text:match "\27%[?[\48-\63]*[\32-\47]*$"
  if sequence then
    return #sequence
  elseif text:sub(-1) == "\r" then
    return 1
  end
  local lead, following = text:match "([\xC2-\xF4])([\x80-\xBF]*)$"
  if lead then
    local size = lead < "\xE0" and 2 or lead < "\xF0" and 3 or 4
    return #following < size - 1 and #following + 1 or 0
  end
  return 0
end

local MOST_HELD = 256

local Stream = {}
Stream.__index = Stream

--- The same for a text that arrives in pieces: feed(piece) returns what can be shown so far,
--- finish() the rest.
function terminal.stream()
  return setmetatable({ held = "" }, Stream)
end

function Stream:feed(piece)
  local text = self.held .. piece
  local hold = unfinished(text)
  if hold > MOST_HELD then -- no terminal knows a sequence of that length
    hold = 0
  end
  self.held = text:sub(#text - hold + 1)
  return terminal.safe(text:sub(1, #text - hold))
end

function Stream:finish()
  local rest = self.held
  self.held = ""
  return terminal.safe(rest)
end

--- The same on one line: white space is collapsed to one space.
---@param text string
---@return string
function terminal.line(text)
  return (terminal.safe(text):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

-- ---------------------------------------------------------------- width

-- Characters of double width: most of East Asian Wide and of emoji.
local WIDE = {
  { 0x1100, 0x115F }, { 0x2E80, 0x303E }, { 0x3041, 0xA4CF }, { 0xA960, 0xA97F },
  { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF }, { 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 },
  { 0xFFE0, 0xFFE6 }, { 0x1F300, 0x1F64F }, { 0x1F680, 0x1F6FF }, { 0x1F900, 0x1FAFF },
  { 0x20000, 0x3FFFD },
}
local NONE = { { 0x0300, 0x036F }, { 0x1AB0, 0x1AFF }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F } }

local function char_width(code)
  if code < 0x300 then return 1 end
  if within(code, NONE) then return 0 end
  return within(code, WIDE) and 2 or 1
end

--- The width of safe text in columns. A byte that is not UTF-8 is shown as one column.
---@param text string
---@return integer
function terminal.width(text)
  if not text:find("[\128-\255]") then
    return #text
  end
  local width = 0
  for _, code in utf8.codes(characters.repaired(text)) do
    width = width + char_width(code)
  end
  return width
end

--- A message as a sentence: with one full stop at its end, or its question mark.
---@param message string
---@return string
function terminal.sentence(message)
  message = message:gsub("[%s.]+$", "")
  return message:sub(-1) == "?" and message or message .. "."
end

--- Text cut to at most `columns`. Cut text ends with an ellipsis.
---@param text string
---@param columns integer
---@return string
function terminal.cut(text, columns)
  text = characters.repaired(text)
  if terminal.width(text) <= columns then
    return text
  end
  local width, stop = 0, 0
  for at, code in utf8.codes(text) do
    width = width + char_width(code)
    if width > columns - 1 then
      break
    end
    stop = at + #utf8.char(code) - 1
  end
  return (text:sub(1, stop):gsub(" +$", "")) .. "…"
end

local function pad(text, columns, right)
  text = characters.repaired(text)
  local gap = (" "):rep(columns - terminal.width(text))
  return right and gap .. text or text .. gap
end

-- The width of rows whose last column is cut as far as possible.
local function least_width(widths)
  local all = 2 * (#widths - 1) + math.min(widths[#widths], 12)
  for i = 1, #widths - 1 do
    all = all + widths[i]
  end
  return all
end

--- Wraps text into lines of at most `columns` columns; all but the first are indented. A longer
--- word has a line of its own. Without `columns` the text stays one line.
---@param text string
---@param columns integer?
---@param indent string?
---@return string
function terminal.wrap(text, columns, indent)
  if not columns then
    return text
  end
  local lines, line = {}, ""
  for word in text:gmatch "%S+" do
    if line ~= "" and terminal.width(line) + 1 + terminal.width(word) > columns then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. (indent or ""))
end

-- Where a line of safe text that is wider than `columns` is broken: the last byte that stays, and
-- the first of the next line. At the last space that fits; a longer word is cut between characters.
local function break_of(line, columns, indent)
  local width, space, from = 0, nil, nil
  for at, code in utf8.codes(line) do
    width = width + (code == 9 and 8 or char_width(code))
    if width > columns and at > indent + 1 then
      from = at
      break
    elseif code == 32 and at > indent then
      space = at
    end
  end
  if not from then
    return nil
  elseif line:sub(from, from) == " " then
    return from - 1, line:find("[^ ]", from) or #line + 1
  end
  return space and space - 1 or from - 1, space and space + 1 or from
end

--- Safe text with every line broken at spaces, to fit into `columns` columns. What follows a break
--- is indented as its line is. Without `columns`, or with very few, the text unchanged.
---@param text string
---@param columns integer?
---@return string
function terminal.fold(text, columns)
  if not columns or columns < 20 then
    return text
  end
  return (text:gsub("[^\n]+", function(line)
    local indent = line:match "^ *"
    indent = #indent <= columns // 2 and indent or ""
    local lines = {}
    while true do
      local last, first = break_of(line, columns, #indent)
      if not last or first > #line then
        lines[#lines + 1] = line
        return table.concat(lines, "\n")
      end
      lines[#lines + 1] = line:sub(1, last)
      line = indent .. line:sub(first)
    end
  end))
end

--- A table. A column whose heading ends in ">" is aligned to the right.
---@param headings string[]
---@param rows string[][]  safe text
---@param paint (fun(text: string, column: integer, heading: boolean): string)?
---@param columns integer?  the width: the last column is cut; nil: any width
---@param less string[]?  headings of columns to leave out, in this order, while the others do not
--- fit
---@return string
function terminal.table(headings, rows, paint, columns, less)
  local right, widths, head = {}, {}, {}
  for i, heading in ipairs(headings) do
    right[i] = heading:sub(-1) == ">"
    head[i] = heading:gsub(">$", "")
    widths[i] = terminal.width(head[i])
    for _, row in ipairs(rows) do
      widths[i] = math.max(widths[i], terminal.width(row[i]))
    end
  end
  if columns and less and less[1] and least_width(widths) > columns then
    local fewer, kept = {}, {}
    for i, heading in ipairs(headings) do
      if heading:gsub(">$", "") ~= less[1]:gsub(">$", "") then
        fewer[#fewer + 1], kept[#kept + 1] = heading, i
      end
    end
    local short = {}
    for n, row in ipairs(rows) do
      short[n] = {}
      for i, column in ipairs(kept) do
        short[n][i] = row[column]
      end
    end
    return terminal.table(fewer, short, paint and function(cell, column, heading)
      return paint(cell, kept[column], heading)
    end, columns, { table.unpack(less, 2) })
  end
  local room = columns and columns - 2 * (#headings - 1) or math.maxinteger
  for i = 1, columns and #widths - 1 or 0 do
    room = room - widths[i]
  end
  local lines = {}
  local function add(row, heading)
    local cells = {}
    for i, text in ipairs(row) do
      local last = i == #row and not right[i]
      local cell = last and terminal.cut(text, math.max(room, 12)) or pad(text, widths[i], right[i])
      cells[i] = paint and paint(cell, i, heading) or cell
    end
    lines[#lines + 1] = (table.concat(cells, "  "):gsub(" +$", ""))
  end
  add(head, true)
  for _, row in ipairs(rows) do
    add(row, false)
  end
  return table.concat(lines, "\n") .. "\n"
end

-- ---------------------------------------------------------------- numbers and dates

--- 1234567 as "1,234,567".
---@param n number
---@return string
function terminal.number(n)
  local text = ("%d"):format(n)
  local head, digits = text:match("^(-?)(%d+)$")
  digits = digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return head .. digits
end

--- "1 message", "1,234 messages", "2 entries".
---@param n integer
---@param one string    the word for one
---@param many string?  for any other number; nil: with an s
---@return string
function terminal.plural(n, one, many)
  return ("%s %s"):format(terminal.number(n), n == 1 and one or many or one .. "s")
end

--- "1,234 tokens (estimate, 980 to 1,490)", "1,234 tokens (exact)".
---@param count sessile.Tokens
---@return string
function terminal.tokens(count)
  local margin = count.low ~= count.high and (", %s to %s"):format(terminal.number(count.low),
    terminal.number(count.high)) or ""
  return ("%s token%s (%s%s)"):format(terminal.number(count.tokens),
    count.tokens == 1 and "" or "s", count.source, margin)
end

--- How a context changed: "4,168 → 912 tokens".
---@param tokens {before: integer, after: integer}
---@return string
function terminal.change(tokens)
  return ("%s → %s tokens"):format(terminal.number(tokens.before), terminal.number(tokens.after))
end

--- Bytes as "812 B", "1.4 MB".
---@param n number
---@return string
function terminal.bytes(n)
  if n < 1000 then return ("%d B"):format(n) end
  for _, unit in ipairs { "kB", "MB" } do
    n = n / 1000
    if n < 999.5 then return ("%.1f %s"):format(n, unit) end
  end
  return ("%.1f GB"):format(n / 1000)
end

-- A stored time may be any number, also one that os.date refuses.
local function date(format, ms)
  local fits, text = pcall(os.date, format, ms // 1000)
  return fits and text --[[@as string]] or "?"
end

--- The day of a time (ms), UTC: "2026-02-01".
---@param ms integer
---@return string
function terminal.day(ms)
  return date("!%Y-%m-%d", ms)
end

--- How long ago a time was (both in ms): "now", "5 min ago", "3 days ago"; the date after a month.
---@param ms integer
---@param now integer
---@return string
function terminal.ago(ms, now)
  local seconds = (now - ms) // 1000
  if seconds < -60 then return date("!%Y-%m-%d", ms) end
  if seconds < 10 then return "now" end
  if seconds < 60 then return ("%d s ago"):format(seconds) end
  if seconds < 3600 then return ("%d min ago"):format(seconds // 60) end
  if seconds < 86400 then return ("%d h ago"):format(seconds // 3600) end
  local days = seconds // 86400
  if days == 1 then return "yesterday" end
  if days <= 30 then return ("%d days ago"):format(days) end
  return date("!%Y-%m-%d", ms)
end

--- A time (ms) as "2026-02-01 14:03:22", UTC.
---@param ms integer
---@return string
function terminal.exact(ms)
  return date("!%Y-%m-%d %H:%M:%S", ms)
end

-- ---------------------------------------------------------------- colour

local CODE = {
  bold = 1, dim = 2, reverse = 7, red = 31, green = 32, yellow = 33, blue = 34, cyan = 36,
}

--- A function paint(text, "red") for a stream (1 stdout, 2 stderr). It returns the text unchanged
--- if the stream is no terminal, NO_COLOR is set or TERM is dumb.
---@param stream 1|2
---@return fun(text: string, colour: string): string
function terminal.painter(stream)
  local no_color = os.getenv "NO_COLOR"
  if no_color and no_color ~= "" or os.getenv "TERM" == "dumb" or not system.isatty(stream) then
    return function(text) return text end
  end
  return function(text, colour)
    return ("\27[%dm%s\27[0m"):format(CODE[colour], text)
  end
end

--- The width of the terminal at stdout; nil if it is none.
---@return integer?
function terminal.columns()
  return system.isatty(1) and system.columns() or nil
end

--- Whether a stream (0, 1, 2) is a terminal.
---@param stream 0|1|2
---@return boolean
function terminal.is_terminal(stream)
  return system.isatty(stream)
end

return terminal
