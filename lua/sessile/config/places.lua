-- places.lua: finds the line of a configuration file on which a key is set.
--
-- It understands just enough Lua to find names before `=` in braces. The file has already run, so
-- its syntax is correct. A key that is not written as part of a table constructor has no line.

local places = {}

local LONGEST, DEEPEST = 200, 8 -- bytes of a name, braces: beyond them no line is kept

-- The end of the long bracket that opens at `at`; nil: none does.
local function long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  return level and (select(2, text:find("]" .. level .. "]", at, true)) or #text)
end

-- The end of the comment or string that begins at `at`; nil: none does.
local function skip(text, at)
  local two = text:sub(at, at + 1)
  if two == "--" then
    return long_bracket(text, at + 2) or (text:find("\n", at, true) or #text + 1) - 1
  end
  local quote = two:sub(1, 1)
  if quote == '"' or quote == "'" then
    local i = at + 1
    while i <= #text do
      local c = text:sub(i, i)
      if c == quote then
        return i
      end
      i = i + (c == "\\" and 2 or 1)
    end
    return #text
  end
  return long_bracket(text, at)
end

local function unquoted(word)
  return word:match '^"([^"\\]*)"$' or word:match "^'([^'\\]*)'$"
end

--- The lines of the keys in a file's text: {["agents.coder.policy"] = 12, …}. The last line counts
--- if a key is set twice.
---@param text string
---@return table<string, integer>
function places.of(text)
  local lines, line, at = {}, 1, 1
  local path, pending = {}, nil -- names of the braces that are open; the name before `=`
  local word, word_line         -- the newest word, string in brackets, or nil
  local function full(name)
    local parts = {}
    for _, part in ipairs(path) do
      if part ~= "" then
        parts[#parts + 1] = part
      end
    end
    parts[#parts + 1] = name
    return table.concat(parts, ".")
  end
  while at <= #text do
    local c = text:sub(at, at)
    local stop = skip(text, at)
    if stop then
      local piece = text:sub(at, stop)
      if c ~= "-" then
        word, word_line = unquoted(piece), line
      end
      line = line + select(2, piece:gsub("\n", ""))
      at = stop + 1
    elseif c:find "[%a_]" then
      word, word_line = text:match("^[%w_]+", at), line
      at = at + #word
    else
      if c == "\n" then
        line = line + 1
      elseif c == "=" and text:sub(at + 1, at + 1) == "=" then
        at = at + 1
      elseif c == "=" and word and #path > 0 then
        pending = #word <= LONGEST and word or "…"
        if #path <= DEEPEST then
          lines[full(pending)] = word_line
        end
      elseif c == "{" then
        path[#path + 1] = #path > 0 and pending or "" -- the outermost is the file's own
        pending = nil
      elseif c == "}" then
        path[#path] = nil
        pending = nil
      elseif c == "," or c == ";" then
        pending = nil
      end
      if not c:find "[%s%]]" then
        word = nil
      end
      at = at + 1
    end
  end
  return lines
end

--- The line of a key, or of the innermost key around it; nil: none is known.
---@param lines table<string, integer>  of places.of
---@param name string                   as "agents.coder.policy"
---@return integer?
function places.line(lines, name)
  while name do
    if lines[name] then
      return lines[name]
    end
    name = name:match "^(.*)%.[^.]*$"
  end
  return nil
end

return places
