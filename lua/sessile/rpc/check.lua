--- check: the parameters of a request against the registry.
--
-- Unknown names are refused, with the nearest one. What is stored is not converted: messages,
-- states and data become values that are written as the text that came (sessile.json).

local core = require "sessile.core"
local nearest = require "sessile.nearest"
local words = require "sessile.rpc.words"

local check = {}

--- Levels of nesting that a line may have: what an engine may take, and what stands around it.
check.DEPTH = 1000

local named = {}
for name, type_of in pairs(require "sessile.rpc.types") do
  named[name] = type_of
end
for name, type_of in pairs(require "sessile.rpc.memory_types") do
  named[name] = type_of
end
check.types = named

local NULL, SPAN = core.null, getmetatable(core.json "null")
local ARRAY = getmetatable(core.array {})

local function is_list(value)
  return type(value) == "table" and getmetatable(value) == ARRAY
end

-- What a value is, in JSON's words.
local function kind_of(value)
  if value == nil or value == NULL then
    return "null"
  elseif type(value) ~= "table" then
    return type(value)
  elseif getmetatable(value) == SPAN then
    local kind = core.span.kind(value.json)
    return (kind == "true" or kind == "false") and "boolean" or kind
  end
  return is_list(value) and "array" or "object"
end

local take

local ARTICLES = { integer = "an integer", object = "an object", json = "a value",
  number = "a number", string = "a string", boolean = "true or false" }

-- What a type is called in a sentence.
local function says(tree)
  if tree.kind == "list" then
    return "a list"
  elseif tree.kind == "word" then
    return ("%q"):format(tree.word)
  elseif tree.kind == "either" then
    local list = {}
    for i, one in ipairs(tree.of) do
      list[i] = says(one)
    end
    return table.concat(list, " or ")
  end
  local type_of = named[tree.kind]
  if type_of and type_of.is then
    return says(words.read(type_of.is))
  end
  return ARTICLES[tree.kind] or "an object"
end

local function wrong(tree, value, path)
  local got = kind_of(value)
  if got == "string" and type(value) == "string" then
    got = ("%q"):format(value:sub(1, 40)):gsub("\\\n", "\\n")
  end
  return nil, ("%s: %s expected, got %s"):format(path, says(tree), got)
end

--- The members of an object that a type has, checked; nil and what is wrong.
---@param fields table<string, string>  type words by name
---@param given table
---@param path string
function check.fields(fields, given, path)
  local taken = {}
  for name, value in pairs(given) do
    local word = type(name) == "string" and fields[name]
    if not word then
      local near = nearest(name, fields)
      return nil, ("%s: unknown name '%s'%s"):format(path, tostring(name):sub(1, 60),
        near and (", did you mean '%s'?"):format(near) or "")
    end
    local tree = words.read(word)
    if not (tree.optional and (value == NULL or kind_of(value) == "null" and tree.kind ~= "json"))
    then
      local why
      taken[name], why = take(tree, value, path .. ": " .. name)
      if why then
        return nil, why
      end
    end
  end
  for name, word in pairs(fields) do
    if taken[name] == nil and not words.read(word).optional then
      return nil, ("%s: %s is missing"):format(path, name)
    end
  end
  return taken
end

local function take_list(tree, value, path)
  local items = value
  if getmetatable(value) == SPAN then
    items = core.span.array(value.json, check.DEPTH)
    for i, text in ipairs(items or {}) do
      items[i] = core.json(text)
    end
  elseif not is_list(value) then
    items = nil
  end
  if not items then
    return wrong(tree, value, path)
  end
  local list = {}
  for i, item in ipairs(items) do
    local why
    list[i], why = take(tree.of, item, ("%s[%d]"):format(path, i - 1))
    if why then
      return nil, why
    end
  end
  return core.array(list)
end

-- A value of which members are kept as text.
local function take_members(type_of, value, path)
  local spans = {}
  for name, word in pairs(type_of.members) do
    spans[name] = words.is_span(words.read(word)) or nil
  end
  return check.fields(type_of.members, core.decode(value.json, spans, check.DEPTH), path)
end

-- The first of several types that fits, by kind; else what is wrong with the likeliest.
local function take_either(tree, value, path)
  local best
  for _, one in ipairs(tree.of) do
    local taken, why = take(one, value, path)
    if not why then
      return taken
    end
    best = best or kind_of(value) == "object" and named[one.kind] and why
      or kind_of(value) == "array" and one.kind == "list" and why or nil
  end
  if best then
    return nil, best
  end
  return wrong(tree, value, path)
end

-- The kinds that are not named types: whether a value is one.
local plain = {
  json = function() return true end,
  object = function(value) return kind_of(value) == "object" end,
  string = function(value) return type(value) == "string" end,
  boolean = function(value) return type(value) == "boolean" end,
  number = function(value) return type(value) == "number" end,
  integer = function(value) return type(value) == "number" and math.tointeger(value) ~= nil end,
}

function take(tree, value, path)
  if tree.kind == "list" then
    return take_list(tree, value, path)
  elseif tree.kind == "either" then
    return take_either(tree, value, path)
  elseif tree.kind == "word" then
    if value == tree.word then
      return value
    end
    return wrong(tree, value, path)
  elseif plain[tree.kind] then
    if not plain[tree.kind](value) then
      return wrong(tree, value, path)
    end
    return tree.kind == "integer" and math.tointeger(value) or value
  end
  local type_of = named[tree.kind]
  if type_of.is then
    return take(words.read(type_of.is), value, path)
  elseif kind_of(value) ~= "object" then
    return wrong(tree, value, path)
  elseif type_of.members then
    return take_members(type_of, value, path)
  elseif type_of.is_span then
    return value
  end
  return check.fields(type_of.fields, value, path)
end

--- The parameters of a request, from their text; nil and a sentence. nil for `text`: none.
---@param method table  of the registry
---@param text string?
---@return table? params
---@return string? why
function check.params(method, text)
  local given = {}
  if text and core.span.kind(text) ~= "null" then
    if core.span.kind(text) ~= "object" then
      return nil, method.name .. ": params: an object expected: parameters have names"
    end
    given = core.decode(text, method.spans, check.DEPTH)
  end
  return check.fields(method.params, given, method.name)
end

return check
