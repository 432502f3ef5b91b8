--- testing: specs for policies. `local T = require "sessile.testing"`, in a busted spec.
--
--   T.load(policy, options)      a policy in the engine's sandbox
--   policy:run(fixture, opts)    plays a conversation under it; returns the result
--   policy:remember, :tidy, :recall, :admit    what a policy of memories does
--   T.laws(policy)               tests: the laws, over generated conversations
--   T.faults(policy)             tests: a model that fails in every way
--   T.fixture, T.each_fixture    recorded conversations
--   T.memory                     a memory with entries
--   T.model, T.recorded          scripted answers, and those of a file
--   T.embedder                   vectors from a table of synonyms
--   T.screen(name, options)      a screen; screen:run(text), screen:rates(), screen:print_rates()
--   T.attacks "memory", T.ordinary()   texts that a screen should stop, and let pass
--   T.bench                      prints times, asserts nothing
--   assert.tool_pairs(r) .within_budget(r) .keeps(r, {…}) .lawful(r) .golden(r)
--
-- Loading it registers the assertions. Tests are only defined by these functions, in the describe
-- block that calls them.

local asserts = require "sessile.testing.asserts"
local embedder = require "sessile.testing.embedder"
local fixtures = require "sessile.testing.fixtures"
local generate = require "sessile.testing.generate"
local laws = require "sessile.testing.laws"
local memory = require "sessile.testing.memory"
local memory_laws = require "sessile.testing.memory_laws"
local models = require "sessile.testing.models"
local play = require "sessile.testing.play"
local policy_file = require "sessile.policy_file"
local properties = require "sessile.testing.properties"
local screens = require "sessile.testing.screens"
local sessile = require "sessile"

asserts.install()

local testing = {
  load = play.load,
  fixture = fixtures.of,
  model = models.scripted,
  recorded = models.recorded,
  memory = memory.fixture,
  embedder = embedder.new,
  screen = screens.load,
  attacks = screens.attacks,
  ordinary = screens.ordinary,
  generate = generate.turns,
  check = laws.check,
}

local function busted()
  local ok, found = pcall(require, "busted")
  if not ok or not found.it then
    error("this wants busted: run the spec with `sessile policy test`, or with busted", 3)
  end
  return found
end

--- Calls fn with each fixture that matches the pattern, in order. Raises if there is none.
---@param glob string
---@param fn fun(fixture: sessile.testing.fixture)
function testing.each_fixture(glob, fn)
  local files = fixtures.files(glob)
  if #files == 0 then
    error(("no fixture is called %s"):format(glob), 2)
  end
  for _, path in ipairs(files) do
    fn(fixtures.load(path))
  end
end

-- A function that defines a test: check(…) returns what is wrong, or nil.
local function tester()
  local it = busted().it
  return function(title, check, ...)
    local given = table.pack(...)
    it(title, function()
      local wrong = check(table.unpack(given, 1, given.n))
      if wrong then
        error(wrong, 0)
      end
    end)
  end
end

local function context_laws(policy, options)
  local test, broken = tester(), nil
  local function law_broken(number)
    broken = broken or laws.check(policy, options)
    return broken[number]
  end
  test("works on every conversation", law_broken, 0)
  for _, law in ipairs(properties.laws) do
    test(("%s (law %d)"):format(law[2], law[1]), law_broken, law[1])
  end
  test("leaves the same context when it is run again", laws.same_twice, policy, options)
  test("changes nothing when it compacts a second time", laws.idempotent, policy, options)
end

local function laws_of_memory(policy, options)
  local test, broken = tester(), nil
  local has = policy_file.hooks(policy.spec, policy.policy_path)
  local function law_broken(number)
    broken = broken or memory_laws.check(policy, has, options)
    return broken[number]
  end
  test("works with every memory and model", law_broken, 0)
  for _, law in ipairs(memory_laws.laws) do
    test(("%s (law of memory %d)"):format(law[2], law[1]), law_broken, law[1])
  end
end

--- One test for each law, and for determinism and idempotence, over generated conversations. For a
--- policy of memories, one for each law of memory.
---@param policy table
---@param options sessile.testing.laws_options?
function testing.laws(policy, options)
  local is_memory, is_context = policy_file.kinds(policy.spec, policy.policy_path)
  if is_memory then
    laws_of_memory(policy, options)
  end
  if is_context or not is_memory then
    context_laws(policy, options)
  end
end

local function faults_of_memory(policy)
  local test = tester()
  for _, fault in ipairs(models.faults()) do
    test(("stands a model that %s while it remembers"):format(fault.name), memory_laws.fault,
      policy, fault.model)
  end
end

--- One test for each way in which a model can fail: the turns are kept and the context is lawful.
--- Of a policy of memories: what was not heard is heard the next time.
---@param policy table
---@param options sessile.testing.run_options?
function testing.faults(policy, options)
  local is_memory, is_context = policy_file.kinds(policy.spec, policy.policy_path)
  if is_memory and policy_file.hooks(policy.spec, policy.policy_path).remember then
    faults_of_memory(policy)
  end
  if is_memory and not is_context then
    return
  end
  local it = busted().it
  local turns = generate.turns(7, { turns = 12, scale = 60 })
  for _, fault in ipairs(models.faults()) do
    it(("stands a model that %s"):format(fault.name), function()
      local given = { window = 2000, compact = true }
      for name, value in pairs(options or {}) do
        given[name] = value
      end
      given.model = fault.model
      local result = policy:run({ name = "faults", turns = turns }, given)
      local said = 0
      for _, turn in ipairs(turns) do
        said = said + #turn
      end
      if #result.messages ~= said then
        error(("%d messages were said, %d are there"):format(said, #result.messages), 0)
      end
      for _, law in ipairs(properties.laws) do
        local what = properties.broken(result, law[1])
        if what then
          error(("law %d: %s"):format(law[1], what), 0)
        end
      end
    end)
  end
end

--- Prints the time of a turn under the policy with this number of messages in the context.
---@param name string
---@param options {policy: table, entries: integer?, window: integer?}
function testing.bench(name, options)
  busted().it(("bench: %s"):format(name), function()
    local count = options.entries or 1000
    local store <close> = assert(sessile.open("ram:", {
      key = false, policy = options.policy.spec, window = options.window,
      policy_path = options.policy.policy_path, model = models.scripted { "A summary." },
    }))
    local session = assert(store:create {})
    local turn = {}
    for i = 1, count do
      turn[i] = { role = i % 2 == 1 and "user" or "assistant", content = "message " .. i }
    end
    assert(session:turn(turn, { policy = false }))
    local times = {}
    for i = 1, 50 do
      local outcome = assert(session:turn {
        { role = "user", content = "again " .. i }, { role = "assistant", content = "yes" } })
      times[i] = outcome.policy_us
    end
    table.sort(times)
    io.stderr:write(("# %s: %d entries: policy %d µs median, %d µs p95\n"):format(name, count,
      times[25], times[48]))
  end)
end

return testing
