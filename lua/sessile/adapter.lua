-- adapter.lua: stores kept by the host: a table { load =, save =, delete =, list = } of its
-- functions, which may yield.
--
-- For each open session the engine works on a log in memory, made of the records that `load`
-- returned. What a call has written is passed to `save` before the call returns success. The
-- objects of this file and of adapter_session.lua replace the core's store and session (binding/)
-- and have the same methods, so that the rest of the module does not notice the difference.
--
-- Records that `save` has not confirmed are never reported as saved.

local kept = require "sessile.adapter_session"
local options = require "sessile.options"

local adapter = {}

-- ---------------------------------------------------------------- the store

local store_methods = {}

-- The session's records; nil, nil: there are none; nil, message, code.
local function load_records(self, opts, reason)
  local names = { id = opts.id, agent = opts.agent or self.agent, user = opts.user or "" }
  local about = ("loading session %q"):format(opts.id)
  local records, message, code, retry_ms, rule = kept.ask(about, self.functions.load,
    kept.outer_id(opts.id, opts.user),
    kept.call_context(names, reason, opts.timeout_ms or self.timeout_ms))
  if message then
    return nil, message, code, retry_ms, rule
  elseif records == nil then
    return nil
  elseif type(records) ~= "table" then
    return kept.rubbish(about, records, "a list of records or nil")
  end
  local list = {}
  for i = 1, #records do
    if type(records[i]) ~= "string" then
      return kept.rubbish(("%s, record %d,"):format(about, i), records[i], "a string")
    end
    list[i] = records[i]
  end
  if #list == 0 and next(records) ~= nil then
    return kept.rubbish(about, records, "a list of records (1, 2, …)")
  end
  return #list > 0 and list or nil
end

local function open(self, opts, records)
  local handle, message, code, retry_ms, rule = self.core:open_over(opts, records)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return kept.wrap(self, handle, opts, #records)
end

-- Saves a new session. If that fails, there is no session.
local function keep_new(made, reason)
  local ok, message, code, retry_ms, rule = made:keep(reason)
  if not ok then
    made.core:close()
    made.closed = true
    return nil, message, code, retry_ms, rule
  end
  return made
end

local function make(self, opts, reason)
  local made, message, code, retry_ms, rule = open(self, opts, {})
  if not made then
    return nil, message, code, retry_ms, rule
  end
  return keep_new(made, reason)
end

--- Saves the session that `copy` makes from another one. EEXISTS: its id is taken.
function store_methods:add(reason, opts, copy)
  local message, code, retry_ms, rule
  if opts.id then
    local records
    records, message, code, retry_ms, rule = load_records(self, opts, reason)
    if message then
      return nil, message, code, retry_ms, rule
    elseif records then
      return nil, ("session %q exists: choose another id"):format(opts.id), "EEXISTS"
    end
  end
  local handle
  handle, message, code, retry_ms, rule = copy()
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return keep_new(kept.wrap(self, handle, opts, 0), reason)
end

--- A copy of a session of another store.
function store_methods:put(source, opts)
  local names, message, code, retry_ms, rule = source:info()
  if not names then
    return nil, message, code, retry_ms, rule
  end
  return self:add("put", kept.names_of(opts, names, names.id), function()
    return self.core:put(source, opts)
  end)
end

function store_methods:create(opts)
  if opts.id then
    local records, message, code, retry_ms, rule = load_records(self, opts, "create")
    if message then
      return nil, message, code, retry_ms, rule
    elseif records then
      return nil, ("session %q exists: resume it, or choose another id"):format(opts.id), "EEXISTS"
    end
  end
  local made, message, code, retry_ms, rule = make(self, opts, "create")
  if code == "ECONFLICT" then
    return nil, ("session %q was just created by another writer: resume it"):format(opts.id or ""),
      code
  end
  return made, message, code, retry_ms, rule
end

function store_methods:resume(opts)
  local records, message, code, retry_ms, rule = load_records(self, opts, "resume")
  if message then
    return nil, message, code, retry_ms, rule
  elseif not records then
    return nil, ("there is no session %q: list them, or create it"):format(opts.id), "ENOTFOUND"
  end
  return open(self, opts, records)
end

function store_methods:session(opts)
  local records, message, code, retry_ms, rule = load_records(self, opts, "session")
  if message then
    return nil, message, code, retry_ms, rule
  elseif records then
    return open(self, opts, records)
  end
  local made
  made, message, code, retry_ms, rule = make(self, opts, "session")
  if code == "ECONFLICT" then -- somebody made it in between: then it is there to be opened
    return self:resume(opts)
  end
  return made, message, code, retry_ms, rule
end

--- Returns true, or false if the host chose to keep the session; or nil, message, code.
function store_methods:delete(opts, soft)
  if not self.functions.delete or soft then
    return nil, "this store's adapter has no " .. (soft and "soft deletion" or "delete"),
      "EUNSUPPORTED"
  end
  local names = { id = opts.id, agent = opts.agent or self.agent, user = opts.user or "" }
  local about = ("deleting session %q"):format(opts.id)
  local answer, message, code, retry_ms, rule = kept.ask(about, self.functions.delete,
    kept.outer_id(opts.id, opts.user), kept.call_context(names, "delete", self.timeout_ms))
  if message then
    return nil, message, code, retry_ms, rule
  elseif answer == false then
    return nil, ("there is no session %q: nothing was deleted"):format(opts.id), "ENOTFOUND"
  elseif answer ~= nil and answer ~= true then
    return kept.rubbish(about, answer, "true, false or nil")
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
  local answer, message, code, retry_ms, rule = kept.ask(about, self.functions.list,
    kept.call_context({ agent = opts.agent or self.agent }, "list", self.timeout_ms))
  if message then
    return nil, message, code, retry_ms, rule
  elseif type(answer) ~= "table" then
    return kept.rubbish(about, answer, "a list of ids")
  end
  local rows = {}
  for i = 1, #answer do
    local row = row_of(self, answer[i])
    if not row then
      return kept.rubbish(("%s, number %d,"):format(about, i), answer[i], "an id")
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
