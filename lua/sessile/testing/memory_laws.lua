--- memory_laws: checks the laws of memory on many generated conversations.
--
-- The engine judges each proposal; of a policy that is meant to be good, none may be refused. What
-- is written is checked again here, by code of its own. The report contains the seed.

local facts = require "sessile.facts"
local memory = require "sessile.testing.memory"
local random = require "sessile.testing.random"
local report = require "sessile.testing.report"
local talk = require "sessile.testing.memory_talk"

local memory_laws = {}

--- The laws of memory, by number: how a test names them.
memory_laws.laws = {
  { 1, "writes only what messages or entries attest" },
  { 2, "never raises trust" },
  { 3, "ends only what it may" },
  { 4, "loses nothing" },
  { 5, "stays in the memory of the user" },
  { 6, "stays within the bounds of a run" },
}

local RANKS = { system = 3, user = 2, agent = 1, tool = 0 }
local WRITES, ENDS, VALUE, KEY, SOURCES = 32, 5, 2048, 200, 16

-- All entries by id, whatever became of them.
local function all_of(fixture)
  local rows = {}
  for _, state in ipairs { "live", "pending", "replaced", "deleted", "rejected", "expired" } do
    for _, row in ipairs(assert(fixture:list { state = state })) do
      rows[row.id] = row
    end
  end
  return rows
end

-- Whose words a message of a session is.
local function source_of(message)
  if message.role == "tool" or message.metadata and message.metadata.untrusted then
    return "tool"
  end
  return message.role == "user" and "user" or message.role == "assistant" and "agent" or "system"
end

-- The least of the sources of what an entry is from; and what is wrong with them.
local function attested(row, sessions)
  local least = 3
  if #(row.from or {}) == 0 then
    return nil, "it is from nothing"
  end
  for _, from in ipairs(row.from) do
    local list = sessions[from.session]
    if not list then
      return nil, "it is from a session that it was not shown"
    end
    local met = false
    for _, message in ipairs(list) do
      -- a message without words says nothing, though a range may cover it
      if message.id >= from.first and message.id <= from.last and message.says then
        met = true
        least = math.min(least, RANKS[source_of(message)])
      end
    end
    if not met then
      return nil, "it is from messages that are not there"
    end
  end
  return least
end

local function live_count(rows)
  local count = 0
  for _, row in pairs(rows) do
    count = count + (row.state == "live" and 1 or 0)
  end
  return count
end

-- Checks the entries that are new: laws 1, 2 and 6. A host's own entries are not among them.
local function check_new(run, before, after, note)
  local count = 0
  for id, row in pairs(after) do
    if not before[id] then
      count = count + 1
      local least, wrong = attested(row, run.sessions)
      local replaced = #(row.replaces or {}) > 0
      if wrong and not replaced then
        note(1, ("entry %s %q: %s"):format(id, row.value, wrong))
      end
      if least and RANKS[row.source] > least then
        note(2, ("entry %s %q has the source %s, and is from less"):format(id, row.value,
          row.source))
      end
      for _, of in ipairs(row.replaces or {}) do
        if before[of] and RANKS[row.source] > RANKS[before[of].source] then
          note(2, ("entry %s %q rose above %s, which it replaces"):format(id, row.value, of))
        end
      end
      if #row.value > VALUE or #(row.key or "") > KEY or #(row.from or {}) > SOURCES then
        note(6, ("entry %s is too large"):format(id))
      end
      if row.source == "tool" and row.state == "live" then
        note(2, ("entry %s %q has a tool's words, and is live"):format(id, row.value))
      end
    end
  end
  if count > WRITES * run.commits then
    note(6, ("%d entries were written"):format(count))
  end
end

-- Checks what ended: laws 3 and 4.
local function check_ended(run, before, after, note)
  local ended, live = 0, live_count(before)
  for id, row in pairs(before) do
    local now = after[id]
    if not now or now.value ~= row.value then
      note(4, ("entry %s %q is not there any more"):format(id, row.value))
    elseif row.state == "live" and now.state ~= "live" and now.state ~= "expired" then
      ended = ended + 1
      if row.pinned then
        note(3, ("entry %s %q is pinned, and ended"):format(id, row.value))
      elseif now.state == "deleted" and RANKS[row.source] > RANKS.agent then
        note(3, ("entry %s %q of the %s was deleted"):format(id, row.value, row.source))
      end
    end
  end
  local most = math.max(ENDS, (live + WRITES) // 10) * run.commits
  if ended > most then
    note(3, ("%d of %d entries ended"):format(ended, live))
  end
end

-- One run of hooks on the fixture, and what it left.
local function check(run, fixture, outcome, before, note)
  if outcome.verdict == "refused" then
    note(outcome.law or 0, outcome.message)
  end
  local after = all_of(fixture)
  check_new(run, before, after, note)
  check_ended(run, before, after, note)
  local shared = {}
  for i, row in ipairs(assert(fixture.agent_handle:list())) do
    shared[i] = row.value
  end
  if table.concat(shared, "\n") ~= run.shared then
    note(5, "the memory that the agent keeps for all has changed")
  end
end

local function remember(run, policy, fixture, turns, model, note)
  local before = all_of(fixture)
  local session = fixture:talk(turns, policy)
  run.sessions[session.id] = assert(session:messages())
  for i, message in ipairs(run.sessions[session.id]) do
    run.sessions[session.id][i] = { id = facts.of(message).id, role = message.role,
      metadata = message.metadata, says = message.content ~= "" }
  end
  run.commits = 2 -- remember, and tidy of what is new
  check(run, fixture,
    policy:remember(nil, { memory = fixture, session = session, model = model }), before, note)
end

-- What memories do for one seed. has: the hooks that the policy has.
local function play(policy, seed, options, has, note)
  local rnd = random.new(seed)
  local entries = {}
  for i = 1, rnd:int(0, 12) do
    entries[i] = talk.entry(rnd)
  end
  local run = { sessions = {}, shared = "the office is closed on Friday", turns = {} }
  local fixture = memory.fixture { entries = entries, shared = { run.shared } }
  local model = options.model and options.model() or talk.model(seed)
  if has.remember then
    for i = 1, rnd:int(1, 3) do
      local turns = talk.turns(seed * 31 + i)
      run.turns = turns
      remember(run, policy, fixture, turns, model, note)
    end
  end
  if has.tidy then
    local before = all_of(fixture)
    run.commits = 1
    check(run, fixture, policy:tidy(nil, nil, { memory = fixture, model = model }), before, note)
  end
  if has.recall then
    local outcome = policy:recall(talk.entry(rnd).value, nil, { memory = fixture })
    if outcome.message then
      note(0, outcome.message)
    end
  end
  if has.admit then
    local state, why = policy:admit(talk.entry(rnd))
    if state == "failed" then
      note(0, why)
    end
  end
  fixture:close()
  return run
end

---@class sessile.testing.memory_laws_options
---@field runs integer?   conversations (default 40; the environment's RUNS)
---@field seed integer?   of the first (default 1; the environment's SEED, alone)
---@field model any?      a function that makes a model; else one that obeys, misnames and raves

--- Plays all cases. Returns a report for each broken law (0: the policy failed).
---@param policy table   of T.load
---@param has table<string, boolean>   its hooks
---@param options sessile.testing.memory_laws_options?
---@return table<integer, string> broken
---@return integer played
function memory_laws.check(policy, has, options)
  options = options or {}
  local seed = options.seed or math.tointeger(tonumber(os.getenv "SEED")) or 1
  local runs = options.runs or math.tointeger(tonumber(os.getenv "RUNS")) or 40
  local broken = {}
  for i = 0, runs - 1 do
    local found = {}
    local run = play(policy, seed + i, options, has, function(law, what)
      found[law] = found[law] or what or "it failed"
    end)
    for law, what in pairs(found) do
      local says = memory_laws.laws[law] and memory_laws.laws[law][2]
      broken[law] = broken[law] or ("policy '%s' %s: %s\nwhat was said last:\n%s\nto see it again: "
        .. "SEED=%d RUNS=1"):format(policy.name,
        says and ("breaks law of memory %d (it %s)"):format(law, says) or "fails", what,
        report.turns(run.turns), seed + i)
    end
  end
  return broken, runs
end

--- What a failing model costs: the policy may be refused, but then nothing is written, and the same
--- is heard the next time. Returns a sentence, or nil.
---@param policy table
---@param model any
---@return string? wrong
function memory_laws.fault(policy, model)
  local fixture <close> = setmetatable({ at = memory.fixture {} },
    { __close = function(self) self.at:close() end })
  local said = talk.turns(7)
  local outcome = policy:remember(said, { memory = fixture.at, model = model })
  local again = policy:remember(nil, { memory = fixture.at, session = outcome.session })
  local failed = outcome.verdict == "refused" and outcome.hook == "remember"
  if (outcome.law or 0) > 0 then
    return ("law of memory %d: %s"):format(outcome.law, outcome.message)
  elseif failed and outcome.written > 0 then
    return "it was refused, and yet something was written"
  elseif failed and again.heard ~= outcome.heard then
    return ("it was refused, and then %d of %d messages were heard"):format(again.heard,
      outcome.heard)
  elseif not failed and again.heard > 0 then
    return "what was heard was heard again"
  end
  return nil
end

return memory_laws
