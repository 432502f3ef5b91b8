--- own_files: small files of the user's own, as settings are: whole or not at all, for nobody else.

local files = require "sessile.files"

local own_files = {}

-- The folders above a path, each made when it is not there.
local function folders(path)
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

--- Writes one. Without `replace` EEXISTS when there is one.
---@param path string
---@param text string
---@param replace boolean?
---@return boolean? written
---@return string? message
---@return string? code
function own_files.write(path, text, replace)
  local ok, message, code = folders(path)
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
