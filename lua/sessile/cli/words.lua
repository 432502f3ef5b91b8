--- words: splits and quotes an unfinished command line as bash does.
--
-- Must never expand a variable or a command.

local words = {}

-- Characters that need no quotes.
local PLAIN = "[%w_./:@%%+=,\128-\255-]"

-- In double quotes a backslash quotes only these.
local IN_DOUBLE = { ["\\"] = true, ['"'] = true, ["$"] = true, ["`"] = true }

---@class sessile.cli.typed
---@field text string   without its quotes
---@field raw string    as it was typed
---@field open string   the quote that is not closed: "'", '"' or ""

-- The word at `at`, and where it ends.
local function read(line, at)
  local text, open, first = {}, "", at
  while at <= #line do
    local c = line:sub(at, at)
    if open == "'" then
      if c == "'" then open = "" else text[#text + 1] = c end
    elseif c == "\\" and (open == "" or IN_DOUBLE[line:sub(at + 1, at + 1)]) then
      at = at + 1
      text[#text + 1] = line:sub(at, at)
    elseif c == open then
      open = ""
    elseif open == "" and (c == "'" or c == '"') then
      open = c
    elseif open == "" and c:find "%s" then
      break
    else
      text[#text + 1] = c
    end
    at = at + 1
  end
  return { text = table.concat(text), raw = line:sub(first, at - 1), open = open }, at
end

--- The words of a line; the last is unfinished and may be empty.
---@param line string
---@return sessile.cli.typed[]
function words.split(line)
  local list, at = {}, 1
  while true do
    at = line:find("%S", at)
    if not at then
      break
    end
    list[#list + 1], at = read(line, at)
  end
  local last = list[#list]
  if not last or last.open == "" and line:find "%s$" and not last.raw:find "%s$" then
    list[#list + 1] = { text = "", raw = "", open = "" }
  end
  return list
end

--- What bash has to insert for the unfinished word so that it becomes `text`. bash replaces only
--- the part after the last character of `breaks`; an @ or a $ among them is replaced too, since
--- readline uses them for hosts and variables. Nil if the quotes of the word cannot be continued.
---@param text string
---@param typed sessile.cli.typed
---@param breaks string  $COMP_WORDBREAKS
---@return string?
function words.replacement(text, typed, breaks)
  if typed.open == "'" then
    return not text:find "'" and typed.raw:sub(1, 1) == "'" and text or nil
  elseif typed.open == '"' then
    return typed.raw:sub(1, 1) == '"' and (text:gsub('[\\"$`]', "\\%0")) or nil
  end
  local quoted = text:gsub(".", function(c)
    return not c:find(PLAIN) and "\\" .. c or nil
  end)
  local kept = 0
  for at = 1, #typed.raw do
    local c = typed.raw:sub(at, at)
    if breaks:find(c, 1, true) and typed.raw:sub(at - 1, at - 1) ~= "\\" then
      kept = c:find "[@$]" and at - 1 or at
    end
  end
  if quoted:sub(1, kept) ~= typed.raw:sub(1, kept) then
    return nil
  end
  return quoted:sub(kept + 1)
end

return words
