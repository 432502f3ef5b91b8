--- own_files: writes small files of the user, such as settings: atomically and with mode 0600.

local files = require "sessile.files"

local own_files = {}

--- Creates the missing folders above a path, which only their user can read.
---@param path string
---@return boolean? ok
---@return string? message
---@return string? code
function own_files.folders(path)
  local at = 1
  while true do
    at = path:find("/", at + 1, true)
    if not at then
      return true
    end
    local ok, message, code = files.folder(path:sub(1, at - 1))
    if not ok then
      return nil, message, code
    end
  end
end

--- Writes a file. Without `replace` it fails with EEXISTS if the file exists.
---@param path string
---@param text string
---@param replace boolean?
---@return boolean? written
---@return string? message
---@return string? code
function own_files.write(path, text, replace)
  local ok, message, code = own_files.folders(path)
  if not ok then
    return nil, message, code
  end
  local file
  file, message, code = files.create(path)
  if not file then
    return nil, message, code
  end
  local _ <close> = file
  ok, message, code = file:write(text)
  if ok then
    ok, message, code = file:finish(replace)
  end
  return ok, message, code
end

return own_files
