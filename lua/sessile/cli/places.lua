--- places: expands folders that were typed into the files in them, not recursively.

local has_system, system = pcall(require, "sessile.system")

local places = {}

--- The typed paths with each folder replaced by the files in it whose names match the pattern, in
--- order.
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
