-- models.lua: checks the models in a configuration.
--
-- Only their form is checked: no model is asked, and no secret is read.
--
--   function(request) return answer end
--   { command = { "program", "argument" } }
--   { endpoint = "http://localhost:11434/v1", name = "…", key = { env = "…" } }
--   { lua = "./model.lua" }     a file of full Lua that returns such a function
--   "fast"                      an entry of `models`

local read = require "sessile.config.read"

local models = {}

local wrong = read.wrong

local function boolean(at, value)
  if type(value) ~= "boolean" then
    wrong(at, "true or false expected, got " .. read.shown(value))
  end
  return value
end

local function whole(at, value)
  return read.whole(at, value, 1)
end

local function headers(at, value, from)
  local made = {}
  for name, one in pairs(read.table(at, value)) do
    if type(name) ~= "string" or not name:find "^[%w-]+$" then
      wrong(at, "names of headers expected, as { [\"x-team\"] = \"blue\" }")
    end
    made[name] = type(one) == "string" and one or read.key(at .. "." .. name, one, from,
      "or a text")
  end
  return made
end

-- A URL must not contain a user name or password.
local function address(at, value, from)
  local url = read.expanded(at, read.text(at, value), from)
  if not url:find "^https?://[^/?#]" or url:find "[%c%s]" then
    wrong(at, "http://… or https://… expected")
  elseif url:match "^%a+://([^/?#]*)":find("@", 1, true) then
    wrong(at, "it must not hold a name and a password: use key = { env = \"NAME\" }")
  end
  return url
end

-- Hosts and addresses.
local function hosts(at, value)
  local list = read.list(at, value)
  for _, host in ipairs(list) do
    read.text(at, host)
  end
  return list
end

local COMMON = { name = read.text, window = whole, dims = whole }

-- The model as sessile.model takes it.
local SHAPES = {
  command = { command = read.command, timeout_ms = read.timeout },
  endpoint = { endpoint = address, key = read.key, headers = headers, insecure = boolean,
    ca = read.path, public_only = boolean, allow = hosts, timeout_ms = read.timeout,
    max_tokens = whole },
  lua = { lua = read.path },
}
for _, fields in pairs(SHAPES) do
  for name, kind in pairs(COMMON) do
    fields[name] = kind
  end
end

--- The kind of a model: "function", "command", "endpoint", "lua" or "name".
function models.kind(model)
  if type(model) ~= "table" then
    return type(model) == "string" and "name" or "function"
  end
  return model.command and "command" or model.endpoint and "endpoint" or "lua"
end

--- Checks one model and returns it as sessile.model takes it. Raises.
---@param at string
---@param value any
---@param from {folder: string, trusted: boolean}
function models.check(at, value, from)
  if type(value) == "string" then
    return read.text(at, value)
  elseif not from.trusted then
    wrong(at, "a model is taken from your own configuration only; the name of one of yours "
      .. "will do", "EDENIED")
  elseif type(value) == "function" then
    return value
  elseif type(value) ~= "table" then
    wrong(at, "a function, a table or the name of one of `models` expected, got "
      .. read.shown(value))
  end
  local kind
  for name in pairs(SHAPES) do
    if value[name] ~= nil then
      if kind then
        wrong(at, ("either %s or %s expected, not both"):format(kind, name))
      end
      kind = name
    end
  end
  if not kind then
    wrong(at, "one of command, endpoint or lua expected in it")
  end
  read.among(at, value, SHAPES[kind])
  local made = {}
  for name, one in pairs(value) do
    made[name] = SHAPES[kind][name](at .. "." .. name, one, from)
  end
  if kind == "endpoint" and not made.name then
    wrong(at .. ".name", "name the endpoint's model")
  end
  return made
end

return models
