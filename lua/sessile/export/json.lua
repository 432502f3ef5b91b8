--- json: a session as one JSON document: its facts, then every entry as it is stored.
--
-- Owns: the shape, which README.md describes, and its version. Must never encode an entry again:
-- its text is copied token for token.

local core = require "sessile.core"

--- The value of `sessile_export`. A higher number is a shape that older readers may not know.
local VERSION = 1

local function now()
  return os.date "!%Y-%m-%dT%H:%M:%SZ"
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
return function(source, write)
  local facts = assert(core.text(source.facts))
  write(('{"sessile_export":%d,"exported":"%s",\n'):format(VERSION, now()))
  write(facts:sub(2, -2) .. ",\n")
  write '"entries":['
  local count = 0
  for text in source:texts() do
    write((count > 0 and ",\n" or "\n") .. text)
    count = count + 1
  end
  write(('\n],\n"count":%d'):format(count))
  if source.redactor then
    local report = source.redactor:report()
    write(',\n"redacted":' .. assert(core.text(core.array(report))))
  end
  write "}\n"
end
