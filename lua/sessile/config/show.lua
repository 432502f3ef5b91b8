-- show.lua: the values of a configuration in a form that can be shown.
--
-- Secrets, the parts of a URL that may be secret, and the arguments of programs are left out. The
-- values must have passed the checks before.

local models = require "sessile.config.models"
local dialect = require "sessile.dialect"
local paths = require "sessile.paths"
local profiles = require "sessile.profiles"
local schema = require "sessile.config.schema"
local times = require "sessile.times"

local math = dialect.math

local show = {}

-- ---------------------------------------------------------------- single values

local function unit(value, units, step, last)
  local i = 1
  while i < #units and value % step[i] == 0 do
    value, i = math.floor(value / step[i]), i + 1
  end
  return ("%d%s"):format(value, units[i] or last)
end

--- Milliseconds as a user would write them: "500ms", "5m", "90d".
function show.time(ms)
  return ms == 0 and "0s" or unit(ms, { "ms", "s", "m", "h", "d" }, { 1000, 60, 60, 24 })
end

--- How long a call waits, in ms.
function show.timeout(ms)
  return ms < 0 and "for ever" or show.time(ms)
end

--- Bytes as a user would write them: "8MiB", "1000".
function show.size(bytes)
  return unit(bytes, { "", "KiB", "MiB", "GiB", "TiB" }, { 1024, 1024, 1024, 1024 })
end

--- A URL without its password, and without a token that somebody put there by mistake.
function show.url(url)
  -- up to the last "@": a password that was not encoded may have one in it
  url = url:gsub("^(grpcs?:?//).*@", "%1hidden@")
  url = url:gsub("^(%a[%w+.-]*:?//[^/@:]*):.*@", "%1:hidden@")
  url = url:gsub("([?&])([^=&%s]+)=([^&%s]*)", function(before, name)
    -- a name may be percent-encoded: libpq reads it all the same
    local plain = name:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end)
    return plain:lower():find "pass" and before .. name .. "=hidden" or nil
  end)
  url = url:gsub("([?&%s:])([%w_]*[Pp]ass%w*=)[^&%s]*", "%1%2hidden")
  url = url:gsub("([?&])([%w_]*[Tt]oken=)[^&%s]*", "%1%2hidden")
  return (url:gsub("([?&])([%w_]*[Kk]ey=)[^&%s]*", "%1%2hidden"))
end

local function quoted(text)
  return '"' .. text:gsub('[\\"]', "\\%0"):gsub("\n", "\\n") .. '"'
end

local literal

local function sorted(value)
  local names = {}
  for name in pairs(value) do
    if math.type(name) ~= "integer" or name < 1 or name > #value then
      names[#names + 1] = name
    end
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

literal = function(value)
  if type(value) == "string" then
    return quoted(value)
  elseif type(value) == "function" then
    return "a function"
  elseif type(value) ~= "table" then
    return math.type(value) == "float" and ("%.14g"):format(value) or tostring(value)
  end
  local parts = {}
  for i, one in ipairs(value) do
    parts[i] = literal(one)
  end
  for _, name in ipairs(sorted(value)) do
    parts[#parts + 1] = ("%s = %s"):format(name, literal(value[name]))
  end
  return #parts > 0 and "{ " .. table.concat(parts, ", ") .. " }" or "{}"
end

--- A value as a user would write it. It must not contain a secret.
show.literal = function(value) return literal(value) end

--- The source of a secret, never the secret.
function show.key(key)
  if key == false then
    return "none: not sealed"
  elseif key.source == "env" then
    return "in the variable " .. key.value
  elseif key.source == "file" then
    return "in the file " .. key.value
  end
  return ("from the program %s"):format(key.value[1])
end

local function when(value)
  if not value then
    return "none"
  end
  local copy = {}
  for name, one in pairs(value) do
    copy[name] = one
  end
  copy.interval = value.interval and show.time(times.ms(value.interval))
  return literal(copy)
end

--- The model, without secrets.
function show.model(value)
  local kind = models.kind(value)
  if kind == "name" then
    return value
  elseif kind == "function" then
    return "a function"
  elseif kind == "command" then
    local more = #value.command - 1
    return ("the program %s%s"):format(value.command[1], more > 0 and (" with %d argument%s")
      :format(more, more == 1 and "" or "s") or "")
  elseif kind == "lua" then
    return "the file " .. value.lua
  end
  return ("%s at %s%s"):format(value.name, show.url(value.endpoint),
    value.key and ", its key " .. show.key(value.key) or "")
end

local kinds = {
  embed = function(v) return v and show.model(v) or "none" end,
  vectors = function(v) return v and literal(v) or "none" end,
  time = show.time, timeout = show.timeout, ms = show.time, size = show.size, key = show.key,
  model = show.model,
  store = show.url, checkpoint = when,
  recall = show.literal,
  guard = function(v) return v == false and "off" or type(v) == "string" and v or literal(v) end,
  remember = show.literal,
  trust = show.literal,
  triggers = function(v) return v and when(v) or "off: nothing is compacted automatically" end,
  ttl = function(v) return v and show.time(v) or "never" end,
  prices = literal,
  policy = function(v) return not v and "none" or type(v) == "string" and v or literal(v) end,
  paths = function(v) return table.concat(v, ":") end,
  services = function(v)
    return v.sessions and v.records and "sessions, records" or v.records and "records" or "sessions"
  end,
}

local UNITS = { time = "ms", timeout = "ms", ms = "ms", ttl = "ms", size = "bytes",
  tokens = "tokens" }

-- ---------------------------------------------------------------- rows

local function row_of(cfg, name, key)
  local value = cfg:value(name)
  local origin = cfg:origin(name)
  local profile = key.kind == "guard" and profiles[cfg:value "guard.profile"]
  if profile and value == nil and profile[name:match "%.(.*)$"] ~= nil then
    value, origin = profile[name:match "%.(.*)$"], { from = "profile", name = profile.name }
  end
  local row = { name = name, origin = origin, unit = UNITS[key.kind], about = key.about }
  if key.kind == "key" and origin.from == "env" then
    row.text = "in the variable " .. origin.name
  elseif value == nil then
    row.text = key.default
    if name == "store" then
      row.text = paths.default_store() or row.text
    end
  else
    row.text = (kinds[key.kind] or tostring)(value)
    if type(value) ~= "table" and type(value) ~= "function" and key.kind ~= "store" then
      row.value = value
    end
  end
  row.is_default = origin.from == "default" or origin.from == "profile"
  return row
end

--- Every value, in the order of the keys: {name, text, value (of a number, a text or a boolean),
--- unit, origin, is_default}.
---@param cfg sessile.Config
function show.rows(cfg)
  local rows = {}
  for _, key in ipairs(schema.keys) do
    if key.name ~= "agents" and key.name ~= "models" and not key.only_agent then
      rows[#rows + 1] = row_of(cfg, key.name, key)
    end
  end
  for _, name in ipairs(sorted(cfg.models)) do
    rows[#rows + 1] = row_of(cfg, "models." .. name, schema.by_name.model)
  end
  local agents = cfg:value "agents" or {}
  for _, agent in ipairs(sorted(agents)) do
    for _, key in ipairs(schema.keys) do
      if agents[agent][key.name] ~= nil then
        rows[#rows + 1] = row_of(cfg, ("agents.%s.%s"):format(agent, key.name), key)
      end
    end
  end
  return rows
end

--- An origin in words: "default", "/home/…/config.lua:4", "$SESSILE_STORE", "--store".
---@param origin sessile.config.origin
function show.origin(origin)
  if origin.from == "file" then
    return origin.file .. (origin.line and ":" .. origin.line or "")
  elseif origin.from == "env" then
    return "$" .. origin.name
  elseif origin.from == "flag" then
    return origin.name
  elseif origin.from == "profile" then
    return "the profile " .. origin.name
  end
  return "default"
end

return show
