-- adapter.lua: stores kept by the host: a table { load =, save =, delete =, list = } of its
-- functions, which may yield.
--
-- For each open session the engine works on a log in memory, made of the records that `load`
-- returned. What a call has written is passed to `save` before the call returns success. The
-- objects of this file replace the core's store and session (binding/) and have the same methods,
-- so that the rest of the module does not notice the difference.
--
-- Records that `save` has not confirmed are never reported as saved.

local core = require "sessile.core"
local options = require "sessile.options"

local adapter = {}

-- ---------------------------------------------------------------- asking the host

-- Any value as a text, also if its __tostring fails.
local function say(value)
  local ok, text = pcall(tostring, value)
  return ok and text or ("an error of type " .. type(value))
end

-- Calls a function of the host. Returns its result, or nil, message, "EIO". `about` names the
-- operation and the session.
local function ask(about, call, ...)
  local answer = table.pack(pcall(call, ...))
  if not answer[1] then
    return nil, ("%s raised: %s"):format(about, say(answer[2])), "EIO"
  elseif answer[2] == nil and answer[3] ~= nil then
    return nil, ("%s: %s"):format(about, say(answer[3])), "EIO"
  end
  return answer[2]
end

local function rubbish(about, value, wanted)
  return nil, ("%s answered with a %s: %s expected"):format(about, type(value), wanted), "EIO"
end

-- The `ctx` argument of the host's functions.
local function call_context(session, reason, timeout_ms)
  return {
    session = { id = session.id, agent = session.agent, user = session.user },
    reason = reason,
    deadline = timeout_ms >= 0 and core.now() + timeout_ms or nil,
  }
end

-- The id that the host gets: a string, or {session_id=, user_id=} if there is a user.
local function outer_id(id, user)
  if user and user ~= "" then
    return { session_id = id, user_id = user }
  end
  return id
end

-- ---------------------------------------------------------------- runs

-- What a run has written is saved before a model or hook is asked, before the run is done, and
-- before it becomes a pending run.
local run_methods = {}

function run_methods:outcome()
  local raw, message, code = self.core:outcome()
  if raw then
    raw.saved = self.session:unsaved() == 0
  end
  return raw, message, code
end

function run_methods:close()
  return self.core:close()
end

-- Hands what a call has written to the host, then returns the call's results.
local function keep_then(session, reason, results)
  local ok, message, code = session:keep(reason)
  if not ok then
    return nil, message, code
  end
  return table.unpack(results, 1, results.n)
end

-- A method of the core's run that then saves what it has written.
local function run_through(name)
  return function(self, ...)
    local results = table.pack(self.core[name](self.core, ...))
    if results[1] and (name == "step" or name == "defer") then
      return keep_then(self.session, self.reason, results)
    end
    return table.unpack(results, 1, results.n)
  end
end

local run_meta = {
  __index = function(self, name)
    if not run_methods[name] and rawget(self, "core")[name] then
      run_methods[name] = run_through(name)
    end
    return run_methods[name]
  end,
}

-- ---------------------------------------------------------------- sessions

local session_methods = {}

-- Methods that only read. They also work during a save, and after another handle wrote first.
local reads = {}
for name in ("info modified title head event_count usage tokens messages context entry entries "
  .. "records pending_runs compactions why labels suspended subsessions watch"):gmatch "%S+" do
  reads[name] = true
end

--- The number of records that are not saved.
function session_methods:unsaved()
  if self.closed then
    return self.left
  end
  local rows = self.core:records(self.saved)
  return rows and #rows or 0
end

-- Returns message, code if nothing may be written now.
local function hindrance(self)
  if self.lost then
    return ("session %s: another handle wrote first: resume the session, and repeat the call")
      :format(self.shown), "ECONFLICT"
  elseif self.saving then
    return ("session %s is being saved by another coroutine: nothing was done, try again "
      .. "when that is done"):format(self.shown), "EBUSY"
  end
end

--- Saves the records that are not saved yet. Returns true, also if the host chose not to keep them;
--- or nil, message, code.
function session_methods:keep(reason)
  local rows, message, code = self.core:records(self.saved)
  if not rows then
    return nil, message, code
  elseif #rows == 0 then
    return true
  end
  message, code = hindrance(self)
  if message then
    return nil, message, code
  end
  local count = self.saved + #rows
  self.saving = true
  -- a coroutine that is closed while it waits leaves the door open
  local _ <close> = setmetatable({}, { __close = function() self.saving = false end })
  local about = ("saving session %s"):format(self.shown)
  local answer
  answer, message, code = ask(about, self.functions.save, self.outer,
    { count = count, records = rows }, self.saved,
    call_context(self.names, reason, self.timeout_ms))
  self.failed = nil
  if answer == true then
    self.saved = count
    return true
  elseif answer == false then
    self.lost = true
    return nil, (hindrance(self)), "ECONFLICT"
  elseif answer ~= nil then
    message, code = select(2, rubbish(about, answer, "true, false or nil"))
  end
  if message then
    self.failed = ("%s. %d records are in this handle alone: s:save() tries again, and so does "
      .. "the next write; do not repeat the call"):format(message, #rows)
    return nil, self.failed, code
  end
  return true
end

--- Tries again to save.
function session_methods:save()
  return self:keep "save"
end

function session_methods:set_timeout(timeout_ms)
  local ok, message, code = self.core:set_timeout(timeout_ms)
  if ok then
    self.timeout_ms = timeout_ms
  end
  return ok, message, code
end

function session_methods:close()
  if self.closed then
    return true
  end
  self.left = self:unsaved()
  self.closed = true
  local ok, message, code = self.core:close()
  if not ok then
    return nil, message, code
  elseif self.failed and self.left > 0 then
    return nil, ("session %s was closed with %d unsaved records: %s"):format(
      self.shown, self.left, self.failed), "EIO"
  end
  return true
end

local function class_of(value)
  local meta = type(value) == "userdata" and getmetatable(value)
  return meta and meta.__name
end

-- A method of the core's session that then saves what it has written.
local function through(name)
  return function(self, ...)
    if self.closed or reads[name] then
      return self.core[name](self.core, ...)
    end
    local message, code = hindrance(self)
    if message then
      return nil, message, code
    end
    local before = self:unsaved()
    local results = table.pack(self.core[name](self.core, ...))
    local class = class_of(results[1])
    if class == "sessile.core.Run" then
      return setmetatable({ core = results[1], session = self, reason = name }, run_meta)
    end
    if self:unsaved() > before then
      return keep_then(self, name, results)
    end
    return table.unpack(results, 1, results.n)
  end
end

-- The names that a session made from another one gets.
local function names_of(opts, names, id)
  return { id = opts.id or id, agent = opts.agent or names.agent, user = opts.user or names.user,
    timeout_ms = opts.timeout_ms }
end

--- A session of its own with everything up to an entry.
function session_methods:fork(entry, opts)
  return self.store:add("fork", names_of(opts, self.names), function()
    return self.core:fork(entry, opts)
  end)
end

-- Calls a function that writes to this session's log, then saves.
local function kept(self, reason, act)
  local message, code = hindrance(self)
  if message then
    return nil, message, code
  end
  local results = table.pack(act())
  if not results[1] then
    return table.unpack(results, 1, results.n)
  end
  return keep_then(self, reason, results)
end

--- A session of its own that this one names, and that names this one.
function session_methods:child(context, opts)
  return kept(self, "child", function()
    return self.store:add("child", names_of(opts, self.names), function()
      return self.core:child(context, opts)
    end)
  end)
end

function session_methods:merged(child, message)
  return kept(self, "merge", function() return self.core:merged(child.core, message) end)
end

function session_methods:discarded(child, reason)
  return kept(self, "discard", function() return self.core:discarded(child.core, reason) end)
end

local session_meta = {
  __index = function(self, name)
    local method = session_methods[name]
    if not method and self.core[name] then
      method = through(name)
      session_methods[name] = method
    end
    return method
  end,
}

local function wrap_session(self, handle, opts, loaded)
  local names = handle:info()
  return setmetatable({
    core = handle,
    store = self,
    functions = self.functions,
    names = names,
    outer = outer_id(names.id, names.user),
    shown = ("%q"):format(names.id):gsub("\\\n", "\\n"),
    saved = loaded, -- number of records that the host has
    timeout_ms = opts.timeout_ms or self.timeout_ms,
    saving = false,
    lost = false,
    failed = false, -- the last save, by its message
    closed = false,
    left = 0,
  }, session_meta)
end

-- ---------------------------------------------------------------- the store

local store_methods = {}

-- The session's records; nil, nil: there are none; nil, message, code.
local function load_records(self, opts, reason)
  local names = { id = opts.id, agent = opts.agent or self.agent, user = opts.user or "" }
  local about = ("loading session %q"):format(opts.id)
  local records, message, code = ask(about, self.functions.load, outer_id(opts.id, opts.user),
    call_context(names, reason, opts.timeout_ms or self.timeout_ms))
  if message then
    return nil, message, code
  elseif records == nil then
    return nil
  elseif type(records) ~= "table" then
    return rubbish(about, records, "a list of records or nil")
  end
  local list = {}
  for i = 1, #records do
    if type(records[i]) ~= "string" then
      return rubbish(("%s, record %d,"):format(about, i), records[i], "a string")
    end
    list[i] = records[i]
  end
  if #list == 0 and next(records) ~= nil then
    return rubbish(about, records, "a list of records (1, 2, …)")
  end
  return #list > 0 and list or nil
end

local function open(self, opts, records)
  local handle, message, code = self.core:open_over(opts, records)
  if not handle then
    return nil, message, code
  end
  return wrap_session(self, handle, opts, #records)
end

-- Saves a new session. If that fails, there is no session.
local function keep_new(made, reason)
  local ok, message, code = made:keep(reason)
  if not ok then
    made.core:close()
    made.closed = true
    return nil, message, code
  end
  return made
end

local function make(self, opts, reason)
  local made, message, code = open(self, opts, {})
  if not made then
    return nil, message, code
  end
  return keep_new(made, reason)
end

--- Saves the session that `copy` makes from another one. EEXISTS: its id is taken.
function store_methods:add(reason, opts, copy)
  local message, code
  if opts.id then
    local records
    records, message, code = load_records(self, opts, reason)
    if message then
      return nil, message, code
    elseif records then
      return nil, ("session %q exists: choose another id"):format(opts.id), "EEXISTS"
    end
  end
  local handle
  handle, message, code = copy()
  if not handle then
    return nil, message, code
  end
  return keep_new(wrap_session(self, handle, opts, 0), reason)
end

--- A copy of a session of another store.
function store_methods:put(source, opts)
  local names, message, code = source:info()
  if not names then
    return nil, message, code
  end
  return self:add("put", names_of(opts, names, names.id), function()
    return self.core:put(source, opts)
  end)
end

function store_methods:create(opts)
  if opts.id then
    local records, message, code = load_records(self, opts, "create")
    if message then
      return nil, message, code
    elseif records then
      return nil, ("session %q exists: resume it, or choose another id"):format(opts.id), "EEXISTS"
    end
  end
  local made, message, code = make(self, opts, "create")
  if code == "ECONFLICT" then
    return nil, ("session %q was just created by another writer: resume it"):format(opts.id or ""),
      code
  end
  return made, message, code
end

function store_methods:resume(opts)
  local records, message, code = load_records(self, opts, "resume")
  if message then
    return nil, message, code
  elseif not records then
    return nil, ("there is no session %q: list them, or create it"):format(opts.id), "ENOTFOUND"
  end
  return open(self, opts, records)
end

function store_methods:session(opts)
  local records, message, code = load_records(self, opts, "session")
  if message then
    return nil, message, code
  elseif records then
    return open(self, opts, records)
  end
  local made
  made, message, code = make(self, opts, "session")
  if code == "ECONFLICT" then -- somebody made it in between: then it is there to be opened
    return self:resume(opts)
  end
  return made, message, code
end

--- Returns true, or false if the host chose to keep the session; or nil, message, code.
function store_methods:delete(opts, soft)
  if not self.functions.delete or soft then
    return nil, "this store's adapter has no " .. (soft and "soft deletion" or "delete"),
      "EUNSUPPORTED"
  end
  local names = { id = opts.id, agent = opts.agent or self.agent, user = opts.user or "" }
  local about = ("deleting session %q"):format(opts.id)
  local answer, message, code = ask(about, self.functions.delete, outer_id(opts.id, opts.user),
    call_context(names, "delete", self.timeout_ms))
  if message then
    return nil, message, code
  elseif answer == false then
    return nil, ("there is no session %q: nothing was deleted"):format(opts.id), "ENOTFOUND"
  elseif answer ~= nil and answer ~= true then
    return rubbish(about, answer, "true, false or nil")
  end
  return answer == true
end

-- ---------------------------------------------------------------- lists

local fields = {
  title = "string", agent = "string", status = "string", created = "number",
  modified = "number", entries = "number", messages = "number", bytes = "number",
}

-- A row of a list. The host gives an id, or a table with more.
local function row_of(self, item)
  local given = type(item) == "table" and item or { id = item }
  local id = given.id
  local names = type(id) == "table" and id or given
  id = names.session_id or id
  if type(id) ~= "string" then
    return nil
  end
  local row = { id = id, user = names.user_id or given.user, agent = self.agent, status = "active" }
  for name, kind in pairs(fields) do
    if type(given[name]) == kind then
      row[name] = given[name]
    end
  end
  return row
end

-- A list without modification times keeps the host's order.
local function newest_first(rows)
  for i, row in ipairs(rows) do
    row._place = i
  end
  table.sort(rows, function(a, b)
    local x, y = a.modified or 0, b.modified or 0
    if x ~= y then
      return x > y
    end
    return a._place < b._place
  end)
  for _, row in ipairs(rows) do
    row._place = nil
  end
end

local filters = {
  agent = function(row, wanted) return row.agent == wanted end,
  prefix = function(row, wanted) return row.id:sub(1, #wanted) == wanted end,
  title = function(row, wanted) return row.title == wanted end,
  offset = function() return true end,
  limit = function() return true end,
}

function store_methods:list(opts)
  if not self.functions.list then
    return nil, "this store's adapter has no list", "EUNSUPPORTED"
  end
  for name in pairs(opts) do
    if not filters[name] then
      return nil, ("a store of the host's cannot list by '%s'"):format(name), "EUNSUPPORTED"
    end
  end
  local about = "listing sessions"
  local answer, message, code = ask(about, self.functions.list,
    call_context({ agent = opts.agent or self.agent }, "list", self.timeout_ms))
  if message then
    return nil, message, code
  elseif type(answer) ~= "table" then
    return rubbish(about, answer, "a list of ids")
  end
  local rows = {}
  for i = 1, #answer do
    local row = row_of(self, answer[i])
    if not row then
      return rubbish(("%s, number %d,"):format(about, i), answer[i], "an id")
    end
    local wanted = true
    for name, value in pairs(opts) do
      wanted = wanted and filters[name](row, value)
    end
    rows[#rows + 1] = wanted and row or nil
  end
  newest_first(rows)
  local first = (opts.offset or 0) + 1
  local last = opts.limit and opts.limit > 0 and first + opts.limit - 1 or #rows
  return table.move(rows, first, math.min(last, #rows), 1, {})
end

for _, name in ipairs { "policy", "sealed", "close", "count", "count_messages" } do
  store_methods[name] = function(self, ...)
    return self.core[name](self.core, ...)
  end
end

local function unsupported()
  return nil, "a store of the host's cannot do that: its adapter loads, saves, deletes and lists",
    "EUNSUPPORTED"
end

local store_meta = {
  __index = function(self, name)
    return store_methods[name] or rawget(self, "core")[name] and unsupported or nil
  end,
}

--- Wraps a core store for records with the host's functions. defaults: agent, timeout_ms.
function adapter.wrap(handle, functions, defaults)
  return setmetatable({
    core = handle,
    functions = functions,
    agent = defaults.agent or "main",
    timeout_ms = defaults.timeout_ms or 5000,
  }, store_meta)
end

--- Raises unless `functions` is an adapter.
function adapter.check(functions, callable)
  for name, needed in pairs { load = true, save = true, delete = false, list = false } do
    local value = functions[name]
    if not callable(value) and (needed or value ~= nil) then
      options.misuse(("sessile.open: the adapter's '%s' is no function"):format(name))
    end
  end
end

return adapter
