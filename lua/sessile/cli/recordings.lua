--- recordings: the files that `import` and `policy replay` read.
--
-- Owns: the messages about a file that cannot be read.

local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local has_system, system = pcall(require, "sessile.system")

local recordings = {}

-- The next step, by error code.
local function step_for(code, from, told)
  if code == "ENOTFOUND" then
    return "Give the path of a recording."
  elseif code == "EDENIED" then
    return "Look at its owner and its mode."
  elseif not from and told:find("known format", 1, true) then
    return "Name its format: --from " .. table.concat(import.names(), " or --from ")
  end
  return false
end

--- Opens a recording; "-" is standard input. from: its format; nil: detect it.
---@param path string
---@param from string?
---@return (fun(): sessile.import.record?)? records
---@return string from_or_message
---@return string? code
---@return string|false|nil step  false: there is none
function recordings.open(path, from)
  local records, told, code = import.open(path == "-" and io.stdin or path, from)
  if records then
    records.path = path ~= "-" and (has_system and system.real(path) or path) or nil
    return records, told
  end
  return nil, ("%s: %s"):format(hints.shown(path), told), code, step_for(code, from, told)
end

return recordings
