--- markdown: a session for reading: each message has a heading, calls and results are folded, other
-- entries are notes.
--
-- Owns: keeping a message inside its block. Text of people and models is in a quote, parsed and
-- written again without HTML, images and definitions (sessile.markdown). If that module is missing
-- or fails, the text is in a fence, like everything else; a fence is longer than any run of its
-- mark in the text. Must never write a line of content outside a block.

local notes = require "sessile.export.notes"
local parts = require "sessile.export.parts"
local speaker = require "sessile.speaker"
local text = require "sessile.export.text"

local has_markdown, markdown = pcall(require, "sessile.markdown")

local number = notes.number

-- ---------------------------------------------------------------- content made harmless

local lines_of, line_of = text.lines, text.line

-- Text in a fence.
local function fenced(content, language)
  content = lines_of(content)
  local longest = 2
  for run in content:gmatch "`+" do
    longest = math.max(longest, #run)
  end
  local fence = ("`"):rep(longest + 1)
  return ("%s%s\n%s%s%s\n"):format(fence, language or "", content,
    content:sub(-1) == "\n" and "" or "\n", fence)
end

local function quoted(content)
  return (("> " .. content:gsub("\n+$", ""):gsub("\n", "\n> ")):gsub("> \n", ">\n")) .. "\n"
end

-- The text of a message.
local function prose(content)
  content = lines_of(content)
  return quoted(has_markdown and markdown.commonmark(content) or fenced(content))
end

local SPECIAL = "[\\`*_{}%[%]<>()#+|~&!@:]"

-- Text within a line, with all Markdown escaped.
local function inline(content)
  return (line_of(content):gsub(SPECIAL, "\\%0"):gsub("([wW])%.", "%1\\.")
    :gsub("^([%d]+)([.)])", "%1\\%2"):gsub("^[-=]", "\\%0"))
end

local function code(content)
  content = line_of(content)
  local longest = 0
  for run in content:gmatch "`+" do
    longest = math.max(longest, #run)
  end
  local mark = ("`"):rep(longest + 1)
  local space = (content:find "^`" or content:find "`$" or content == "") and " " or ""
  return mark .. space .. content .. space .. mark
end

local function folded(title, body)
  return ("<details>\n<summary>%s</summary>\n\n%s\n</details>\n"):format(
    text.html(line_of(title)), body)
end

-- ---------------------------------------------------------------- messages

local shows = {}

function shows.text(part, role)
  if role == "system" or role == "developer" then
    return folded(role, prose(part.text))
  end
  return prose(part.text)
end

function shows.thinking(part)
  return folded("thinking", prose(part.text))
end

function shows.call(part)
  return folded("call: " .. part.name, fenced(part.text, "json"))
end

function shows.result(part)
  local lines = select(2, part.text:gsub("\n", "")) + (part.text:find "[^\n]$" and 1 or 0)
  return folded(("result%s%s, %s line%s"):format(part.name and " of " .. part.name or "",
    part.error and " (error)" or "", number(lines), lines == 1 and "" or "s"), fenced(part.text))
end

function shows.image(part)
  return quoted(inline("image: " .. part.text))
end

function shows.data(part)
  return fenced(part.text, "json")
end

local function heading(entry, labels)
  local data = entry.data
  local words = { inline(speaker.of(data)) }
  local author = type(data.author) == "string" and data.author or entry.author
  if type(author) == "string" and author ~= "" then
    words[#words + 1] = "(" .. inline(author) .. ")"
  end
  if type(data.name) == "string" then
    words[#words + 1] = code(data.name)
  end
  if type(data.metadata) == "table" and type(data.metadata.kind) == "string" then
    words[#words + 1] = "(" .. inline(data.metadata.kind) .. ")"
  end
  words[#words + 1] = "· " .. notes.said(entry)
  words[#words + 1] = "· " .. code(entry.id)
  for _, name in ipairs(labels or {}) do
    words[#words + 1] = "· 🏷 " .. inline(name)
  end
  return "### " .. table.concat(words, " ") .. "\n\n"
end

local function message_text(entry, labels)
  local data = type(entry.data) == "table" and entry.data or {}
  local out = { heading({ data = data, id = entry.id, author = entry.author,
    timestamp = entry.timestamp }, labels) }
  for _, part in ipairs(parts.of(data)) do
    out[#out + 1] = shows[part.kind](part, speaker.of(data)) .. "\n"
  end
  return table.concat(out)
end

-- ---------------------------------------------------------------- notes

local function note_text(entry, row)
  local title, sentence, is_json = notes.of(entry, row)
  if is_json then
    return folded(("%s %s"):format(title, entry.id), fenced(sentence, "json")) .. "\n"
  end
  return ("*%s* %s%s\n\n"):format(inline(title), code(entry.id),
    sentence ~= "" and ": " .. inline(sentence) or "")
end

-- The messages that a compaction wrote.
local function written_text(entry)
  local out = {}
  for _, one in ipairs(type(entry.data) == "table" and type(entry.data.inserted) == "table"
    and entry.data.inserted or {}) do
    if type(one) == "table" and type(one.message) == "table" then
      out[#out + 1] = message_text { data = one.message, timestamp = entry.timestamp,
        id = ("%s.%s"):format(entry.id, tostring(one.n)) }
    end
  end
  return table.concat(out)
end

-- ---------------------------------------------------------------- the whole

local function head_of(facts)
  local out = { "# " .. inline(facts.title ~= "" and facts.title or facts.id) .. "\n\n" }
  local function line(name, words)
    if words and words ~= "" then
      out[#out + 1] = ("- %s: %s\n"):format(name, words)
    end
  end
  line("Session", code(facts.id) .. ", agent " .. code(facts.agent))
  line("User", facts.user ~= "" and code(facts.user) or nil)
  line("Created", notes.time(facts.created))
  line("Last entry", notes.time(facts.modified))
  line("Status", inline(facts.status))
  line("Context", ("%s messages, %s tokens"):format(number(#facts.context), number(facts.tokens)))
  for name, object in pairs { Settings = facts.settings, Metadata = facts.metadata } do
    line(name, object.json ~= "{}" and code(object.json) or nil)
  end
  for _, row in ipairs(facts.labels) do
    line("Label", ("%s on %s"):format(inline(row.label), code(row.entry)))
  end
  for _, row in ipairs(facts.checkpoints) do
    line("Checkpoint", ("%s%s at %s, %s"):format(code(row.id),
      row.name and " " .. inline(row.name) or "", code(row.head), notes.time(row.time)))
  end
  if facts.damage then
    line("Damage", inline(facts.damage.message))
  end
  return table.concat(out) .. "\n"
end

local IS_PATH = { message = true, turn = true, compaction = true, branch_summary = true }

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  local facts, labels, rows = source.facts, {}, {}
  write(head_of(facts))
  for _, row in ipairs(facts.labels) do
    labels[row.entry] = labels[row.entry] or {}
    table.insert(labels[row.entry], row.label)
  end
  for _, row in ipairs(facts.compactions) do
    rows[row.id] = row
  end
  local head
  for entry in source:entries() do
    if entry.type == "session" then
      head = entry.id
    elseif IS_PATH[entry.type] then
      if head ~= entry.parent_id then
        write(("---\n\n*Branch*: it continues from %s\n\n"):format(code(tostring(entry.parent_id))))
      end
      head = entry.id
    end
    if entry.type == "message" or entry.type == "branch_summary" then
      write(message_text(entry, labels[entry.id]))
    elseif entry.type ~= "session" then
      write(note_text(entry, rows[entry.id]))
      if entry.type == "compaction" then
        write(written_text(entry))
      end
    end
  end
end
