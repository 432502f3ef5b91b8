--- import: imports recorded conversations into sessions.
--
-- Owns: the list of formats, and their detection. Must never open a store or print.

local characters = require "sessile.characters"
local document = require "sessile.import.document"
local source = require "sessile.import.source"
local span = require("sessile.core").span
local write = require "sessile.import.write"

local import = {}

--- The formats, by name. A format of lines is a module with records(lines) and
--- recognises(fields of the first line, head). A format of one JSON document is a module with
--- `enter`, the paths of the arrays that are read later, document(opened, shape) and
--- recognises(shape, head). `head` is the beginning of the file. `has_name`: a recording of this
--- format says in its first lines which one it is.
---@type table<string, table>
import.formats = {
  pi = require "sessile.import.pi",
  claude = require "sessile.import.claude",
  codex = require "sessile.import.codex",
  finetune = require "sessile.import.finetune",
  openai = require "sessile.import.openai",
  anthropic = require "sessile.import.anthropic",
  langgraph = require "sessile.import.langgraph",
  jsonl = require "sessile.import.jsonl",
}

--- The names of the formats, sorted.
---@return string[]
function import.names()
  local names = {}
  for name in pairs(import.formats) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- The order of detection: formats with stricter conditions come first.
local ORDER = { "pi", "codex", "claude", "jsonl", "finetune", "langgraph", "anthropic", "openai" }

-- The first line that is not blank, as far as it was read.
local function first_line(head)
  return head:match "^[ \t\r\n]*([^\n]*)" or ""
end

-- A sentence about a file that no format recognises.
local function looks_like(head)
  local first = first_line(head)
  if first == "" then
    return "it is empty"
  elseif head:find "^\xFF\xFE" or head:find "^\xFE\xFF" then
    return "it is of no known format: it is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"
  elseif head:find "%z" then
    return "it is of no known format: it is no text"
  elseif first:find '^{"sessile_export":' then
    return "it is an export for people and programs to read; to import a session, export it with "
      .. "--format jsonl"
  elseif not first:find "^[%[{]" then
    return "it is of no known format: its first line is not JSON"
  end
  local keys = {}
  for _, member in ipairs(span.object(first) or {}) do
    keys[#keys + 1] = #keys < 8 and member.key or nil
  end
  return "it is of no known format: it is JSON"
    .. (#keys > 0 and " with " .. table.concat(keys, ", ") or "")
end

-- The name of the first format that recognises a file by its beginning.
local function recognised(head)
  local _, fields = span.object(first_line(head))
  for _, name in ipairs(ORDER) do
    local format = import.formats[name]
    local seen = fields
    if format.document then
      seen = document.peek(head, format.enter)
    end
    if seen and format.recognises(seen, head) then
      return name
    end
  end
end

-- The records of an open file.
local function records_of(format, opened)
  if not format.document then
    return format.records(opened:lines())
  end
  local shape, message, code, retry_ms, rule = document.shape(opened, format.enter)
  if not shape then
    return nil, message, code, retry_ms, rule
  end
  return format.document(opened, shape)
end

--- Opens a file (or takes an open one) as an iterator over records. from: the format; nil: detect
--- it.
---@param file file*|string
---@param from string?
---@return sessile.import.records? records
---@return string? from_or_message
---@return string? code
function import.open(file, from)
  local opened, message, code, retry_ms, rule = source.open(file)
  if not opened then
    return nil, message, code, retry_ms, rule
  end
  local head = opened:head()
  if not head:find "[^ \t\r\n]" and not (from and #head >= source.look) then
    opened:close()
    return nil, "it is empty", "EINVALID"
  end
  if from and not import.formats[from] then
    opened:close()
    return nil, ("there is no format '%s'"):format(from), "ENOTFOUND"
  end
  local seen = recognised(characters.escaped(head))
  local other = from and seen ~= from and seen
    and ("it looks like %s: use --from %s, or leave it out"):format(seen, seen) or nil
  from = from or seen
  if not from then
    opened:close()
    return nil, looks_like(head), "EINVALID"
  end
  local records
  records, message, code, retry_ms, rule = records_of(import.formats[from], opened)
  if not records then
    opened:close()
    return nil, other and message .. "; " .. other or message, code, retry_ms, rule
  end
  records.looks_like = other
  records.size, records.opened = opened.size, opened
  records.has_name = records.has_name or import.formats[from].has_name or false
  records.path = type(file) == "string" and file or nil
  return records, from
end

--- Writes records into a session of a store. See sessile.import.write.
import.into = write.into

return import
