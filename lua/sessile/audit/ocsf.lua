-- audit/ocsf.lua: events in the Open Cybersecurity Schema Framework 1.6: one JSON object a line.
--
-- Classes: 6003 API Activity; 3002 Authentication (a credential was given); 3005 User Access
-- Management (a right was given or taken). What the schema has no attribute for is in `unmapped`.

local event = require "sessile.audit.event"
local core = require "sessile.core"

local ocsf = { version = "1.6.0" }

-- category_uid, class_uid, activity_id, and their names.
local API, AUTHENTICATION, ACCESS = "API Activity", "Authentication", "User Access Management"
local KINDS = {
  create = { 6, 6003, 1, API, "Create" }, read = { 6, 6003, 2, API, "Read" },
  update = { 6, 6003, 3, API, "Update" }, delete = { 6, 6003, 4, API, "Delete" },
  other = { 6, 6003, 99, API, "Other" },
  logon = { 3, 3002, 1, AUTHENTICATION, "Logon" },
  logoff = { 3, 3002, 2, AUTHENTICATION, "Logoff" },
  grant = { 3, 3005, 1, ACCESS, "Assign Privileges" },
  revoke = { 3, 3005, 2, ACCESS, "Revoke Privileges" },
}
local CATEGORIES = { [3] = "Identity & Access Management", [6] = "Application Activity" }
local STATUS = { success = { 1, "Success" }, failure = { 2, "Failure" },
  unknown = { 0, "Unknown" } }

local function user_of(e)
  local uid, name = event.text(e.user), event.text(e.name)
  if not uid and not name then
    return { name = event.text(e.actor) or "host", type_id = 3, type = "System" }
  end
  return { uid = uid, name = name, type_id = 1, type = "User" }
end

local function endpoint_of(e)
  local source = event.text(e.source)
  if not source then
    return { svc_name = "sessile" }
  end
  return event.address(source) and { ip = source } or { name = source }
end

function ocsf.make(e)
  local kind = KINDS[event.kind(e)]
  local status = STATUS[e.outcome] or { 99, event.text(e.outcome) or "Other" }
  local made = {
    category_uid = kind[1], category_name = CATEGORIES[kind[1]],
    class_uid = kind[2], class_name = kind[4],
    activity_id = kind[3], activity_name = kind[5],
    type_uid = kind[2] * 100 + kind[3], type_name = kind[4] .. ": " .. kind[5],
    time = e.time, count = e.count,
    severity_id = event.failed(e) and 2 or 1,
    severity = event.failed(e) and "Low" or "Informational",
    status_id = status[1], status = status[2], status_code = event.text(e.code),
    status_detail = event.text(e.rule),
    metadata = {
      version = ocsf.version, uid = e.id, log_name = "audit",
      product = { name = "sessile", vendor_name = "sessile", version = core.version },
    },
    unmapped = {
      agent = event.text(e.agent), session = event.text(e.session), entry = event.text(e.entry),
      permission = event.text(e.permission), method = event.text(e.method), key = event.text(e.key),
      role = event.text(e.role), owner = event.text(e.owner),
      outcome = event.text(e.outcome), details = event.details(e),
    },
  }
  local actor = { user = user_of(e), app_name = event.text(e.actor) }
  if kind[2] == 6003 then
    made.actor, made.src_endpoint = actor, endpoint_of(e)
    made.api = { operation = event.text(e.operation) or "unknown", service = { name = "sessile" },
      request = e.request and { uid = event.text(e.request) } or nil }
  else
    made.user, made.actor, made.service = actor.user, actor, { name = "sessile" }
    made.src_endpoint = e.source and endpoint_of(e) or nil
    made.message = event.text(e.operation)
    if kind[2] == 3005 then -- of whom a right is: not always the caller
      local owner = event.text(e.owner)
      made.user = owner and { uid = owner, type_id = 1, type = "User" } or actor.user
      made.privileges = { event.text((e.details or {}).role) or event.text(e.permission)
        or "unknown" }
      made.service = nil
      made.resources = { { name = "sessile", type = "store" } }
    end
  end
  return made
end

ocsf.specimen = [[{"activity_id":3,"activity_name":"Update","actor":{"user":{"name":"ann",]]
  .. [["type":"User","type_id":1,"uid":"u_abc"}},"api":{"operation":"append","service":]]
  .. [[{"name":"sessile"}},"category_name":"Application Activity","category_uid":6,]]
  .. [["class_name":"API Activity","class_uid":6003,"metadata":{"log_name":"audit","product":]]
  .. [[{"name":"sessile","vendor_name":"sessile","version":"0.1.0"},"uid":"00-000/0000002a",]]
  .. [["version":"1.6.0"},"severity":"Low","severity_id":2,"src_endpoint":{"svc_name":"sessile"},]]
  .. [["status":"Failure","status_code":"DENIED","status_id":2,"time":1769954602123,]]
  .. [["type_name":"API Activity: Update","type_uid":600303,"unmapped":{"agent":"coder",]]
  .. [["outcome":"failure","permission":"modify_session","session":"bug-42"}}]]

return ocsf
