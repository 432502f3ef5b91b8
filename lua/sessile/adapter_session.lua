-- adapter_session.lua: the sessions of a store kept by the host (adapter.lua), and how the host's
-- functions are called. What a call has written is handed to `save` before it returns success.

local core = require "sessile.core"
local dialect = require "sessile.dialect"

local table = dialect.table

local kept = {}

-- ---------------------------------------------------------------- asking the host

-- Any value as a text, also if its __tostring fails.
local function say(value)
  local ok, text = pcall(tostring, value)
  return ok and text or ("an error of type " .. type(value))
end

--- Calls a function of the host. Returns its result, or nil, message, "EIO". `about` names the
--- operation and the session.
function kept.ask(about, call, ...)
  local answer = table.pack(pcall(call, ...))
  if not answer[1] then
    return nil, ("%s raised: %s"):format(about, say(answer[2])), "EIO"
  elseif answer[2] == nil and answer[3] ~= nil then
    return nil, ("%s: %s"):format(about, say(answer[3])), "EIO"
  end
  return answer[2]
end

--- The failure of a call that returned something else than `wanted`: nil, message, "EIO".
function kept.rubbish(about, value, wanted)
  return nil, ("%s answered with a %s: %s expected"):format(about, type(value), wanted), "EIO"
end

--- The `ctx` argument of the host's functions.
function kept.call_context(session, reason, timeout_ms)
  return {
    session = { id = session.id, agent = session.agent, user = session.user },
    reason = reason,
    deadline = timeout_ms >= 0 and core.now() + timeout_ms or nil,
  }
end

--- The id that the host gets: a string, or {session_id=, user_id=} if there is a user.
function kept.outer_id(id, user)
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
  local raw, message, code, retry_ms, rule = self.core:outcome()
  if raw then
    raw.saved = self.session:unsaved() == 0
  end
  return raw, message, code, retry_ms, rule
end

function run_methods:close()
  return self.core:close()
end

-- Hands what a call has written to the host, then returns the call's results.
local function keep_then(session, reason, results)
  local ok, message, code, retry_ms, rule = session:keep(reason)
  if not ok then
    return nil, message, code, retry_ms, rule
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
  elseif self.saving.door then
    return ("session %s is being saved by another coroutine: nothing was done, try again "
      .. "when that is done"):format(self.shown), "EBUSY"
  end
end

-- Asks the host to save rows. Returns what keep does.
local function save_rows(_, self, rows, reason)
  local count = self.saved + #rows
  local about = ("saving session %s"):format(self.shown)
  local answer, message, code = kept.ask(about, self.functions.save, self.outer,
    { count = count, records = rows }, self.saved,
    kept.call_context(self.names, reason, self.timeout_ms))
  self.failed = nil
  if answer == true then
    self.saved = count
    return true
  elseif answer == false then
    self.lost = true
    return nil, (hindrance(self)), "ECONFLICT"
  elseif answer ~= nil then
    message, code = select(2, kept.rubbish(about, answer, "true, false or nil"))
  end
  if message then
    self.failed = ("%s. %d records are in this handle alone: s:save() tries again, and so does "
      .. "the next write; do not repeat the call"):format(message, #rows)
    return nil, self.failed, code
  end
  return true
end

--- Saves the records that are not saved yet. Returns true, also if the host chose not to keep them;
--- or nil, message, code.
function session_methods:keep(reason)
  local rows, message, code, retry_ms, rule = self.core:records(self.saved)
  if not rows then
    return nil, message, code, retry_ms, rule
  elseif #rows == 0 then
    return true
  end
  message, code, retry_ms, rule = hindrance(self)
  if message then
    return nil, message, code, retry_ms, rule
  end
  -- A coroutine that is closed while it waits leaves the door open, and so does one that is
  -- collected: LuaJIT closes none.
  local door = setmetatable({}, { __close = function() self.saving.door = nil end })
  self.saving.door = door
  return dialect.closing(door, save_rows, self, rows, reason)
end

--- Tries again to save.
function session_methods:save()
  return self:keep "save"
end

function session_methods:set_timeout(timeout_ms)
  local ok, message, code, retry_ms, rule = self.core:set_timeout(timeout_ms)
  if ok then
    self.timeout_ms = timeout_ms
  end
  return ok, message, code, retry_ms, rule
end

function session_methods:close()
  if self.closed then
    return true
  end
  self.left = self:unsaved()
  self.closed = true
  local ok, message, code, retry_ms, rule = self.core:close()
  if not ok then
    return nil, message, code, retry_ms, rule
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
    local message, code, retry_ms, rule = hindrance(self)
    if message then
      return nil, message, code, retry_ms, rule
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

--- The names that a session made from another one gets.
function kept.names_of(opts, names, id)
  return { id = opts.id or id, agent = opts.agent or names.agent, user = opts.user or names.user,
    timeout_ms = opts.timeout_ms }
end

--- A session of its own with everything up to an entry.
function session_methods:fork(entry, opts)
  return self.store:add("fork", kept.names_of(opts, self.names), function()
    return self.core:fork(entry, opts)
  end)
end

-- Calls a function that writes to this session's log, then saves.
local function then_save(self, reason, act)
  local message, code, retry_ms, rule = hindrance(self)
  if message then
    return nil, message, code, retry_ms, rule
  end
  local results = table.pack(act())
  if not results[1] then
    return table.unpack(results, 1, results.n)
  end
  return keep_then(self, reason, results)
end

--- A session of its own that this one names, and that names this one.
function session_methods:child(context, opts)
  return then_save(self, "child", function()
    return self.store:add("child", kept.names_of(opts, self.names), function()
      return self.core:child(context, opts)
    end)
  end)
end

function session_methods:merged(child, message)
  return then_save(self, "merge", function() return self.core:merged(child.core, message) end)
end

function session_methods:discarded(child, reason)
  return then_save(self, "discard", function() return self.core:discarded(child.core, reason) end)
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

--- Wraps a session of the core. self: the store; loaded: how many of its records the host has.
function kept.wrap(self, handle, opts, loaded)
  local names = handle:info()
  return setmetatable({
    core = handle,
    store = self,
    functions = self.functions,
    names = names,
    outer = kept.outer_id(names.id, names.user),
    shown = ("%q"):format(names.id):gsub("\\\n", "\\n"),
    saved = loaded, -- number of records that the host has
    timeout_ms = opts.timeout_ms or self.timeout_ms,
    saving = setmetatable({}, { __mode = "v" }), -- `door`: a save is under way
    lost = false,
    failed = false, -- the last save, by its message
    closed = false,
    left = 0,
  }, session_meta)
end

return kept
