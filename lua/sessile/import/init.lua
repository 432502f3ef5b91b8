--- import: recorded conversations into sessions.
--
-- Owns: the list of formats, and how one is told from another. Must never open a store or
-- print: its caller does.

local source = require "sessile.import.source"
local span = require("sessile.core").span
local write = require "sessile.import.write"

local import = {}

--- The formats, by name: each a module with records(lines) and recognises(first line).
---@type table<string, table>
import.formats = {
  pi = require "sessile.import.pi",
  claude = require "sessile.import.claude",
  codex = require "sessile.import.codex",
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

-- Which is asked first when nobody says what wrote a file: those that ask for more come first.
local ORDER = { "pi", "codex", "claude", "jsonl", "langgraph", "anthropic", "openai" }

-- The first line that says anything, whole or as far as it was looked at.
local function first_line(head)
  return head:match "^[ \t\r\n]*([^\n]*)" or ""
end

-- What a file that nothing recognises looks like.
local function looks_like(head)
  local first = first_line(head)
  if first == "" then
    return "it is empty"
  elseif head:find "%z" then
    return "it is of no known format: it is no text"
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

--- Opens a file (or takes an open one) as an iterator over records. `from` nil: told by how it
--- begins.
---@param file file*|string
---@param from string?
---@return sessile.import.records? records
---@return string? from_or_message
---@return string? code
function import.open(file, from)
  local opened, message, code = source.open(file)
  if not opened then
    return nil, message, code
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
  for _, name in ipairs(from and {} or ORDER) do
    if not from and import.formats[name].recognises(first_line(head), head) then
      from = name
    end
  end
  if not from then
    opened:close()
    return nil, looks_like(head), "EINVALID"
  end
  local format = import.formats[from]
  local records
  if format.document then
    records, message, code = format.document(opened)
  else
    records = format.records(opened:lines())
  end
  if not records then
    opened:close()
    return nil, message, code
  end
  records.size, records.opened = opened.size, opened
  return records, from
end

--- Writes records into a session of a store: see sessile.import.write.
import.into = write.into

return import
