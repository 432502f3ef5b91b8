-- json_schema.lua: whether a value is valid by a JSON Schema, as far as specs need it: type,
-- enum, const, properties, required, additionalProperties = false, items, minimum, maximum. Any
-- other word of a schema is an error, so that nothing is believed to be checked that is not.

local null = require("sessile").null

local json_schema = {}

local WORDS = { type = true, enum = true, const = true, properties = true, required = true,
  additionalProperties = true, items = true, minimum = true, maximum = true, description = true,
  maxLength = true }

local function is_list(value)
  return type(value) == "table" and (#value > 0 or next(value) == nil)
end

local KINDS = {
  object = function(value) return type(value) == "table" and #value == 0 end,
  array = is_list,
  string = function(value) return type(value) == "string" end,
  integer = function(value) return math.tointeger(value) ~= nil and type(value) == "number" end,
  number = function(value) return type(value) == "number" end,
  boolean = function(value) return type(value) == "boolean" end,
  null = function(value) return value == null end,
}

local function members(value, schema, at)
  for _, name in ipairs(schema.required or {}) do
    if value[name] == nil then
      return ("%s: %s is missing"):format(at, name)
    end
  end
  for name, inner in pairs(value) do
    local of = (schema.properties or {})[name]
    if of then
      local wrong = json_schema.wrong(inner, of, at .. "." .. name)
      if wrong then
        return wrong
      end
    elseif schema.additionalProperties == false then
      return ("%s: %s is unknown"):format(at, name)
    end
  end
end

--- What is wrong with the value; nil: nothing.
function json_schema.wrong(value, schema, at)
  at = at or "$"
  for word in pairs(schema) do
    if not WORDS[word] then
      return ("%s: this checker does not know '%s'"):format(at, word)
    end
  end
  if schema.type and not KINDS[schema.type](value) then
    return ("%s: %s expected, got %s"):format(at, schema.type, tostring(value))
  elseif schema.const ~= nil and value ~= schema.const then
    return ("%s: %s expected, got %s"):format(at, tostring(schema.const), tostring(value))
  elseif schema.minimum and value < schema.minimum or schema.maximum and value > schema.maximum then
    return ("%s: %s is out of range"):format(at, value)
  end
  if schema.enum then
    local found = false
    for _, one in ipairs(schema.enum) do
      found = found or one == value
    end
    if not found then
      return ("%s: %s is none of the choices"):format(at, tostring(value))
    end
  end
  if schema.items then
    for i, one in ipairs(value) do
      local wrong = json_schema.wrong(one, schema.items, ("%s[%d]"):format(at, i))
      if wrong then
        return wrong
      end
    end
  end
  return type(value) == "table" and members(value, schema, at) or nil
end

return json_schema
