--- html_message: a message or another entry as elements of the page.
--
-- Owns: how text, calls, results and notes look in HTML. Stored text goes through text.html or
-- sessile.markdown; it is never used for a class, an id or another attribute.

local dialect = require "sessile.dialect"
local account = require "sessile.export.account"
local code_kit = require "sessile.export.code"
local edits = require "sessile.export.edits"
local notes = require "sessile.export.notes"
local parts = require "sessile.export.parts"
local recalled = require "sessile.recalled"
local span = require("sessile.core").span
local speaker = require "sessile.speaker"
local text = require "sessile.export.text"

local math = dialect.math

local has_markdown, markdown = pcall(require, "sessile.markdown")

local html, number = text.html, notes.number

local message = {}

local function plain(content)
  return '<pre class="plain">' .. html(content) .. "</pre>\n"
end

local UNESCAPED = { ["&amp;"] = "&", ["&lt;"] = "<", ["&gt;"] = ">", ["&quot;"] = '"',
  ["&#39;"] = "'" }

-- Markdown; its code has colours if it says in which language it is.
local function prose(content)
  local out = has_markdown and markdown.html(text.lines(content))
  return out and out:gsub('(<p class="lang">([^<]*)</p><pre tabindex="0"><code>)([^<]*)',
    function(before, language, source)
      return before .. code_kit.html(source:gsub("&#?%w+;", UNESCAPED), language)
    end) or plain(content)
end

local function code(content, language)
  return '<pre tabindex="0">' .. code_kit.html(content, language) .. "</pre>\n"
end

local DIFF = { ["-"] = "del", ["+"] = "ins", ["@"] = "at" }

local function diff(lines)
  local out = {}
  for i, line in ipairs(lines) do
    local shown = html((line[1] == "@" and "" or line[1]) .. line[2])
    out[i] = DIFF[line[1]] and ('<span class="%s">%s</span>'):format(DIFF[line[1]], shown) or shown
  end
  return '<pre class="diff" tabindex="0">' .. table.concat(out, "\n") .. "</pre>\n"
end

-- brief, size: escaped already.
local function fold(class, title, brief, size, body, is_open)
  return ('<details class="fold%s"%s><summary><b>%s</b><span class="brief">%s</span><span '
    .. 'class="size num">%s</span></summary>\n%s</details>\n'):format(class,
    is_open and " open" or "", title, brief, size, body)
end

local function lines_of(content)
  local n = select(2, content:gsub("\n", "")) + (content:find "[^\n]$" and 1 or 0)
  return ("%s line%s"):format(number(n), n == 1 and "" or "s")
end

-- ---------------------------------------------------------------- calls

-- The most telling short member of a call's arguments.
local TELLING = { "path", "file_path", "command", "cmd", "query", "pattern", "url", "name" }

local function brief_of(fields)
  for _, name in ipairs(TELLING) do
    local value = span.string(fields[name])
    if value and value ~= "" then
      return value
    end
  end
  return nil
end

-- The language of an argument: that of the file that a call names, or of a shell.
local function language_of(name, fields)
  if name == "command" or name == "cmd" then
    return "sh"
  end
  local path = fields.path or fields.file_path
  path = path and span.string(path)
  return path and code_kit.language(path)
end

local SHORT = 40 -- a diff of up to this many lines is shown unfolded

-- Arguments as a list of names and values, edits as diffs; anything but an object is unchanged.
-- Returns the body, a brief text, and whether it is shown unfolded.
local function arguments(raw)
  local members, fields = span.object(raw)
  if not members or #members == 0 then
    return code(raw), text.cut(text.line(raw), 120), false
  end
  local diffs, shown = edits.of(raw)
  local brief = brief_of(fields)
  local out, lines = { '<dl class="args">\n' }, 0
  for _, member in ipairs(members) do
    local is_brief = diffs and brief == span.string(member.raw) -- it is in the summary
    if not (is_brief or shown and shown[member.key]) then
      out[#out + 1] = ("<dt><bdi>%s</bdi></dt><dd>%s</dd>\n"):format(html(text.line(member.key)),
        code(span.string(member.raw) or member.raw, language_of(member.key, fields)))
    end
  end
  out[#out + 1] = "</dl>\n"
  for _, one in ipairs(diffs or {}) do
    out[#out + 1] = diff(one)
    lines = lines + #one
  end
  return table.concat(out), text.cut(text.line(brief
    or span.string(members[1].raw) or members[1].raw), 120), diffs ~= nil and lines <= SHORT
end

-- ---------------------------------------------------------------- parts

local shows = {}

local FOLDED = { system = true, developer = true }

function shows.text(part, role)
  if FOLDED[role] then
    return fold("", role, html(text.cut(text.line(part.text:sub(1, 400)), 120)),
      lines_of(part.text), prose(part.text))
  end
  return prose(part.text)
end

function shows.thinking(part)
  return fold("", "thinking", html(text.cut(text.line(part.text:sub(1, 400)), 120)),
    lines_of(part.text), prose(part.text))
end

function shows.call(part)
  local body, brief, is_open = arguments(part.text)
  return fold(" call", html(text.line(part.name)), html(brief), "", body, is_open)
end

function shows.result(part)
  local name = part.name and html(text.line(part.name)) or "result"
  return fold(part.error and " error" or "", (part.error and "✗ " or "↳ ") .. name,
    html(text.cut(text.line(part.text:sub(1, 400)), 120)), lines_of(part.text), code(part.text))
end

function shows.image(part)
  return "<p>image: " .. html(text.cut(text.line(part.text), 300)) .. "</p>\n"
end

function shows.data(part)
  return fold("", "data", html(text.cut(text.line(part.text:sub(1, 400)), 120)), "",
    code(part.text))
end

-- ---------------------------------------------------------------- articles

local CLASSES = { user = "user", tool = "tool", ["function"] = "tool", assistant = "assistant",
  model = "assistant", system = "system", developer = "system" }

local function heading(entry, data, given)
  local out = { ("<header><h3>%s</h3>"):format(html(text.line(speaker.of(data)))) }
  local author = type(data.author) == "string" and data.author or entry.author
  if type(author) == "string" and author ~= "" then
    out[#out + 1] = "<bdi>" .. html(text.line(author)) .. "</bdi>"
  end
  if type(data.metadata) == "table" and type(data.metadata.kind) == "string" then
    local quoted = recalled.of(data)
    out[#out + 1] = "<span>" .. html(text.line(data.metadata.kind .. (quoted and ": "
      .. recalled.text(quoted) or ""))) .. "</span>"
  end
  for _, name in ipairs(given.labels or {}) do
    out[#out + 1] = name == "pinned" and '<span class="chip pin">pinned</span>'
      or '<span class="chip"><bdi>' .. html(text.line(name)) .. "</bdi></span>"
  end
  if given.compaction then
    out[#out + 1] = ('<a class="left" href="#e-%s">left the context</a>'):format(given.compaction)
  end
  out[#out + 1] = ('<span class="meta num"><time>%s</time>%s<a class="id" href="#e-%s">%s</a>'
    .. "</span></header>\n"):format(notes.said(entry),
    given.tokens and ("<span>%s tokens</span>"):format(number(given.tokens)) or "", given.id,
    given.id)
  return table.concat(out)
end

---@class sessile.export.shown
---@field id string          of the element: an entry's id, or the key of a message
---@field labels string[]?
---@field tokens integer?
---@field out boolean?       it is not in the context
---@field compaction string?  the entry that took it out
---@field turn boolean?      it begins a turn
---@field after boolean?     what it answers stands just before it

--- A message as an article.
---@param entry table   of sessile.export.source
---@param given sessile.export.shown
---@return string
function message.article(entry, given)
  local data = type(entry.data) == "table" and entry.data or {}
  local class = CLASSES[speaker.of(data)] or "other"
  local out = { ('<article class="m %s%s%s%s" id="e-%s">\n'):format(class,
    given.out and " out" or "", given.turn and " turn" or "",
    given.after and class == "assistant" and " after" or "", given.id) }
  out[#out + 1] = heading(entry, data, given)
  out[#out + 1] = '<div class="body">\n'
  for _, part in ipairs(parts.of(data)) do
    out[#out + 1] = shows[part.kind](part, speaker.of(data))
  end
  out[#out + 1] = "</div>\n"
  out[#out + 1] = "</article>\n"
  return table.concat(out)
end

-- ---------------------------------------------------------------- notes

local NOTES = { compaction = " c", checkpoint = " p", turn = " turn-end", branch_summary = " b" }

-- The messages that a compaction wrote.
local function written(entry)
  local out = {}
  local put = type(entry.data) == "table" and entry.data.inserted
  for _, one in ipairs(type(put) == "table" and put or {}) do
    if type(one) == "table" and type(one.message) == "table" and math.type(one.n) == "integer" then
      out[#out + 1] = message.article({ data = one.message, timestamp = entry.timestamp },
        { id = ("%s.%d"):format(entry.id, one.n) })
    end
  end
  return #out > 0 and "<div>\n" .. table.concat(out) .. "</div>" or ""
end

--- Another entry as a line between messages.
---@param entry table  of sessile.export.source
---@param row table?   of session:log
---@return string
function message.note(entry, row)
  local title, sentence, is_json = notes.of(entry, row)
  local class = NOTES[entry.type] or ""
  if is_json then
    return ('<div class="note aside" id="e-%s">%s</div>\n'):format(entry.id, fold("",
      html(text.line(title or "")), html(text.cut(text.line(sentence:sub(1, 400)), 120)), "",
      code(sentence)))
  end
  if entry.type == "turn" then
    return ('<p class="note turn-end num" id="e-%s">%s</p>\n'):format(entry.id,
      html(text.line(sentence)))
  end
  return ('<div class="note%s num" id="e-%s"><b>%s</b> %s <a class="id" href="#e-%s">%s</a>%s'
    .. "</div>\n"):format(class, entry.id, html(text.line(title or "")),
    html(text.line(sentence)), entry.id, entry.id, entry.type == "compaction"
      and account(entry, row) .. written(entry) or "")
end

--- Several entries that are not for readers, in one fold.
---@param list string[]  what message.note returned for each
---@return string
function message.folded(list)
  if #list < 2 then
    return list[1] or ""
  end
  return '<div class="note aside">' .. fold("", "facts", ("%s entries that programs wrote")
    :format(number(#list)), "", table.concat(list)) .. "</div>\n"
end

return message
