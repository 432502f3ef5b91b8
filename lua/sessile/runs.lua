-- runs.lua: methods of a session that take several steps: turn, compact, plan, branch and answer.
--
-- A host's functions (models, hooks) are called from plain Lua, so they may yield in a coroutine.

local agents = require "sessile.agents"
local diff = require "sessile.diff"
local host = require "sessile.host"
local inherited = require "sessile.inherited"
local names = require "sessile.names"
local options = require "sessile.options"
local outcome = require "sessile.outcome"
local policy = require "sessile.policy"
local remember = require "sessile.remember"
local triggers = require "sessile.triggers"
local usage = require "sessile.usage"

local starters, methods = {}, {}

-- ---------------------------------------------------------------- starting

-- `model` is the host's function, or the name of the model that spoke, which is recorded.
local turn_options = options.shape("session:turn", inherited.kinds, {
  usage = "table", model = "callable|string", model_name = "string", metadata = "table",
  base = "string", once = "string", on_conflict = { "fail", "append", "branch" },
  event = "string", state = "any",
})

local waits = {
  window = "count", reserve = "count", keep_min = "count", timeout_ms = "timeout",
  isolation = inherited.kinds.isolation,
}
local compact_options = options.shape("session:compact", waits, {
  policy = "any", fallback = "any", model = "callable", instructions = "string",
  reason = { "turn", "threshold", "overflow", "timer", "event", "manual" },
})
options.shape("session:plan", compact_options)

local branch_options = options.shape("session:branch", waits, {
  summary = "string|boolean", policy = "any", model = "callable", model_name = "string",
  instructions = "string", base = "string", on_conflict = { "fail", "append" },
})
local answer_options = options.shape("session:answer", {
  pending_run = "string", failed = "string", policy = "any", fallback = "any",
  model = "callable",
  timeout_ms = "timeout",
})

-- What a call gives, else the session's (which is the store's where the session gave none).
-- Returns what policy.resolve does, or a table that says nothing.
local function one_of(who, self, given, own)
  if given ~= nil then
    return policy.resolve(who, self._store_core, given)
  elseif own and own.failed then
    return nil, own.failed, own.code
  end
  return own or {}
end

-- The policy of a call and its fallback; nil, message, code. asked: a person asks for this
-- compaction, so that only a fallback of the call runs.
local function choose(who, self, opts, asked)
  local chosen, message, code, retry_ms, rule = one_of(who, self, opts.policy, self._policy)
  local fallback
  if chosen then
    fallback, message, code, retry_ms, rule =
      one_of(who, self, opts.fallback, not asked and self._fallback)
  end
  if not fallback then
    return nil, message, code, retry_ms, rule
  end
  return { handle = chosen.handle, hosts = chosen.hosts, none = chosen.none, fallback = fallback }
end

function starters.turn(self, messages, given)
  options.messages("session:turn", messages)
  local opts = options.check("session:turn", given, turn_options)
  usage.check("session:turn", opts.usage or {})
  local enabled, why, denied = agents.check_enabled(self._store, self.agent)
  if not enabled then
    return nil, why, denied
  end
  local chosen, message, code, retry_ms, rule = choose("session:turn", self, opts)
  if chosen then
    local ok
    ok, message, code, retry_ms, rule = names.fields(self, "session:turn", opts, "base")
    chosen = ok and chosen
  end
  if not chosen then
    return nil, message, code, retry_ms, rule
  end
  local name, model = opts.model_name, opts.model
  if type(model) == "string" then
    name, model = name or model, nil
  end
  local checkpoint = triggers.checkpoints("session:turn", opts.checkpoint) or self._checkpoint
  local run
  run, message, code, retry_ms, rule = self._core:turn(messages, {
    usage = opts.usage, model = name, metadata = opts.metadata, base = opts.base,
    once = opts.once, on_conflict = opts.on_conflict,
    policy = chosen.handle, no_policy = chosen.none,
    fallback = chosen.fallback.handle, no_fallback = chosen.fallback.none, event = opts.event,
    triggers = triggers.resolve("session:turn", opts.triggers) or self._triggers,
    checkpoint = checkpoint and checkpoint.on, checkpoint_keep = checkpoint and checkpoint.keep,
    state = opts.state,
    window = opts.window, reserve = opts.reserve, keep_min = opts.keep_min,
    timeout_ms = opts.timeout_ms, isolation = opts.isolation,
    memories = chosen.handle and remember.of_policies(self),
  })
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return host.wrap(run, self, "turn", chosen, model or self._model,
    checkpoint and checkpoint.state)
end

local function start(self, kind, given)
  local opts = options.check("session:" .. kind, given, compact_options)
  local asked = opts.reason == nil or opts.reason == "manual"
  local chosen, message, code, retry_ms, rule = choose("session:" .. kind, self, opts, asked)
  if not chosen then
    return nil, message, code, retry_ms, rule
  end
  local run
  run, message, code, retry_ms, rule = self._core[kind](self._core, {
    policy = chosen.handle, fallback = chosen.fallback.handle,
    no_fallback = chosen.fallback.none,
    instructions = opts.instructions, reason = opts.reason,
    window = opts.window, reserve = opts.reserve, keep_min = opts.keep_min,
    timeout_ms = opts.timeout_ms, isolation = opts.isolation,
    memories = chosen.handle and remember.of_policies(self),
  })
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return host.wrap(run, self, kind, chosen, opts.model or self._model)
end

function starters.compact(self, given)
  return start(self, "compact", given)
end

function starters.plan(self, given)
  return start(self, "plan", given)
end

function starters.branch(self, id, given)
  local opts = options.check("session:branch", given, branch_options)
  local summary = opts.summary
  local entry, message, code, retry_ms, rule = names.entry(self, "session:branch", id)
  local ok, chosen = entry ~= nil, nil
  if ok then
    ok, message, code, retry_ms, rule = names.fields(self, "session:branch", opts, "base")
  end
  if ok and summary ~= true and opts.policy == nil then
    chosen = { none = true, fallback = {} } -- only a summary asks a policy
  elseif ok then
    chosen, message, code, retry_ms, rule = choose("session:branch", self, opts)
  end
  if not chosen then
    return nil, message, code, retry_ms, rule
  end
  local run
  run, message, code, retry_ms, rule = self._core:branch(entry, {
    summary = type(summary) == "string" and summary or nil, summarize = summary == true,
    instructions = opts.instructions, model = opts.model_name, base = opts.base,
    on_conflict = opts.on_conflict, policy = chosen.handle, no_policy = chosen.none,
    window = opts.window, reserve = opts.reserve, keep_min = opts.keep_min,
    timeout_ms = opts.timeout_ms, isolation = opts.isolation,
  })
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return host.wrap(run, self, "branch", chosen, opts.model or self._model)
end

-- Whether a person asked for the run that waits (id nil: the newest).
local function is_asked(self, id)
  if not id then
    local rows = self:pending_runs() or {}
    id = #rows > 0 and rows[#rows].id
  end
  local entry = id and self:entry(id)
  return entry and entry.data.reason == "manual" or false
end

function starters.answer(self, text, given)
  local opts = options.check("session:answer", given, answer_options)
  options.expect("string?", text, "session:answer: the model's text")
  local ok, message, code, retry_ms, rule =
    names.fields(self, "session:answer", opts, "pending_run")
  local chosen
  if ok then
    chosen, message, code, retry_ms, rule =
      choose("session:answer", self, opts, is_asked(self, opts.pending_run))
  end
  if not chosen then
    return nil, message, code, retry_ms, rule
  end
  local run
  run, message, code, retry_ms, rule = self._core:answer {
    pending_run = opts.pending_run, text = text, failed = opts.failed, policy = chosen.handle,
    fallback = chosen.fallback.handle, no_fallback = chosen.fallback.none,
    timeout_ms = opts.timeout_ms, memories = chosen.handle and remember.of_policies(self),
  }
  if not run then
    return nil, message, code, retry_ms, rule
  end
  return host.wrap(run, self, "answer", chosen, opts.model or self._model)
end

-- ---------------------------------------------------------------- methods

-- Steps a run to its end.
local function driven(run, ...)
  if not run then
    return nil, ...
  end
  return host.drive(run)
end

-- The same; what was said may be remembered after it.
local function driven_and_heard(self, ...)
  local result, message, code, retry_ms, rule = driven(...)
  if not result then
    return nil, message, code, retry_ms, rule
  end
  return remember.after(self, result)
end

--- The messages of one turn, written as one commit; then policies run. Returns the outcome.
function methods:turn(messages, given)
  return driven_and_heard(self, starters.turn(self, messages, given))
end

--- Runs a policy on the context at the head. Returns the outcome.
function methods:compact(given)
  return driven_and_heard(self, starters.compact(self, given))
end

--- Moves the head to an entry, where the conversation continues. summary: a text, or true to ask
--- for one. Returns the outcome.
function methods:branch(id, given)
  return driven(starters.branch(self, id, given))
end

--- Continues a pending run: text is what the model said; nil: it is asked again (or
--- failed= says why there is no answer). Returns the outcome.
function methods:answer(text, given)
  return driven_and_heard(self, starters.answer(self, text, given))
end

--- As compact, but nothing is written. Returns what would be.
function methods:plan(given)
  local before, message, code, retry_ms, rule = self._core:context()
  if not before then
    return nil, message, code, retry_ms, rule
  end
  local run
  run, message, code, retry_ms, rule = starters.plan(self, given)
  if not run then
    return nil, message, code, retry_ms, rule
  end
  local result, after
  result, message, code, retry_ms, rule = host.drive(run, function(core_run)
    after, message, code, retry_ms, rule = core_run:context()
    return after ~= nil, message, code, retry_ms, rule
  end)
  if not result then
    return nil, message, code, retry_ms, rule
  end
  return outcome.plan(result, before, after, diff.make)
end

options.exact("session:", starters)

return { starters = starters, methods = methods }
