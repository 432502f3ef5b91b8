-- session.lua: a session: what was said, what the model would get, and turns.
--
-- Everything that waits (a model, a hook that asks somebody) is reached from plain Lua, so a
-- host's functions may yield when they run in a coroutine. What is returned is always new
-- tables; nothing here keeps a message.

local annotate = require "sessile.annotate"
local checkpoints = require "sessile.checkpoints"
local diff = require "sessile.diff"
local export = require "sessile.export"
local family = require "sessile.family"
local host = require "sessile.host"
local life = require "sessile.life"
local object = require "sessile.object"
local names = require "sessile.names"
local options = require "sessile.options"
local outcome = require "sessile.outcome"
local policy = require "sessile.policy"
local trigger = require "sessile.trigger"
local why = require "sessile.why"

local session = {}

local methods = {}
session.methods = methods

-- ---------------------------------------------------------------- reading

local messages_options = {
  from = "string", at = "string", limit = "number", last = "number", role = "string",
}

--- Every message from the root to the head, compacted or not, oldest first.
function methods:messages(given)
  local opts = options.check("session:messages", given, messages_options)
  local ok, message, code = names.fields(self, "session:messages", opts, "from", "at")
  if not ok then
    return nil, message, code
  end
  return self._core:messages(opts)
end

local context_options = {
  at = "string", model = "string", tools = "table", system = "string", window = "number",
  reserve = "number",
}

--- What the model would get, and {tokens, low, high, source, head, dropped, orphans,
--- unanswered, lost}; with a window, info.room: what is left of it, less reserve. model, tools and
--- system are counted as tokens() does.
function methods:context(given)
  local opts = options.check("session:context", given, context_options)
  local ok, message, code = names.fields(self, "session:context", opts, "at")
  if not ok then
    return nil, message, code
  end
  local list, info
  list, info, code = self._core:context(opts.at)
  if not list then
    return nil, info, code
  end
  if opts.model or opts.tools or opts.system then
    local tokens, counted
    tokens, counted, code = self._core:tokens { model = opts.model, tools = opts.tools,
      system = opts.system, at = opts.at }
    if not tokens then
      return nil, counted, code
    end
    for name, value in pairs(counted) do
      info[name] = value
    end
  end
  local own = self._core:info()
  local window = opts.window or own and own.window or 0
  if window > 0 then
    info.room = window - (opts.reserve or own and own.reserve or 0) - info.tokens
  end
  return list, info
end

-- Calls the core's function of that name on an entry; nil, message, code.
local function on_entry(self, method, given)
  local id, message, code = names.entry(self, "session:" .. method, given)
  if not id then
    return nil, message, code
  end
  return self._core[method](self._core, id)
end

--- One entry by its id, or by a label that it alone has, as wherever an entry is meant.
function methods:entry(id)
  return on_entry(self, "entry", id)
end

local entries_options = { types = "table" }

--- An iterator over the entries of the log, in its order; it raises when one cannot be read.
function methods:entries(given)
  local opts = options.check("session:entries", given, entries_options)
  local types
  if opts.types then
    types = {}
    for _, name in ipairs(opts.types) do
      types[name] = true
    end
  end
  local iterator, message, code = self._core:entries(types)
  if not iterator then
    return nil, message, code
  end
  return iterator, nil, nil, iterator
end

--- The id of the newest path entry.
function methods:head()
  return self._core:head()
end

-- ---------------------------------------------------------------- the tree

--- The ids from the header to that entry, or to the head.
function methods:path(id)
  if id == nil then
    return self._core:path()
  end
  return on_entry(self, "path", id)
end

--- The ids of what goes on from that entry, oldest first.
function methods:children(id)
  return on_entry(self, "children", id)
end

--- The ids of what else goes on from its parent.
function methods:siblings(id)
  return on_entry(self, "siblings", id)
end

--- The newest entry on the paths of both.
function methods:common_ancestor(a, b)
  local second
  local first, message, code = names.entry(self, "session:common_ancestor", a)
  if first then
    second, message, code = names.entry(self, "session:common_ancestor", b)
  end
  if not second then
    return nil, message, code
  end
  return self._core:common_ancestor(first, second)
end

--- The ids that nothing goes on from.
function methods:leaves()
  return self._core:leaves()
end

local tree_options = { types = "table", labelled = "boolean" }

-- What is read of a node's entry when somebody looks: `entry`, and its `timestamp`.
local function node_meta(self)
  return {
    __name = "sessile.Node",
    __index = function(node, key)
      if key ~= "entry" and key ~= "timestamp" then
        return nil
      end
      local entry, message, code = self._core:entry(node.id)
      if not entry then
        options.misuse(("node.%s: %s: %s"):format(key, code, message))
      end
      rawset(node, "entry", entry)
      rawset(node, "timestamp", entry.timestamp)
      return rawget(node, key)
    end,
  }
end

--- The entries as a tree: {root, current, nodes = {id → node}, list}. types: only those; labelled:
--- only what has a label; each under the nearest of its ancestors that is among them.
function methods:tree(given)
  local opts = options.check("session:tree", given, tree_options)
  local list, message, code = self._core:tree(opts.types, opts.labelled)
  if not list then
    return nil, message, code
  end
  local labels
  labels, message, code = self._core:labels()
  if not labels then
    return nil, message, code
  end
  local meta, tree = node_meta(self), { list = list, nodes = {} }
  for _, node in ipairs(list) do
    tree.nodes[node.id] = setmetatable(node, meta)
    node.labels = {}
    if node.is_head then
      tree.current = node.id
    end
  end
  for _, label in ipairs(labels) do
    local node = tree.nodes[label.id]
    if node then
      node.labels[#node.labels + 1] = label.name
    end
  end
  tree.current = tree.current or self._core:head()
  tree.root = tree.nodes["00000000"]
  return tree
end

--- Turns, bare appends and compactions on the path.
function methods:event_count()
  return self._core:event_count()
end

local tokens_options = { model = "string", tools = "table", system = "string", at = "string" }

--- Tokens of what the model would be sent, and {tokens, low, high, source}. model: counted for
--- that one; tools, system: what it is sent beside the messages; at: instead of the head.
function methods:tokens(given)
  local opts = options.check("session:tokens", given, tokens_options)
  local ok, message, code = names.fields(self, "session:tokens", opts, "at")
  if not ok then
    return nil, message, code
  end
  return self._core:tokens(opts)
end

local groupings = { day = true, model = true, agent = true }

--- What providers reported, summed: {input, output, cache_read, cache_write}. With `by` a list of
--- such sums, one a day (UTC), model or agent: each with its key, reports, first and last.
function methods:usage(given)
  local by = options.check("session:usage", given, { by = "string" }).by
  if by and not groupings[by] then
    options.misuse(("session:usage: option 'by': day, model or agent expected, got %s"):format(by))
  end
  return self._core:usage(by)
end

-- ---------------------------------------------------------------- writing

--- One message, committed alone; no policy runs. Returns its id.
function methods:append(message)
  if type(message) ~= "table" then
    options.misuse("session:append: a message expected, got " .. type(message))
  end
  return self._core:append(message)
end

--- A host's own entry, a fact that never enters the context. Returns its id.
function methods:custom(data, source)
  if type(data) ~= "table" then
    options.misuse("session:custom: a table expected, got " .. type(data))
  end
  return self._core:custom(data, source)
end

--- Moves the head to the root: messages() is empty, the log remains.
function methods:clear()
  return self._core:clear()
end

--- Sets the title; s.title = … does the same and raises when it fails.
function methods:set_title(title)
  if type(title) ~= "string" then
    options.misuse("session:set_title: a string expected, got " .. type(title))
  end
  return self._core:set_title(title)
end

--- How many milliseconds its calls wait for another writer from now on; -1: for ever.
function methods:set_timeout(timeout_ms)
  if type(timeout_ms) ~= "number" or timeout_ms ~= math.floor(timeout_ms) then
    options.misuse("session:set_timeout: a whole number of milliseconds expected, or -1")
  end
  return self._core:set_timeout(math.tointeger(timeout_ms) or -1)
end

--- With durability "none": syncs what was written; the next write says that it is safe, so that
--- damage to it is told as damage and never taken for a torn end.
function methods:sync()
  return self._core:sync()
end

local watch_options = { after = "string", timeout_ms = "number" }

--- Waits until others have written entries behind `after`, or behind all that this handle has read:
--- true and the id of the newest entry, for the next `after`; false and the same when timeout_ms
--- have passed (nil: never). Nothing else runs in this Lua state meanwhile.
function methods:watch(given)
  local opts = options.check("session:watch", given, watch_options)
  local timeout_ms = opts.timeout_ms or -1
  if timeout_ms < -1 or timeout_ms ~= math.floor(timeout_ms) then
    options.misuse("session:watch: timeout_ms: a whole number of milliseconds expected, or -1")
  end
  local ok, message, code = names.fields(self, "session:watch", opts, "after")
  if not ok then
    return nil, message, code
  end
  return self._core:watch(opts)
end

-- ---------------------------------------------------------------- forks and children

for name, method in pairs(family.methods) do
  methods[name] = method
end

-- ---------------------------------------------------------------- runs

-- `model` is the host's function, or the name of the model that spoke, which is recorded.
local turn_options = {
  usage = "table", model = "callable|string", model_name = "string", metadata = "table",
  base = "string", on_conflict = "string", policy = "any", window = "number",
  reserve = "number", timeout_ms = "number", fallback = "any", trigger = "any", event = "string",
  checkpoint = "any", state = "any",
}
local compact_options = {
  policy = "any", model = "callable", instructions = "string", reason = "string",
  window = "number", reserve = "number", timeout_ms = "number", fallback = "any",
}

local branch_options = {
  summary = "any", policy = "any", model = "callable", model_name = "string",
  instructions = "string", base = "string", on_conflict = "string", window = "number",
  reserve = "number", timeout_ms = "number",
}
local answer_options = {
  pending_run = "string", failed = "string", policy = "any", model = "callable",
  timeout_ms = "number",
}

local on_conflicts = { fail = true, append = true, branch = true }

-- What a call gives, else the session's (which is the store's where the session gave none).
-- Returns what policy.resolve does, or a table that says nothing.
local function one_of(who, self, given, own)
  if given ~= nil then
    return policy.resolve(who, self._store_core, given)
  end
  return own or {}
end

-- The policy of a call and its fallback; nil, message, code.
local function choose(who, self, opts)
  local chosen, message, code = one_of(who, self, opts.policy, self._policy)
  local fallback
  if chosen then
    fallback, message, code = one_of(who, self, opts.fallback, self._fallback)
  end
  if not fallback then
    return nil, message, code
  end
  return { handle = chosen.handle, hosts = chosen.hosts, none = chosen.none, fallback = fallback }
end

local function check_list(who, messages)
  if type(messages) ~= "table" then
    options.misuse(who .. ": a list of messages expected, got " .. type(messages))
  end
  if messages.role ~= nil or (#messages == 0 and next(messages) ~= nil) then
    options.misuse(who .. ": a list of messages expected, got one: write {message}")
  end
  for i, message in ipairs(messages) do
    if type(message) ~= "table" then
      options.misuse(("%s: message %d: a table expected, got %s"):format(who, i, type(message)))
    end
  end
end

local function check_conflict(who, opts)
  if opts.on_conflict and not on_conflicts[opts.on_conflict] then
    options.misuse(who .. ": option 'on_conflict': \"fail\", \"append\" or \"branch\" expected")
  end
end

local starters = {}

function starters.turn(self, messages, given)
  check_list("session:turn", messages)
  local opts = options.check("session:turn", given, turn_options)
  check_conflict("session:turn", opts)
  local chosen, message, code = choose("session:turn", self, opts)
  if chosen then
    local ok
    ok, message, code = names.fields(self, "session:turn", opts, "base")
    chosen = ok and chosen
  end
  if not chosen then
    return nil, message, code
  end
  local name, model = opts.model_name, opts.model
  if type(model) == "string" then
    name, model = name or model, nil
  end
  local checkpoint = trigger.checkpoints("session:turn", opts.checkpoint) or self._checkpoint
  local run
  run, message, code = self._core:turn(messages, {
    usage = opts.usage, model = name, metadata = opts.metadata, base = opts.base,
    on_conflict = opts.on_conflict, policy = chosen.handle, no_policy = chosen.none,
    fallback = chosen.fallback.handle, event = opts.event,
    trigger = trigger.resolve("session:turn", opts.trigger) or self._trigger,
    checkpoint = checkpoint and checkpoint.on, checkpoint_keep = checkpoint and checkpoint.keep,
    state = opts.state,
    window = opts.window, reserve = opts.reserve, timeout_ms = opts.timeout_ms,
  })
  if not run then
    return nil, message, code
  end
  return host.wrap(run, self, "turn", chosen, model or self._model,
    checkpoint and checkpoint.state)
end

local function start(self, kind, given)
  local opts = options.check("session:" .. kind, given, compact_options)
  local chosen, message, code = choose("session:" .. kind, self, opts)
  if not chosen then
    return nil, message, code
  end
  local run
  run, message, code = self._core[kind](self._core, {
    policy = chosen.handle, fallback = chosen.fallback.handle,
    instructions = opts.instructions, reason = opts.reason,
    window = opts.window, reserve = opts.reserve, timeout_ms = opts.timeout_ms,
  })
  if not run then
    return nil, message, code
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
  check_conflict("session:branch", opts)
  local summary = opts.summary
  if summary ~= nil and type(summary) ~= "string" and type(summary) ~= "boolean" then
    options.misuse("session:branch: option 'summary': a text, or true, expected")
  end
  local entry, message, code = names.entry(self, "session:branch", id)
  local ok, chosen = entry ~= nil, nil
  if ok then
    ok, message, code = names.fields(self, "session:branch", opts, "base")
  end
  if ok then
    chosen, message, code = choose("session:branch", self, opts)
  end
  if not chosen then
    return nil, message, code
  end
  local run
  run, message, code = self._core:branch(entry, {
    summary = type(summary) == "string" and summary or nil, summarize = summary == true,
    instructions = opts.instructions, model = opts.model_name, base = opts.base,
    on_conflict = opts.on_conflict, policy = chosen.handle, no_policy = chosen.none,
    window = opts.window, reserve = opts.reserve, timeout_ms = opts.timeout_ms,
  })
  if not run then
    return nil, message, code
  end
  return host.wrap(run, self, "branch", chosen, opts.model or self._model)
end

function starters.answer(self, text, given)
  local opts = options.check("session:answer", given, answer_options)
  if text ~= nil and type(text) ~= "string" then
    options.misuse("session:answer: the model's text expected, got " .. type(text))
  end
  local ok, message, code = names.fields(self, "session:answer", opts, "pending_run")
  local chosen
  if ok then
    chosen, message, code = choose("session:answer", self, opts)
  end
  if not chosen then
    return nil, message, code
  end
  local run
  run, message, code = self._core:answer {
    pending_run = opts.pending_run, text = text, failed = opts.failed, policy = chosen.handle,
    fallback = chosen.fallback.handle,
    timeout_ms = opts.timeout_ms,
  }
  if not run then
    return nil, message, code
  end
  return host.wrap(run, self, "answer", chosen, opts.model or self._model)
end

--- Whether a value is a session.
function session.is(value)
  return type(value) == "table" and rawget(value, "_core") ~= nil
    and value.turn == methods.turn
end

--- Starts a run of that kind and leaves the stepping to the caller.
function session.begin(self, kind, ...)
  if not session.is(self) then
    options.misuse("sessile.step: a session expected")
  end
  if not starters[kind] then
    options.misuse('sessile.step: "turn", "compact", "plan", "branch" or "answer" expected')
  end
  return starters[kind](self, ...)
end

--- The messages of one turn, written as one commit; then policies run. Returns the outcome.
function methods:turn(messages, given)
  local run, message, code = starters.turn(self, messages, given)
  if not run then
    return nil, message, code
  end
  return host.drive(run)
end

--- Runs a policy on the context at the head. Returns the outcome.
function methods:compact(given)
  local run, message, code = starters.compact(self, given)
  if not run then
    return nil, message, code
  end
  return host.drive(run)
end

--- Moves the head to an entry, where the conversation goes on. summary: a text, or true to ask
--- for one. Returns the outcome.
function methods:branch(id, given)
  local run, message, code = starters.branch(self, id, given)
  if not run then
    return nil, message, code
  end
  return host.drive(run)
end

--- The runs that wait for a model's answer from elsewhere, oldest first: {id, time, policy,
--- request}.
function methods:pending_runs()
  return self._core:pending_runs()
end

--- Goes on with a pending run: text is what the model said; nil: it is asked again (or
--- failed= says why there is no answer). Returns the outcome.
function methods:answer(text, given)
  local run, message, code = starters.answer(self, text, given)
  if not run then
    return nil, message, code
  end
  return host.drive(run)
end

--- As compact, but nothing is written. Returns what would be.
function methods:plan(given)
  local before, message, code = self._core:context()
  if not before then
    return nil, message, code
  end
  local run
  run, message, code = starters.plan(self, given)
  if not run then
    return nil, message, code
  end
  local result, after
  result, message, code = host.drive(run, function(core_run)
    after, message, code = core_run:context()
    return after ~= nil, message, code
  end)
  if not result then
    return nil, message, code
  end
  return outcome.plan(result, before, after, diff.make)
end

for name, method in pairs(checkpoints.methods) do
  methods[name] = method
end

-- ---------------------------------------------------------------- explaining

--- Why a message is in the context, or not: what happened to it, step by step.
function methods:why(key)
  local found, message, code = names.message(self, "session:why", key)
  if found then
    found, message, code = self._core:why(found)
  end
  if not found then
    return nil, message, code
  end
  return why.make(found)
end

local uncompact_options = { dry_run = "boolean" }

--- Takes a compaction back: the one named, or the newest that is in force. Returns what came
--- back and what went.
function methods:uncompact(id, given)
  if type(id) == "table" and given == nil then
    id, given = nil, id
  end
  local opts = options.check("session:uncompact", given, uncompact_options)
  if id ~= nil then
    local message, code
    id, message, code = names.entry(self, "session:uncompact", id)
    if not id then
      return nil, message, code
    end
  end
  return self._core:uncompact(id, opts.dry_run)
end

--- The compactions on the path and the refusals between them, oldest first.
function methods:log()
  return self._core:compactions()
end

for name, method in pairs(export.methods) do
  methods[name] = method
end

for name, method in pairs(annotate.methods) do
  methods[name] = method
end

for name, method in pairs(life.session) do
  methods[name] = method
end

-- ---------------------------------------------------------------- the handle

--- Closes the session. Closing twice is closing once.
function methods:close()
  rawset(self, "_closed", true)
  return self._core:close()
end

local function fixed(name)
  return function(self)
    return self._info[name]
  end
end

local meta = object.class {
  name = "sessile.Session",
  methods = methods,
  readers = {
    id = fixed "id",
    agent = fixed "agent",
    user = fixed "user",
    created = fixed "created",
    torn = function(self) return (self._core:info() or self._info).torn end,
    -- of a fork, of a child: {id, agent, user, entry, tag}
    origin = function(self) return family.link(self._info, "origin") end,
    parent = function(self) return family.link(self._info, "parent") end,
    -- nil, or {code, message, lost}: it can be read, not written
    damage = function(self) return self._info.damage end,
    -- records that are in this handle alone: only over an adapter
    unsaved = function(self)
      local unsaved = self._core.unsaved
      return unsaved and unsaved(self._core) or 0
    end,
    modified = function(self) return (self._core:modified()) end,
    title = function(self) return (self._core:title()) end,
  },
  writers = {
    title = function(self, title)
      local ok, message, code = self:set_title(title)
      if not ok then
        options.misuse(("%s: %s"):format(code, message))
      end
    end,
  },
  text = function(self)
    return ("%q"):format(self._info.id):gsub("\\\n", "\\n")
      .. (self._closed and " (closed)" or "")
  end,
  close = methods.close,
}

--- Wraps an opened core session. defaults: store, store_core, policy and fallback (resolved,
--- or false), trigger (resolved, or false), model (or false), settings (of its loops), adopt
--- (makes a session of another core session of the store).
function session.wrap(handle, defaults)
  return setmetatable({
    _core = handle,
    _info = handle:info(),
    _store = defaults.store,
    _store_core = defaults.store_core,
    _policy = defaults.policy,
    _fallback = defaults.fallback,
    _trigger = defaults.trigger,
    _checkpoint = defaults.checkpoint,
    _model = defaults.model,
    _settings = defaults.settings,
    _adopt = defaults.adopt,
    _closed = false,
  }, meta)
end

return session
