--- emit_lua: the types for Lua editors (LuaCATS), with the prefix "sessile.rpc.".

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local schema = require "sessile.rpc.schema"
local ts = require "sessile.rpc.emit_ts"
local words = require "sessile.rpc.words"

local emit = {}

local PREFIX = "sessile.rpc."
local PLAIN = { string = "string", integer = "integer", number = "number", boolean = "boolean",
  json = "any", object = "table<string, any>" }

local function type_text(tree)
  if tree.kind == "list" then
    local inner = type_text(tree.of)
    return (inner:find "|" and "(" .. inner .. ")" or inner) .. "[]"
  elseif tree.kind == "word" then
    return ("%q"):format(tree.word)
  elseif tree.kind == "either" then
    local list = {}
    for i, one in ipairs(tree.of) do
      list[i] = type_text(one)
    end
    return table.concat(list, "|")
  end
  return PLAIN[tree.kind] or PREFIX .. tree.kind
end

local function class(out, name, about, fields)
  out[#out + 1] = ("---%s\n---@class %s%s"):format(about, PREFIX, name)
  for _, field in ipairs(schema.names(fields)) do
    local tree = words.read(fields[field])
    out[#out + 1] = ("---@field %s%s %s"):format(field, tree.optional and "?" or "",
      type_text(tree))
  end
  out[#out + 1] = ""
end

--- The annotations.
---@return string
function emit.body()
  local out = {}
  for _, name in ipairs(schema.used()) do
    local type_of = check.types[name]
    if type_of.is then
      out[#out + 1] = ("---%s\n---@alias %s%s %s\n"):format(type_of.about, PREFIX, name,
        type_text(words.read(type_of.is)))
    elseif type_of.is_span and not type_of.members then
      out[#out + 1] = ("---%s\n---@alias %s%s table<string, any>\n"):format(type_of.about, PREFIX,
        name)
    else
      class(out, name, type_of.about, type_of.fields or type_of.members)
    end
  end
  for _, one in ipairs(ts.methods()) do
    class(out, "params." .. one.name:gsub("/", "."), one.about .. "; its parameters", one.params)
  end
  return table.concat(out, "\n")
end

--- The file.
---@return string
function emit.types()
  return ("---@meta\n-- The types of sessile rpc, written by sessile %s: "
    .. "sessile rpc --types lua\n\n%s"):format(core.version, emit.body())
end

return emit
