-- memory_view.lua: a memory as Markdown, and what an edit of that text means.
--
--     # Memory of "coder" for "ann", 2 entries
--
--     ## Facts
--
--     - **editor**: prefers vim <!-- 2a -->
--     - likes tea <!-- 2b -->
--
-- Each live entry is one line, under the heading of its kind: its key, if it has one, its value,
-- its number. \n, \r, \t, \xNN and \u{NNNN} stand for characters that a line cannot have or that
-- cannot be seen; a backslash before any other character but a letter or a digit is left out.
-- What parse() reads from render() is what was rendered.

local characters = require "sessile.characters"
local core = require "sessile.core"
local dialect = require "sessile.dialect"

local utf8 = dialect.utf8

local view = {}

local KINDS = { "fact", "episode", "reflection", "procedure" }
local HEADINGS = { fact = "Facts", episode = "Episodes", reflection = "Reflections",
  procedure = "Procedures" }
local KIND_OF = {}
for kind, heading in pairs(HEADINGS) do
  KIND_OF[heading:lower()] = kind
end

-- ---------------------------------------------------------------- characters

local LETTERS = { n = "\n", r = "\r", t = "\t" }
local NAMES = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\" }

local function escaped(text)
  text = text:gsub("[%c\\]", function(c) return NAMES[c] or ("\\x%02x"):format(c:byte()) end)
  text = characters.without_hidden(text, function(code) return ("\\u{%x}"):format(code) end)
  return (text:gsub("^ ", "\\x20"):gsub(" $", "\\x20"))
end

local function plain(text)
  return (text:gsub("\\(.)({?)(%x?%x?%x?%x?%x?%x?)(}?)", function(c, open, hex, close)
    local rest = open .. hex .. close
    if LETTERS[c] then
      return LETTERS[c] .. rest
    elseif c == "x" and open == "" and #hex >= 2 then
      return string.char(tonumber(hex:sub(1, 2), 16)) .. hex:sub(3) .. close
    elseif c == "u" and open == "{" and hex ~= "" and close == "}"
      and tonumber(hex, 16) <= 0x10ffff then
      return utf8.char(tonumber(hex, 16))
    elseif c:find "%w" then
      return nil
    end
    return c .. rest
  end))
end

-- ---------------------------------------------------------------- rendering

local function short(id)
  return (id:gsub("^0+(.)", "%1"))
end

-- A name in quotes, on one line.
local function quoted(name)
  return '"' .. escaped(name):gsub('"', '\\"') .. '"'
end

local function line_of(row)
  local value = escaped(row.value)
  if row.key then
    value = ("**%s**: %s"):format(escaped(row.key):gsub("%*", "\\*"), value)
  elseif value:find "^%*" then
    value = "\\" .. value
  end
  return ("- %s <!-- %s -->\n"):format(value, short(row.id))
end

local function before(a, b)
  if a.key and b.key then
    return a.key < b.key
  end
  return a.key ~= nil and b.key == nil or a.key == b.key and a.id < b.id
end

--- Rows as Markdown. day: the only day that they are from; nil: all.
function view.render(rows, agent, user, day)
  local parts = { ("# Memory of %s%s, %d %s%s\n"):format(quoted(agent),
    user and user ~= "" and " for " .. quoted(user) or "", #rows,
    #rows == 1 and "entry" or "entries", day and " of " .. day or "") }
  for _, kind in ipairs(KINDS) do
    local own = {}
    for _, row in ipairs(rows) do
      own[#own + 1] = row.kind == kind and row or nil
    end
    table.sort(own, before)
    parts[#parts + 1] = ("\n## %s\n%s"):format(HEADINGS[kind], #own > 0 and "\n" or "")
    for _, row in ipairs(own) do
      parts[#parts + 1] = line_of(row)
    end
  end
  return table.concat(parts)
end

-- ---------------------------------------------------------------- parsing

-- Why a line is refused, as the three values of a failure.
local function refused(n, what, ...)
  return nil, ("line %d: " .. what):format(n, ...), "EINVALID"
end

-- A bullet without its dash as an item.
local function item_of(text)
  local rest, id = text:match "^(.-)%s*<!%-%- (%x+) %-%->%s*$"
  if id and #id <= 8 then
    text, id = rest, ("%08x"):format(tonumber(id, 16))
  else
    id = nil
  end
  text = text:gsub("^%s+", ""):gsub("%s+$", "")
  local key, value
  if text:find "^%*%*" then
    local at = 3
    while at <= #text and text:sub(at, at + 2) ~= "**:" do
      at = at + (text:sub(at, at) == "\\" and 2 or 1)
    end
    if at <= #text and at > 3 then
      key, value = text:sub(3, at - 1), text:sub(at + 3):gsub("^%s+", "")
    end
  end
  return { id = id, key = key and plain(key), value = plain(value or text) }
end

--- The entries in a text: {{line, id (nil: a new one), kind, key, value}, …}. nil, message with the
--- number of the line, EINVALID.
function view.parse(text)
  local items, kind, n = {}, nil, 0
  local ids, keys = {}, {}
  for line in (text:gsub("\r\n", "\n") .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    local heading, bullet = line:match "^##%s+(.-)%s*$", line:match "^[-*]%s(.*)$"
    if n == 1 then
      if not line:find "^# Memory of " then
        return refused(1, "\"# Memory of …\" expected: leave the first line as it was")
      end
    elseif heading then
      kind = KIND_OF[heading:lower()]
      if not kind then
        return refused(n, "the heading is Facts, Episodes, Reflections or Procedures")
      end
    elseif bullet then
      local item = item_of(bullet)
      item.line, item.kind = n, kind
      if not kind then
        return refused(n, "an entry stands below a heading, such as ## Facts")
      elseif item.value == "" then
        return refused(n, "the entry has no text; to delete it, remove the line")
      elseif not utf8.len(item.value .. (item.key or "")) then
        return refused(n, "the text is not UTF-8")
      elseif item.id and ids[item.id] then
        return refused(n, "the number %s is on line %d already: remove it from one of them",
          short(item.id), ids[item.id])
      elseif item.key and keys[item.key] then
        return refused(n, "the key of line %d again", keys[item.key])
      end
      ids[item.id or 0], keys[item.key or 0] = n, n
      items[#items + 1] = item
    elseif line:find "%S" then
      return refused(n, "\"- an entry\", a heading or an empty line expected")
    end
    ids[0], keys[0] = nil, nil
  end
  return items
end

-- ---------------------------------------------------------------- editing

local function same(a, b)
  return a.kind == b.kind and a.key == b.key and a.value == b.value
end

--- What the change of one text to another means: {write = {{item, was}, …}, delete = {ids}}. An
--- item with an id takes the place of that entry. nil, message, code.
function view.diff(old, new)
  local was, message, code, retry_ms, rule = view.parse(old)
  local now
  if was then
    now, message, code, retry_ms, rule = view.parse(new)
  end
  if not now then
    return nil, message, code, retry_ms, rule
  end
  local by_id, holders, kept = {}, {}, {}
  for _, item in ipairs(was) do
    by_id[item.id], holders[item.key or 0] = item, item.id
  end
  local change = { write = {}, delete = {} }
  for _, item in ipairs(now) do
    if item.id and not by_id[item.id] then
      return refused(item.line, "%s is no entry that was shown: leave numbers as they are, and a "
        .. "new line without one", short(item.id))
    end
    kept[item.id or 0] = true
    if not item.id or not same(item, by_id[item.id]) then
      change.write[#change.write + 1] = { item = item, was = item.key and (holders[item.key]
        or false) }
    end
  end
  local replaced = {}
  for _, one in ipairs(change.write) do
    replaced[one.was or 0] = true
  end
  for _, item in ipairs(was) do
    if not kept[item.id] and not replaced[item.id] then
      change.delete[#change.delete + 1] = item.id
    end
  end
  return change
end

-- What is there in the place of an entry that is not live any more.
local function there(memory, id)
  local found = memory:why(id)
  local ended = found and found.ended
  return ended and ended.value and quoted(ended.value) or found and found.entry.state
    or "nothing"
end

-- The sentence of a conflict, with both sides.
local function conflict(memory, change, message)
  local lines = {}
  local function look(id, mine)
    local row = id and memory:get(id)
    if row and row.state ~= "live" then
      lines[#lines + 1] = ("%s: yours: %s; there: %s"):format(short(id), mine, there(memory, id))
      return true
    end
  end
  for _, one in ipairs(change.write) do
    local mine = quoted(one.item.value)
    local holder = not look(one.item.id, mine) and one.item.key and memory:read(one.item.key)
    if holder and holder.id ~= one.was and holder.id ~= one.item.id then
      lines[#lines + 1] = ("%s: yours: %s; there: %s"):format(escaped(one.item.key), mine,
        quoted(holder.value))
    end
  end
  for _, id in ipairs(change.delete) do
    look(id, "deleted")
  end
  return nil, ("it changed meanwhile, and nothing was written. %s"):format(#lines > 0
    and table.concat(lines, "; ") or message), "ECONFLICT"
end

-- What a write takes over from the entry that it replaces.
local function taken_over(memory, id)
  local row = id and memory:get(id)
  if not row then
    return {}
  end
  return { also = row.also, importance = row.importance, metadata = row.metadata,
    from = row.from, pinned = row.pinned, holds_from = row.holds_from,
    holds_until = row.holds_until,
    ttl_ms = row.expires and math.max(1, row.expires - core.now()) or nil }
end

--- Makes a change to a memory, as one commit. Returns {written, replaced, deleted}; nil, message,
--- code. by: who edits.
function view.apply(memory, change, by)
  local entries, replaced = {}, 0
  for i, one in ipairs(change.write) do
    local item, entry = one.item, taken_over(memory, one.item.id)
    entry.key, entry.value, entry.kind, entry.source = item.key, item.value, item.kind, "user"
    entry.was, entry.replaces = one.was, item.id and { item.id } or nil
    entry.ttl_ms = entry.ttl_ms or not item.id and memory._settings.ttl or nil
    if item.key == nil then
      entry.was = nil
    end
    replaced = replaced + (item.id and 1 or 0)
    entries[i] = entry
  end
  local done, message, code, retry_ms, rule =
    memory._core:apply { entries = entries, ends = change.delete,
    to = "deleted", by = by, only_live = true }
  if not done and code == "ECONFLICT" then
    return conflict(memory, change, message)
  elseif not done then
    return nil, message, code, retry_ms, rule
  end
  return { written = #entries - replaced, replaced = replaced, deleted = #change.delete }
end

return view
