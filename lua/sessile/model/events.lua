-- events.lua: parses server-sent events from the pieces of a response body.
--
-- Lines may end with LF, CRLF or CR; an event may have several data lines; comments are skipped. At
-- most one event is kept in memory, and its size is limited.

local events = {}

local Events = {}
Events.__index = Events

--- on_event(data) is called with the data of each event; if it returns false, parsing ends.
--- longest: bytes of one event.
function events.reader(on_event, longest)
  return setmetatable({ on_event = on_event, longest = longest, rest = {}, waiting = 0, data = nil,
    size = 0, cr = false }, Events)
end

local function line(self, text)
  if text == "" then
    local data = self.data
    self.data, self.size = nil, 0
    return not data or self.on_event(table.concat(data, "\n")) ~= false
  end
  local name, value = text:match "^([^:]*):? ?(.*)$"
  if name == "data" then
    self.data = self.data or {}
    self.data[#self.data + 1] = value
    self.size = self.size + #value + 1
  end
  return true
end

--- Parses a piece of the body. Returns true; false if on_event did; nil if an event is too long.
function Events:feed(piece)
  if piece == "" then
    return true
  elseif self.cr and piece:sub(1, 1) == "\n" then
    self.cr = false
    return self:feed(piece:sub(2)) -- the second half of a CRLF
  end
  self.cr = piece:sub(-1) == "\r"
  if not piece:find "[\r\n]" then -- put together when the line ends: no input is quadratic
    self.rest[#self.rest + 1] = piece
    self.waiting = self.waiting + #piece
    return self.waiting + self.size <= self.longest or nil
  end
  self.rest[#self.rest + 1] = piece
  local text, at = table.concat(self.rest), 1
  while true do
    local ending = text:find("[\r\n]", at)
    if not ending then
      break
    end
    if not line(self, text:sub(at, ending - 1)) then
      return false
    elseif self.size > self.longest then
      return nil
    end
    at = ending + (text:find("^\r\n", ending) and 2 or 1)
  end
  self.rest, self.waiting = { text:sub(at) }, #text - at + 1
  return self.waiting + self.size <= self.longest or nil
end

--- Ends the body. The last event may lack its empty line.
function Events:finish()
  local last = table.concat(self.rest)
  self.rest = {}
  if last ~= "" and not line(self, last) then
    return
  end
  line(self, "")
end

return events
