-- endpoint.lua: the endpoint of docs/examples_endpoint_spec.lua. `lua5.4 endpoint.lua FOLDER`
-- answers the requests that come with FOLDER/1, FOLDER/2, …, keeps each as FOLDER/N.request, and
-- writes its port to FOLDER/port. It ends after the last of them, or when none comes for a minute.

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

write("port", select(2, server:getsockname()))
local n = 1
while true do
  local file = io.open(folder .. "/" .. n, "rb")
  if not file then
    break
  end
  local answer = file:read "a"
  file:close()
  local client = assert(server:accept())
  client:settimeout(60)
  local head, size = {}, 0
  repeat
    local line = assert(client:receive "*l")
    size = tonumber(line:lower():match "^content%-length: (%d+)") or size
    head[#head + 1] = line
  until line == ""
  write(n .. ".request", table.concat(head, "\n") .. "\n" .. client:receive(size))
  local status, body = answer:match "^(%d+) (.*)$"
  client:send(("HTTP/1.1 %s OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"):format(status,
    #body, body))
  client:close()
  n = n + 1
end
