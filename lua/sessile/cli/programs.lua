--- programs: where a program is, as a shell finds it.

local has_system, system = pcall(require, "sessile.system")

local programs = {}

--- The path of a program in $PATH, or of a name with a slash; nil if there is none.
---@param name string
---@return string?
function programs.find(name)
  if not has_system then
    return nil
  elseif name:find("/", 1, true) then
    return system.kind(name) == "file" and name or nil
  end
  for folder in (os.getenv "PATH" or ""):gmatch "[^:]+" do
    local path = folder .. "/" .. name
    if system.kind(path) == "file" then
      return path
    end
  end
  return nil
end

return programs
