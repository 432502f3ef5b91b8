--- places: files, and folders that stand for the files in them, as somebody names them.
--
-- Owns: what a folder stands for. Must never look into a folder of a folder.

local has_system, system = pcall(require, "sessile.system")

local places = {}

--- The files that are meant: of a folder those whose name fits the pattern, in order; what is no
--- folder stays as it was typed.
---@param named string[]
---@param pattern string  a Lua pattern
---@return string[]
function places.files(named, pattern)
  local files = {}
  for _, place in ipairs(named) do
    local names = has_system and system.files(place)
    if not names then
      files[#files + 1] = place
    else
      for _, name in ipairs(names) do
        if name:find(pattern) then
          files[#files + 1] = place:gsub("/+$", "") .. "/" .. name
        end
      end
    end
  end
  return files
end

return places
