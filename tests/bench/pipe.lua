-- pipe.lua: turns in the process that asks for them, for pipe.c: each line of standard input is how
-- many; the answer is the microseconds that one took. Without arguments: lines that come back.

local sessile = require "sessile"
local system = require "sessile.system"

local folder, durability = ...
if not folder then
  for line in io.lines() do
    io.stdout:write(line, "\n")
    io.stdout:flush()
  end
  return 0
end
local store = assert(sessile.open(folder, { durability = durability }))
local s = assert(store:session "pipe")
local text = ("x"):rep(300)

print "ready"
io.stdout:flush()
for line in io.lines() do
  local count = assert(math.tointeger(line))
  local began = system.seconds()
  for _ = 1, count do
    assert(s:turn { { role = "user", content = text }, { role = "assistant", content = text } })
  end
  print(("%.3f"):format((system.seconds() - began) * 1e6 / count))
  io.stdout:flush()
end
store:close()
