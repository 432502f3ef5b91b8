--- html: a session as one HTML page that fetches nothing and executes nothing from the
--- conversation.
--
-- Owns: the whole page. Stored text goes through text.html, or through sessile.markdown, which
-- writes only known elements. Attributes hold our own words, ids of entries, and checked addresses.
-- The content security policy of the page allows one style and one script by their hashes. The tree
-- of the session is in memory, its messages are not.

local dialect = require "sessile.dialect"
local chart = require "sessile.export.chart"
local core = require "sessile.core"
local message = require "sessile.export.html_message"
local notes = require "sessile.export.notes"
local parts = require "sessile.export.parts"
local reasons = require "sessile.export.reasons"
local script = require "sessile.export.script"
local style = require "sessile.export.style"
local text = require "sessile.export.text"
local threads = require "sessile.export.threads"

local math = dialect.math

local span = core.span
local html, number = text.html, notes.number

-- ---------------------------------------------------------------- what the page is about

-- Tables by the ids of entries.
local function index_of(facts)
  local index = { labels = {}, rows = {}, after = {}, titles = {} }
  for _, row in ipairs(facts.labels) do
    index.labels[row.entry] = index.labels[row.entry] or {}
    table.insert(index.labels[row.entry], row.label)
  end
  for _, row in ipairs(facts.compactions) do
    index.rows[row.id] = row
    index.after[row.id] = type(row.tokens) == "table" and row.tokens.after or nil
    index.titles[row.id] = ("Compaction %s: %s%s"):format(row.id, tostring(row.policy or ""),
      type(row.tokens) == "table" and (", %s → %s tokens"):format(number(row.tokens.before),
        number(row.tokens.after)) or "")
  end
  return index
end

local function fact(name, value)
  return value and value ~= "" and ("<dt>%s</dt><dd>%s</dd>\n"):format(name, value) or ""
end

local function usage_text(usage)
  local list = {}
  for _, name in ipairs { "input", "output", "cache_read", "cache_write" } do
    local n = type(usage) == "table" and usage[name]
    if math.type(n) == "integer" and n > 0 then
      list[#list + 1] = ("%s %s"):format(name:gsub("_", " "), number(n))
    end
  end
  return table.concat(list, ", ")
end

local function link_text(link)
  return type(link) == "table" and ("<bdi>%s</bdi> (agent <bdi>%s</bdi>) at %s"):format(
    html(tostring(link.id)), html(tostring(link.agent)), html(tostring(link.entry))) or nil
end

-- Settings and metadata as names and values.
local function object_text(object)
  local out = {}
  for i, member in ipairs(span.object(object.json) or {}) do
    out[i] = ("<bdi>%s</bdi> <code>%s</code>"):format(html(text.line(member.key)),
      html(text.cut(text.line(span.string(member.raw) or member.raw), 400)))
  end
  return table.concat(out, " · ")
end

local function head_of(facts, main, said, when)
  local title = facts.title ~= "" and facts.title or facts.id
  return table.concat {
    ("<h1><bdi>%s</bdi></h1>\n"):format(html(text.line(title))),
    ('<p class="lede num">%s messages, %s tokens in the context%s</p>\n'):format(
      number(main.messages), number(facts.tokens), when),
    '<dl class="facts num">\n',
    fact("Session", ("<bdi>%s</bdi>, agent <bdi>%s</bdi>"):format(html(text.line(facts.id)),
      html(text.line(facts.agent)))),
    fact("User", html(text.line(facts.user))),
    fact("Status", html(facts.status)),
    fact("Forked from", link_text(facts.origin)),
    fact("Child of", link_text(facts.parent)),
    fact("In the context", ("%s of %s messages%s"):format(number(said), number(main.messages),
      #facts.context > said and (", and %s inserted"):format(number(#facts.context - said))
      or "")),
    fact("Usage", html(usage_text(facts.usage))),
    fact("Settings", object_text(facts.settings)),
    fact("Metadata", object_text(facts.metadata)),
    fact("Waits for", facts.suspension and html(text.line(facts.suspension.reason or "")) or nil),
    fact("Damage", facts.damage and html(facts.damage.message) or nil),
    "</dl>\n",
  }
end

-- ---------------------------------------------------------------- the picture

local function swatch(class)
  return ('<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="%s" width="10" '
    .. 'height="10"/></svg>'):format(class)
end

-- Compactions and checkpoints as marks, in the order of the log.
local function marks_of(facts, marks, at)
  for i = #facts.checkpoints, 1, -1 do -- oldest first
    local row = facts.checkpoints[i]
    if at[row.head] then
      marks[#marks + 1] = { kind = "p", id = row.id, at = at[row.head],
        title = ("Checkpoint %s%s"):format(row.id, row.name and ": " .. row.name or "") }
    end
  end
  table.sort(marks, function(a, b)
    return a.at < b.at or a.at == b.at and a.id < b.id
  end)
  return marks
end

-- "3 compactions, 1 checkpoint"
local function counted(...)
  local out, given = {}, { ... }
  for i = 1, #given, 2 do
    if given[i] > 0 then
      out[#out + 1] = ("%s %s%s"):format(number(given[i]), given[i + 1],
        given[i] == 1 and "" or "s")
    end
  end
  return table.concat(out, ", ")
end

local function picture(facts, main, index)
  local turns, marks, at = chart.read(main.nodes, index.after, index.titles)
  marks = marks_of(facts, marks, at)
  local drawn = chart.draw(turns, marks, number)
  local out = {}
  if drawn then
    out[#out + 1] = '<figure aria-label="Tokens, turn by turn">\n<figcaption class="num">'
      .. ("<b>Tokens</b><span>context up to %s · turns up to %s</span></figcaption>\n"):format(
        number(drawn.most), number(drawn.most_turn))
    out[#out + 1] = drawn.context .. "\n" .. drawn.turns
    out[#out + 1] = ('\n<div class="scale num"><span>turn 1</span><span>turn %s</span></div>\n')
      :format(number(#turns))
    out[#out + 1] = '<ul class="key"><li>' .. swatch "area" .. "context after each turn</li><li>"
      .. swatch "said" .. "said in a turn</li><li>" .. swatch "tools"
      .. "results of tools</li></ul>\n</figure>\n"
  end
  if #marks > 0 then
    local compactions = 0
    for _, mark in ipairs(marks) do
      compactions = compactions + (mark.kind == "c" and 1 or 0)
    end
    out[#out + 1] = ('<details class="events num"><summary>%s</summary>\n<ul>\n'):format(
      counted(compactions, "compaction", #marks - compactions, "checkpoint"))
    for _, mark in ipairs(marks) do
      out[#out + 1] = ('<li><a class="%s" href="#e-%s">%s %s</a></li>\n'):format(mark.kind,
        mark.id, mark.kind == "c" and "▾" or "◆", html(text.cut(text.line(mark.title), 90)))
    end
    out[#out + 1] = "</ul></details>\n"
  end
  return table.concat(out)
end

-- ---------------------------------------------------------------- the outline

local function outline_row(class, id, words)
  return ('<li class="%s"><a href="#%s"><bdi>%s</bdi></a></li>\n'):format(class, id, words)
end

-- Links to the turns of a thread and to the events between them.
local function outline_of(self, thread, n)
  local out = { "<ol>\n" }
  local was_user = false
  for _, node in ipairs(thread.nodes) do
    local is_user = node.starts_turn
    local names = self.index.labels[node.id]
    if is_user and not was_user then
      local words = text.cut(text.line(parts.brief(self.source:entry(node.id).data, 120)), 90)
      self.turns[node.id] = true
      out[#out + 1] = outline_row(n == 1 and not node.in_context and "out" or "", "e-" .. node.id,
        words ~= "" and html(words) or "…")
    elseif node.type == "compaction" then
      out[#out + 1] = outline_row("c", "e-" .. node.id, "▾ compaction")
    elseif node.type == "branch_summary" then
      out[#out + 1] = outline_row("b", "e-" .. node.id, "↳ summary of a branch")
    end
    if names then
      out[#out + 1] = outline_row("l", "e-" .. node.id,
        "⚑ " .. html(text.line(table.concat(names, ", "))))
    end
    for _, child in ipairs(node.children) do
      if child.type == "checkpoint" and self.checkpoints[child.id] then
        out[#out + 1] = outline_row("p", "e-" .. child.id, "◆ "
          .. html(text.line(self.checkpoints[child.id])))
      end
    end
    for _, other in ipairs(self.parting[node.id] or {}) do
      out[#out + 1] = outline_row("b", "branch-" .. other, ("↳ branch %d, %s messages"):format(
        other - 1, number(self.threads[other].messages)))
    end
    if node.type == "message" then
      was_user = is_user
    end
  end
  out[#out + 1] = "</ol>\n"
  return table.concat(out)
end

local function write_outline(self, write)
  write '<details class="outline" id="outline" open><summary>Outline</summary>\n'
  write '<nav aria-label="Outline of the conversation and its branches">\n'
  for i, thread in ipairs(self.threads) do
    if i > 1 then
      write(('<details><summary>↳ Branch %d</summary>\n'):format(i - 1))
    end
    write(outline_of(self, thread, i))
    write(i > 1 and "</details>\n" or "")
  end
  write "</nav></details>\n"
end

-- ---------------------------------------------------------------- the messages

-- A reason that many messages share is printed once, before the first one.
local function gone_note(words, self)
  if not words or words == self.said_why then
    self.said_why = words
    return ""
  end
  self.said_why = words
  return '<p class="note gone">From here on not in the context: '
    .. html(text.line(words)) .. "</p>\n"
end

local function parting_note(self, id)
  local out = {}
  for _, other in ipairs(self.parting[id] or {}) do
    out[#out + 1] = ('<p class="note b aside"><b>↳ Branch %d</b> continues from here: <a '
      .. 'href="#branch-%d">%s messages, left behind</a></p>\n'):format(other - 1, other,
      number(self.threads[other].messages))
  end
  return table.concat(out)
end

-- Labels are shown at their messages.
local SILENT = { label = true, session = true }

-- What hangs on an entry. Entries of a host's own stand together in one fold.
local function write_notes(self, node, write)
  local own = {}
  for _, child in ipairs(node and node.children or {}) do
    if child.type == "custom" then
      own[#own + 1] = message.note(self.source:entry(child.id))
    elseif not child.is_path and not SILENT[child.type] then
      write(message.note(self.source:entry(child.id)))
    end
  end
  write(message.folded(own))
end

local function write_node(self, node, thread, before, write)
  if node.type == "message" or node.type == "branch_summary" then
    local entry = self.source:entry(node.id)
    local out = not thread.from and not node.in_context
    local words, compaction
    if out then
      words, compaction = self.reasons:of(node.id)
    end
    write(gone_note(words, self))
    local labels = self.index.labels[node.id]
    write(message.article(entry, {
      id = node.id, labels = labels, tokens = node.tokens, out = out, compaction = compaction,
      turn = self.turns[node.id],
      after = not labels and (before == "assistant" or before == "tool"),
    }))
  else
    write(message.note(self.source:entry(node.id), self.index.rows[node.id]))
  end
  write_notes(self, node, write)
  write(parting_note(self, node.id))
end

local function write_thread(self, thread, n, write)
  if n == 1 then
    write '<section aria-label="Conversation">\n<h2>Conversation</h2>\n'
    local root = self.tree.nodes["00000000"]
    write_notes(self, root, write)
    write(root and parting_note(self, root.id) or "")
  else
    write(('<section class="aside" aria-label="Branch %d">\n<h2 id="branch-%d">Branch %d</h2>\n')
      :format(n - 1, n, n - 1))
    write(('<p class="note b">It parts from the conversation at <a href="#e-%s">%s</a> and was '
      .. 'left behind: the model is shown nothing of it.</p>\n'):format(thread.from or "00000000",
      thread.from or "the start"))
  end
  local before
  for _, node in ipairs(thread.nodes) do
    write_node(self, node, thread, before, write)
    before = node.type == "message" and node.speaker or before
  end
  write "</section>\n"
end

-- ---------------------------------------------------------------- the page

local BAR = [[
<div class="tools-bar" id="bar" role="search" hidden>
<input type="search" id="find" placeholder="Search" aria-label="Search in the messages"
 autocomplete="off">
<span class="count num" id="count" role="status" aria-live="polite"></span>
<button type="button" id="previous" aria-label="Previous match" disabled>↑</button>
<button type="button" id="next" aria-label="Next match" disabled>↓</button>
<label class="toggle wide-only"><input type="checkbox" id="only">In the context</label>
<button type="button" id="folds" class="wide-only" aria-pressed="false">Unfold all</button>
<button type="button" id="theme" aria-label="Light or dark">◐</button>
</div>
]]

-- The hash by which the policy allows the page's own style and script.
local function hash_of(source)
  local _, sum = core.sha256(source)
  return core.base64(sum)
end

local function open_page(title)
  return table.concat {
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; ',
    ("style-src 'sha256-%s'; script-src 'sha256-%s'; img-src data:; base-uri 'none'; "):format(
      hash_of(style), hash_of(script)),
    'form-action \'none\'">\n<meta name="referrer" content="no-referrer">\n',
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
    '<meta name="color-scheme" content="light dark">\n',
    ("<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n"):format(html(title), style),
    '<a class="skip" href="#messages">Skip to the messages</a>\n<div class="page">\n',
  }
end

local function close_page(source)
  local kept = source.redactor and "What looked like a secret, an address or a home was taken out "
    .. "by its look: something may be left. " or ""
  return ('</main></div>\n<footer>%s%s entries. Written %s by sessile. Nothing on this page is '
    .. 'fetched, and nothing of the conversation runs.</footer>\n</div>\n<script>%s</script>\n'
    .. "</body>\n</html>\n"):format(kept, number(source.count),
    os.date "!%Y-%m-%d %H:%M UTC", script)
end

-- ", 2026-11-21 to 2026-11-23": the days of the conversation.
local function when_of(self, main)
  local first, last
  for _, node in ipairs(main.nodes) do
    if node.type == "message" then
      first, last = first or node, node
    end
  end
  if not first then
    return ""
  end
  local from = notes.said(self.source:entry(first.id))
  local to = notes.said(self.source:entry(last.id))
  return from:sub(1, 10) == to:sub(1, 10) and ", " .. from:sub(1, 10)
    or (", %s to %s"):format(from:sub(1, 10), to:sub(1, 10))
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  local facts = source.facts
  local tree, why, code = source.session:tree()
  if not tree then
    error(("%s: %s"):format(code, why), 0)
  end
  local self = { source = source, tree = tree, index = index_of(facts), turns = {},
    checkpoints = {} }
  self.threads, self.parting = threads.of(tree)
  for _, row in ipairs(facts.checkpoints) do
    self.checkpoints[row.id] = row.name or "checkpoint"
  end
  local main, said = self.threads[1], 0
  self.reasons = reasons.new(source, main.nodes, #tree.list)
  for _, node in ipairs(main.nodes) do
    said = said + (node.type == "message" and node.in_context and 1 or 0)
  end
  source.count = #tree.list
  write(open_page(text.line(facts.title ~= "" and facts.title or facts.id)))
  write("<header>\n" .. head_of(facts, main, said, when_of(self, main))
    .. picture(facts, main, self.index) .. "</header>\n")
  write(BAR)
  write '<div class="columns">\n'
  write_outline(self, write)
  write '<main id="messages">\n'
  for i, thread in ipairs(self.threads) do
    write_thread(self, thread, i, write)
  end
  write(close_page(source))
end
