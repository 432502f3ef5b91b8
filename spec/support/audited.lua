-- audited.lua: events in the audit of a store, written by a program of the build: any event, also
-- of hostile names.

local built = require "spec.support.built"
local shell = require "spec.support.shell"

local audited = {}

--- The secret of stores that specs make.
audited.KEY = "hex:" .. ("00112233445566778899aabbccddeeff"):rep(2)

--- The same, as sessile.open takes it.
function audited.key()
  return require("sessile").key.secret(audited.KEY)
end

--- A value with every byte that is not plain as %XX.
function audited.value(text)
  return (text:gsub("[^%w_.:/-]", function(byte) return ("%%%02x"):format(byte:byte()) end))
end

--- Writes events, one a line (tests/audit/write_audit.c). key: a secret, "plain" or "file:PATH".
--- part_bytes: of a log, before the next. Returns the root key.
function audited.write(store, key, lines, part_bytes)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(lines)
  file:close()
  local out, ok = shell.output(("%s %s %s %s < %s"):format(
    shell.quote(built.folder .. "/audit/write"), shell.quote(store), shell.quote(key),
    part_bytes or "", shell.quote(path)))
  os.remove(path)
  assert(ok, out)
  return (out:match "^%x+")
end

return audited
