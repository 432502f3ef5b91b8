-- remember.lua: what was said in a session, kept in its memories: `session:remember`.
--
-- A policy decides what; the engine checks it against the laws of memory and writes it, with how
-- far the session was heard. A long session is heard in several runs.

local memories = require "sessile.memories"
local memory_runs = require "sessile.memory_runs"
local options = require "sessile.options"
local settings = require "sessile.memory_settings"

local remember = {}
local methods = {}
remember.methods = methods

-- Runs for one call: each hears at most 200 messages.
local ROUNDS = 50

local call_options = options.shape("session:remember", {
  policy = "any", model = "callable", dry = "boolean", share = "boolean", timeout_ms = "timeout",
  isolation = { "none", "worker" },
})

local SUMS = { "heard", "written", "pending", "lowered", "ended", "confirmed", "not_admitted",
  "stale", "policy_us" }

-- Adds the outcome of a run to that of those before.
local function add(sum, outcome)
  if not sum then
    return outcome
  end
  for _, name in ipairs(SUMS) do
    outcome[name] = outcome[name] + sum[name]
  end
  table.move(outcome.changes or {}, 1, #(outcome.changes or {}), #sum.changes + 1, sum.changes)
  outcome.changes = sum.changes
  outcome.log = (sum.log or "") .. (outcome.log or "")
  if outcome.verdict == "unchanged" and sum.verdict == "applied" then
    outcome.verdict = "applied"
  end
  return outcome
end

--- The open memories of a session: {of=, handles=, names=}; nil, message, code.
function remember.memories(self)
  local of = self._recalled_from
  if not of then
    of = memories.open(self._store, self.agent, self.user)
    rawset(self, "_recalled_from", of)
  end
  local handles, names, code, retry_ms, rule = memories.handles(of)
  if not handles then
    return nil, names, code, retry_ms, rule
  end
  return { of = of, handles = handles, names = names }
end

-- The memory that is written to; it is made if need be, that of a user only with consent.
local function open_target(self)
  local found, message, code, retry_ms, rule = remember.memories(self)
  if not found then
    return nil, message, code, retry_ms, rule
  end
  local wanted = self.user and self.user ~= "" and "user" or "agent"
  if found.names[1] ~= wanted and wanted == "user" then
    return nil, "the user has not consented: nothing is heard or written until a consent is: "
      .. "session:memory{ consent = their words }", "EDENIED"
  elseif not found.handles[1] then
    local done
    done, message, code, retry_ms, rule = memories.make(found.of)
    if not done then
      return nil, message, code, retry_ms, rule
    end
    return remember.memories(self)
  end
  return found
end

local function run_once(self, opts, chosen, found, own)
  local run, message, code, retry_ms, rule = self._core:remember_run(found.handles, {
    policy = chosen.handle, isolation = opts.isolation, timeout_ms = opts.timeout_ms,
    dry_run = opts.dry, share = opts.share == nil and own.share or opts.share,
    trust_tools = own.trust and own.trust.tool == "live" or nil,
  })
  if not run then
    return nil, message, code, retry_ms, rule
  end
  local about = memory_runs.about(self, self.agent, opts.model or self._model, chosen)
  about.memory = found.of
  return memory_runs.drive(run, about)
end

--- Remembers what was said since it was last heard. Returns {verdict=, heard=, left=, written=,
--- pending=, lowered=, ended=, confirmed=, not_admitted=, stale=, changes = {…}, law=, message=,
--- …}. dry: nothing is written; one run.
function methods:remember(given)
  local opts = options.check("session:remember", given, call_options)
  local own = settings.of(self._store, self.agent)
  local ok, message, code, retry_ms, rule = settings.check_enabled(own, self.agent)
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  local chosen
  chosen, message, code, retry_ms, rule =
    memory_runs.policy("session:remember", self._store, self.agent, opts.policy)
  if not chosen then
    return nil, message, code, retry_ms, rule
  elseif not chosen.handle then
    return nil, "no policy says what to remember: name one in the call, or in memory.policy",
      "EINVALID"
  end
  local found
  found, message, code, retry_ms, rule = open_target(self)
  if not found then
    return nil, message, code, retry_ms, rule
  end
  local sum
  for _ = 1, ROUNDS do
    local outcome
    outcome, message, code, retry_ms, rule = run_once(self, opts, chosen, found, own)
    if not outcome then
      return nil, message, code, retry_ms, rule
    end
    sum = add(sum, outcome)
    local ends = outcome.verdict == "refused" or outcome.verdict == "stale"
    if opts.dry or outcome.left == 0 or ends then
      break
    end
  end
  return sum
end

--- The memories that policies of a session have as ctx.memory: core handles, or nil. Those of an
--- agent are made if need be, so that its first flush has one.
function remember.of_policies(self)
  if settings.of(self._store, self.agent).enabled ~= true then
    return nil
  end
  local found = open_target(self)
  return found and #found.handles > 0 and found.handles or nil
end

-- ---------------------------------------------------------------- by itself

-- The outcome, or {failure = message, code = code}: what was said is heard the next time.
local function try(self)
  local outcome, message, code = self:remember()
  if outcome and outcome.verdict == "refused" then
    return outcome
  end
  return outcome or { failure = message, code = code }
end

-- By session: whether something was said through this handle, and in how many turns.
local unheard = setmetatable({}, { __mode = "k" })

--- Something was said through this handle that was not heard.
function remember.said(self, turns)
  unheard[self] = (unheard[self] or 0) + (turns or 0)
end

--- After a turn or a compaction: remembers if memory.remember says so. Adds `remembered` to the
--- outcome.
function remember.after(self, outcome)
  if outcome.turn then
    remember.said(self, 1)
  end
  local every = settings.remembers(self._store, self.agent, "turns")
  if outcome.compaction and settings.remembers(self._store, self.agent, "compact")
    or every and (unheard[self] or 0) >= every then
    unheard[self] = nil
    rawset(outcome, "remembered", try(self))
  end
  return outcome
end

--- Before the session is closed.
function remember.on_close(self)
  if unheard[self] and settings.remembers(self._store, self.agent, "close") then
    unheard[self] = nil
    return try(self)
  end
  return nil
end

return remember
