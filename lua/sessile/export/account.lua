--- account: what a compaction did with each message, as a table.
--
-- Owns: the words for what became of messages, and the links to them.

local dialect = require "sessile.dialect"
local notes = require "sessile.export.notes"
local text = require "sessile.export.text"

local math = dialect.math

local number = notes.number

-- In this order, as the rows of session:log call them.
local KINDS = {
  { "covered", "covered by a summary" }, { "replaced", "replaced by another text" },
  { "lost", "left out" }, { "undone", "put in earlier, and taken out again" },
  { "restored", "brought back" },
}
local MOST = 8 -- ranges that are listed

local function link(id)
  return ('<a class="id" href="#e-%s">%s</a>'):format(id, id)
end

-- Ranges of entries, such as "00000003-00000009", as links to their ends.
local function places(ranges)
  local out = {}
  for _, range in ipairs(type(ranges) == "table" and ranges or {}) do
    local from, to = tostring(range):match "^(%x%x%x%x%x%x%x%x)-?(%x*)$"
    if from and #out < MOST then
      out[#out + 1] = link(from) .. (#to == 8 and "–" .. link(to) or "")
    end
  end
  local more = #out > 0 and #ranges - #out or 0
  return table.concat(out, ", ") .. (more > 0 and (" and %s more"):format(number(more)) or "")
end

local function row_of(words, count, tokens, where)
  return ('<tr><td>%s</td><td class="right">%s</td><td class="right">%s</td><td>%s</td></tr>\n')
    :format(words, count and number(count) or "", tokens and number(tokens) or "", where)
end

local function integer(value)
  return math.type(value) == "integer" and value or nil
end

--- The table of a compaction; "" if it says nothing of its messages.
---@param entry table  of sessile.export.source
---@param row table?   of session:log
---@return string
return function(entry, row)
  local data = type(entry.data) == "table" and entry.data or {}
  local account = type(data.account) == "table" and data.account or {}
  local rows = {}
  for _, kind in ipairs(KINDS) do
    local one = type(account[kind[1]]) == "table" and account[kind[1]] or {}
    local count = row and integer(row[kind[1]])
    if next(one) or count and count > 0 then
      rows[#rows + 1] = row_of(kind[2], count, integer(one.tokens), places(one.entries))
    end
  end
  local put = type(data.inserted) == "table" and data.inserted or {}
  if #put > 0 then
    local tokens
    for _, one in ipairs(put) do
      local n = type(one) == "table" and integer(one.tokens)
      tokens = n and (tokens or 0) + n or tokens
    end
    rows[#rows + 1] = row_of("put in", #put, tokens, "below")
  end
  if #rows == 0 then
    return ""
  end
  local after = integer(data.tokens_after)
  rows[#rows + 1] = row_of("<b>the context after it</b>", nil, after, places(data.context))
  local words = type(data.policy) == "table" and type(data.policy[1]) == "table"
    and type(data.policy[1].name) == "string" and text.html(text.line(data.policy[1].name)) or ""
  return '<div class="wide"><table class="account num"><thead><tr><th>' .. words
    .. '</th><th class="right">messages</th><th class="right">tokens</th><th>entries</th></tr>'
    .. "</thead><tbody>\n" .. table.concat(rows) .. "</tbody></table></div>\n"
end
