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

-- What is wrong is said without where: callers put that before it, so that a right value costs
-- none.
local function wrong(tree, value)
  local got = kind_of(value)
  if got == "string" and type(value) == "string" then
    got = ("%q"):format(value:sub(1, 40)):gsub("\\\n", "\\n")
  end
  return nil, (": %s expected, got %s"):format(says(tree), got)
end

local read = setmetatable({}, { __mode = "k" })

-- The trees of fields by their names, and the names of those that must be there.
local function trees_of(fields)
  local found = read[fields]
  if not found then
    found = { trees = {}, needed = {} }
    for name, word in pairs(fields) do
      found.trees[name] = words.read(word)
      if not found.trees[name].optional then
        found.needed[#found.needed + 1] = name
      end
    end
    read[fields] = found
  end
  return found
end

check.trees_of = trees_of

-- Whether a value stands for none. A null that may be any value is one.
local function is_absent(tree, value)
  return tree.optional and (value == NULL or tree.kind ~= "json" and getmetatable(value) == SPAN
    and kind_of(value) == "null")
end

-- The members of an object that a type has, checked; nil and what is wrong.
local function take_fields(fields, given)
  local taken, known = {}, trees_of(fields)
  for name, value in pairs(given) do
    local tree = known.trees[name]
    if not tree then
      local near = nearest(name, fields)
      return nil, (": unknown name '%s'%s"):format(tostring(name):sub(1, 60),
        near and (", did you mean '%s'?"):format(near) or "")
    elseif not is_absent(tree, value) then
      local why
      taken[name], why = take(tree, value)
      if why then
        return nil, ": " .. name .. why
      end
    end
  end
  for _, name in ipairs(known.needed) do
    if taken[name] == nil then
      return nil, (": %s is missing"):format(name)
    end
  end
  return taken
end

--- The members of an object that a type has, checked; nil and what is wrong.
---@param fields table<string, string>  type words by name
---@param given table
---@param path string  what a sentence begins with
function check.fields(fields, given, path)
  local taken, why = take_fields(fields, given)
  return taken, why and path .. why
end

local function take_list(tree, value)
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
    return wrong(tree, value)
  end
  local list = {}
  for i, item in ipairs(items) do
    local why
    list[i], why = take(tree.of, item)
    if why then
      return nil, ("[%d]"):format(i - 1) .. why
    end
  end
  return core.array(list)
end

-- A value of which members are kept as text.
local function take_members(type_of, value)
  local spans = {}
  for name, word in pairs(type_of.members) do
    spans[name] = words.is_span(words.read(word)) or nil
  end
  return take_fields(type_of.members, core.decode(value.json, spans, check.DEPTH))
end

-- The first of several types that fits, by kind; else what is wrong with the likeliest.
local function take_either(tree, value)
  local best
  for _, one in ipairs(tree.of) do
    local taken, why = take(one, value)
    if not why then
      return taken
    end
    best = best or kind_of(value) == "object" and named[one.kind] and why
      or kind_of(value) == "array" and one.kind == "list" and why or nil
  end
  if best then
    return nil, best
  end
  return wrong(tree, value)
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

function take(tree, value)
  if tree.kind == "list" then
    return take_list(tree, value)
  elseif tree.kind == "either" then
    return take_either(tree, value)
  elseif tree.kind == "word" then
    if value == tree.word then
      return value
    end
    return wrong(tree, value)
  elseif plain[tree.kind] then
    if not plain[tree.kind](value) then
      return wrong(tree, value)
    end
    return tree.kind == "integer" and math.tointeger(value) or value
  end
  local type_of = named[tree.kind]
  if type_of.is then
    return take(words.read(type_of.is), value)
  elseif kind_of(value) ~= "object" then
    return wrong(tree, value)
  elseif type_of.members then
    return take_members(type_of, value)
  elseif type_of.is_span then
    return value
  end
  return take_fields(type_of.fields, value)
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
