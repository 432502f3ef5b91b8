-- check.lua: checks one value of a configuration and converts it to what the library takes.
--
-- The kinds of schema.lua are implemented here. An error is a table {at =, what =} that names the
-- key; a value that may be a secret never appears in it.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local guard_options = require "sessile.guard_options"
local memories = require "sessile.memory_settings"
local models = require "sessile.config.models"
local policies = require "sessile.policy"
local prices = require "sessile.prices"
local read = require "sessile.config.read"
local schema = require "sessile.config.schema"
local times = require "sessile.times"
local triggers = require "sessile.triggers"

local math = dialect.math

local check = {}

local wrong, among = read.wrong, read.among

-- ---------------------------------------------------------------- single values

local kinds = {}

function kinds.name(at, value)
  return read.text(at, value)
end

function kinds.encoding(at, value, from)
  local name = read.text(at, value)
  if not (name:find "/" or name:find "%.tiktoken$" or name:find "%.json$") then
    return name
  elseif not from.trusted then
    wrong(at, "a file is taken from your own configuration only; an encoding's name will do",
      "EDENIED")
  end
  return read.path(at, value, from)
end

function kinds.choice(at, value, _, row)
  for _, one in ipairs(row.values) do
    if value == one then
      return value
    end
  end
  return wrong(at, ("%s expected, got %s"):format(table.concat(row.values, " or "),
    read.shown(value)))
end

-- As a table whose keys are the services.
function kinds.services(at, value)
  local of = {}
  for _, name in ipairs(type(value) == "table" and value or { value }) do
    if name ~= "sessions" and name ~= "records" then
      wrong(at, ("\"sessions\" or \"records\" expected, got %s"):format(read.shown(name)))
    end
    of[name] = true
  end
  if not next(of) then
    wrong(at, "a list of \"sessions\" and \"records\" expected, got " .. read.shown(value))
  end
  return of
end

function kinds.boolean(at, value)
  if type(value) ~= "boolean" then
    wrong(at, "true or false expected, got " .. read.shown(value))
  end
  return value
end

function kinds.count(at, value, _, row)
  return read.whole(at, value, row.least or 0)
end

function kinds.tokens(at, value)
  return read.whole(at, value, 0)
end

function kinds.time(at, value)
  return read.time(at, value)
end

function kinds.timeout(at, value)
  return read.timeout(at, value)
end

kinds.ms = kinds.time

function kinds.size(at, value)
  return read.size(at, value)
end

function kinds.ttl(at, value)
  return value ~= false and read.time(at, value)
end

function kinds.part(at, value)
  if type(value) ~= "number" or not (value >= 0 and value <= 1) then
    wrong(at, "a number from 0 to 1 expected, got " .. read.shown(value))
  end
  return value
end

function kinds.zone(at, value)
  if not times.zone(value) then
    wrong(at, "\"UTC\", or an offset as \"+02:00\", expected, got " .. read.shown(value))
  end
  return value
end

function kinds.path(at, value, from)
  return read.path(at, value, from)
end

function kinds.paths(at, value, from)
  local list = type(value) == "string" and { value } or read.list(at, value)
  for i, one in ipairs(list) do
    list[i] = read.path(at, one, from)
  end
  return list
end

-- ---------------------------------------------------------------- store and key

local LONGEST_NAME = 4096 -- of a path

-- A folder below the folder of the file that names it, as written and on the disk. An untrusted
-- file may name it.
local function is_below(path, from)
  if path:sub(1, 1) == "/" or path:sub(1, 1) == "~" then
    return false
  end
  for part in path:gmatch "[^/]+" do
    if part == ".." then
      return false
    end
  end
  return core.stays_below(from.folder, path)
end

function kinds.store(at, value, from)
  if (os.getenv "SESSILE_STORE" or "") ~= "" then
    return read.text(at, value) -- it is overridden, so its variables need not be set
  end
  if value == "postgres" then
    value = "$DATABASE_URL"
  elseif #read.text(at, value) > LONGEST_NAME then
    wrong(at, "the name is too long for a folder")
  end
  local url = read.expanded(at, read.text(at, value), from)
  local scheme = core.scheme(url)
  local path = scheme and scheme.path
  if not path then
    if not from.trusted then
      wrong(at, "a store that is not a folder is taken from your own configuration only", "EDENIED")
    end
    return url
  end
  -- the file of a database is no folder; that it is no link is its store's affair
  local folder = path
  if scheme.place == "file" and path:sub(1, 1) ~= "~" then
    folder = path:match "^(.*)/" or "."
  end
  if not from.trusted and not is_below(folder, from) then
    wrong(at, "a store that is not below the project's folder is taken from your own "
      .. "configuration only", "EDENIED")
  end
  path = read.beside(path, from)
  return scheme.place == "file" and scheme.scheme .. ":" .. path or path
end

function kinds.key(at, value, from)
  if value == false or value == "plain" then
    return false
  end
  return read.key(at, value, from, "or false (not sealed)")
end

-- ---------------------------------------------------------------- policies

-- A policy: a name is unchanged, a path is relative to the file's folder.
local function policy_name(at, name, from)
  if name == "" then
    wrong(at, "the name of a policy expected")
  elseif not (name:find "/" or name:find "%.lua$") then
    return name
  elseif not from.trusted then
    wrong(at, "a policy with a path is taken from your own configuration only; one that is "
      .. "used by name is allowed", "EDENIED")
  end
  return read.path(at, name, from)
end

local function policy_step(at, value, from)
  if type(value) == "string" then
    return policy_name(at, value, from)
  elseif type(value) ~= "table" then
    wrong(at, ("a policy's name, { \"name\", option = … } or false expected, got %s"):format(
      read.shown(value)))
  end
  local copy, hooks = {}, false
  for name, one in pairs(value) do
    if type(one) == "function" and not from.trusted then
      wrong(at, "functions are taken from your own configuration only", "EDENIED")
    elseif type(name) ~= "string" and name ~= 1 then
      wrong(at, ("options have names, got %s"):format(read.shown(name)))
    end
    hooks = hooks or type(one) == "function" and policies.hooks[name] ~= nil
    copy[name] = one
  end
  if hooks then
    for name, one in pairs(copy) do
      if policies.hooks[name] and type(one) ~= "function" then
        wrong(("%s.%s"):format(at, name), "a function expected, got " .. read.shown(one))
      end
    end
    return read.among(at, copy, policies.host_fields)
  elseif type(copy[1]) ~= "string" then
    wrong(at, "a policy's name expected first in it, or a function that is called as one of its "
      .. "hooks")
  end
  copy[1] = policy_name(at, copy[1], from)
  return copy
end

function kinds.policy(at, value, from)
  if value == false then
    return false
  elseif type(value) == "table" and (type(value[1]) == "table" or #value >= 2) then
    local chain = read.list(at, value)
    for i, one in ipairs(chain) do
      chain[i] = policy_step(at, one, from)
    end
    return chain
  end
  return policy_step(at, value, from)
end

-- ---------------------------------------------------------------- when

-- A copy of `value`, which `read_as` finds right: the library reads it once more when it opens.
local function conditions(at, value, fields, read_as)
  local copy = {}
  for name, one in pairs(among(at, value, fields)) do
    copy[name] = one
  end
  read_as(copy, function(name, what)
    wrong(at .. "." .. name, what)
  end)
  return copy
end

function kinds.triggers(at, value)
  return value and conditions(at, value, triggers.fields, triggers.read)
end

-- A small `keep` removes checkpoints, named ones too, from sessions that are not the project's.
function kinds.checkpoint(at, value, from)
  if value and not from.trusted and type(value) == "table" and value.keep ~= nil then
    wrong(at .. ".keep", "it is taken from your own configuration only", "EDENIED")
  end
  return value and conditions(at, value, triggers.checkpoint_fields, triggers.read_checkpoint)
end

function kinds.recall(at, value)
  if value == false then
    return false
  end
  local copy = {}
  for name, one in pairs(among(at, value, memories.recall_fields)) do
    local kind, where = memories.recall_fields[name], at .. "." .. name
    if kind == "count" or kind == "positive" then
      one = read.whole(where, one, kind == "count" and 0 or 1)
    elseif kind == "boolean" then
      one = kinds.boolean(where, one)
    elseif type(kind) == "table" then
      one = kinds.choice(where, one, nil, { values = kind })
    end
    copy[name] = one
  end
  memories.read_recall(copy, function(name, what)
    wrong(at .. "." .. name, what .. ", got " .. read.shown(copy[name]))
  end)
  return copy
end

-- {"compact", "close", turns = 10} as {compact = true, close = true, turns = 10}.
function kinds.remember(at, value)
  if value == false then
    return false
  end
  local named, copy = {}, {}
  for key, one in pairs(read.table(at, value)) do
    if math.type(key) == "integer" then
      key, one = read.text(at, one), true
    end
    named[key] = one
  end
  for name, one in pairs(among(at, named, memories.remember_fields)) do
    local where = at .. "." .. name
    copy[name] = name == "turns" and read.whole(where, one, 1) or kinds.boolean(where, one)
  end
  return copy
end

function kinds.trust(at, value)
  local copy = {}
  for name, one in pairs(among(at, value, memories.trust_fields)) do
    copy[name] = kinds.choice(at .. "." .. name, one, nil, { values = memories.trust_fields[name] })
  end
  return copy
end

-- ---------------------------------------------------------------- models and agents

function kinds.model(at, value, from)
  return models.check(at, value, from)
end

function kinds.embed(at, value, from)
  return value and models.check(at, value, from)
end

local vector_functions = { put = true, search = true, remove = true }

function kinds.vectors(at, value)
  if value == false then
    return false
  end
  local made = {}
  for name, one in pairs(read.among(at, value, vector_functions)) do
    if type(one) ~= "function" then
      wrong(at .. "." .. name, "a function expected, got " .. read.shown(one))
    end
    made[name] = one
  end
  if not made.put or not made.search then
    wrong(at, "functions put and search expected in it")
  end
  return made
end

function kinds.models(at, value, from)
  local made = {}
  for name, one in pairs(read.table(at, value)) do
    read.text(at, name)
    made[name] = models.check(at .. "." .. name, one, from)
  end
  return made
end

local price_fields = {}
for _, field in ipairs(prices.fields) do
  price_fields[field] = true
end

function kinds.prices(at, value)
  local made = {}
  for model, price in pairs(read.table(at, value)) do
    read.text(at, model)
    made[model] = {}
    for field, number in pairs(read.among(at .. "." .. model, price, price_fields)) do
      if type(number) ~= "number" or not (number >= 0 and number < math.huge) then
        wrong(("%s.%s.%s"):format(at, model, field), "dollars for a million tokens expected, got "
          .. read.shown(number))
      end
      made[model][field] = number
    end
  end
  return made
end

function kinds.agents(at, value, from)
  local made = {}
  for agent, settings in pairs(read.table(at, value)) do
    if #read.text(at, agent) > LONGEST_NAME then
      wrong(at, "the name is too long for an agent")
    end
    local where = at .. "." .. agent
    among(where, settings, schema.of_agent)
    made[agent] = {}
    for name, one in pairs(settings) do
      local group, at_name = schema.groups_of_agent[name], where .. "." .. name
      if not group then
        made[agent][name] = check.value(schema.of_agent[name], at_name, one, from)
      else
        for member, inner in pairs(among(at_name, one, group)) do
          made[agent][name .. "." .. member] = check.value(group[member],
            at_name .. "." .. member, inner, from)
        end
      end
    end
  end
  return made
end

-- ---------------------------------------------------------------- the guard

function kinds.guard(_, value, from, row)
  return guard_options.part({
    fail = function(at, what, code)
      wrong("guard." .. at, what, code)
    end,
    path = function(at, path)
      return read.path("guard." .. at, path, from)
    end,
  }, row.name:match "^guard%.(.+)$", value)
end

-- ---------------------------------------------------------------- all of it

--- Converts a value to what the library takes. Raises {at, what, code}.
---@param row sessile.config.key
---@param at string      the key, as written
---@param value any
---@param from {folder: string, trusted: boolean, own: boolean}
function check.value(row, at, value, from)
  if row.own and not from.own then
    error({ at = at:match "^%a+", code = "EDENIED", own = true, what = "a project's file "
      .. "cannot set it, trusted or not: it is taken from your own configuration only" }, 0)
  elseif not from.trusted and not row.project then
    wrong(at, "it is taken from your own configuration only", "EDENIED")
  end
  return kinds[row.kind](at, value, from, row)
end

--- Reads all values of a file: {["limits.message"] = 1024, ["agents"] = {…}, …}. Raises.
---@param values table
---@param from {folder: string, trusted: boolean, own: boolean}
function check.file(values, from)
  local made = {}
  among(nil, values, schema.top)
  if type(values.guard) == "string" then
    values = setmetatable({ guard = { profile = values.guard } }, { __index = values })
  elseif type(values.guard) == "table" and values.guard.profile == nil then
    made["guard.profile"] = from.own and "standard" or nil
  end
  for _, row in ipairs(schema.keys) do
    local group, name = row.name:match "^(%a+)%.(.+)$"
    local value = values[row.name]
    if group and values[group] ~= nil then
      among(group, values[group], schema.groups[group])
      value = values[group][name]
    end
    if value ~= nil then
      made[row.name] = check.value(row, row.name, value, from)
    end
  end
  return made
end

return check
