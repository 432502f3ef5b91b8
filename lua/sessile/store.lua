-- store.lua: the store handle: its sessions, lists, searches and checks.
--
-- It holds the defaults of its sessions (policy, fallback, triggers, model) and closes them when it
-- is closed. It does not keep sessions alive.

local agents = require "sessile.agents"
local access = require "sessile.access"
local audit = require "sessile.audit"
local core = require "sessile.core"
local guard = require "sessile.guard"
local inherited = require "sessile.inherited"
local keys = require "sessile.keys"
local life = require "sessile.life"
local memory = require "sessile.memory"
local memory_runs = require "sessile.memory_runs"
local migrate = require "sessile.migrate"
local named = require "sessile.named"
local object = require "sessile.object"
local pool = require "sessile.memory_pool"
local privacy = require "sessile.privacy"
local options = require "sessile.options"
local session = require "sessile.session"
local settings = require "sessile.interaction.settings"

local store = {}

local methods = {}
store.methods = methods

local session_options = options.shape("store:create", inherited.kinds, settings.kinds,
  named.fields, {
    title = "string", metadata = "table", uuid = { "v4", "v7" }, model = "callable",
    ttl = "span|no", agent_info = "table",
  })
for _, who in ipairs { "store:resume", "store:session" } do
  options.shape(who, session_options)
end

-- A core session of this store as a session. defaults: policy, fallback, triggers, model,
-- settings, as session.wrap takes them.
local function adopt(self, handle, defaults)
  defaults.store, defaults.adopt = self, adopt
  defaults.store_core = self._loader or self._core
  local made = session.wrap(handle, defaults)
  self._sessions[made] = true
  return made
end

local info_options = options.shape("sessile.open: agent_info",
  { version = "string", config = "string", tools = "strings" })

-- The version of an agent, for its checkpoints.
local function agent_info(who, given)
  return given and options.check(who .. ": agent_info", given, info_options)
end

-- Opens a session. kind: the core's method of that name. opts: checked.
local function open_session(self, kind, opts)
  local who = "store:" .. kind
  local agent = opts.agent or self._agent
  local enabled, why, denied = agents.check_enabled(self, agent)
  if not enabled and kind == "create" then
    return nil, why, denied
  end
  local own, theirs, message, code, retry_ms, rule = agents.resolve(self, who, agent, opts)
  if not own then
    return nil, message, code, retry_ms, rule
  end
  inherited.fill(opts, theirs)
  local ttl = opts.ttl
  if ttl == nil then
    ttl = theirs.ttl
  end
  local open = self._core[enabled and kind or "resume"]
  local handle
  handle, message, code, retry_ms, rule = open(self._core, {
    id = opts.id, agent = opts.agent, user = opts.user or self._user or nil, title = opts.title,
    metadata = opts.metadata, uuid = opts.uuid,
    window = opts.window, reserve = opts.reserve, keep_min = opts.keep_min,
    timeout_ms = opts.timeout_ms, isolation = opts.isolation,
    ttl_ms = life.ttl(ttl, self._ttl, agent),
    agent_info = agent_info(who, opts.agent_info) or self._agent_info,
  })
  if not handle and not enabled and kind == "session" and code == "ENOTFOUND" then
    return nil, why, denied -- it would be created now
  elseif not handle then
    return nil, message, code, retry_ms, rule
  end
  local defaults = inherited.merge(own, theirs, self)
  defaults.settings = settings.over(self._settings, settings.take(who, opts))
  return adopt(self, handle, defaults)
end

--- Creates a session; EEXISTS: it exists. Without an id it gets a new one.
function methods:create(given)
  return open_session(self, "create", named.check("store:create", given, session_options))
end

--- Opens a session that exists; ENOTFOUND. Without an agent it is the default agent's, else the
--- only one of that id; EINVALID: there are several. In a store that was opened for an agent, only
--- that agent's.
function methods:resume(given)
  local opts = named.one("store:resume", given, session_options)
  return named.of_any_agent(self, opts, function(which)
    return open_session(self, "resume", options.add({}, which))
  end)
end

--- Opens a session, or creates it.
function methods:session(given)
  return open_session(self, "session", named.one("store:session", given, session_options))
end

local put_options = options.shape("store:put", inherited.kinds, settings.kinds, {
  id = "string", agent = "string", user = "string", model = "callable",
})

--- Copies a whole session of another store into this one, with the same id unless another is given.
--- EEXISTS: the id is taken.
function methods:put(source, given)
  if type(source) ~= "table" or type(source.fork) ~= "function" then
    options.misuse("store:put: a session expected, got " .. type(source))
  end
  local opts = options.check("store:put", given, put_options)
  local taken = settings.over(self._settings, settings.take("store:put", opts))
  local agent = opts.agent or source.agent
  local enabled, why, denied = agents.check_enabled(self, agent)
  if not enabled then
    return nil, why, denied
  end
  local own, theirs, message, code, retry_ms, rule = agents.resolve(self, "store:put", agent, opts)
  if not own then
    return nil, message, code, retry_ms, rule
  end
  inherited.fill(opts, theirs)
  local handle
  handle, message, code, retry_ms, rule = self._core:put(source._core.core or source._core, opts)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  local defaults = inherited.merge(own, theirs, self)
  defaults.settings = taken
  return adopt(self, handle, defaults)
end

--- Which of these open sessions others have written to since they were read, asked of the store at
--- once: for programs that follow many. A session that was removed is among them.
function methods:changed(sessions)
  options.expect("table", sessions, "store:changed: a list of sessions")
  local cores, found = {}, {}
  for i, one in ipairs(sessions) do
    if type(one) ~= "table" or type(one.fork) ~= "function" then
      options.misuse(("store:changed: session %d expected, got %s"):format(i, type(one)))
    end
    cores[i] = one._core.core or one._core
  end
  local changed, message, code, retry_ms, rule = self._core:changed(cores)
  if not changed then
    return nil, message, code, retry_ms, rule
  end
  for i, one in ipairs(sessions) do
    found[#found + 1] = changed[i] and one or nil
  end
  return found
end

--- By how many milliseconds this machine's clock is ahead of that of the store's server, and to how
--- many that is exact. 0, 0 where the store has no other clock.
function methods:clock()
  return self._core:clock()
end

local list_options = options.shape("store:list", {
  agent = "string", prefix = "string", title = "string", user = "string", label = "string",
  search = "string", since = "moment", ["until"] = "moment", status = "string|strings",
  sort = core.sorts(), offset = "count", limit = "count",
})

-- The options of a list as the core takes them.
local function core_list(who, opts)
  if opts.title == "" then
    opts.title = nil -- the engine's word for any
  end
  if opts.status then
    opts.lives = life.statuses(who, opts.status)
  end
  return opts
end

--- The sessions of the store, newest first or in the order of `sort`, restricted by agent, user,
--- prefix of the id, title, text in the title (`search`), label, time of modification (`since`,
--- `until`; ms) and status (nil: all but the deleted).
function methods:list(given)
  return self._core:list(core_list("store:list",
    options.check("store:list", given, list_options)))
end

local search_options = options.shape("store:search", list_options, {
  roles = "strings", role = options.roles, exact = "boolean", head_only = "boolean",
  on_step = "callable",
})
search_options.search, search_options.offset = nil, nil

--- An iterator over the titles, labels and messages that contain a text, in the sessions that list
--- would return for the same options, newest first. Logs are read while it runs. A session that
--- cannot be read, or not completely, is a hit of kind "unread". on_step(step) reports progress.
--- The iterator raises if the search fails.
function methods:search(text, given)
  options.expect("string", text, "store:search: the text to search for")
  local opts = options.check("store:search", given, search_options)
  local limit, on_step = opts.limit, opts.on_step
  local roles = opts.roles or opts.role and { opts.role } or nil
  for _, role in ipairs(roles or {}) do
    options.value("store:search: option 'roles'", role, options.roles)
  end
  opts.limit, opts.on_step, opts.roles, opts.role = nil, nil, nil, nil
  local search, message, code, retry_ms, rule = self._core:search {
    text = text, exact = opts.exact, head_only = opts.head_only, roles = roles,
    limit = limit, sessions = core_list("store:search", opts),
  }
  if not search then
    return nil, message, code, retry_ms, rule
  end
  local function next_hit()
    while true do
      local step, why, wrong = search:step()
      if not step and why then
        options.misuse(("%s [%s]"):format(why, wrong))
      elseif not step then
        break
      end
      if on_step then
        on_step(step)
      end
      if step.kind ~= "nothing" then
        return step
      end
    end
    search:close()
    next_hit = function() end
    return nil
  end
  return function() return next_hit() end, nil, nil, search
end

--- Opens the long-term memory of an agent and a user, and creates it when it is not there.
function methods:memory(given)
  return memory.open(self, given)
end

--- Tokens of a text, and {tokens, low, high, source, missing}: by the encoding of the store's
--- model if it is known, else by the host's counter, else by estimate. missing: why the wanted
--- encoding is not used.
function methods:count(text)
  options.expect("string", text, "store:count: a text")
  return self._core:count(text)
end

local count_options = options.shape("store:count_messages",
  { model = "string", tools = "table", system = "string" })

--- Tokens of messages outside of a session, and {tokens, low, high, source, each, missing}.
--- model: count for this model; tools, system: sent in addition to the messages.
function methods:count_messages(list, given)
  options.messages("store:count_messages", list)
  local opts = options.check("store:count_messages", given, count_options)
  return self._core:count_messages(list, opts)
end

local check_options = options.shape("store:check", named.fields,
  { salvage = "boolean", on_step = "callable" })

--- Checks one session (an id, a row, or {id=, agent=, user=}), or all of them. Changes nothing,
--- unless salvage = true: then a damaged log is rewritten, with a tombstone for each lost entry,
--- and the old log is kept. on_step(step) is called after each log. Returns {ok, sessions, entries,
--- bytes, lost, damaged, salvaged, findings}.
function methods:check(given)
  local opts = named.check("store:check", given, check_options)
  local check, message, code, retry_ms, rule = self._core:check {
    id = opts.id, agent = opts.agent, user = opts.user, salvage = opts.salvage,
  }
  if not check then
    return nil, message, code, retry_ms, rule
  end
  local report = {
    ok = true, sessions = 0, entries = 0, bytes = 0, lost = 0, damaged = 0, salvaged = 0,
    findings = {},
  }
  local step
  step, message, code, retry_ms, rule = check:step()
  while step do
    local damaged = false
    for _, found in ipairs(step.findings) do
      found.session, found.agent = step.id, step.agent
      report.findings[#report.findings + 1] = found
      damaged = damaged or found.severity == "damage"
    end
    report.sessions = report.sessions + (step.file == "agents" and 0 or 1)
    report.entries, report.bytes = report.entries + step.entries, report.bytes + step.bytes
    report.lost = report.lost + step.lost
    report.damaged = report.damaged + (damaged and 1 or 0)
    report.salvaged = report.salvaged + (step.salvaged and 1 or 0)
    report.ok = report.ok and (not damaged or step.salvaged)
    if opts.on_step then
      opts.on_step(step)
    end
    step, message, code, retry_ms, rule = check:step()
  end
  check:close()
  if message then
    return nil, message, code, retry_ms, rule
  end
  return report
end

for _, more in ipairs { keys, migrate.methods, life.store, guard.methods, privacy.methods,
  audit.methods, access.methods } do
  options.add(methods, more)
end

--- Closes the store and its sessions. Closing it again has no effect.
function methods:close()
  local failure
  for open in pairs(self._sessions) do
    local ok, message, code = open:close()
    if not ok then
      failure = failure or { message, code }
    end
  end
  rawset(self, "_closed", true)
  pool.close(self)
  self._core:close()
  if self._closes then
    self._closes:close()
  end
  if failure then
    return nil, failure[1], failure[2]
  end
  return true
end

local meta = object.class {
  name = "sessile.Store",
  methods = methods,
  readers = {
    url = function(self) return self._url end,
    sealed = function(self) return self._sealed end,
  },
  text = function(self)
    return self._url .. (self._closed and " (closed)" or self._sealed and "" or " (plain)")
  end,
}

-- A store as `self`, over the core of a view.
function guard.view(self, handle)
  local made = {}
  for name, value in pairs(self) do
    made[name] = value
  end
  made._core, made._user, made._closed = handle, false, false
  made._host = self._host or self -- loads the policies that are configured
  made._loader, made._closes = nil, nil
  made._pool = pool.new(self._memory and self._memory.open)
  made._sessions = setmetatable({}, { __mode = "k" })
  return setmetatable(made, meta)
end

--- Wraps an opened core store. defaults: the options of sessile.open. nil, message, code
--- if one of their policies cannot be loaded and nobody wants to be told (on_policy_error).
function store.wrap(handle, url, defaults)
  local own, message, code, retry_ms, rule = inherited.resolve("sessile.open", handle, defaults,
    defaults.on_policy_error)
  if not own then
    handle:close()
    return nil, message, code, retry_ms, rule
  end
  local self = setmetatable({
    _core = handle,
    _url = url,
    _sealed = handle:sealed(),
    _policy = own.policy or false,
    _fallback = own.fallback or false,
    _checkpoint = own.checkpoint,
    _triggers = own.triggers or false,
    _model = own.model or false,
    _on_policy_error = defaults.on_policy_error or false,
    _ttl = defaults.ttl,
    _agent = defaults.agent or "main",
    _is_of_one_agent = defaults.agent ~= nil,
    _user = defaults.user or false,
    _agents = defaults.agents,
    _memory = defaults.memory or false,
    _pool = pool.new(defaults.memory and defaults.memory.open),
    _settings = settings.take("sessile.open", defaults),
    _agent_info = agent_info("sessile.open", defaults.agent_info),
    _sessions = setmetatable({}, { __mode = "k" }),
    _closed = false,
  }, meta)
  local loads
  loads, message, code, retry_ms, rule =
    memory_runs.check("sessile.open", self, nil, defaults.on_policy_error)
  if not loads then
    handle:close()
    return nil, message, code, retry_ms, rule
  end
  return self
end

return store
