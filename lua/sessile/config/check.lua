-- check.lua: checks one value of a configuration and converts it to what the library takes.
--
-- The kinds of schema.lua are implemented here. An error is a table {at =, what =} that names the
-- key; a value that may be a secret never appears in it.

local core = require "sessile.core"
local models = require "sessile.config.models"
local policies = require "sessile.policy"
local read = require "sessile.config.read"
local schema = require "sessile.config.schema"

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

kinds.ms = kinds.time

function kinds.size(at, value)
  return read.size(at, value)
end

function kinds.ttl(at, value)
  return value ~= false and read.time(at, value)
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

-- A folder below the one of the file that names it, as it is written and on the disk: nobody
-- need trust it for that.
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
      wrong(at, "a store that is no folder is taken from your own configuration only", "EDENIED")
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

-- A policy's name as it is; its path from the file's folder.
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

local WHEN = { messages = true, interval = true, share = true, overflow = true, events = true }
local CHECKPOINT = { strategy = true, messages = true, interval = true, share = true,
  events = true, keep = true }

-- What triggers and checkpoints have in common, in the words of the library.
local function conditions(at, value)
  local made = {}
  if value.messages ~= nil then
    made.messages = read.whole(at .. ".messages", value.messages, 1)
  end
  if value.interval ~= nil then
    local ms = read.time(at .. ".interval", value.interval)
    if ms < 1000 then
      wrong(at .. ".interval", "a second or more expected")
    end
    made.seconds = ms // 1000
  end
  if value.share ~= nil then
    local share = value.share
    if type(share) ~= "number" or not (share > 0 and share <= 1) then
      wrong(at .. ".share", ("a share of the window expected, above 0 and at most 1 (0.8 is "
        .. "80 %%), got %s"):format(read.shown(share)))
    end
    made.share = share
  end
  if value.events ~= nil then
    made.events = read.list(at .. ".events", value.events)
    for _, name in ipairs(made.events) do
      read.text(at .. ".events", name)
    end
  end
  return made
end

function kinds.triggers(at, value)
  if value == false then
    return false
  end
  among(at, value, WHEN)
  local made = conditions(at, value)
  if value.overflow ~= nil then
    made.overflow = kinds.boolean(at .. ".overflow", value.overflow)
  end
  return made
end

local STRATEGIES = {
  manual = function() end,
  periodic = function(made)
    if not made.seconds and not made.messages then
      made.seconds = 300
    end
  end,
  event = function(made, at)
    if not made.events then
      wrong(at, "the strategy \"event\" wants events = { \"name\", … }")
    end
  end,
  threshold = function(made)
    made.share = made.share or 0.8
  end,
}

function kinds.checkpoint(at, value)
  if value == false then
    return { strategy = "manual" }
  end
  among(at, value, CHECKPOINT)
  local made = conditions(at, value)
  if value.keep ~= nil then
    made.keep = read.whole(at .. ".keep", value.keep, 1)
  end
  if value.strategy ~= nil then
    local fill = STRATEGIES[value.strategy]
    if not fill then
      wrong(at .. ".strategy", ("manual, periodic, event or threshold expected, got %s"):format(
        read.shown(value.strategy)))
    elseif value.strategy == "manual" and (made.seconds or made.messages or made.share
        or made.events) then
      wrong(at .. ".strategy", "\"manual\" means by hand: leave out the conditions, or it")
    end
    fill(made, at)
    made.strategy = value.strategy
  end
  return made
end

-- ---------------------------------------------------------------- models and agents

function kinds.model(at, value, from)
  return models.check(at, value, from)
end

function kinds.models(at, value, from)
  local made = {}
  for name, one in pairs(read.table(at, value)) do
    read.text(at, name)
    made[name] = models.check(at .. "." .. name, one, from)
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
      made[agent][name] = check.value(schema.of_agent[name], where .. "." .. name, one, from)
    end
  end
  return made
end

-- ---------------------------------------------------------------- all of it

--- What the library takes for a value. Raises {at, what, code}.
---@param row sessile.config.key
---@param at string      the key, as written
---@param value any
---@param from {folder: string, trusted: boolean}
function check.value(row, at, value, from)
  if not from.trusted and not row.project then
    wrong(at, "it is taken from your own configuration only", "EDENIED")
  end
  return kinds[row.kind](at, value, from, row)
end

--- Reads all values of a file: {["limits.message"] = 1024, ["agents"] = {…}, …}. Raises.
---@param values table
---@param from {folder: string, trusted: boolean}
function check.file(values, from)
  local made = {}
  among(nil, values, schema.top)
  for _, row in ipairs(schema.keys) do
    local group, name = row.name:match "^(%a+)%.(.+)$"
    local value = values[row.name]
    if group and values[group] ~= nil then
      among(group, values[group], schema[group])
      value = values[group][name]
    end
    if value ~= nil then
      made[row.name] = check.value(row, row.name, value, from)
    end
  end
  return made
end

return check
