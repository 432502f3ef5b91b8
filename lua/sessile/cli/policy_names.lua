--- policy_names: the policies that can be named: those of the folders that are searched.
--
-- Must never run a policy: its first lines are read as text.

local has_system, system = pcall(require, "sessile.system")
local paths = require "sessile.paths"

local policy_names = {}

-- The value of `about = "…" .. "…"` at the top level of the returned table.
local function about_of(source)
  local at = select(2, source:find("\n  about%s*=%s*"))
  local words = {}
  while at do
    local quote, text, stop = source:match("^%s*([\"'])(.-)%1()", at + 1)
    if not quote then
      break
    end
    words[#words + 1] = text
    at = source:match("^%s*%.%.()", stop)
    at = at and at - 1
  end
  return table.concat(words)
end

local function read(path)
  local file = system.kind(path) == "file" and io.open(path)
  local source = file and file:read(65536)
  if file then
    file:close()
  end
  return source or ""
end

--- {name, path, about, version} of each, by name.
---@return table[]
function policy_names.list()
  local rows, seen = {}, {}
  for folder in paths.policy_path():gmatch("[^:]+") do
    for _, file in ipairs(has_system and system.files(folder) or {}) do
      local name = file:match("^(.+)%.lua$")
      if name and not seen[name] then
        seen[name] = true
        local path = folder .. "/" .. file
        local source = read(path)
        rows[#rows + 1] = {
          name = name, path = path, about = about_of(source),
          version = math.tointeger(tonumber(source:match("\n  .-version%s*=%s*(%d+)"))),
        }
      end
    end
  end
  table.sort(rows, function(a, b) return a.name < b.name end)
  return rows
end

return policy_names
