-- audit/init.lua: the audit of a store: its events, whether it is what was written, and its events
-- in the formats of others: methods of stores.

local characters = require "sessile.characters"
local core = require "sessile.core"
local object = require "sessile.object"
local options = require "sessile.options"

local audit = { methods = {} }

local WAIT_MS = 1000 -- between two looks at the clock, when it follows

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
  since = "moment", ["until"] = "moment", user = "string", operation = "string",
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
  local handle, message, code = self._core:audit(opts)
  if not handle then
    return nil, message, code
  end
  return setmetatable({ _core = handle, _follow = follow or false, _on_damage = on_damage or false,
    _timeout_ms = timeout_ms and timeout_ms >= 0 and timeout_ms or false }, reader_meta)
end

-- ---------------------------------------------------------------- verifying

-- The key that was given, else the store's own. nil, message, code.
local function root_of(self, given)
  if given then
    return given
  end
  return self._core:audit_root()
end

local verify_options = options.shape("store:audit_verify", {
  root = "string", anchors = "table", max_age = "span", copy = "boolean", progress = "callable",
})

--- Reads all of the audit, and compares it with its seals. Returns the report; `holds` says whether
--- it is what was sealed. Without `root` the key is the one in the store itself, which somebody who
--- has replaced the audit has replaced as well: the report has `own_root`. nil, message, code.
function audit.methods:audit_verify(given)
  local opts = options.check("store:audit_verify", given, verify_options)
  local root, message, code = root_of(self, opts.root)
  if not root then
    return nil, message, code
  end
  local work
  work, message, code = self._core:audit_verify(root,
    { max_age_ms = opts.max_age, copy = opts.copy, anchors = opts.anchors })
  if not work then
    return nil, message, code
  end
  local report
  report, message, code = object.drive(work, opts.progress)
  if not report then
    return nil, message, code
  end
  report.failures, report.root, report.own_root = nil, root, not opts.root
  return report
end

--- The public key that vouches for the audit: 64 hex digits, to be kept elsewhere. nil, message,
--- code.
function audit.methods:audit_root()
  return self._core:audit_root()
end

local head_options = options.shape("store:audit_head", { root = "string", copy = "boolean" })

--- The last seals, to be kept elsewhere, and given back to audit_verify as `anchors`: a list of
--- { lane, epoch, hash }. Everything is verified first. nil, message, code.
function audit.methods:audit_head(given)
  local opts = options.check("store:audit_head", given, head_options)
  local root, message, code = root_of(self, opts.root)
  if not root then
    return nil, message, code
  end
  return self._core:audit_head(root, opts.copy)
end

--- Seals what was written. nil, message, code.
function audit.methods:audit_seal()
  return self._core:audit_seal()
end

--- A proof that an event is in the audit: JSON. nil, message, code.
function audit.methods:audit_prove(id)
  options.expect("string", id, "store:audit_prove: the id of an event")
  return self._core:audit_prove(id)
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
