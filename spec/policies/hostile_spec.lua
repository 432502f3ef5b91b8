-- Scripts that mean harm, in both isolations: the turn is saved each time, the context is whole,
-- nothing of it reaches another session, and this process is there afterwards to say so.

local hostile = require "spec.support.hostile"
local lists = require "spec.support.lists"
local workers = require "spec.support.workers"
local sessile = require "sessile"

local worker = workers.path

local folder = os.tmpname()
os.remove(folder)
setup(function() assert(os.execute("mkdir -m 700 " .. folder)) end)
teardown(function() os.execute("rm -rf " .. folder) end)

local function file_of(script)
  local path = folder .. "/hostile.lua"
  local file <close> = assert(io.open(path, "w"))
  file:write(("return { name = 'hostile', truncate = function(state, ctx)\n%s\nend }\n")
    :format(script.body))
  return path
end

local function attack(script, isolation)
  local path = file_of(script)
  local store, message = sessile.open("ram:", {
    key = false, policy = path, isolation = isolation, worker = worker,
    -- a tenth of the usual, so that sixty of them are soon done
    limits = { policy_ms = 40, policy_gas = 5000000, policy_memory = 16 << 20 },
  })
  if not store then
    return nil, message
  end
  local session = assert(store:create {})
  local outcome
  for i = 1, 3 do
    outcome = assert(session:turn {
      { role = "user", content = "question " .. i },
      { role = "assistant", content = "answer " .. i },
    })
  end
  local texts = lists.field(session:messages(), "content")
  local count = #assert(session:context())
  store:close()
  return outcome, texts, count
end

local said = { "question 1", "answer 1", "question 2", "answer 2", "question 3", "answer 3" }

it("there are sixty of them", function()
  assert.is_true(#hostile >= 60)
end)

for _, isolation in ipairs { "none", "worker" } do
  describe("isolation " .. isolation, function()
    for _, script in ipairs(hostile) do
      it("contains " .. script.name, function()
        local outcome, texts, count = attack(script, isolation)
        if script.ends == "unloaded" then
          assert.is_nil(outcome) -- it does not even load
          return
        end
        assert.same(said, texts)
        if script.ends then
          assert.equal(script.ends, outcome.policy.verdict)
        end
        if outcome.policy.verdict == "refused" then
          assert.equal(6, count)
          assert.is_true(#outcome.policy.refused > 0 and #outcome.policy.refused < 600)
          if outcome.policy.refused:find("it spent its budget", 1, true) then
            assert.equal(10, outcome.policy.law)
          end
        end
      end)
    end
  end)
end

it("says the same in both isolations", function()
  for _, script in ipairs(hostile) do
    local here = attack(script, "none")
    local there = attack(script, "worker")
    if not here then
      assert.is_nil(there)
      goto next
    end
    assert.equal(here.policy.verdict, there.policy.verdict, script.name)
    assert.equal(here.policy.law, there.policy.law, script.name)
    -- where a script is when its time is over is chance
    if here.policy.refused and not here.policy.refused:find("budget", 1, true) then
      assert.equal(here.policy.refused, there.policy.refused, script.name)
    end
    ::next::
  end
end)
