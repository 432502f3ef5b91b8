--- schema: type words as JSON Schema, and everything that a list of methods uses.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local registry = require "sessile.rpc.registry"
local words = require "sessile.rpc.words"

local schema = {}

local PLAIN = {
  string = { type = "string" }, integer = { type = "integer" }, number = { type = "number" },
  boolean = { type = "boolean" }, object = { type = "object" },
}

-- A list of words as one enum; nil: something else is in it.
local function enum_of(list)
  local enum = {}
  for i, one in ipairs(list) do
    if one.kind ~= "word" then
      return nil
    end
    enum[i] = one.word
  end
  return { enum = core.array(enum) }
end

--- The JSON Schema of a tree of type words.
---@param tree table
---@return any
function schema.of(tree)
  if tree.kind == "list" then
    return { type = "array", items = schema.of(tree.of) }
  elseif tree.kind == "word" then
    return { enum = core.array { tree.word } }
  elseif tree.kind == "json" then
    return true
  elseif tree.kind == "either" then
    local any = {}
    for i, one in ipairs(tree.of) do
      any[i] = schema.of(one)
    end
    return enum_of(tree.of) or { anyOf = core.array(any) }
  end
  return PLAIN[tree.kind] or { ["$ref"] = "#/components/schemas/" .. tree.kind }
end

--- The names of fields, sorted.
---@param fields table
---@return string[]
function schema.names(fields)
  local names = {}
  for name in pairs(fields) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- The schema of a named type.
function schema.named(name)
  local type_of = check.types[name]
  if type_of.is then
    local made = schema.of(words.read(type_of.is))
    made.description = type_of.about
    return made
  elseif type_of.is_span and not type_of.members then
    return { type = "object", description = type_of.about,
      properties = { role = { type = "string" } }, required = core.array { "role" } }
  end
  local fields = type_of.fields or type_of.members
  local properties, required = {}, {}
  for _, field in ipairs(schema.names(fields)) do
    local tree = words.read(fields[field])
    properties[field] = schema.of(tree)
    required[#required + 1] = not tree.optional and field or nil
  end
  return { type = "object", description = type_of.about, properties = properties,
    required = #required > 0 and core.array(required) or nil }
end

-- Adds the named types of a tree, and theirs.
local function collect(tree, into)
  if tree.kind == "list" then
    return collect(tree.of, into)
  elseif tree.kind == "either" then
    for _, one in ipairs(tree.of) do
      collect(one, into)
    end
    return
  end
  local type_of = check.types[tree.kind]
  if not type_of or into[tree.kind] then
    return
  end
  into[tree.kind] = true
  if type_of.is then
    collect(words.read(type_of.is), into)
  end
  for _, word in pairs(type_of.fields or type_of.members or {}) do
    collect(words.read(word), into)
  end
end

--- The names of the types that are used, sorted.
---@return string[]
function schema.used()
  local into = {}
  local function of(list)
    for _, one in ipairs(list) do
      for _, word in pairs(one.params) do
        collect(words.read(word), into)
      end
      if one.result then
        collect(words.read(one.result), into)
      end
    end
  end
  local methods = {}
  for i, name in ipairs(registry.names) do
    methods[i] = registry.methods[name]
  end
  of(methods)
  of(registry.asks)
  of(registry.notes)
  return schema.names(into)
end

return schema
