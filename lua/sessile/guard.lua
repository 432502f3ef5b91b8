-- guard.lua: the guard of a store, and views of it: methods of stores.
--
-- A view is a store whose calls the engine checks against what its credential gives. It has the
-- policies and settings of the store that it was made from.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local options = require "sessile.options"
local screens = require "sessile.screens"

local math = dialect.math

-- view(store, core): a store over the core of a view; set by store.lua.
local guard = { methods = {} }

local guard_options = options.shape("store:guard",
  { roles = "table", require_principal = "boolean", consent = "boolean", limits = "table|boolean",
    audit = "table|boolean", token = "table", profile = "string", off = "boolean",
    authorize = "string",
    screens = "table", urls = "table|no", schemas = "table" })
local token_options = options.shape("store:guard: token", {
  issuer = "string", audience = "string", keys = "string", user = "string", roles = "string",
  agents = "string", actor = "string",
})
local limit_options = options.shape("store:guard: limits", {
  session_creation = "string", checkpoint_writes = "string", memory_reads = "string",
  memory_writes = "string", branch_operations = "string", searches = "string",
  exports = "string", grants = "string", failures = "string", shared = "string", deny = "boolean",
})
local audit_options = options.shape("store:guard: audit",
  { store = "table", sync = "boolean", reads = "boolean", closed = "boolean" })
local role_options = { all = "boolean" }
local credential_options = options.shape("store:as", {
  user = "string", actor = "string", roles = "string|strings", agents = "string|strings",
  session = "string", agent = "string", owner = "string", expires = "count", key = "string",
  token = "string", os = "boolean",
  source = "string", device = "string",
})

local function list(given)
  return type(given) == "string" and { given } or given
end

-- Roles by their names as a list: the list of each are its permissions, and it may have all = true.
local function roles_of(given)
  local made = {}
  for name, role in pairs(given or {}) do
    options.expect("string", name, "store:guard: option 'roles': the name of a role")
    options.expect("table", role, ("store:guard: role %q"):format(name))
    local permissions, rest = {}, {}
    for key, value in pairs(role) do
      if math.type(key) == "integer" then
        options.expect("string", value, ("store:guard: role %q: a permission"):format(name))
        permissions[#permissions + 1] = value
      else
        rest[key] = value
      end
    end
    made[#made + 1] = { name = name, permissions = permissions,
      all = options.check(("store:guard: role %q"):format(name), rest, role_options).all }
  end
  return made
end

-- A part that is on: its options as a table. nil: it is off.
local function part(given, name, shape)
  if given then
    return options.check("store:guard: " .. name, given ~= true and given or {}, shape)
  end
end

local function limits_of(given)
  local opts = part(given, "limits", limit_options)
  if not opts then
    return nil
  end
  local made = { rates = {}, shared = opts.shared, deny = opts.deny }
  for rule, rate in pairs(opts) do
    if rule ~= "shared" and rule ~= "deny" then
      made.rates[#made.rates + 1] = { rule = rule, rate = rate }
    end
  end
  return made
end

local function audit_of(given)
  local opts = part(given, "audit", audit_options)
  if opts and opts.store and not opts.store._core then
    options.misuse "store:guard: audit: option 'store': a store expected"
  end
  return opts and { store = opts.store and opts.store._core, sync = opts.sync,
    no_reads = opts.reads == false, closed = opts.closed }
end

--- Sets a guard on the store; the handle stays the host's. EINVALID: it has one, or a role names a
--- permission that there is not. roles: { NAME = { "view_session", …, all = true } }. limits: true,
--- or { searches = "100/minute", …, shared = URL of Redis, deny = true }. audit: true, or { store =
--- another store that keeps it, sync = true, reads = false, closed = true }. token: { issuer,
--- audience, keys = file, … }: JWTs are accepted. profile: a name, and the store stays guarded.
--- off = true: no guard. screens, urls, schemas: what may be written. authorize: a file with a rule
--- that can refuse what the rest allows; read once.
function guard.methods:guard(given)
  local opts = options.check("store:guard", given, guard_options)
  local rules, message, code, retry_ms, rule = screens.rules(opts.screens, opts.schemas)
  if not rules then
    return nil, message, code, retry_ms, rule
  end
  local done
  done, message, code = self._core:guard { roles = roles_of(opts.roles), screens = rules[1],
    urls = screens.urls(opts.urls), consent = opts.consent,
    require_principal = opts.require_principal, limits = limits_of(opts.limits),
    audit = audit_of(opts.audit), profile = opts.profile, off = opts.off,
    authorize = opts.authorize,
    token = opts.token and options.check("store:guard: token", opts.token, token_options) }
  if done and type(opts.audit) == "table" then
    rawset(self, "_audit_store", opts.audit.store) -- views have it, too
  end
  return done, message, code
end

local function credential_of(given)
  local opts = options.check("store:as", given, credential_options)
  opts.roles, opts.agents = list(opts.roles), list(opts.agents)
  return opts
end

--- What the rules of the store say of an item, which is not written: see screens:run. nil, message,
--- code.
function guard.methods:screen(item)
  return self._core:screen(screens.item("store:screen", item))
end

--- A view of the store for a user: a store that can do what its roles allow, for the sessions of
--- that user, or of all. Give a user with roles and agents, or a key, or a token, or os = true.
--- Close it before the store. A view of a view only narrows. nil, message, code.
function guard.methods:as(given)
  local handle, message, code, retry_ms, rule = self._core:as(credential_of(given))
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return guard.view(self, handle)
end

--- Lets a view live on. view:renew(credential): with a newer key or token of the same user.
--- store:renew(view, credential): by the word of the store that made it, until a time in ms since
--- 1970 (0: without an end). EDENIED: a view without either. nil, message, code.
function guard.methods:renew(given, word)
  if type(given) == "table" and given._core then
    return given._core:renew(credential_of(type(word) == "number" and { expires = word } or word),
      self._core)
  end
  return self._core:renew(credential_of(type(given) == "number" and { expires = given } or given))
end

--- Ends what a view, and its views, may: each later call is EDENIED. nil, message, code.
function guard.methods:revoke()
  return self._core:revoke()
end

--- Who the store is used by: { user, actor, session, agents, permissions, all, host, expires }.
--- EINVALID: it has no guard. EDENIED: it stays guarded, and its guard was not set.
function guard.methods:who()
  return self._core:who()
end

local can_options = options.shape("store:can",
  { agent = "string", user = "string", id = "string" })

--- Whether a call that wants this permission would pass now, on the session of these names. true
--- for a store without a guard.
function guard.methods:can(permission, on)
  options.expect("string", permission, "store:can: a permission")
  local of = options.check("store:can", on, can_options)
  return self._core:can(permission, of.agent, of.user, of.id)
end

local may_options = options.shape("store:may", { permission = "string", limit = "string",
  agent = "string", user = "string", id = "string", reads = "boolean" })

--- Whether an operation of your own may be done now: it is checked, counted and recorded as the
--- engine's are. Ask once, right before it. EDENIED; ELIMIT, with retry_ms and the rule; an error
--- of the audit: it may not.
function guard.methods:may(name, given)
  options.expect("string", name, "store:may: the name of an operation")
  local opts = options.check("store:may", given, may_options)
  options.expect("string", opts.permission, "store:may: option 'permission'")
  opts.name = name
  return self._core:may(opts)
end

--- Writes an event of your own into the audit, as "host:NAME". details: names and numbers, never
--- content. EINVALID: the store has no audit.
function guard.methods:note(name, details)
  options.expect("string", name, "store:note: a name")
  options.expect("table?", details, "store:note: details")
  return self._core:note(name, details and core.text(details) or "")
end

return guard
