-- certificates.lua: an authority and what it signs, by the openssl command.

local assert = require "luassert"
local shell = require "spec.support.shell"

local certificates = {}

local KEY = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "

local function run(folder, script)
  local said, ok = shell.output(("cd %s && umask 077 && (%s) 2>&1"):format(shell.quote(folder),
    script))
  assert(ok, said)
end

--- Makes an authority in a folder, NAME.pem and NAME.key; returns the path of NAME.pem.
function certificates.authority(folder, name)
  run(folder, KEY .. ("-x509 -keyout %s.key -out %s.pem -subj /CN=%s -days 2"):format(name, name,
    name))
  return ("%s/%s.pem"):format(folder, name)
end

--- Makes a certificate of an authority of that folder, and its key: returns their paths. names:
--- as "DNS:localhost", NAME's own if it is a client's. days: how long it is good; negative: it has
--- expired.
function certificates.sign(folder, authority, name, names, days)
  local extension = names and ("echo subjectAltName=%s >%s.ext && "):format(names, name) or ""
  run(folder, ("%s -keyout %s.key -out %s.csr -subj /CN=%s && %s openssl x509 -req -in %s.csr "
    .. "-CA %s.pem -CAkey %s.key -CAcreateserial -days %d -out %s.pem %s"):format(KEY, name, name,
    name, extension, name, authority, authority, days or 2, name,
    names and ("-extfile %s.ext"):format(name) or ""))
  return ("%s/%s.pem"):format(folder, name), ("%s/%s.key"):format(folder, name)
end

return certificates
