--- emit_py: the types for Python: a TypedDict for each named type.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local schema = require "sessile.rpc.schema"
local words = require "sessile.rpc.words"

local emit = {}

local PLAIN = { string = "str", integer = "int", number = "float", boolean = "bool", json = "Any",
  object = "Dict[str, Any]" }

--- A tree as an annotation; named types are quoted where is_early: they come later in the file.
function emit.type_text(tree, is_early)
  if tree.kind == "list" then
    return "List[" .. emit.type_text(tree.of, is_early) .. "]"
  elseif tree.kind == "word" then
    return ("Literal[%q]"):format(tree.word)
  elseif tree.kind == "either" then
    local list = {}
    for i, one in ipairs(tree.of) do
      list[i] = emit.type_text(one, is_early)
    end
    return "Union[" .. table.concat(list, ", ") .. "]"
  elseif PLAIN[tree.kind] then
    return PLAIN[tree.kind]
  end
  return is_early and ("%q"):format(tree.kind) or tree.kind
end

local function named(name)
  local type_of = check.types[name]
  if type_of.is then
    return ("%s = %s"):format(name, emit.type_text(words.read(type_of.is), true))
  elseif type_of.is_span and not type_of.members then
    return name .. " = Dict[str, Any]"
  end
  local fields, list = type_of.fields or type_of.members, {}
  for i, field in ipairs(schema.names(fields)) do
    list[i] = ("    %q: %s,"):format(field, emit.type_text(words.read(fields[field]), true))
  end
  return ("%s = TypedDict(%q, {\n%s\n}, total=False)"):format(name, name, table.concat(list, "\n"))
end

--- The types alone, without what they import.
function emit.body()
  local out = {}
  for _, name in ipairs(schema.used()) do
    out[#out + 1] = ("# %s\n%s"):format(check.types[name].about, named(name))
  end
  return table.concat(out, "\n\n")
end

--- The file.
---@return string
function emit.types()
  return ("# The types of sessile rpc, written by sessile %s: sessile rpc --types py\n"
    .. "from typing import Any, Dict, List, Literal, TypedDict, Union\n\n%s\n"):format(
    core.version, emit.body())
end

return emit
