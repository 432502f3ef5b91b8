--- play: a policy under test, and its effect on a conversation.
--
-- The turns are written one by one to a session of a store in memory. Sandbox and laws are those of
-- the engine, as in use.

local coverage = require "sessile.testing.coverage"
local fixtures = require "sessile.testing.fixtures"
local memory = require "sessile.testing.memory"
local models = require "sessile.testing.models"
local sessile = require "sessile"

local play = {}

local methods = {}
for name, method in pairs(memory.methods) do
  methods[name] = method
end
local meta = { __name = "sessile.testing.policy", __index = methods }

-- The words that the engine takes for a policy.
local function spec_of(policy, options)
  if type(policy) ~= "string" then
    if options then
      error("T.load: options go with a name or a path; a table of hooks has its own", 3)
    end
    return policy
  end
  local spec = { policy }
  for name, value in pairs(options or {}) do
    spec[name] = value
  end
  return spec
end

local function name_of(policy)
  if type(policy) == "string" then
    return policy:match("([^/]+)%.lua$") or policy
  end
  return type(policy) == "table" and policy.name or "policy"
end

---@class sessile.testing.load_options
---@field policy_path string?  folders to look names up in, `:` between
---@field limits table?  as sessile.open: policy_gas, policy_ms, policy_memory, policy_result

--- Loads a policy as the engine does. Raises the engine's message if it does not load.
---@param policy any   a name, a path, a table of hooks, a chain
---@param options table?  its options
---@param about sessile.testing.load_options?
function play.load(policy, options, about)
  local spec = coverage.watched(policy, options) or spec_of(policy, options)
  about = about or {}
  local store, message = sessile.open("ram:", { key = false, policy = spec,
    policy_path = about.policy_path, limits = about.limits })
  if not store then
    error(message, 0)
  end
  store:close()
  return setmetatable({ name = name_of(policy), spec = spec, policy_path = about.policy_path,
    limits = about.limits }, meta)
end

---@class sessile.testing.run_options
---@field window integer?
---@field reserve integer?
---@field model any?      a scripted model, a function; else one that answers in a sentence
---@field compact boolean?  ask for a compaction after the last turn, as a person would
---@field instructions string?  what that person typed
---@field triggers any?     when to compact without asking the policy, as sessile.open takes it
---@field fallback any?    what runs when it is refused, as sessile.open takes it
---@field event string|table?  given with every turn, or {[turn] = name}

---@class sessile.testing.result
---@field policy string
---@field fixture string
---@field outcomes table[]    one a turn, and one of the compaction that was asked for
---@field session table
---@field context table[]     as the model would get it, at the end
---@field messages table[]    every message of the path
---@field refusals {turn: integer, law: integer?, hook: string?, policy: string?, message: string}[]
---@field applied integer     proposals that were accepted, the fallback's too
---@field fired {turn: integer, reason: string}[]  what made it compact: a trigger, or itself
---@field tokens integer
---@field window integer?
---@field reserve integer

local function enter(result, turn, outcome)
  result.outcomes[#result.outcomes + 1] = outcome
  local policy = outcome.policy
  if policy and policy.refused then
    table.insert(result.refusals, {
      turn = turn, law = policy.law, hook = policy.hook, policy = policy.name,
      message = policy.refused,
    })
    policy = policy.fallback
  end
  if policy and policy.applied then
    result.applied = result.applied + 1
  end
  local reason = outcome.policy and outcome.policy.reason
  if reason and reason ~= "turn" then
    table.insert(result.fired, { turn = turn, reason = reason })
  end
end

-- A policy that stands a failing model would hide that a recording lacks an answer.
local function check_recorded(model)
  local missing = type(model) == "table" and model.missing
  if missing and missing[1] then
    error(("%s holds no answer to %d of the requests: run once with RECORD=1 and a model to ask")
      :format(model.path, #missing), 0)
  end
end

--- Plays a conversation under the policy.
---@param fixture any  a fixture, its name or path, turns, or messages
---@param options sessile.testing.run_options?
---@return sessile.testing.result
function methods:run(fixture, options)
  fixture = fixtures.of(fixture)
  options = options or {}
  local model = options.model or models.scripted { "A summary of what came before." }
  local store <close> = assert(sessile.open("ram:", {
    key = false, policy = self.spec, policy_path = self.policy_path, limits = self.limits,
    model = function(request) return model(request) end,
    window = options.window, reserve = options.reserve, triggers = options.triggers,
    fallback = options.fallback,
  }))
  local session = assert(store:create { id = "fixture" })
  local result = {
    policy = self.name, fixture = fixture.name, outcomes = {},
    refusals = {}, applied = 0, fired = {},
    window = options.window, reserve = options.reserve or 0,
  }
  for i, turn in ipairs(fixture.turns) do
    local event = options.event
    if type(event) == "table" then
      event = event[i]
    end
    local outcome, message = session:turn(turn, { event = event })
    if not outcome then
      error(("%s, turn %d: the engine does not take it: %s"):format(fixture.name, i, message), 0)
    end
    rawset(outcome, "context", outcome.context) -- read while the session is open
    enter(result, i, outcome)
  end
  if options.compact then
    local outcome = assert(session:compact { instructions = options.instructions })
    rawset(outcome, "context", outcome.context)
    enter(result, #fixture.turns, outcome)
  end
  check_recorded(model)
  local info
  result.context, info = session:context()
  result.tokens, result.info = info.tokens, info
  result.messages = assert(session:messages())
  result.entries = {}
  for entry in assert(session:entries()) do
    result.entries[#result.entries + 1] = entry
  end
  return result
end

--- Plays a conversation and compacts twice. Returns a sentence about what the second compaction
--- changed, or nil.
---@param fixture any
---@param options sessile.testing.run_options?
---@return string? wrong
function methods:run_twice(fixture, options)
  fixture = fixtures.of(fixture)
  options = options or {}
  local store <close> = assert(sessile.open("ram:", {
    key = false, policy = self.spec, policy_path = self.policy_path, limits = self.limits,
    model = options.model, window = options.window, reserve = options.reserve,
  }))
  local session = assert(store:create { id = "fixture" })
  for _, turn in ipairs(fixture.turns) do
    assert(session:turn(turn))
  end
  local first = assert(session:compact {})
  local second = assert(session:compact {})
  if first.policy.refused or not second.policy.applied then
    return nil
  end
  return ("a second compaction took out %d messages more, from %d to %d tokens")
    :format(second.policy.dropped, second.tokens.before, second.tokens.after)
end

return play
