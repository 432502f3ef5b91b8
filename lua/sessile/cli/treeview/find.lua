--- find: where a text that somebody typed occurs in another.
--
-- Owns: what counts as an occurrence: the same text; the case of ASCII letters is ignored unless
-- a capital was typed. Must never treat the typed text as a pattern.

local terminal = require "sessile.cli.terminal"

local find = {}

--- A function that finds what was typed: find(text, from) → first, last byte; nil.
---@param typed string
---@return fun(text: string, from: integer?): integer?, integer?
function find.finder(typed)
  typed = terminal.line(typed) -- like the texts that are searched
  if typed:find "%u" then
    return function(text, from)
      return text:find(typed, from or 1, true)
    end
  end
  return function(text, from)
    return text:lower():find(typed, from or 1, true)
  end
end

-- The start of the character that holds a byte.
local function start_of(text, at)
  while at > 1 and (text:byte(at) or 0) & 0xC0 == 0x80 do
    at = at - 1
  end
  return at
end

--- Cuts the beginning of safe text, if necessary, so that the first occurrence is among its first
--- columns.
---@param text string
---@param finder fun(text: string): integer?, integer?
---@param columns integer
---@return string
function find.shown(text, finder, columns)
  local first, last = finder(text)
  if not first or terminal.width(text) <= columns
    or terminal.width(text:sub(1, last)) < columns then
    return text
  end
  local room = math.max((columns - terminal.width(text:sub(first, last))) // 3, 0)
  local from = start_of(text, first)
  while from > 1 and room > 1 do
    from, room = start_of(text, from - 1), room - 1
  end
  return "…" .. text:sub(from)
end

--- Cuts text at the occurrences: {{text, is_found}, …}.
---@param text string
---@param finder fun(text: string, from: integer?): integer?, integer?
---@return {[1]: string, [2]: boolean}[]
function find.pieces(text, finder)
  local pieces, at = {}, 1
  local first, last = finder(text)
  while first and last >= first do
    if first > at then
      pieces[#pieces + 1] = { text:sub(at, first - 1), false }
    end
    pieces[#pieces + 1] = { text:sub(first, last), true }
    at = last + 1
    first, last = finder(text, at)
  end
  if at <= #text then
    pieces[#pieces + 1] = { text:sub(at), false }
  end
  return pieces
end

return find
