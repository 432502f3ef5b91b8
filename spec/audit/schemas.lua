-- schemas.lua: the parts of ECS 8 and OCSF 1.6 that events use, as JSON Schemas, in our words.
--
-- ECS: www.elastic.co/guide/en/ecs/8.17: fields `event`, `user`, `source`, `service`, `error`,
-- `related` and the values allowed of event.kind, category, type and outcome. `sessile` is a field
-- set of our own, as the schema lets everybody have. OCSF: schema.ocsf.io/1.6.0, classes 6003, 3002 and 3005:
-- attributes, which are required, and their enumerations.

local function text() return { type = "string", minLength = 1 } end
local function any_text() return { type = "string" } end
local function one_of(...) return { enum = { ... } } end
local function exactly(value) return { enum = { value } } end
local function list(of) return { type = "array", minItems = 1, uniqueItems = true, items = of } end

-- An object of these members and no others. required: a string of names.
local function object(required, properties)
  local names = {}
  for name in required:gmatch "%S+" do
    assert(properties[name], name)
    names[#names + 1] = name
  end
  return { type = "object", additionalProperties = false, properties = properties,
    required = #names > 0 and names or nil, minProperties = 1 }
end

local TIME = { type = "string",
  pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$" }
local EVENT_ID = { type = "string", pattern = "^[0-9]{2}-[0-9]{3,6}/[0-9a-f]{8}$" }
local COUNT = { type = "integer", minimum = 1 }

local schemas = {}

schemas.ecs = object("@timestamp ecs event service sessile", {
  ["@timestamp"] = TIME,
  ecs = object("version", { version = { type = "string", pattern = "^8[.]" } }),
  event = object("id kind module dataset provider action category type outcome", {
    id = EVENT_ID,
    kind = one_of("alert", "asset", "enrichment", "event", "metric", "state", "pipeline_error",
      "signal"),
    category = list(one_of("api", "authentication", "configuration", "database", "driver", "email",
      "file", "host", "iam", "intrusion_detection", "library", "malware", "network", "package",
      "process", "registry", "session", "threat", "vulnerability", "web")),
    type = list(one_of("access", "admin", "allowed", "change", "connection", "creation", "deletion",
      "denied", "end", "error", "group", "indicator", "info", "installation", "protocol", "start",
      "user")),
    outcome = one_of("failure", "success", "unknown"),
    module = text(), dataset = text(), provider = text(), action = text(), reason = any_text(),
  }),
  error = object("code", { code = text() }),
  user = object("", { id = text(), name = any_text(), roles = list(any_text()) }),
  related = object("user", { user = list(any_text()) }),
  source = object("address", { address = text(), ip = text() }),
  http = object("request", { request = object("id", { id = any_text() }) }),
  service = object("name type", { name = text(), type = text() }),
  sessile = object("outcome", {
    actor = any_text(), agent = any_text(), session = any_text(), entry = any_text(),
    method = any_text(), key = any_text(), permission = any_text(), outcome = any_text(),
    count = COUNT, details = any_text(),
  }),
})

-- Which types ECS expects of a category.
schemas.ecs_types = {
  api = { access = true, admin = true, allowed = true, change = true, creation = true,
    deletion = true, denied = true, ["end"] = true, info = true, start = true, user = true },
  iam = { admin = true, change = true, creation = true, deletion = true, group = true, info = true,
    user = true },
  authentication = { start = true, ["end"] = true, info = true },
}

-- ---------------------------------------------------------------- OCSF

local USER = object("type_id", {
  name = any_text(), uid = text(), type = any_text(), type_id = one_of(0, 1, 2, 3, 4, 99) })
-- Of user and endpoint at least one of some attributes is required.
USER.anyOf = { { required = { "name" } }, { required = { "uid" } } }
local ENDPOINT = object("", { ip = text(), name = any_text(), svc_name = text() })
local SERVICE = object("name", { name = text() })
local ACTOR = object("", { user = USER, app_name = any_text() })
local UNMAPPED = { type = "object", additionalProperties = any_text() }

-- A class: its ids, what it requires beside what all do, and its own attributes.
local function class(category, uid, activities, required, own)
  local types = {}
  for i, activity in ipairs(activities) do
    types[i] = uid * 100 + activity
  end
  local properties = {
    category_uid = exactly(category), category_name = text(), class_uid = exactly(uid),
    class_name = text(), activity_id = { enum = activities }, activity_name = text(),
    type_uid = { enum = types }, type_name = text(),
    time = { type = "integer", minimum = 1000000000000 }, -- milliseconds
    count = COUNT, message = any_text(),
    severity_id = one_of(0, 1, 2, 3, 4, 5, 6, 99), severity = text(),
    status_id = one_of(0, 1, 2, 99), status = text(), status_code = text(),
    status_detail = any_text(),
    metadata = object("version product", {
      version = exactly "1.6.0", uid = EVENT_ID, log_name = text(),
      product = object("vendor_name", { name = text(), vendor_name = text(), version = text() }),
    }),
    actor = ACTOR, src_endpoint = ENDPOINT, unmapped = UNMAPPED,
  }
  for name, value in pairs(own) do
    properties[name] = value
  end
  return object("category_uid class_uid activity_id type_uid time severity_id metadata "
    .. required, properties)
end

schemas.ocsf = {
  [6003] = class(6, 6003, { 0, 1, 2, 3, 4, 99 }, "actor api src_endpoint", {
    api = object("operation", { operation = text(), service = SERVICE,
      request = object("uid", { uid = any_text() }) }),
  }),
  [3002] = class(3, 3002, { 0, 1, 2, 3, 4, 5, 6, 7, 99 }, "user service",
    { user = USER, service = SERVICE }),
  [3005] = class(3, 3005, { 0, 1, 2, 99 }, "privileges user", {
    user = USER, privileges = list(any_text()),
    resources = list(object("name", { name = text(), type = text() })),
  }),
}

return schemas
