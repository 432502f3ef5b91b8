-- canary.lua: words that nobody else has, and whoever keeps them: in files, or in the memory of a
-- process, as they are or in an encoding that programs use.
--
-- Each word of a canary has the same two made-up parts, one in ASCII and one in Greek letters, so
-- that looking for these finds them all.

local shell = require "spec.support.shell"

local canary = {}
canary.__index = canary

local PIECE = 1 << 20

-- Characters from one to another.
local function drawn(count, first, last)
  local random <close> = assert(io.open("/dev/urandom", "rb"))
  local out = {}
  for i = 1, count do
    out[i] = utf8.char(first + ("I4"):unpack(random:read(4)) % (last - first + 1))
  end
  return table.concat(out)
end

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- What base64 makes of a text wherever it stands: of each alignment the letters that are its own.
local function base64(text, shift)
  local bits, out = ("\0"):rep(shift) .. text, {}
  for at = 1, #bits - 2, 3 do
    local n = (">I3"):unpack(bits, at)
    for move = 18, 0, -6 do
      local i = (n >> move & 63) + 1
      out[#out + 1] = BASE64:sub(i, i)
    end
  end
  return table.concat(out):sub(shift == 0 and 1 or 5)
end

local function each_code(text, format)
  local out = {}
  for _, code in utf8.codes(text) do
    out[#out + 1] = format:format(code)
  end
  return table.concat(out)
end

local function hex(text, format)
  return (text:gsub(".", function(c) return format:format(c:byte()) end))
end

-- Each form of a text, under its name. ASCII stays as it is in JSON and in URLs.
local function forms_of(text)
  local forms = { plain = text, reversed = text:reverse(), hex = hex(text, "%02x"),
    ["upper hex"] = hex(text, "%02X"),
    ["UTF-16"] = (each_code(text, "%04x"):gsub("(..)(..)", function(a, b)
      return string.char(tonumber(b, 16), tonumber(a, 16))
    end)) }
  for shift = 0, 2 do
    forms["base64 " .. shift] = base64(text, shift)
    forms["base64url " .. shift] = base64(text, shift):gsub("+", "-"):gsub("/", "_")
  end
  if text:find "[\x80-\xff]" then
    forms["JSON escapes"] = each_code(text, "\\u%04x")
    forms["upper JSON escapes"] = each_code(text, "\\u%04X")
    forms["percent-encoded"] = hex(text, "%%%02X")
  end
  return forms
end

function canary.new()
  local made = setmetatable({ latin = drawn(16, 0x61, 0x7a), greek = drawn(12, 0x3b1, 0x3c9),
    forms = {} }, canary)
  for _, text in ipairs { made.latin, made.greek } do
    for name, form in pairs(forms_of(text)) do
      made.forms[#made.forms + 1] = { name = name, text = form }
    end
  end
  return made
end

--- A word for a place where words are kept, as "title".
function canary:word(place)
  return ("%s.%s.\"%s\""):format(place, self.latin, self.greek)
end

-- Notes the forms that a piece has, and the places whose words stand there as they are.
local function note(self, seen, piece)
  for _, form in ipairs(self.forms) do
    if piece:find(form.text, 1, true) then
      seen.forms[form.name] = true
    end
  end
  for place in piece:gmatch("([%w_]+)%." .. self.latin) do
    seen.places[place] = true
  end
end

-- Reads on until `left` bytes are read, or there are no more: how many there were.
local function look_through(self, seen, file, left)
  local before, read = "", 0
  while left > 0 do
    local piece = file:read(math.min(left, PIECE))
    if not piece then
      break
    end
    note(self, seen, before .. piece)
    before, left, read = piece:sub(-400), left - #piece, read + #piece
  end
  return read
end

local function nothing_seen()
  return { forms = {}, places = {}, bytes = 0 }
end

--- What is found in the files below a folder: `forms` and `places`, sets of names, and `bytes`, how
--- many were looked at.
function canary:on_disk(folder)
  local seen = nothing_seen()
  for path in shell.output("find " .. shell.quote(folder) .. " -type f"):gmatch "[^\n]+" do
    note(self, seen, path)
    local file <close> = assert(io.open(path, "rb"))
    seen.bytes = seen.bytes + look_through(self, seen, file, math.huge)
  end
  return seen
end

--- The same of the memory of a process. nil: this system does not let us look.
function canary:in_memory(pid)
  local seen = nothing_seen()
  local memory <close> = io.open(("/proc/%s/mem"):format(pid), "rb")
  local maps <close> = io.open(("/proc/%s/maps"):format(pid))
  if not memory or not maps then
    return nil
  end
  memory:setvbuf "no"
  for line in maps:lines() do
    local from, to, rights = line:match "^(%x+)-(%x+) (%S+)"
    from, to = tonumber(from, 16), tonumber(to, 16)
    if rights:find "^r" and from >= 0 and to > from and memory:seek("set", from) then
      seen.bytes = seen.bytes + look_through(self, seen, memory, to - from)
    end
  end
  return seen
end

return canary
