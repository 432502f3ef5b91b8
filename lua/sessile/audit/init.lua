-- audit/init.lua: the audit of a store: its events, whether it is what was written, and its events
-- in the formats of others: methods of stores.

local characters = require "sessile.characters"
local core = require "sessile.core"
local object = require "sessile.object"
local options = require "sessile.options"

local audit = { methods = {} }

local WAIT_MS = 1000 -- between two looks at the clock, when it follows

-- The core of the store that keeps the audit of this one. Another store knows nothing of the guard,
-- so who may read its audit is asked here: one of the permissions is enough. nil, message, code.
local function keeper(self, ...)
  local other = self._audit_store
  if not other then
    return self._core
  end
  for _, permission in ipairs { ... } do
    if self:can(permission) then
      return other._core
    end
  end
  return nil, ("this needs the permission %s, which no role of this view gives"):format((...)),
    "EDENIED"
end

-- ---------------------------------------------------------------- reading

local reader = {}

-- The next event; nil: there is none now. on_damage hears of a log that cannot be read on.
local function step(self)
  while true do
    local event, message, code = self._core:next()
    if event or not message then
      return event
    elseif self._on_damage and (code == "EDAMAGED" or code == "ETRUNCATED" or code == "ESEALED")
    then
      self._on_damage(message, code)
    else
      options.misuse(("%s [%s]"):format(message, code))
    end
  end
end

-- The next event; if it is to be followed, of those that are still to come.
local function next_event(self)
  local ends = self._timeout_ms and core.now() + self._timeout_ms
  while true do
    local event = step(self)
    if event or not self._follow then
      return event
    end
    local left = ends and math.max(ends - core.now(), 0)
    local changed, message, code = self._core:wait(left and math.min(left, WAIT_MS) or WAIT_MS)
    if changed == nil then
      options.misuse(("%s [%s]"):format(message, code))
    elseif left == 0 and not changed then
      return nil
    end
  end
end

--- Where the reader is: a text, for `cursor` of another reader. nil, message, code.
function reader:cursor()
  return self._core:cursor()
end

--- Waits until something was written, at most `timeout_ms`: whether it was. nil, message, code.
function reader:wait(timeout_ms)
  return self._core:wait(options.value("reader:wait: how long", timeout_ms, "count"))
end

local reader_meta = object.class { name = "sessile.AuditReader", methods = reader }
reader_meta.__call = next_event

local audit_options = options.shape("store:audit", {
  since = "moment", ["until"] = "moment", user = "string", about = "string", operation = "string",
  outcome = { "success", "failure", "intent", "unknown" }, session = "string", agent = "string",
  limit = "count", names = "boolean", cursor = "string", follow = "boolean",
  timeout_ms = "timeout", on_damage = "callable",
})

--- The events of the audit, oldest first: `for event in store:audit {…} do`. See meta.lua.
function audit.methods:audit(given)
  local opts = options.check("store:audit", given, audit_options)
  local follow, timeout_ms, on_damage = opts.follow, opts.timeout_ms, opts.on_damage
  opts.follow, opts.timeout_ms, opts.on_damage = nil, nil, nil
  opts.names = opts.names ~= false
  local core_of, message, code, retry_ms, rule = keeper(self, "read_audit")
  local handle
  if core_of then
    handle, message, code, retry_ms, rule = core_of:audit(opts)
  end
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return setmetatable({ _core = handle, _follow = follow or false, _on_damage = on_damage or false,
    _timeout_ms = timeout_ms and timeout_ms >= 0 and timeout_ms or false }, reader_meta)
end

-- ---------------------------------------------------------------- verifying

-- The core of the store that keeps the audit, and the key that was given, else the store's own.
-- nil, message, code.
local function keeper_and_root(self, given)
  local core_of, message, code, retry_ms, rule = keeper(self, "read_audit", "check_store")
  if not core_of then
    return nil, message, code, retry_ms, rule
  end
  local root = given
  if not root then
    root, message, code, retry_ms, rule = core_of:audit_root()
  end
  if not root then
    return nil, message, code, retry_ms, rule
  end
  return core_of, root
end

-- What a deep verification alone reports.
local DEEP = { "logs", "logs_of", "changes", "outside", "unread", "without_event",
  "without_change", "lost" }

local verify_options = options.shape("store:audit_verify", {
  root = "string", anchors = "table", max_age = "span", copy = "boolean", progress = "callable",
  deep = "boolean",
})

--- Reads all of the audit, and compares it with its seals. Returns the report; `holds` says whether
--- it is what was sealed. Without `root` the key is the one in the store itself, which somebody who
--- has replaced the audit has replaced as well: the report has `own_root`. With `deep` each change
--- of the sessions is looked for in the events: `complete` says whether all are there, else `lost`
--- has the first ones. nil, message, code.
function audit.methods:audit_verify(given)
  local opts = options.check("store:audit_verify", given, verify_options)
  local core_of, root, code, retry_ms, rule = keeper_and_root(self, opts.root)
  if not core_of then
    return nil, root, code, retry_ms, rule
  end
  local work, message
  work, message, code, retry_ms, rule = core_of:audit_verify(root, {
    max_age_ms = opts.max_age, copy = opts.copy,
    anchors = opts.anchors, deep = opts.deep,
    guarded = core_of ~= self._core and self._core or nil })
  if not work then
    return nil, message, code, retry_ms, rule
  end
  local report
  report, message, code, retry_ms, rule = object.drive(work, opts.progress)
  if not report then
    return nil, message, code, retry_ms, rule
  end
  report.failures, report.root, report.own_root = nil, root, not opts.root
  if opts.deep then
    report.complete = report.without_event == 0 and report.without_change == 0
  else
    for _, name in ipairs(DEEP) do
      report[name] = nil
    end
  end
  return report
end

--- The public key that vouches for the audit: 64 hex digits, to be kept elsewhere. nil, message,
--- code.
function audit.methods:audit_root()
  local core_of, root, code, retry_ms, rule = keeper_and_root(self)
  if not core_of then
    return nil, root, code, retry_ms, rule
  end
  return root
end

local head_options = options.shape("store:audit_head", { root = "string", copy = "boolean" })

--- The last seals, to be kept elsewhere, and given back to audit_verify as `anchors`: a list of
--- { lane, epoch, hash }. Everything is verified first. nil, message, code.
function audit.methods:audit_head(given)
  local opts = options.check("store:audit_head", given, head_options)
  local core_of, root, code, retry_ms, rule = keeper_and_root(self, opts.root)
  if not core_of then
    return nil, root, code, retry_ms, rule
  end
  return core_of:audit_head(root, opts.copy)
end

--- Seals what was written. nil, message, code.
function audit.methods:audit_seal()
  local core_of, message, code = keeper(self, "read_audit", "check_store")
  if not core_of then
    return nil, message, code
  end
  return core_of:audit_seal()
end

--- A proof that an event is in the audit: JSON. nil, message, code.
function audit.methods:audit_prove(id)
  options.expect("string", id, "store:audit_prove: the id of an event")
  local core_of, message, code, retry_ms, rule = keeper(self, "read_audit")
  if not core_of then
    return nil, message, code, retry_ms, rule
  end
  return core_of:audit_prove(id)
end

--- Checks a proof, without a store: returns the event, with its `timestamp`, and the public key
--- that signed it. nil, message, code.
function audit.check(proof)
  options.expect("string", proof, "sessile.audit_check: a proof")
  local key, event, code = core.audit_check(proof)
  if not key then
    return nil, event, code
  end
  local entry = core.plain(core.json(event))
  local made = type(entry.data) == "table" and entry.data or {}
  made.timestamp = entry.timestamp
  return made, key
end

-- ---------------------------------------------------------------- formats

--- The formats, by name: functions of an event that return a line without its newline.
audit.formats = { "jsonl", "ecs", "ocsf", "cef", "syslog" }

local export_options = options.shape("sessile.audit_export", { host = "string" })

--- An event of store:audit in a format: one line, without its newline.
function audit.export(event, format, given)
  options.expect("table", event, "sessile.audit_export: an event")
  options.value("sessile.audit_export: the format", format, audit.formats)
  local opts = options.check("sessile.audit_export", given, export_options)
  local made = require("sessile.audit." .. format).make(event, opts)
  return type(made) == "table" and characters.inert(core.text(made)) or made
end

return audit
