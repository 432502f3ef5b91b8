--- results: what the module returned, as the registry says that it goes over the wire.
--
-- Only the fields of the declared type are written, so that the description is the interface. What
-- is stored is written as it is stored.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local facts = require "sessile.facts"
local words = require "sessile.rpc.words"

local results = {}

local convert

--- An id or a name: its text; {b64} where its bytes are not UTF-8.
function results.bytes(name)
  if name == nil or type(name) == "table" or utf8.len(name) then
    return name
  end
  return { b64 = core.base64(name) }
end

-- The stored text of what was read; any other value as it is.
local function json(value)
  local own = facts.of(value)
  return own and own.json and core.json(own.json) or value
end

--- A message with the engine's fields.
function results.read(message)
  local own = facts.within(message)
  return { id = own.id, key = own.key, tokens = own.tokens or 0, time = own.time,
    message = own.json and core.json(own.json) or message }
end

local function fields_of(fields, value)
  local made, trees = {}, check.trees_of(fields).trees
  for name, field in next, value do
    local tree = trees[name]
    if tree then
      made[name] = convert(tree, field)
    end
  end
  return made
end

local special = { Read = results.read, Bytes = results.bytes, json = json }

function convert(tree, value)
  local kind = tree.kind
  if special[kind] then
    return special[kind](value)
  elseif value == nil or value == core.null then
    return nil
  elseif kind == "list" then
    local list = {}
    for i, item in ipairs(value) do
      list[i] = convert(tree.of, item)
    end
    return core.array(list)
  elseif kind == "number" or kind == "integer" then
    return value == value and value ~= math.huge and value ~= -math.huge and value or nil
  end
  local type_of = check.types[kind]
  if type_of and type_of.is and type(value) == "table" then
    return convert(words.read(type_of.is), value)
  elseif type_of and type_of.fields then
    return fields_of(type_of.fields, value)
  end
  return value
end

--- The JSON text of a result; nil and what cannot be written.
---@param word string  type words
---@param value any
---@return string? text
---@return string? why
function results.text(word, value)
  local made = convert(words.read(word), value)
  if made == nil then
    return "null"
  end
  return core.text(made)
end

return results
