--- source: reads the bytes of a recording in blocks.
--
-- Owns: lines and their limit, the beginning of the file for detection, and a copy of input that
-- cannot be read twice. Must never hold more than a block and a line.

local source = {}

local BLOCK = 64 * 1024

--- The longest line, or element of a JSON document, in bytes. (The engine accepts messages of 8
--- MiB.)
source.longest = 8 * 1024 * 1024 - 65536

--- Why a longer one is not read.
source.too_long = ("it is longer than %d bytes, the most that is read as one"):format(
  source.longest)

--- A longer text is kept in pieces of this size, which fit into an entry in any encoding.
source.piece = 1024 * 1024

--- How many bytes are read to detect the format.
source.look = 256 * 1024

local FAILED = { [2] = "ENOTFOUND", [13] = "EDENIED" } -- by errno

---@class sessile.import.source
---@field file file*
---@field size integer?  bytes, when the file can tell
---@field begin integer  where its text begins
---@field at integer     where the last line that was given out ends
local methods = {}
methods.__index = methods

-- The error message of the system without the path, which the caller prints.
local function reason(message)
  return (tostring(message):gsub("^.*: ", ""))
end

--- Opens a path, or takes an open file.
---@param file file*|string
---@return sessile.import.source? opened
---@return string? message
---@return string? code
function source.open(file)
  if type(file) == "string" then
    local opened, message, number = io.open(file, "rb")
    if not opened then
      return nil, reason(message), FAILED[number] or "EIO"
    end
    file = opened
  end
  local self = setmetatable({ file = file }, methods)
  local block, why = file:read(BLOCK) -- a folder opens like a file, and then does not read
  if why then
    return nil, reason(why), "EINVALID"
  end
  self.begin = block and block:sub(1, 3) == "\u{FEFF}" and 3 or 0 -- a byte order mark
  self.buffer, self.at = (block or ""):sub(self.begin + 1), self.begin
  self.size = file:seek "end"
  if self.size and not file:seek("set", #(block or "")) then
    self.size = nil
  end
  return self
end

--- The first bytes, at most source.look. They are not consumed.
---@return string
function methods:head()
  while #self.buffer < source.look do
    local block = self.file:read(BLOCK)
    if not block then
      break
    end
    self.buffer = self.buffer .. block
  end
  return self.buffer
end

--- The next bytes; nil at the end.
---@return string?
function methods:block()
  local block = self.buffer
  if block ~= "" then
    self.buffer = ""
    return block
  end
  return self.file:read(BLOCK)
end

--- Makes the source seekable: anything but a file on a disk is copied into one.
---@return true? ok
---@return string? message
---@return string? code
function methods:make_seekable()
  if self.size then
    return true
  end
  local copy, message = io.tmpfile()
  if not copy then
    return nil, "it cannot be copied to a file to be read twice: " .. reason(message), "EIO"
  end
  for block in self.block, self do
    local ok, why = copy:write(block)
    if not ok then
      return nil, "it cannot be copied to a file to be read twice: " .. reason(why), "EIO"
    end
  end
  self.file, self.size, self.begin = copy, copy:seek "end", 0
  return self:seek(0)
end

--- Continues to read at an offset.
---@param offset integer
---@return true? ok
---@return string? message
---@return string? code
function methods:seek(offset)
  self.buffer = ""
  local place, message = self.file:seek("set", offset)
  if not place then
    return nil, reason(message), "EIO"
  end
  return true
end

--- An iterator over lines, each with the offset after it. A line that is too long is returned in
--- pieces of source.piece bytes, with the number of the piece (from 1).
---@return fun(): string?, integer?, integer?
function methods:lines()
  local rest, from, ended = "", 1, false -- what is held, and where in it the next line begins
  local pieces, held = {}, 0 -- of a line whose end was not seen yet
  local part, long = nil, "" -- of a line that is too long: what was not given out of it
  local function give(text, newline)
    self.at = self.at + #text + newline
    return text, self.at, part
  end
  return function()
    while true do
      if #long > source.piece then
        local text = long:sub(1, source.piece)
        long, part = long:sub(source.piece + 1), part + 1
        return give(text, 0)
      end
      local stop = rest:find("\n", from, true)
      local piece = rest:sub(from, (stop or 0) - 1)
      from = stop and stop + 1 or #rest + 1
      pieces[#pieces + 1], held = piece, held + #piece
      if part or held > source.longest then
        long, pieces, held = long .. table.concat(pieces), {}, 0
        part = part or 0
      end
      if stop or ended then
        if part and #long > source.piece then
          from = stop or from -- the end is seen again, after these pieces
        else
          local text = part and long or table.concat(pieces)
          if ended and not stop and text == "" then
            return nil
          end
          part = part and part + 1
          local line, offset, number = give(text, stop and 1 or 0)
          pieces, held, part, long = {}, 0, nil, ""
          return line, offset, number
        end
      elseif from > #rest and #long <= source.piece then
        local block = self:block()
        ended, rest, from = not block, block or "", 1
      end
    end
  end
end

--- Closes the file, unless it is standard input.
function methods:close()
  if self.file ~= io.stdin then
    self.file:close()
  end
end

return source
