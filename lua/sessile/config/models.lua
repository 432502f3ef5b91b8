-- models.lua: what a configuration may say of a model.
--
-- Owns the shapes. What asks a model is made of them elsewhere; here nothing is asked, and no
-- secret is read.
--
--   function(request) return answer end
--   { command = { "program", "argument" } }
--   { endpoint = "http://localhost:11434/v1", name = "…", key = { env = "…" } }
--   { lua = "./model.lua" }     a file of full Lua that returns such a function
--   "fast"                      an entry of `models`

local read = require "sessile.config.read"

local models = {}

local wrong = read.wrong

local function number(at, value)
  if type(value) ~= "number" or value < 0 then
    wrong(at, "a number expected, 0 or more, got " .. read.shown(value))
  end
  return value
end

local function boolean(at, value)
  if type(value) ~= "boolean" then
    wrong(at, "true or false expected, got " .. read.shown(value))
  end
  return value
end

local function whole(at, value)
  return read.whole(at, value, 1)
end

local function seconds(at, value)
  return read.time(at, value) / 1000
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

-- No name and no password in an address.
local function address(at, value, from)
  local url = read.expanded(at, read.text(at, value), from)
  if not url:find "^https?://[^/?#]" or url:find "[%c%s]" then
    wrong(at, "http://… or https://… expected")
  elseif url:match "^%a+://([^/?#]*)":find("@", 1, true) then
    wrong(at, "a name and a password have no place in it: say key = { env = \"NAME\" }")
  end
  return url
end

local COMMON = { name = read.text, window = whole, reserve = whole, max_tokens = whole,
  encoding = read.path_or_name, timeout = seconds }

local SHAPES = {
  command = { command = read.command },
  endpoint = { endpoint = address, key = read.key, headers = headers, insecure = boolean,
    ca = read.path, temperature = number },
  lua = { lua = read.path },
}
for _, fields in pairs(SHAPES) do
  for name, kind in pairs(COMMON) do
    fields[name] = kind
  end
end

--- Reads one model: {kind = "function"|"command"|"endpoint"|"lua"|"name", …}. Raises.
---@param at string
---@param value any
---@param from {folder: string, trusted: boolean}
function models.check(at, value, from)
  if type(value) == "string" then
    return { kind = "name", name = read.text(at, value) }
  elseif not from.trusted then
    wrong(at, "a model is taken from your own configuration only; the name of one of yours "
      .. "will do", "EDENIED")
  elseif type(value) == "function" then
    return { kind = "function", call = value }
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
  local made = { kind = kind }
  for name, one in pairs(value) do
    made[name] = SHAPES[kind][name](at .. "." .. name, one, from)
  end
  if kind == "endpoint" and not made.name then
    wrong(at .. ".name", "say which of the endpoint's models is asked")
  end
  return made
end

return models
