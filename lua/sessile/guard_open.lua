-- guard_open.lua: the guard that sessile.open sets on a store, by the name of a profile or by a
-- table over one, and what the command line opens: a view of whoever has the store.

local guard_options = require "sessile.guard_options"
local options = require "sessile.options"
local paths = require "sessile.paths"

-- open(url, options): sessile.open, set by init.lua.
local guard_open = {}

-- The keys of a guard in sessile.open, with what options.check expects of each.
local keys = options.shape("sessile.open: guard", {
  profile = "string", require_principal = "boolean", plain = "boolean", roles = "table",
  rate_limits = "table|no", audit = "table|boolean", consent = "boolean",
  screens = "table|no", schemas = "table|no", urls = "table|no", identity = "table",
  retention = "table|no", authorize = "string|no",
})

local reader = {
  fail = function(at, what)
    options.misuse(("sessile.open: guard: %s: %s"):format(at, what))
  end,
  path = function(_, path) return paths.expand(path) end,
}

--- The guard that sessile.open is told, checked, with what its profile sets: a table, "off" or nil.
--- Raises.
function guard_open.wanted(given)
  if given == nil then
    return nil
  end
  local own = type(given) == "string" and { profile = given }
    or options.check("sessile.open: guard", given, keys)
  for name, value in pairs(own) do
    own[name] = guard_options.part(reader, name, value)
  end
  return guard_options.whole(own)
end

guard_open.plain_refusal = "the guard lets no store be opened that is not sealed: give it a key, "
  .. "or say guard = { plain = true, … }"

--- Whether the guard that is wanted refuses a store of this URL that is plain. What is in memory
--- alone is nowhere to be read.
function guard_open.refuses_plain(wanted, url, plain)
  return type(wanted) == "table" and wanted.plain == false and plain and url ~= "ram:"
end

-- Whether a store has a place for an audit, and for what was decided about it.
local function keeps_logs(url)
  return url ~= "ram:" and url ~= "adapter"
end

-- The audit as store:guard takes it, and the store that was opened for it. A profile asks for no
-- audit where there is no place for one; whoever asks by name is told. nil, nil, message, code.
local function audit_of(wanted, url, given)
  local audit = wanted.audit
  if not audit or not wanted.asks_for_audit and not keeps_logs(url) then
    return false
  elseif audit == true or not audit.store then
    return audit
  end
  local store, message, code, retry_ms, rule = guard_open.open(audit.store, { key = given.key,
    timeout_ms = given.timeout_ms, network = given.network })
  if not store then
    return nil, nil, "guard: audit.store: " .. message, code, retry_ms, rule
  end
  local copy = options.add({}, audit)
  copy.store = store
  return copy, store
end

-- The schemas with the texts of their files. nil, message, code.
local function schemas_of(given)
  local read = {}
  for kind, schema in pairs(given or {}) do
    local file = type(schema) == "string" and not schema:find "^%s*{"
      and io.open(schema, "rb") or nil
    read[kind] = file and file:read "*a" or schema
    if file then
      file:close()
    end
    if type(read[kind]) == "string" and not read[kind]:find "^%s*{" then
      return nil, ("guard: schemas.%s: there is no JSON Schema in %s"):format(kind, schema),
        file and "EINVALID" or "ENOTFOUND"
    end
  end
  return next(read) and read or false
end

--- Sets the guard that is wanted on a store that was just opened with the options `given`. nil,
--- message, code.
function guard_open.set(store, wanted, given)
  if wanted == nil then
    return true
  elseif wanted == "off" then
    return store:guard { off = true }
  end
  local audit, kept, message, code, retry_ms, rule = audit_of(wanted, store.url, given)
  if audit == nil then
    return nil, message, code, retry_ms, rule
  end
  rawset(store, "_closes", kept)
  local schemas, done
  schemas, message, code, retry_ms, rule = schemas_of(wanted.schemas)
  if schemas == nil then
    return nil, message, code, retry_ms, rule
  end
  done, message, code, retry_ms, rule =
    store:guard { roles = wanted.roles, limits = wanted.rate_limits,
    require_principal = wanted.require_principal, audit = audit, consent = wanted.consent,
    token = (wanted.identity or {}).token, authorize = wanted.authorize or nil,
    profile = keeps_logs(store.url) and wanted.profile or nil, -- the store stays guarded
    screens = wanted.screens or nil, schemas = schemas or nil, urls = wanted.urls }
  if not done then
    return nil, message, code, retry_ms, rule
  end
  rawset(store, "_guarded", true)
  return true
end

--- The same guard, and the store's own handle may do everything: to mend a store with. It is not
--- noted in the store. nil: the least one, for a store that is guarded when nobody wants a guard.
function guard_open.for_host(given)
  local host = options.add({}, type(given) == "string" and { profile = given } or given or {})
  host.require_principal = false
  return host
end

--- Of a store that stays guarded while nobody has set a guard on this handle, which can do nothing
--- then: the profile that it was guarded with, "" if that cannot be read. nil: it is no such store.
function guard_open.waits(store)
  local _, message, code = store:who()
  if code == "EDENIED" then
    return message:match "guarded %((.-)%)" or ""
  end
end

--- Whether sessile.open has set a guard on a store.
function guard_open.is_on(store)
  return store._guarded or false
end

--- A text that somebody gave to say who they are, as store:as takes it.
function guard_open.credential(text)
  return text:sub(1, 5) == "sesk_" and { key = text } or { token = text }
end

--- A view for whoever has the store itself, as on the command line: it has the store's user, and
--- closes the store with itself. loads: it loads the policies that it is given. nil, message, code,
--- retry_ms, rule; the store is open then.
function guard_open.own(store, credential, loads)
  local view, message, code, retry_ms, rule = store:as(credential)
  if not view then
    return nil, message, code, retry_ms, rule
  end
  rawset(view, "_closes", store)
  rawset(view, "_user", loads and store._user or false)
  rawset(view, "_loader", loads and store._core or nil)
  return view
end

return guard_open
