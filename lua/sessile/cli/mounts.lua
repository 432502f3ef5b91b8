--- mounts: the file system that holds a path.

local mounts = {}

-- A mount point as mountinfo writes it: a space is \040.
local function plain(point)
  return (point:gsub("\\(%d%d%d)", function(digits)
    return string.char(tonumber(digits, 8))
  end))
end

--- The type of the file system that holds a path, and where it is mounted: of all mount points
--- above the path the longest, and of several mounts there the last.
---@param path string   from the root, without links
---@param lines (fun(): string?)?  default: those of /proc/self/mountinfo
---@return string? kind
---@return string? where
function mounts.of(path, lines)
  local kind, where, file
  if not lines then
    file = io.open "/proc/self/mountinfo"
    lines = file and file:lines() or function() end
  end
  for line in lines do
    local point, type_ = line:match "^%d+ %d+ %d+:%d+ %S+ (%S+) .- %- (%S+)"
    point = point and plain(point)
    local holds = point and (point == "/" or path == point
      or path:sub(1, #point + 1) == point .. "/")
    if holds and (not where or #point >= #where) then
      kind, where = type_, point
    end
  end
  if file then
    file:close()
  end
  return kind, where
end

return mounts
