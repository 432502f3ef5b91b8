-- killed_memory.lua: the process that spec/agent/memory_killed_spec.lua kills. It takes a store's
-- folder and a key file. In each turn the user says PARTS things, and what was said is remembered.
-- What it is about to do is a line on stdout.

local sessile = require "sessile"

local PARTS = 3

local function say(what, n)
  io.write(what, " ", n, "\n")
  io.flush()
end

local turn

-- Notes each line "turn N part P: …" of the numbered messages that it is asked about.
local function model(request)
  local lines, number = {}, nil
  for line in request.messages[2].content:gmatch "[^\n]+" do
    number = line:match "^%[(%d+)%]" or number
    local said = line:match "turn %d+ part %d+: %a+"
    lines[#lines + 1] = said and ("%s | fact | - | %s | -"):format(number, said)
  end
  say("asked", turn)
  return table.concat(lines, "\n")
end

local store <close> = assert(sessile.open(arg[1], { key = sessile.key.file(arg[2]),
  guard = os.getenv "TEST_GUARD" }))
local session = assert(store:session { id = "s", agent = "coder", user = "ann" })
assert(session:memory { consent = "yes" })
turn = #assert(session:messages { role = "user" })
while true do
  turn = turn + 1
  local parts = {}
  for part = 1, PARTS do
    parts[part] = ("turn %d part %d: barnacles"):format(turn, part)
  end
  say("said", turn)
  assert(session:append { role = "user", content = table.concat(parts, "\n") })
  local outcome = assert(session:remember { policy = { "remember", limit = 32 }, model = model })
  assert(outcome.verdict == "applied", outcome.message)
  say("remembered", turn)
end
