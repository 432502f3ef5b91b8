-- memory_import.lua: memories that other programs keep, as entries.
--
-- Known are our own Markdown (memory_view.lua), mem0's JSON, the JSON lines of MCP's memory server,
-- and plain Markdown as Claude and OpenClaw write it: each item of a list and each paragraph is an
-- entry, found by the headings above it too. Everything else is refused with what it looks like.

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"
local times = require "sessile.times"
local view = require "sessile.memory_view"

local utf8 = dialect.utf8

local import = {}

local BATCH = 256

-- A date at the beginning of a text, in ms; nil: there is none.
local function date(text)
  local day = type(text) == "string" and text:match "^%d%d%d%d%-%d%d%-%d%d"
  return day and times.moment(day, 0) or nil
end

local function trimmed(text)
  return (text:gsub("^%s+", ""):gsub("%s+$", ""))
end

-- ---------------------------------------------------------------- JSON

-- The entries of mem0: a list of memories, or {results = list}. nil: it is none; with a message if
-- only some of the list are memories.
local function of_mem0(value)
  local list = type(value) == "table" and (value.results or value.memories or value)
  if type(list) ~= "table" or #list == 0 then
    return nil
  end
  local entries = {}
  for i, one in ipairs(list) do
    local text = type(one) == "table" and (one.memory or one.text)
    if type(text) ~= "string" then
      return nil, i > 1 and ("item %d of the list is no memory of mem0: it has no text in `memory`")
        :format(i) or nil
    end
    entries[i] = { value = trimmed(text), holds_from = date(one.created_at),
      metadata = { imported = "mem0", id = one.id } }
  end
  return entries
end

-- Adds what an entity or a relation of MCP's memory server says; false: it is neither.
local function add_mcp(entries, one, kind)
  if type(one) ~= "table" then
    return false
  elseif kind == "entity" and type(one.name) == "string" and type(one.observations) == "table" then
    for _, said in ipairs(one.observations) do
      entries[#entries + 1] = type(said) == "string" and said ~= "" and {
        value = one.name .. ": " .. said,
        also = type(one.entityType) == "string" and one.entityType or nil,
        metadata = { imported = "mcp" } } or nil
    end
    return true
  elseif kind == "relation" and type(one.from) == "string" and type(one.to) == "string" then
    entries[#entries + 1] = { value = ("%s %s %s"):format(one.from,
      tostring(one.relationType):gsub("_", " "), one.to), metadata = { imported = "mcp" } }
    return true
  end
  return false
end

-- The entries of the lines of MCP's memory server. nil: it is none.
local function of_mcp(text)
  local entries = {}
  for line in text:gmatch "[^\r\n]+" do
    local one = line:find "%S" and answers.decode(line)
    if line:find "%S" and not add_mcp(entries, one, type(one) == "table" and one.type) then
      return nil
    end
  end
  return entries
end

-- The entries of the graph that MCP's memory server returns, {entities = {…}, relations = {…}}.
-- nil: it is none.
local function of_graph(value)
  local entities, relations = value.entities, value.relations
  if type(entities) ~= "table" or relations ~= nil and type(relations) ~= "table" then
    return nil
  end
  local entries = {}
  for _, group in ipairs { { "entity", entities }, { "relation", relations or {} } } do
    for _, one in ipairs(group[2]) do
      if not add_mcp(entries, one, group[1]) then
        return nil
      end
    end
  end
  return entries
end

-- ---------------------------------------------------------------- Markdown

-- The text without its front matter, and the description that is in it.
local function without_front(text)
  local front, rest = text:match "^%-%-%-\n(.-)\n%-%-%-\n(.*)$"
  return rest or text, front and ("\n" .. front):match "\ndescription:%s*([^\n]+)" or nil
end

-- The entries of a list or of paragraphs.
local function of_markdown(text, name)
  local entries, headings, open = {}, {}, nil
  local about
  text, about = without_front(text:gsub("\r\n?", "\n"))
  local day = date((name or ""):match "([^/]*)$")
  local function close()
    if open and trimmed(open) ~= "" then
      local also = table.concat(headings, " ")
      also = trimmed(also .. " " .. (about or ""))
      entries[#entries + 1] = { value = trimmed(open), also = also ~= "" and also or nil,
        kind = day and "episode" or nil, holds_from = day, metadata = { imported = "markdown" } }
    end
    open = nil
  end
  for line in (text:gsub("<!%-%-.-%-%->", "") .. "\n"):gmatch "(.-)\n" do
    local level, heading = line:match "^(#+)%s+(.*)$"
    local item = line:match "^%s?%s?%s?[-*+]%s+(.*)$" or line:match "^%d+[.)]%s+(.*)$"
    if level then
      close()
      headings = table.move(headings, 1, math.min(#level - 1, #headings), 1, {})
      headings[#headings + 1] = trimmed(heading)
    elseif item then
      close()
      open = item
    elseif not line:find "%S" then
      close()
    elseif not line:find "^%s*[-=_*]+%s*$" then
      open = (open and open .. "\n" or "") .. trimmed(line)
    end
  end
  close()
  return entries
end

-- ---------------------------------------------------------------- which

-- What a text that is not read looks like.
local function looks_like(text, is_json)
  local start = trimmed(text:sub(1, 400))
  return text:find("\0", 1, true) and "a binary file" or not utf8.len(text) and "no UTF-8"
    or start == "" and "an empty file" or start:find "^<" and "HTML or XML"
    or is_json and "JSON of another kind" or start:find "^[{%[]" and "JSON that is damaged"
    or start:find "^%%YAML" and "YAML" or start:find "^[^\n,]+,[^\n,]+,[^\n]*\n" and "a table (CSV)"
    or start:find "^[%w_]+:%s*\n" and "YAML" or nil
end

--- The entries in a text, and the format: "sessile", "mem0", "mcp" or "markdown". name: of the
--- file; a date at its beginning is that of its entries. nil, message, EINVALID.
function import.read(text, name)
  if text:find "^# Memory of " then
    local entries, message, code, retry_ms, rule = view.parse(text)
    for _, item in ipairs(entries or {}) do
      item.id, item.line, item.metadata = nil, nil, { imported = "sessile" }
    end
    return entries, entries and "sessile" or message, code, retry_ms, rule
  end
  local is_json = text:find "^%s*[{%[]"
  local value = is_json and not text:find("\0", 1, true) and answers.decode(text) or nil
  local entries, wrong
  if type(value) == "table" then
    entries, wrong = of_mem0(value)
  end
  if entries then
    return entries, "mem0"
  elseif wrong then
    return nil, wrong, "EINVALID"
  end
  entries = is_json and of_mcp(text) or type(value) == "table" and of_graph(value)
  if entries then
    return entries, "mcp"
  end
  local other = looks_like(text, value ~= nil or is_json and answers.decode(
    text:match "[^\r\n]+") ~= nil)
  if other then
    return nil, ("it is no memory that can be imported: it looks like %s. Known are mem0's JSON, "
      .. "the JSON of MCP's memory server, and Markdown"):format(other), "EINVALID"
  end
  return of_markdown(text, name), "markdown"
end

-- A name for what an entry says.
local function mark(entry)
  return (entry.key or "") .. "\0" .. entry.value
end

--- Writes entries that the memory does not have, and never had. Returns {written, known}; nil,
--- message, code: some may be written then, and the next import leaves those out.
function import.write(memory, entries, source)
  local rows, message, code, retry_ms, rule =
    memory._core:list { states = { "live", "pending", "replaced",
    "deleted", "rejected", "expired", "erased" } }
  if not rows then
    return nil, message, code, retry_ms, rule
  end
  local known, new = {}, {}
  for _, row in ipairs(rows) do
    known[mark(row)] = true
  end
  for _, entry in ipairs(entries) do
    if not known[mark(entry)] then
      known[mark(entry)] = true
      entry.source, entry.ttl_ms = source, memory._settings.ttl or nil
      new[#new + 1] = entry
    end
  end
  for at = 1, #new, BATCH do
    local done
    done, message, code, retry_ms, rule = memory._core:apply {
      entries = table.move(new, at, math.min(#new, at + BATCH - 1), 1, {}), to = "deleted" }
    if not done then
      return nil, message, code, retry_ms, rule
    end
  end
  return { written = #new, known = #entries - #new }
end

return import
