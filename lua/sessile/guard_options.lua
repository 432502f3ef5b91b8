-- guard_options.lua: checks what a guard is told, in programs and configurations.
--
--   guard = "standard", "strict" or "off"
--   guard = { profile = "strict", rate_limits = { searches = "100/minute" }, … }
--
-- A mistake is told to `fail(at, what, code)`, which raises; `at` is below the guard, as
-- "rate_limits.searches". What was read can be read again. profiles.lua has what each profile sets.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local nearest = require "sessile.nearest"
local profiles = require "sessile.profiles"
local times = require "sessile.times"

local math = dialect.math

local guard_options = {}

-- What a call reads with: fail, and path(at, value), which makes a path of it.
---@class sessile.guard.reader
---@field fail fun(at: string, what: string, code: string?)
---@field path fun(at: string, value: string): string

local KINDS = { "message", "custom", "title", "metadata", "settings", "state", "memory", "answer" }

local function shown(value)
  if type(value) == "string" then
    return #value <= 40 and not value:find "%c" and ("%q"):format(value) or "a long text"
  end
  return type(value) == "number" and ("%.14g"):format(value)
    or type(value) == "boolean" and tostring(value) or "a " .. type(value)
end

local function set_of(list)
  local set = {}
  for _, name in ipairs(list) do
    set[name] = true
  end
  return set
end

-- ---------------------------------------------------------------- simple values

local function expect(reader, kind, at, value)
  if type(value) ~= kind then
    reader.fail(at, ("a %s expected, got %s"):format(kind == "string" and "text" or kind,
      shown(value)))
  end
  return value
end

local function boolean(reader, at, value)
  if type(value) ~= "boolean" then
    reader.fail(at, "true or false expected, got " .. shown(value))
  end
  return value
end

local function text(reader, at, value)
  if type(value) ~= "string" or value == "" or value:find("\0", 1, true) then
    reader.fail(at, "a text expected, not empty, got " .. shown(value))
  end
  return value
end

local function choice(reader, at, value, words)
  if not set_of(words)[value] then
    local near = type(value) == "string" and nearest(value, set_of(words))
    reader.fail(at, ("%s or %s expected, got %s%s"):format(table.concat(words, ", ", 1, #words - 1),
      words[#words], shown(value),
      near and (": did you mean %q?"):format(near) or ""))
  end
  return value
end

-- A table with no names but those of `known`, as a copy.
local function among(reader, at, value, known)
  local copy = {}
  for name, one in pairs(expect(reader, "table", at, value)) do
    if not known[name] then
      local near = nearest(tostring(name), known)
      reader.fail(at .. "." .. tostring(name):sub(1, 60), "there is no such key"
        .. (near and (", did you mean '%s'?"):format(near) or ""))
    end
    copy[name] = one
  end
  return copy
end

local function list(reader, at, value)
  local copy = table.move(expect(reader, "table", at, value), 1, #value, 1, {})
  for name in pairs(value) do
    if math.type(name) ~= "integer" or name < 1 or name > #copy then
      reader.fail(at, "a list expected, { \"…\", \"…\" }")
    end
  end
  return copy
end

local function strings(reader, at, value)
  local copy = list(reader, at, type(value) == "string" and { value } or value)
  for i, one in ipairs(copy) do
    text(reader, ("%s[%d]"):format(at, i), one)
  end
  return copy
end

-- ---------------------------------------------------------------- the keys

local parts = {}

function parts.profile(reader, at, value)
  return choice(reader, at, value, profiles.names)
end

parts.require_principal = boolean
parts.consent = boolean
parts.plain = boolean

-- { support = { "view_session", …, all = true } }
function parts.roles(reader, at, value)
  local permissions, roles = set_of(core.permissions()), {}
  for name, role in pairs(expect(reader, "table", at, value)) do
    local where = at .. "." .. tostring(name)
    text(reader, at, name)
    roles[name] = {}
    for key, one in pairs(expect(reader, "table", where, role)) do
      if key == "all" then
        boolean(reader, where .. ".all", one)
      elseif math.type(key) ~= "integer" then
        reader.fail(where .. "." .. tostring(key), "there is no such key: a role is a list of "
          .. "permissions, and perhaps all = true")
      elseif not permissions[one] then
        local near = type(one) == "string" and nearest(one, permissions)
        reader.fail(where, ("there is no permission %s%s"):format(shown(one),
          near and (", did you mean %q?"):format(near) or ""))
      end
      roles[name][key] = one
    end
  end
  return roles
end

local PERIODS = { second = true, minute = true, hour = true, day = true }
local rules = { shared = true, deny = true }
for rule in pairs(profiles.is_rule) do
  rules[rule] = true
end

-- "10/minute", or "off".
local function rate(reader, at, value)
  local count, period = tostring(value):match "^(%d+)/(%l+)$"
  local n = tonumber(count)
  if type(value) ~= "string" or value ~= "off"
    and not (n and n >= 1 and n <= 65535 and PERIODS[period]) then
    reader.fail(at, ("a rate expected, as \"10/minute\", a second, hour or day, or \"off\", got %s")
      :format(shown(value)))
  end
  return value
end

-- { searches = "100/minute", shared = "redis://…", deny = true }; false: none.
function parts.rate_limits(reader, at, value)
  if value == false then
    return false
  end
  local copy = among(reader, at, value, rules)
  for name, one in pairs(copy) do
    local where = at .. "." .. name
    if name == "shared" then
      copy[name] = text(reader, where, one)
    elseif name == "deny" then
      boolean(reader, where, one)
    else
      copy[name] = rate(reader, where, one)
    end
  end
  return copy
end

local token_keys = set_of { "issuer", "audience", "keys", "user", "roles", "agents", "actor" }

-- { token = { issuer = "https://…", audience = "…", keys = FILE, roles = "roles", … } }
function parts.identity(reader, at, value)
  local copy = among(reader, at, value, { token = true })
  if copy.token == nil then
    return copy
  end
  local where = at .. ".token"
  local token = among(reader, where, copy.token, token_keys)
  for name, one in pairs(token) do
    token[name] = text(reader, where .. "." .. name, one)
  end
  for _, name in ipairs { "issuer", "audience", "keys" } do
    if not token[name] then
      reader.fail(where .. "." .. name, "a token is compared with it: it is missing")
    end
  end
  token.keys = reader.path(where .. ".keys", token.keys)
  return { token = token }
end

local span_keys = set_of { "sessions", "deleted", "memory" }

-- A time as text, as "90d", or seconds.
local function time(reader, at, value)
  if not times.ms(value) then
    reader.fail(at, ("a time expected, as \"90d\" or \"24h\", got %s"):format(shown(value)))
  end
end

-- { sessions = "90d", deleted =, memory =, audit =, agents = { NAME = {…} }, users = {…} }:
-- how long each is kept, false: for ever. false: nothing is removed for its age.
function parts.retention(reader, at, value)
  if value == false then
    return false
  end
  local function spans(where, given, known)
    local copy = among(reader, where, given, known)
    for name, one in pairs(copy) do
      if (span_keys[name] or name == "audit") and one ~= false then
        time(reader, where .. "." .. name, one)
      end
    end
    return copy
  end
  local copy = spans(at, value, { sessions = true, deleted = true, memory = true, audit = true,
    agents = true, users = true })
  for _, kind in ipairs { "agents", "users" } do
    local own = {}
    for name, one in pairs(copy[kind] and expect(reader, "table", at .. "." .. kind, copy[kind])
      or {}) do
      local where = ("%s.%s.%s"):format(at, kind, tostring(name))
      own[text(reader, where, name)] = spans(where, one, span_keys)
    end
    copy[kind] = next(own) and own or nil
  end
  return copy
end

-- The file of a rule of your own; false: none.
function parts.authorize(reader, at, value)
  return value and reader.path(at, text(reader, at, value))
end

local audit_keys = set_of { "store", "sync", "reads", "closed" }

-- true, or { store = URL, sync = true, reads = false, closed = true }; false: none.
function parts.audit(reader, at, value)
  if type(value) == "boolean" then
    return value
  end
  local copy = among(reader, at, value, audit_keys)
  for name, one in pairs(copy) do
    local where = at .. "." .. name
    if name == "store" then
      copy[name] = text(reader, where, one)
    else
      boolean(reader, where, one)
    end
  end
  return copy
end

-- { "no_orders", { "secrets", action = "redact", on = { "message" } } }; false: none.
function parts.screens(reader, at, value)
  if value == false then
    return false
  end
  local copy = list(reader, at, value)
  for i, one in ipairs(copy) do
    local where = ("%s[%d]"):format(at, i)
    local step = type(one) == "table" and one or { one }
    text(reader, where, step[1])
    if step[1]:find "/" or step[1]:find "%.lua$" then
      local moved = {}
      for name, option in pairs(step) do
        moved[name] = option
      end
      moved[1] = reader.path(where, step[1])
      step, one = moved, type(one) == "table" and moved or moved[1]
    end
    for _, kind in ipairs(step.on and strings(reader, where .. ".on", step.on) or {}) do
      choice(reader, where .. ".on", kind, KINDS)
    end
    copy[i] = one
  end
  return copy
end

-- { metadata = FILE or schema, ["custom:KIND"] = … }; false: none.
function parts.schemas(reader, at, value)
  if value == false then
    return false
  end
  local copy = {}
  for name, one in pairs(expect(reader, "table", at, value)) do
    local where = at .. "." .. tostring(name)
    choice(reader, where, tostring(name):match "^(custom):." or name, KINDS)
    copy[name] = type(one) ~= "table" and not text(reader, where, one):find "^%s*{"
      and reader.path(where, one) or one
  end
  return copy
end

local url_keys = set_of(KINDS)
url_keys.allow, url_keys.only_allowed, url_keys.resolve = true, true, true

-- { memory = "refuse", message = "flag", allow = { ".example.org" }, … }; false: none.
function parts.urls(reader, at, value)
  if value == false then
    return false
  end
  local copy = among(reader, at, value, url_keys)
  for name, one in pairs(copy) do
    local where = at .. "." .. name
    if name == "allow" then
      copy[name] = strings(reader, where, one)
    elseif name == "only_allowed" or name == "resolve" then
      boolean(reader, where, one)
    else
      choice(reader, where, one, { "refuse", "flag", "pass" })
    end
  end
  return copy
end

-- ---------------------------------------------------------------- all of it

--- The names of the keys, as a set.
guard_options.parts = {}
for name in pairs(parts) do
  guard_options.parts[name] = true
end

--- Reads one key.
---@param reader sessile.guard.reader
function guard_options.part(reader, name, value)
  return parts[name](reader, name, value)
end

--- What a guard is told, with what its profile sets. given: a profile's name, or a table that was
--- read. nil: there is no guard; "off": none is wanted, although the store may have had one.
function guard_options.whole(given)
  if given == nil then
    return nil
  end
  local own = type(given) == "string" and { profile = given } or given
  local profile = own.profile or "standard"
  if profile == "off" then
    return "off"
  end
  local whole = {}
  for name, value in pairs(profiles[profile]) do
    whole[name] = value
  end
  for name, value in pairs(own) do
    whole[name] = value
  end
  whole.profile, whole.name = profile, nil
  whole.asks_for_audit = own.audit and true or false
  if own.rate_limits then -- a rule replaces that of the profile, and no other
    whole.rate_limits = {}
    for name, value in pairs(profiles[profile].rate_limits) do
      whole.rate_limits[name] = value
    end
    for name, value in pairs(own.rate_limits) do
      whole.rate_limits[name] = value
    end
  end
  return whole
end

return guard_options
