-- pipeline.lua: 1,000 records with a checkpoint after each 100. It is killed and resumed, and no
-- record is processed twice.
--
--     build/bin/sessile run examples/pipeline.lua               # killed at 500, resumed, cleans up
--     build/bin/sessile run examples/pipeline.lua FOLDER [N]    # continues in FOLDER; dies after N
--
-- The result of a record is an entry. Either the whole entry is on disk, or the record was not
-- processed; a crash cannot leave anything else half done. A checkpoint has the sums so far; to
-- resume, restore the newest one and add the entries after it. (If a result must go elsewhere, send
-- it with the number of its record, so that the receiver can detect a second delivery.)
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

local TOTAL, EVERY = tonumber(os.getenv "RECORDS" or 1000), 100

-- ------------------------------------------------------------------ the work

local fruits = { "apples", "plums", "pears" }

local function record(n)
  return ("order %d: %d %s"):format(n, n % 7 + 1, fruits[n % #fruits + 1])
end

local ask = model.choose(function(request)
  return (request.messages[2].content:match ": (%d+)") -- what the order counts
end)

-- How many pieces a record orders.
local function process(n)
  local answer, why = ask { messages = {
    { role = "system", content = "Answer with the number of pieces ordered, in digits." },
    { role = "user", content = record(n) },
  } }
  local text = type(answer) == "table" and answer.content or answer
  return math.tointeger(tonumber(tostring(text):match "%d+"))
    or error(("record %d: no number (%s)"):format(n, why or text), 0)
end

-- ------------------------------------------------------------------ the pipeline

-- What is done: {done, pieces, saved}; saved: the number of records in the newest checkpoint.
local function resume(session)
  local state = { done = 0, pieces = 0 }
  local newest = assert(session:checkpoints())[1]
  if newest then
    state = assert(session:restore(newest.id)).state
  end
  state.saved = state.done
  local since = { types = { "custom" }, after = newest and newest.id }
  for entry in assert(session:entries(since)) do
    if entry.data.record == state.done + 1 then
      state.done, state.pieces = entry.data.record, state.pieces + entry.data.pieces
    end
  end
  return state
end

local function work(folder, dies_after)
  local store <close> = assert(sessile.open(folder, { key = false }))
  local session = assert(store:session "orders")
  local state = resume(session)
  if state.done > 0 then
    print(("resumed at record %d: %.1f %% of %d are not run again"):format(state.done + 1,
      100 * state.done / TOTAL, TOTAL))
    io.stdout:flush()
  end
  while true do
    if state.done % EVERY == 0 and state.done > state.saved then
      assert(session:checkpoint { name = ("%d done"):format(state.done),
        state = { done = state.done, pieces = state.pieces } })
      state.saved = state.done
    end
    if state.done >= TOTAL then
      break
    end
    local n = state.done + 1
    local pieces = process(n)
    assert(session:custom { record = n, pieces = pieces }) -- from here on it is done
    state.done, state.pieces = n, state.pieces + pieces
    if n == dies_after then
      print(("record %d is done: kill -9"):format(n))
      io.stdout:flush()
      os.execute "kill -9 $PPID"
    end
  end
  if #assert(session:messages()) == 0 then
    assert(session:append { role = "assistant",
      content = ("%d records, %d pieces"):format(state.done, state.pieces) })
  end
  print(session:messages()[1].content, #session:checkpoints() .. " checkpoints")
end

if arg[1] then
  return work(arg[1], tonumber(arg[2]))
end
local folder = io.popen("mktemp -d"):read "l"
local again = ("'%s' '%s' '%s' '%s'"):format(arg[-2], arg[-1], arg[0], folder)
local _, how = os.execute("exec " .. again .. " 500")
assert(how == "signal", "it should have been killed")
assert(os.execute(again))
assert(os.execute(("rm -r '%s'"):format(folder)))
