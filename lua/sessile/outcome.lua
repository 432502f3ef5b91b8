-- outcome.lua: the results of runs as the host sees them: outcomes and plans.
--
-- An outcome can be used after its run has ended. Its `context` is read from the session on first
-- use. A plan contains everything, because nothing of it is stored.

local options = require "sessile.options"

local outcome = {}

-- The ids of a turn's messages. The entries of a turn are adjacent, and the last is the turn
-- itself.
local function message_ids(first, last)
  local ids = {}
  for id = tonumber(first, 16), tonumber(last, 16) - 1 do
    ids[#ids + 1] = ("%08x"):format(id)
  end
  return ids
end

-- The result of one policy; raw has verdict, message, law, policy, hook and too_little.
local function verdict_of(raw, removals)
  local applied = raw.verdict == "applied"
  local refused = raw.verdict == "refused"
  return {
    applied = applied,
    verdict = raw.verdict,
    refused = refused and (raw.message or "refused") or nil,
    message = raw.message,
    law = refused and raw.law > 0 and raw.law or nil,
    name = raw.policy,
    hook = raw.hook,
    dropped = applied and #removals or 0,
    removals = removals,
    too_little = raw.too_little,
  }
end

-- nil without a policy. If the fallback ran, the removals are its own.
local function policy_of(raw)
  if raw.verdict == "none" then
    return nil
  end
  local fallback = raw.fallback
  local made = verdict_of(raw, fallback and {} or raw.removals)
  made.reason = raw.reason
  if fallback then
    made.fallback = verdict_of(fallback, raw.removals)
    made.fallback.refusal = fallback.refusal
    made.fallback.repeated = fallback.repeated > 0 and fallback.repeated or nil
  end
  return made
end

local meta = { __name = "sessile.Outcome" }

--- The outcome of a loop, which may have failed or be paused. session: nil if there is none; then
--- `context` is one of the facts.
function outcome.of(session, facts)
  facts._session = session
  return setmetatable(facts, meta)
end

-- Fields that need the session are read on first use: the context, and, if no policy ran, the
-- tokens.
function meta.__index(self, key)
  if key ~= "context" and key ~= "tokens" or not rawget(self, "_session") then
    return nil
  end
  local list, info = self._session:context { at = self.head }
  if not list then
    options.misuse(("outcome.%s: %s"):format(key, info))
  end
  rawset(self, "context", list)
  if rawget(self, "tokens") == nil then
    rawset(self, "tokens", { before = info.tokens, after = info.tokens })
  end
  return rawget(self, key)
end

function meta.__tostring(self)
  local policy = self.policy
  local verdict = policy and policy.verdict or "no policy"
  if policy and policy.fallback then
    verdict = ("%s, fallback %s"):format(verdict, policy.fallback.verdict)
  end
  return ("sessile.Outcome: %s, %s"):format(self.status, verdict)
end

--- Makes an outcome of what the core's outcome() returned. log: messages of the host's policies;
--- those of policy files are added.
function outcome.make(raw, session, kind, log)
  for line in (raw.log or ""):gmatch "[^\n]+" do
    log[#log + 1] = line
  end
  return setmetatable({
    status = raw.pending_run and "paused" or "completed",
    pending_run = raw.pending_run,
    checkpoint = raw.checkpoint,
    checkpoint_failed = raw.checkpoint_failed,
    kind = kind,
    ids = kind == "turn" and message_ids(raw.first, raw.last) or {},
    turn = kind == "turn" and raw.last or nil,
    again = raw.again or nil,
    head = raw.head,
    from = raw.from,
    branch_summary = raw.branch_summary,
    saved = raw.saved ~= false or nil, -- nil: the host's store kept it not, by choice
    tokens = raw.verdict ~= "none" and kind ~= "branch"
      and { before = raw.tokens_before, after = raw.tokens_after } or nil,
    policy = policy_of(raw),
    removals = raw.removals,
    cannot_fit = raw.cannot_fit > 0 and raw.cannot_fit or nil,
    compaction = raw.compaction,
    time = raw.time,
    first_kept = raw.first_kept,
    refusal = raw.refusal,
    repeated = raw.repeated > 0 and raw.repeated or nil,
    memory = raw.memory,
    summary = raw.summary,
    engine_us = raw.engine_us,
    policy_us = raw.policy_us,
    log = log,
    _session = session,
  }, meta)
end

--- The outcome of suspending a session. The entry `suspension` has the reason.
function outcome.paused(session, head, id)
  return setmetatable({
    status = "paused", kind = "suspend", ids = {}, head = head, suspension = id, log = {},
    _session = session,
  }, meta)
end

-- ---------------------------------------------------------------- plans

local plan_methods = {}
outcome.plan_methods = plan_methods

--- Before and after as text, one line a message, and the same as a list of rows.
function plan_methods:diff()
  return self._diff(self)
end

local plan_meta = { __name = "sessile.Plan", __index = plan_methods }

function plan_meta.__tostring(self)
  return (self:diff())
end

--- A plan from the outcome of its run and the contexts before and after.
function outcome.plan(result, before, after, diff)
  local plan = { before = before, after = after, _diff = diff }
  for name in ("tokens policy removals first_kept cannot_fit summary engine_us policy_us log")
    :gmatch "%S+" do
    plan[name] = result[name]
  end
  return setmetatable(plan, plan_meta)
end

return outcome
