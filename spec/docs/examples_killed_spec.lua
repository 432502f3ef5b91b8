-- examples/pipeline.lua, killed at any moment, again and again, does each record once.
--
-- 10 kills; with SESSILE_SOAK=1, 100. The seed is printed by a failure; SEED=… takes its place.
-- Files only: examples have folders of their own.
-- Own guard: examples open their stores by themselves.

local example = require "spec.support.example"
local temp = example.temp
local sessile = require "sessile"

local soak = os.getenv "SESSILE_SOAK" ~= nil
local kills = soak and 100 or 10
local seed = tonumber(os.getenv "SEED") or os.time()

local records = 1000

-- Runs it until it ends or that many seconds are over. Whether it was killed; what it said.
local function run(dir, seconds)
  local line = ("timeout -s KILL %.3f %s run examples/pipeline.lua %s/store"):format(seconds,
    example.command, dir)
  local out, err, status = example.shell(line)
  assert.is_true(status == 0 or status == 137 or status == 9, err)
  return status ~= 0, out
end

-- What is done in a folder: how many records, each once and in order, and how many checkpoints.
local function done(dir)
  local store <close> = assert(sessile.open(dir .. "/store", { key = false }))
  local session = store:resume "orders"
  local count = 0
  if session then
    for entry in assert(session:entries { types = { "custom" } }) do
      count = count + 1
      assert.equal(count, entry.data.record, "SEED=" .. seed)
    end
  end
  return count, session and #session:checkpoints() or 0
end

describe("examples/pipeline.lua, killed", function()
  teardown(temp.clean)

  it("ends with each record done once, in order, and every checkpoint", function()
    math.randomseed(seed)
    local killed, finished, restored, longest = 0, 0, 0, 0.1
    local dir, known, marks = temp.dir(), 0, 0
    while killed < kills or known > 0 do
      local was_killed, out = run(dir, killed < kills and longest * math.random() or 600)
      local count, checkpoints = done(dir)
      assert.is_true(count >= known, "records were lost, SEED=" .. seed)
      local resumed = tonumber(out:match "^resumed at record (%d+):")
      assert.is_true(not resumed or resumed == known + 1, "SEED=" .. seed)
      restored = restored + (resumed and marks > 0 and 1 or 0)
      marks = checkpoints
      if was_killed then
        -- What counts is a kill that had something to interrupt.
        killed = killed + (count > known and 1 or 0)
        longest = count > known and longest or longest * 1.1
        known = count
      else
        assert.matches("1000 records, 4003 pieces\t10 checkpoints\n$", out)
        assert.equal(records, count)
        assert.equal(10, checkpoints)
        finished, longest = finished + 1, longest * 0.9
        dir, known, marks = temp.dir(), 0, 0 -- the next one begins from nothing
      end
    end
    assert.is_true(finished > 0)
    print(("# figure: kills of the pipeline amid its records = %d"):format(killed))
    print(("# figure: restores of a checkpoint after them, all of which succeeded = %d"):format(
      restored))
    print(("# figure: pipelines of 1,000 records that ended with each done once = %d"):format(
      finished))
  end)
end)
