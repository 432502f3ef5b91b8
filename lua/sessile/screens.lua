-- screens.lua: `sessile.screen`: screens, which say whether a text may be written.
--
-- A list of screens of the core, with checked arguments and the folders in which screens are
-- searched for.

local core = require "sessile.core"
local object = require "sessile.object"
local options = require "sessile.options"
local paths = require "sessile.paths"

local screens = {}
local methods = {}

local kinds = { "message", "custom", "title", "metadata", "settings", "state", "memory",
  "answer" }

local item_fields = options.shape("screens:run", { kind = "string", text = "string",
  source = "string", role = "string", author = "string", key = "string", json = "boolean" })

local function check_name(who, value, names)
  for _, name in ipairs(names) do
    if value == name then
      return
    end
  end
  options.misuse(("%s is one of %s"):format(who, table.concat(names, ", ")))
end

--- See meta.lua.
function methods:run(item)
  local given = options.check("screens:run", item, item_fields)
  check_name("screens:run: kind", given.kind, kinds)
  options.expect("string", given.text, "screens:run: text")
  if given.source then
    check_name("screens:run: source", given.source,
      { "host", "user", "agent", "tool", "system" })
  end
  return self._core:run(given)
end

local meta = object.class { name = "sessile.Screens", methods = methods }
screens.methods = methods

-- One screen as the core takes it: "name", or {"name", option = …, on = {…}}.
local function step_of(given)
  if type(given) == "string" then
    return { name = paths.expand(given) }
  end
  if type(given) ~= "table" or type(given[1]) ~= "string" then
    options.misuse("sessile.screen: a screen is a name, or a table that begins with one")
  end
  local step = { name = paths.expand(given[1]), on = given.on }
  for name, value in pairs(given) do
    if name ~= 1 and name ~= "on" then
      if type(name) ~= "string" then
        options.misuse(("sessile.screen: '%s': options have names"):format(given[1]))
      end
      step.options = step.options or {}
      step.options[name] = value
    end
  end
  for _, kind in ipairs(step.on or {}) do
    check_name(("sessile.screen: '%s': on"):format(given[1]), kind, kinds)
  end
  return step
end

-- {metadata = schema, ["custom:KIND"] = schema} as the core takes them.
local function schemas_of(given)
  local list = {}
  for name, schema in pairs(given or {}) do
    local kind, key = tostring(name):match "^(custom):(.+)$"
    kind = kind or name
    check_name("sessile.screen: schemas: a kind", kind, kinds)
    local text, message = schema, nil
    if type(schema) ~= "string" then
      text, message = core.text(schema)
    end
    if not text then
      options.misuse(("sessile.screen: the schema of %s: %s"):format(name, message))
    end
    list[#list + 1] = { kind = kind, key = key, schema = text }
  end
  table.sort(list, function(a, b)
    return a.kind .. (a.key or "") < b.kind .. (b.key or "")
  end)
  return list
end

--- See meta.lua.
function screens.load(given)
  options.expect("table", given, "sessile.screen: a list of screens")
  local steps = {}
  for i, one in ipairs(given) do
    steps[i] = step_of(one)
  end
  for name in pairs(given) do
    if math.type(name) ~= "integer" and name ~= "path" and name ~= "schemas"
      and name ~= "verbose" then
      options.misuse(("sessile.screen: besides screens it has path, schemas and verbose, not '%s'")
        :format(tostring(name)))
    end
  end
  local handle, message, code = core.screens(steps, {
    folders = paths.screen_path(given.path), schemas = schemas_of(given.schemas),
    schema_library = paths.schema_library(), verbose = given.verbose and true or false,
  })
  if not handle then
    return nil, message, code
  end
  return setmetatable({ _core = handle }, meta)
end

return screens
