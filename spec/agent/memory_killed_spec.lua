-- A process that remembers is killed with SIGKILL, again and again: what was said in a turn is in
-- the memory, all of it and once, and counts as heard; or none of it is, and it is heard later.
--
-- 30 kills; with SESSILE_SOAK=1, 600. The seed is printed by a failure; SEED=… takes its place.

local sessile = require "sessile"
local shell = require "spec.support.shell"
local temp = require "spec.support.temp"

local binary = require("spec.support.built").binary
local kills = os.getenv "SESSILE_SOAK" and 600 or 30
local parts = 3

local function open(dir)
  return assert(sessile.open(dir .. "/store", { key = sessile.key.file(dir .. "/key") }))
end

-- Starts the process and kills it some microseconds behind that many lines. The last turn that it
-- said was remembered, and what it was about to do.
local function launch(dir, lines, delay)
  local words = ("%s run spec/support/killed_memory.lua %s %s/key 2>%s/err"):format(binary,
    temp.word(dir .. "/store"), dir, dir)
  local pipe = assert(io.popen(("sh -c 'echo $$; exec %s'"):format(words)))
  local pid = assert(math.tointeger(tonumber(pipe:read "l")))
  local remembered, count = 0, 0
  for line in pipe:lines() do
    count = count + 1
    remembered = math.tointeger(tonumber(line:match "^remembered (%d+)")) or remembered
    if count == lines then
      os.execute(("sleep %.4f; kill -9 %d"):format(delay, pid))
    end
  end
  local _, how, signal = pipe:close()
  assert(how == "signal" and signal == 9 or signal == 137, temp.read(dir .. "/err"))
  return remembered
end

-- How often each value stands in the memory; how many turns the user took; how many are unheard.
local function look(dir)
  local store <close> = open(dir)
  local session = assert(store:session { id = "s", agent = "coder", user = "ann" })
  local counts, turns = {}, #assert(session:messages { role = "user" })
  local memory = store:memory { agent = "coder", user = "ann", must_exist = true }
  for _, row in ipairs(memory and assert(memory:list { limit = 100000 }) or {}) do
    counts[row.value] = (counts[row.value] or 0) + 1
  end
  local unheard = memory and memory:consented() and assert(session:remember { dry = true,
    policy = { name = "listens", remember = function() end } }).heard or turns
  return counts, turns, unheard
end

-- How many of the turns are whole in the memory. Raises if one is there in part, or twice.
local function whole_turns(counts, turns, seed)
  local whole, values = 0, 0
  for turn = 1, turns do
    local found = 0
    for part = 1, parts do
      local times = counts[("turn %d part %d: barnacles"):format(turn, part)] or 0
      assert(times <= 1, ("turn %d is there twice (SEED=%d)"):format(turn, seed))
      found = found + times
    end
    assert(found == 0 or found == parts,
      ("of turn %d, %d of %d are there (SEED=%d)"):format(turn, found, parts, seed))
    whole, values = whole + found // parts, values + found
  end
  local all = 0
  for _ in pairs(counts) do
    all = all + 1
  end
  assert.equal(values, all) -- and nothing else
  return whole
end

describe("a process that remembers and is killed", function()
  teardown(temp.clean)

  it("has heard what is in the memory, and nothing else, and once", function()
    local seed = math.tointeger(tonumber(os.getenv "SEED" or "")) or os.time()
    math.randomseed(seed)
    local dir = temp.dir()
    temp.write(dir .. "/key", shell.output "od -An -tx1 -N32 /dev/urandom | tr -d ' \n'", "600")
    local unheard_after, unsaid_after, before = 0, 0, 0
    for _ = 1, kills do
      local remembered = launch(dir, math.random(1, 9), math.random(0, 200) / 10000)
      local counts, turns, unheard = look(dir)
      local whole = whole_turns(counts, turns, seed)
      assert.is_true(whole >= math.max(remembered, before), "SEED=" .. seed)
      assert.equal(turns - whole, unheard, "SEED=" .. seed)
      unheard_after = unheard_after + (unheard > 0 and 1 or 0)
      unsaid_after = unsaid_after + (whole > remembered and remembered > 0 and 1 or 0)
      before = whole
    end
    local store <close> = open(dir)
    local session = assert(store:session { id = "s", agent = "coder", user = "ann" })
    assert(session:append { role = "user", content = "the end" })
    assert.is_true(assert(store:check()).ok)
    assert.is_true(unheard_after > 0, "no kill came between what was said and what was heard")
    print(("# figure: kills of a process that remembers = %d"):format(kills))
    print(("# figure: of these, with something said and not yet heard = %d"):format(unheard_after))
    print(("# figure: of these, heard and not yet acknowledged = %d"):format(unsaid_after))
    print(("# figure: turns remembered under kills, each whole and once = %d"):format(before))
  end)
end)
