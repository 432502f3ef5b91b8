-- screens.lua: `sessile.screen`: screens, which say whether a text may be written.
--
-- A list of screens of the core, with checked arguments and the folders in which screens are
-- searched for.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local object = require "sessile.object"
local options = require "sessile.options"
local paths = require "sessile.paths"

local math = dialect.math

local screens = {}
local methods = {}

local kinds = { "message", "custom", "title", "metadata", "settings", "state", "memory",
  "answer" }

local item_fields = { kind = "string", text = "string",
  source = "string", role = "string", author = "string", key = "string", json = "boolean" }
for _, who in ipairs { "screens:run", "store:screen" } do
  options.shape(who, item_fields)
end

local function check_name(who, value, names)
  for _, name in ipairs(names) do
    if value == name then
      return
    end
  end
  options.misuse(("%s is one of %s"):format(who, table.concat(names, ", ")))
end

--- An item as the core takes it. who: the function that is called.
function screens.item(who, item)
  local given = options.check(who, item, item_fields)
  check_name(who .. ": kind", given.kind, kinds)
  options.expect("string", given.text, who .. ": text")
  if given.source then
    check_name(who .. ": source", given.source, { "host", "user", "agent", "tool", "system" })
  end
  return given
end

--- See meta.lua.
function methods:run(item)
  return self._core:run(screens.item("screens:run", item))
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
  local handle, message, code, retry_ms, rule = core.screens(steps, {
    folders = paths.screen_path(given.path), schemas = schemas_of(given.schemas),
    schema_library = paths.schema_library(), verbose = given.verbose and true or false,
  })
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return setmetatable({ _core = handle }, meta)
end

--- The screens of the options of a guard, with its schemas, as the core takes them: in a table,
--- which is empty if there are none. nil, message, code.
function screens.rules(given, schemas)
  if not given and not schemas then
    return {}
  end
  if getmetatable(given) == meta then
    if schemas then
      options.misuse "store:guard: schemas belong to the list when `screens` is a loaded one"
    end
    return { given._core }
  end
  local list = {}
  for name, value in pairs(given or {}) do
    list[name] = value
  end
  list.schemas = list.schemas or schemas
  local loaded, message, code, retry_ms, rule = screens.load(list)
  if not loaded then
    return nil, message, code, retry_ms, rule
  end
  return { loaded._core }
end

local url_fields = { allow = "strings", only_allowed = "boolean", resolve = "boolean" }
for _, kind in ipairs(kinds) do
  url_fields[kind] = { "refuse", "flag", "pass" }
end
local by_default = { memory = "refuse", state = "refuse" }

--- The rules for URLs as the core takes them. false: none; nil: the usual ones.
function screens.urls(given)
  if given == false then
    return { refuse = {}, flag = {} }
  end
  local opts = options.check("store:guard: urls", given, url_fields)
  local rules = { refuse = {}, flag = {}, allow = opts.allow, only_allowed = opts.only_allowed,
    resolve = opts.resolve }
  for _, kind in ipairs(kinds) do
    local list = rules[opts[kind] or by_default[kind]]
    if list then
      list[#list + 1] = kind
    end
  end
  return rules
end

return screens
