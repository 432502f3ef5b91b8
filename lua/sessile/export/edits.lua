--- edits: what a call changes in a file, as a diff.
--
-- Owns: the arguments by which tools are told an edit, and the comparison of two texts by lines.

local span = require("sessile.core").span

local edits = {}

local MOST = 600 -- lines of a text that are compared; longer ones are shown one after the other

-- The members that hold the text before and the text after.
local PAIRS = { { "old_string", "new_string" }, { "oldText", "newText" }, { "old_str", "new_str" },
  { "old_text", "new_text" }, { "search", "replace" } }

local function lines_of(content)
  local lines = {}
  for line in (content .. (content:find "[^\n]$" and "\n" or "")):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  return lines
end

-- The lengths of the longest common subsequences of the ends of two lists.
local function lengths(a, b)
  local rows = {}
  for i = #a + 1, 1, -1 do
    rows[i] = {}
    for j = #b + 1, 1, -1 do
      rows[i][j] = (i > #a or j > #b) and 0 or a[i] == b[j] and rows[i + 1][j + 1] + 1
        or math.max(rows[i + 1][j], rows[i][j + 1])
    end
  end
  return rows
end

--- The lines of both texts: a list of {" " | "-" | "+", line}.
---@param old string
---@param new string
---@return {[1]: string, [2]: string}[]
function edits.compare(old, new)
  local a, b, out = lines_of(old), lines_of(new), {}
  local rows = #a <= MOST and #b <= MOST and lengths(a, b)
  local i, j = 1, 1
  while i <= #a or j <= #b do
    if rows and i <= #a and j <= #b and a[i] == b[j] then
      out[#out + 1] = { " ", a[i] }
      i, j = i + 1, j + 1
    elseif i <= #a and (j > #b or not rows or rows[i + 1][j] >= rows[i][j + 1]) then
      out[#out + 1] = { "-", a[i] }
      i = i + 1
    else
      out[#out + 1] = { "+", b[j] }
      j = j + 1
    end
  end
  return out
end

-- The edit that an object tells, or nil; and the names of its members.
local function pair_of(fields)
  for _, names in ipairs(PAIRS) do
    local old = fields[names[1]] and span.string(fields[names[1]])
    local new = fields[names[2]] and span.string(fields[names[2]])
    if old and new then
      return edits.compare(old, new), names
    end
  end
end

-- The lines of a patch, by their first character.
local function patch_of(content)
  local out = {}
  for _, line in ipairs(lines_of(content)) do
    local sign, rest = line:match "^([-+ ])(.*)$"
    local is_head = line:find "^%-%-%- " or line:find "^%+%+%+ "
    out[#out + 1] = sign and not is_head and { sign, rest } or { "@", line }
  end
  return out
end

--- The edits of a call: a list of diffs, each a list of {sign, line}, where the sign "@" is a
--- heading; and the set of arguments that are shown by them. Nil: it edits nothing that is known.
---@param raw string  the arguments
---@return table[]? diffs
---@return table<string, boolean>? shown
function edits.of(raw)
  local members, fields = span.object(raw)
  if not members then
    return nil
  end
  local one, names = pair_of(fields)
  if one then
    return { one }, { [names[1]] = true, [names[2]] = true }
  end
  for _, name in ipairs { "input", "patch", "diff" } do
    local content = fields[name] and span.string(fields[name])
    if content and (content:find "^%*%*%* Begin Patch" or content:find "^%-%-%- "
        or content:find "^diff ") then
      return { patch_of(content) }, { [name] = true }
    end
  end
  local list = {}
  for i, element in ipairs(fields.edits and span.array(fields.edits) or {}) do
    local _, inner = span.object(element)
    list[i] = inner and pair_of(inner)
    if not list[i] then
      return nil
    end
  end
  if #list > 0 then
    return list, { edits = true }
  end
end

return edits
