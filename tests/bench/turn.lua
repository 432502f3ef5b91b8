-- turn.lua [ROUNDS]: what a turn costs in Lua: two messages of 650 bytes together, the policy
-- sliding_window, a sealed store in memory. Prints microseconds of the processor for each round.

local sessile = require "sessile"

local TURNS = tonumber(arg[2]) or 2000
local text = ("x"):rep(300)

local function round(number)
  local store = assert(sessile.open("ram:", { policy = { "sliding_window", messages = 40 } }))
  local s = assert(store:session("s" .. number))
  local began = os.clock()
  for _ = 1, TURNS do
    assert(s:turn { { role = "user", content = text }, { role = "assistant", content = text } })
  end
  local took = os.clock() - began
  store:close()
  return took / TURNS * 1e6
end

round(0)
for number = 1, tonumber(arg[1]) or 5 do
  print(("%.1f"):format(round(number)))
end
