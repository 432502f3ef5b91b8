-- http.lua: an HTTP/1.1 response, from the bytes of a connection to status, headers and body.
--
-- Owns that syntax, fed piece by piece as the bytes come. Opens nothing and waits for nothing.
-- Whatever comes, no more is kept than a line and what the caller's on_body keeps.

local http = {}

local LONGEST_LINE, MOST_HEADERS = 16 * 1024, 200

local Response = {}
Response.__index = Response

--- on_head(status, headers): once, headers by lower-case name. on_body(piece): false ends the
--- reading. most: bytes of the body.
function http.response(on_head, on_body, most)
  return setmetatable({ on_head = on_head, on_body = on_body, left_over = most, most = most,
    state = "status", rest = "", headers = {}, lines = 0 }, Response)
end

local function fail(self, why)
  self.state, self.why = "failed", why
  return false
end

-- Hands a piece of the body on.
local function body(self, piece)
  self.left_over = self.left_over - #piece
  if self.left_over < 0 then
    return fail(self, ("the answer is longer than %d bytes"):format(self.most))
  elseif self.on_body(piece) == false then
    self.state = "done"
  end
  return true
end

local function head_ends(self)
  local status, headers = self.status, self.headers
  if status >= 100 and status < 200 then
    self.state, self.headers, self.lines = "status", {}, self.lines + 1
    return self.lines <= MOST_HEADERS or fail(self, "the answer has too many headers")
  end
  local coding, length = headers["transfer-encoding"], headers["content-length"]
  if coding and coding:lower() ~= "identity" then
    if not coding:lower():find "chunked%s*$" then
      return fail(self, "the body has an unknown transfer-encoding")
    end
    self.state = "size"
  elseif length then
    self.need = #length <= 15 and length:find "^%d+$" and math.tointeger(tonumber(length))
    if not self.need then
      return fail(self, "the body has no usable length")
    elseif self.need > self.most then
      return fail(self, ("the answer is longer than %d bytes"):format(self.most))
    end
    self.state = self.need > 0 and "length" or "done"
  else
    self.state = status == 204 and "done" or "close"
  end
  self.on_head(status, headers)
  return true
end

local lines = {}

function lines.status(self, text)
  local status = text:match "^HTTP/1%.[01] (%d%d%d)%f[ \0]"
  if not status then
    return fail(self, "this is no HTTP answer")
  end
  self.status, self.state = math.tointeger(tonumber(status)), "headers"
  return true
end

function lines.headers(self, text)
  if text == "" then
    return head_ends(self)
  end
  self.lines = self.lines + 1
  if self.lines > MOST_HEADERS then
    return fail(self, "the answer has too many headers")
  end
  local name, value = text:match "^([^:%s]+):%s*(.*)$"
  if name then
    self.headers[name:lower()] = value:match "^.*%S" or "" -- looks at each space once
  end
  return true
end

function lines.size(self, text)
  local digits = text:match "^%s*(%x+)%s*;?"
  if not digits or #digits > 8 then
    return fail(self, "the body has a chunk without a size")
  end
  self.need = math.tointeger(tonumber(digits, 16))
  self.state = self.need > 0 and "chunk" or "trailers"
  return true
end

lines["chunk end"] = function(self, text)
  self.state = "size"
  return text == "" or fail(self, "the body has a chunk of another size than it says")
end

function lines.trailers(self, text)
  self.lines = self.lines + 1
  if self.lines > MOST_HEADERS then
    return fail(self, "the answer has too many headers")
  elseif text == "" then
    self.state = "done"
  end
  return true
end

-- Takes what there is of a body of known length, from `at` on. Returns the place behind it.
local function counted(self, text, at)
  local piece = text:sub(at, at + self.need - 1)
  self.need = self.need - #piece
  if body(self, piece) and self.need == 0 and self.state ~= "done" then
    self.state = self.state == "chunk" and "chunk end" or "done"
  end
  return at + #piece
end

--- Takes bytes of the connection. true: more may come; false: it is over: see `state`, which is
--- "done" or "failed", and `why`.
function Response:feed(piece)
  local text, at = self.rest .. piece, 1
  self.rest = ""
  while at <= #text and self.state ~= "done" and self.state ~= "failed" do
    local state = self.state
    if state == "close" then
      body(self, text:sub(at))
      break
    elseif state == "length" or state == "chunk" then
      at = counted(self, text, at)
    else
      local ending = text:find("\n", at, true)
      if (ending or #text) - at > LONGEST_LINE then
        fail(self, "the answer has a line that is too long")
      elseif not ending then
        self.rest = text:sub(at)
        break
      else
        lines[state](self, (text:sub(at, ending - 1):gsub("\r$", "")))
        at = ending + 1
      end
    end
  end
  return self.state ~= "done" and self.state ~= "failed"
end

--- The connection ended. true when the answer was whole; nil and why not.
function Response:finish()
  if self.state == "close" or self.state == "done" then
    return true
  end
  return nil, self.why or (self.status and "the connection ended in the middle of the answer"
    or "the connection ended without an answer")
end

return http
