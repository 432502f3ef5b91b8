--- laws: checks all laws on many generated conversations.
--
-- It chooses the conversations and windows, and searches for the smallest conversation that breaks
-- a law. The report contains the seed, so that every failure can be replayed.

local core = require "sessile.core"
local fixtures = require "sessile.testing.fixtures"
local generate = require "sessile.testing.generate"
local models = require "sessile.testing.models"
local properties = require "sessile.testing.properties"
local report = require "sessile.testing.report"
local shrink = require "sessile.testing.shrink"

local laws = {}

-- Tries of the shrinking when each may spend a policy's whole budget of time.
local SLOW = 60

---@class sessile.testing.laws_options
---@field runs integer?      conversations (default 60; the environment's RUNS)
---@field seed integer?      of the first (default 1; the environment's SEED, alone)
---@field windows integer[]? in tokens (default 200, 1000 and 4000)
---@field shape sessile.testing.shape?
---@field fixtures any[]?    recordings to play too, each in each window: paths, or as T.fixture
---@field model any?         else one that answers in a sentence
---@field compact boolean?   ask for a compaction at the end (default true)

-- A case: one conversation in one window.
local function play(policy, case, turns)
  return policy:run({ name = "made", turns = turns }, {
    window = case.window, reserve = case.reserve, compact = case.compact,
    model = case.model and case.model() or models.scripted { "Short summary." },
  })
end

local function tell(policy, case, law, says, turns, what, at)
  return table.concat({
    law == 0 and ("policy '%s' fails: %s"):format(policy.name, what)
      or ("policy '%s' breaks law %d (it %s): %s"):format(policy.name, law, says, what),
    ("the smallest conversation found that shows it, in a window of %d%s%s:"):format(case.window,
      case.reserve > 0 and (" with %d kept free"):format(case.reserve) or "",
      at and (", refused in turn %d"):format(at) or ""),
    report.turns(turns),
    case.seed and ("to see it again: SEED=%d RUNS=1"):format(case.seed)
      or ("cut from the recording %s"):format(case.name),
  }, "\n")
end

-- A recording's messages as tables that can be shrunk.
local function plain_turns(fixture)
  local turns = {}
  for i, turn in ipairs(fixture.turns) do
    turns[i] = {}
    for j, message in ipairs(turn) do
      turns[i][j] = core.plain(message)
    end
  end
  return turns
end

-- The conversations to play: cases, each with its turns.
local function cases_of(options)
  local seed = options.seed or math.tointeger(tonumber(os.getenv "SEED")) or 1
  local runs = options.runs or math.tointeger(tonumber(os.getenv "RUNS")) or 60
  local windows = options.windows or { 200, 1000, 4000 }
  local cases = {}
  for i = 0, runs - 1 do
    local window = windows[i % #windows + 1]
    cases[#cases + 1] = {
      seed = seed + i, window = window, reserve = i % 4 == 0 and window // 10 or 0,
      turns = generate.turns(seed + i, options.shape),
    }
  end
  for _, given in ipairs(options.fixtures or {}) do
    local fixture = fixtures.of(given)
    for _, window in ipairs(windows) do
      cases[#cases + 1] = { name = fixture.name, window = window, reserve = 0,
        turns = plain_turns(fixture) }
    end
  end
  return cases
end

--- Plays all cases. Returns a report for each broken law (0: an error of the policy).
---@param policy table   of T.load
---@param options sessile.testing.laws_options?
---@return table<integer, string> broken
---@return integer played
function laws.check(policy, options)
  options = options or {}
  local broken, played = {}, 0
  local wanted = { { 0, "fails" }, table.unpack(properties.laws) }
  for _, case in ipairs(cases_of(options)) do
    local turns = case.turns
    case.compact, case.model = options.compact ~= false, options.model
    local result = play(policy, case, turns)
    played = played + 1
    for _, law in ipairs(wanted) do
      local number, says = law[1], law[2]
      if not broken[number] and properties.broken(result, number) then
        local least = shrink.turns(turns, function(fewer)
          return properties.broken(play(policy, case, fewer), number) ~= nil
        end, (number == 0 or number == 10) and SLOW or nil)
        local what, at = properties.broken(play(policy, case, least), number)
        broken[number] = tell(policy, case, number, says, least, what, at)
      end
    end
  end
  return broken, played
end

-- An iterator over (seed, turns) of generated conversations.
local function conversations(options)
  local seed = (options.seed or 1) - 1
  local last = seed + (options.runs or 20)
  return function()
    seed = seed + 1
    if seed <= last then
      return seed, generate.turns(seed, options.shape)
    end
  end
end

--- Playing a conversation twice leaves the same context.
---@return string? wrong
function laws.same_twice(policy, options)
  options = options or {}
  for seed, turns in conversations(options) do
    local case = { seed = seed, window = 1000, reserve = 0, compact = true, model = options.model }
    local one, two = play(policy, case, turns), play(policy, case, turns)
    if report.context(one.context) ~= report.context(two.context) or one.tokens ~= two.tokens then
      return ("policy '%s' leaves two contexts of one conversation (SEED=%d)\n%s\nand\n%s")
        :format(policy.name, case.seed, report.context(one.context), report.context(two.context))
    end
  end
  return nil
end

--- A second compaction right after the first one changes nothing.
---@return string? wrong
function laws.idempotent(policy, options)
  options = options or {}
  for seed, turns in conversations(options) do
    local wrong = policy:run_twice({ name = "made", turns = turns }, {
      window = 1000, model = options.model and options.model() or models.scripted { "Short." },
    })
    if wrong then
      return ("policy '%s': %s (SEED=%d)\n%s"):format(policy.name, wrong, seed,
        report.turns(turns))
    end
  end
  return nil
end

return laws
