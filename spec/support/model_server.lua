-- model_server.lua: an endpoint that misbehaves as it is told: `lua5.4 model_server.lua FOLDER`.
-- The Nth request is kept as FOLDER/N.request and answered by FOLDER/N, a Lua chunk that gets
-- `client` (a socket), `send(text)`, `sleep(seconds)`, `event(json)` (sends one as SSE), `sse()`
-- (the head of a stream) and `json(status, text, headers)`. FOLDER/port has the port; with
-- FOLDER/cert.pem and key.pem it speaks TLS, with FOLDER/early it answers before it has read a
-- body. It ends after the last, or a minute of silence.

local socket = require "socket"

local folder = arg[1]
local server = assert(socket.bind("127.0.0.1", 0))
server:settimeout(60)

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name .. ".new", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(folder .. "/" .. name .. ".new", folder .. "/" .. name))
end

local function exists(name)
  local file = io.open(folder .. "/" .. name, "rb")
  return file and file:close()
end

local function secured(client)
  local wrapped = assert(require "ssl".wrap(client, { mode = "server", protocol = "any",
    certificate = folder .. "/cert.pem", key = folder .. "/key.pem" }))
  wrapped:settimeout(10)
  return wrapped:dohandshake() and wrapped
end

local function answer(client, n)
  local head, size = {}, 0
  repeat
    local line = client:receive "*l"
    if not line then
      return
    end
    size = tonumber(line:lower():match "^content%-length: (%d+)") or size
    head[#head + 1] = line
  until line == ""
  if not exists "early" then
    local body = size > 0 and client:receive(size) or ""
    write(n .. ".request", table.concat(head, "\n") .. "\n" .. body)
  end
  local function send(text)
    return client:send(text)
  end
  local env = setmetatable({
    client = client, send = send, sleep = socket.sleep,
    sse = function()
      send "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
    end,
    event = function(json) return send("data: " .. json .. "\n\n") end,
    json = function(status, text, headers)
      send(("HTTP/1.1 %d X\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n%s")
        :format(status, headers or "", #text, text))
    end,
  }, { __index = _G })
  assert(loadfile(folder .. "/" .. n, "t", env))()
end

write("port", select(2, server:getsockname()))
local n = 1
while exists(n) do
  local client = server:accept()
  if not client then
    break
  end
  client:settimeout(60)
  if exists "cert.pem" then
    client = secured(client)
  end
  if client then
    answer(client, n)
    client:close()
  end
  n = n + 1
end
