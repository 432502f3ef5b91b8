-- connection.lua: a connection to an endpoint, plain or TLS, over lua-socket and lua-sec.
--
-- Owns every wait: no call here blocks for longer than a tenth of a second without asking
-- whether to go on, but for the look-up of a name, which the system does as it likes. Must never
-- speak TLS to somebody whose certificate is not signed, or is not of the host that was named.

local paths = require "sessile.paths"

local connection = {}

local SLICE, CONNECT = 0.1, 15 -- seconds

local Connection = {}
Connection.__index = Connection

--- The packages that a URL needs: true; nil, message, code when they are not installed.
function connection.usable(secure)
  if not pcall(require, "socket") then
    return nil, "an endpoint needs the package lua-socket: apt-get install lua-socket",
      "EUNSUPPORTED"
  elseif secure and not pcall(require, "ssl") then
    return nil, "an https endpoint needs the package lua-sec: apt-get install lua-sec",
      "EUNSUPPORTED"
  end
  return true
end

-- Waits a little until the socket is ready. true; nil, message, code when it is to end.
local function wait(self, mode, patience)
  local socket = require "socket"
  if self.stopped and self.stopped() then
    return nil, "stopped", "ECANCELLED"
  end
  local now = socket.gettime()
  if now - self.heard > (patience or self.timeout) then
    return nil, ("nothing came for %g seconds"):format(patience or self.timeout), "EIO"
  elseif now > self.deadline then
    return nil, "the answer takes too long", "EIO"
  elseif self.wait then
    self.wait(SLICE)
    return true
  end
  local list = { self.socket }
  socket.select(mode == "read" and list or nil, mode == "write" and list or nil, SLICE)
  return true
end

-- ---------------------------------------------------------------- TLS

-- Whether a certificate is of that host: the names in it, never its common name. A star stands
-- for one label, the first.
local function is_of(certificate, host)
  local names = certificate and certificate:extensions()["2.5.29.17"] or {}
  host = host:lower()
  for _, name in ipairs(names.dNSName or {}) do
    local wild = name:lower():match "^%*(%.[^*]+%.[^*]+)$"
    if name:lower() == host or wild and host:match "^[^.]+(%..+)$" == wild then
      return true
    end
  end
  for _, address in ipairs(names.iPAddress or {}) do
    if address:lower() == host then
      return true
    end
  end
  return false
end

connection.is_of = is_of

local AUTHORITIES = {
  "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
}

local function authorities(given)
  local named = given or os.getenv "SSL_CERT_FILE"
  if named and named ~= "" then
    return named
  end
  return paths.readable(AUTHORITIES)
end

local function secure(self, host, ca)
  local ssl = require "ssl"
  local file = authorities(ca)
  if not file then
    return nil, "there is no list of authorities: apt-get install ca-certificates", "EIO"
  end
  local wrapped, why = ssl.wrap(self.socket, {
    mode = "client", protocol = "any", verify = "peer", cafile = file,
    options = { "all", "no_sslv2", "no_sslv3", "no_tlsv1", "no_tlsv1_1" },
  })
  if not wrapped then
    return nil, "TLS cannot be set up: " .. tostring(why), "EIO"
  end
  self.socket = wrapped
  wrapped:settimeout(0)
  if not host:find "^[%d.]+$" and not host:find(":", 1, true) then
    wrapped:sni(host)
  end
  while true do
    local done
    done, why = wrapped:dohandshake()
    if done then
      break
    elseif why ~= "wantread" and why ~= "wantwrite" and why ~= "timeout" then
      return nil, ("no safe connection: %s"):format(why), "EIO"
    end
    local on, message, code = wait(self, why == "wantwrite" and "write" or "read", CONNECT)
    if not on then
      return nil, message, code
    end
  end
  if not is_of(wrapped:getpeercertificate(), host) then
    return nil, "no safe connection: its certificate is not of " .. host, "EDENIED"
  end
  return true
end

-- ---------------------------------------------------------------- connecting

-- Connects to one address.
local function connect_to(self, address, port)
  local socket = require "socket"
  local made, why = (address.family == "inet6" and socket.tcp6 or socket.tcp4)()
  if not made then
    return nil, why, "EIO"
  end
  self.socket, self.heard = made, socket.gettime()
  made:settimeout(0)
  made:setoption("tcp-nodelay", true)
  local ok
  ok, why = made:connect(address.addr, port)
  while not ok and (why == "timeout" or why == "Operation already in progress") do
    local on, message, code = wait(self, "write", math.min(CONNECT, self.timeout))
    if not on then
      return nil, message, code
    end
    ok, why = made:connect(address.addr, port)
    ok = ok or why == "already connected"
  end
  if not ok then
    return nil, why, "EIO"
  end
  return true
end

--- Connects. where: {host=, port=, secure=}; given: timeout (seconds without a byte), deadline
--- (of socket.gettime), stopped() and wait(seconds), or nil; ca: a file. Returns a connection;
--- nil, message, code.
function connection.open(where, given)
  local socket = require "socket"
  local self = setmetatable({ timeout = given.timeout, deadline = given.deadline,
    stopped = given.stopped, wait = given.wait, heard = socket.gettime() }, Connection)
  local addresses, why = socket.dns.getaddrinfo(where.host)
  if not addresses then
    return nil, "the host is not known: " .. tostring(why), "EIO"
  end
  local ok, message, code
  for _, address in ipairs(addresses) do
    ok, message, code = connect_to(self, address, where.port)
    if ok or code == "ECANCELLED" then
      break
    end
    self:close()
  end
  if ok and where.secure then
    ok, message, code = secure(self, where.host, given.ca)
  end
  if not ok then
    self:close()
    return nil, message or "the host has no address", code or "EIO"
  end
  return self
end

-- ---------------------------------------------------------------- bytes

--- Sends all of it. true; nil, message, code.
function Connection:send(data)
  local at = 1
  while at <= #data do
    -- Slices, so that a stream of many megabytes is not copied for each packet that fits.
    local last, why, partial = self.socket:send(data, at, math.min(#data, at + 65535))
    local sent = last or partial or at - 1
    if sent >= at then
      self.heard = require "socket".gettime()
    end
    at = sent + 1
    if not last then
      if why ~= "timeout" and why ~= "wantwrite" and why ~= "wantread" then
        return nil, why == "closed" and "the connection was closed" or why, "EIO"
      end
      local on, message, code = wait(self, why == "wantread" and "read" or "write")
      if not on then
        return nil, message, code
      end
    end
  end
  return true
end

--- Some bytes; "" at the end of the connection; nil, message, code.
function Connection:receive()
  while true do
    local data, why, partial = self.socket:receive(8192)
    data = data or partial
    if data and data ~= "" then
      self.heard = require "socket".gettime()
      if self.stopped and self.stopped() then
        return nil, "stopped", "ECANCELLED"
      elseif self.heard > self.deadline then
        return nil, "the answer takes too long", "EIO"
      end
      return data
    elseif why == "closed" then
      return ""
    elseif why ~= "timeout" and why ~= "wantread" and why ~= "wantwrite" then
      return nil, tostring(why), "EIO"
    end
    local on, message, code = wait(self, why == "wantwrite" and "write" or "read")
    if not on then
      return nil, message, code
    end
  end
end

function Connection:close()
  if self.socket then
    self.socket:close()
    self.socket = nil
  end
end

Connection.__close = Connection.close

--- Waits. true; nil, message, code when it is to end.
function connection.sleep(seconds, given)
  local socket = require "socket"
  local till = socket.gettime() + seconds
  while socket.gettime() < till do
    if given.stopped and given.stopped() then
      return nil, "stopped", "ECANCELLED"
    elseif given.wait then
      given.wait(SLICE)
    else
      socket.sleep(math.min(SLICE, math.max(0, till - socket.gettime())))
    end
  end
  return true
end

return connection
