-- schema.lua: the arguments of a tool, checked by the schema that its definition shows.
--
-- Knows what these definitions use: texts, whole numbers with bounds, and choices.

local nearest = require "sessile.nearest"

local schema = {}

local function one_of(list, value)
  for _, known in ipairs(list) do
    if known == value then
      return true
    end
  end
  return false
end

local checks = {}

function checks.string(value, of)
  if type(value) ~= "string" then
    return "a text"
  elseif of.enum and not one_of(of.enum, value) then
    return "one of " .. table.concat(of.enum, ", ")
  elseif #value > (of.maxLength or math.maxinteger) then
    return ("at most %d bytes"):format(of.maxLength)
  end
end

function checks.integer(value, of)
  local whole = type(value) == "number" and math.tointeger(value)
  if not whole or whole < of.minimum or whole > of.maximum then
    return ("a whole number from %d to %d"):format(of.minimum, of.maximum)
  end
end

--- What is wrong with the arguments; nil: nothing.
---@param args table
---@param of table  the schema of an object
---@return string?
function schema.wrong(args, of)
  for name, value in pairs(args) do
    local known = of.properties[name]
    if not known then
      local meant = nearest(name, of.properties)
      return ("there is no argument '%s'%s"):format(tostring(name):sub(1, 40),
        meant and (": did you mean '%s'?"):format(meant) or "")
    end
    local expected = checks[known.type](value, known)
    if expected then
      return ("'%s': %s expected"):format(name, expected)
    end
  end
  for _, name in ipairs(of.required or {}) do
    if args[name] == nil then
      return ("'%s' is missing"):format(name)
    end
  end
end

--- A schema of an object.
---@param properties table<string, table>
---@param required string[]?
---@return table
function schema.object(properties, required)
  return { type = "object", properties = properties, required = required }
end

--- A text. more: a description, choices.
---@param about string?
---@param enum string[]?
---@return table
function schema.text(about, enum)
  return { type = "string", description = about, enum = enum }
end

--- A whole number.
---@param minimum integer
---@param maximum integer
---@param about string?
---@return table
function schema.whole(minimum, maximum, about)
  return { type = "integer", minimum = minimum, maximum = maximum, description = about }
end

--- A list of objects with these members.
---@param properties table<string, table>
---@param required string[]?
---@return table
function schema.list(properties, required)
  return { type = "array", items = schema.object(properties, required) }
end

return schema
