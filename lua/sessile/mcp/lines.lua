-- lines.lua: messages as lines of standard input and output.
--
-- Must never hold more of a line than its limit: a line that is longer is reported once its end was
-- read, and the next one is read as if nothing had happened.

local lines = {}

--- Bytes of a line, without its newline.
lines.MOST = 4 * 1024 * 1024

local BLOCK = 4096

-- The bytes of a line until its newline, in pieces; nil: the input has ended.
local function bytes_of(file, most)
  local pieces, piece, size = {}, {}, 0
  local byte = file:read(1)
  if not byte then
    return nil
  end
  while byte and byte ~= "\n" do
    size = size + 1
    if size <= most then
      piece[#piece + 1] = byte
      if #piece == BLOCK then
        pieces[#pieces + 1], piece = table.concat(piece), {}
      end
    elseif size == most + 1 then
      pieces, piece = {}, {}
    end
    byte = file:read(1)
  end
  pieces[#pieces + 1] = table.concat(piece)
  return pieces, size
end

--- The next line that is not empty, without its end. nil: the input has ended. false and a number
--- of bytes: the line was longer than `most`.
---@param file file*
---@param most integer?
---@return string|false|nil line
---@return integer? size
function lines.read(file, most)
  most = most or lines.MOST
  while true do
    local pieces, size = bytes_of(file, most)
    if not pieces then
      return nil
    elseif size > most then
      return false, size
    end
    local line = table.concat(pieces):gsub("\r$", "")
    if line:find "[^ \t]" then
      return line
    end
  end
end

--- Writes a line at once. false: nobody reads any more.
---@param file file*
---@param line string  without a newline in it
---@return boolean
function lines.write(file, line)
  return (file:write(line, "\n") and file:flush()) ~= nil
end

return lines
