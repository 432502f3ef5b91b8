--- preview: an entry in full: its facts, whether it is in the context and why, its text.
--
-- Owns: the words. Must never return stored text that is not safe, nor read an entry that is shown
-- as one line.

local nodes = require "sessile.cli.treeview.nodes"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"
local wrap = require "sessile.cli.treeview.wrap"

local preview = {}

-- Bytes of a text that are shown beside the list; Enter opens the whole text.
local PART = 16384

-- ---------------------------------------------------------------- about an entry

-- "it is shown", or each step of why it is not.
local function standing(session, node)
  local why, message = session:why(node.id)
  if not why then
    return { { "Its relation to the context is unknown: " .. terminal.line(message),
      "red" } }
  end
  local about = {}
  local bullet = nodes.mark(node) .. " "
  if not (why.in_context and #why.steps <= 1) then
    for _, step in ipairs(why.steps) do
      if step.kind ~= "said" then
        about[#about + 1] = { "  " .. terminal.line(step.text), "yellow" }
      end
      local summary = step.compaction and step.compaction.summary
      if summary and step.kind == "left" then
        summary = terminal.cut(terminal.line(summary), 400)
        about[#about + 1] = { "  Its summary: " .. summary, "dim" }
      end
    end
  end
  table.insert(about, 1, { bullet .. terminal.line(why.verdict),
    why.in_context and "green" or "bold" })
  return about
end

local function compaction(session, node)
  for _, row in ipairs(session:log() or {}) do
    if row.id == node.id then
      local tokens = row.tokens and terminal.change(row.tokens)
      local words = {}
      for _, word in ipairs { row.policy or false, row.reason or false, tokens or false,
        row.uncompacts and "undoes " .. row.uncompacts or false,
        render.dispositions(row), row.in_force and "in force: " .. row.in_force or false } do
        words[#words + 1] = word and word ~= "" and terminal.line(word) or nil
      end
      local text = {}
      if row.instructions then
        text[#text + 1] = "It was told: " .. row.instructions
      end
      text[#text + 1] = row.summary or row.message
      return { { table.concat(words, ", "), "yellow" } }, table.concat(text, "\n\n")
    end
  end
  return { { "It is not on the path to the head.", "dim" } }
end

local function checkpoint(session, node)
  for _, row in ipairs(session:checkpoints() or {}) do
    if row.id == node.id then
      local text = ("Of %s: %s messages, %s tokens, a state of %s. R goes back to it."):format(
        row.head, terminal.number(row.messages or 0), terminal.number(row.tokens or 0),
        terminal.bytes(row.state_bytes or 0))
      return { { text, "yellow" } }
    end
  end
  return { { "It is no longer kept.", "dim" } }
end

-- JSON with one member in a line. Strings are not changed.
local function spread(json)
  local out, depth, at = {}, 0, 1
  local function line(by)
    depth = depth + by
    out[#out + 1] = "\n" .. ("  "):rep(math.min(math.max(depth, 0), 20))
  end
  while at <= #json do
    local stop = json:find("[\"{}%[%],:]", at)
    if not stop then
      break
    end
    out[#out + 1] = json:sub(at, stop - 1)
    local mark = json:sub(stop, stop)
    at = stop + 1
    if mark == '"' then
      local last, escapes = stop
      repeat
        last = json:find('["\\]', last + 1)
        escapes = last ~= nil and json:sub(last, last) == "\\"
        last = escapes and last + 1 or last
      until not escapes
      last = last or #json
      out[#out + 1] = json:sub(stop, last)
      at = last + 1
    elseif mark:find "[{%[]" then
      local empty = json:match("^%s*[}%]]()", at)
      out[#out + 1] = empty and json:sub(stop, empty - 1) or mark
      at = empty or at
      if not empty then
        line(1)
      end
    elseif mark:find "[}%]]" then
      line(-1)
      out[#out + 1] = mark
    elseif mark == "," then
      out[#out + 1] = mark
      line(0)
    else
      out[#out + 1] = ": "
    end
  end
  return table.concat(out) .. json:sub(at)
end

preview.spread = spread

-- ---------------------------------------------------------------- lines

---@class sessile.cli.treeview.page
---@field head {[1]: string, [2]: string}[]  lines and their styles
---@field body sessile.cli.treeview.lines
local page = {}
page.__index = page

--- A line and its style; nil after the last.
---@param i integer
---@return string? text
---@return string style
function page:line(i)
  local head = self.head[i]
  if head then
    return head[1], head[2]
  end
  return self.body:line(i - #self.head), ""
end

--- How many lines there are.
function page:count()
  return #self.head + self.body:count()
end

--- How many lines are known, and whether these are all.
function page:known()
  local whole, made = self.body:known()
  return #self.head + made, whole
end

local function title(node, columns, now)
  local words = { node.id, nodes.name(node) }
  if node.tokens > 0 then
    words[#words + 1] = terminal.number(node.tokens) .. " tokens"
  end
  local ago = terminal.ago(node.time, now)
  words[#words + 1] = columns < 66 and ago
    or ("%s (%s)"):format(ago, os.date("!%Y-%m-%d %H:%M:%S UTC", node.time // 1000))
  words[#words + 1] = table.concat(nodes.tags(node), " ")
  return table.concat(words, "  ")
end

--- An entry wrapped to a number of columns.
---@param session sessile.Session
---@param node sessile.Node
---@param columns integer
---@param now integer
---@param whole boolean?  also of a very long one
---@return sessile.cli.treeview.page
function preview.of(session, node, columns, now, whole)
  local message, said, why = nodes.read(session, node)
  local about, text = {}, nil
  if why then
    about, text = { { terminal.line(why), "red" } }, ""
  elseif message then
    about, text = standing(session, node), nodes.message_text(message)
  else
    if node.type == "compaction" then
      about, text = compaction(session, node)
    elseif node.type == "checkpoint" then
      about = checkpoint(session, node)
    end
    if not text then
      local entry = session:entry(node.id)
      text = (said ~= "" and said .. "\n\n" or "")
        .. (entry and spread(render.facts(entry).json) or "")
    end
  end
  local cut = not whole and #text > PART
  text = terminal.safe(cut and text:sub(1, PART) or text)
  if cut then
    text = text .. "\n… Enter shows all of it."
  end
  local head = {}
  local function add(line, style)
    local made = wrap.lines(line, columns)
    for i = 1, math.min(made:count(), 12) do
      head[#head + 1] = { made:line(i), style }
    end
  end
  add(title(node, columns, now), "bold")
  for _, line in ipairs(about) do
    add(line[1], line[2])
  end
  head[#head + 1] = { "", "" }
  return setmetatable({ head = head, body = wrap.lines(text, columns) }, page)
end

return preview
