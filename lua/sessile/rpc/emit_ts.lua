--- emit_ts: the types for TypeScript.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local registry = require "sessile.rpc.registry"
local schema = require "sessile.rpc.schema"
local words = require "sessile.rpc.words"

local emit = {}

local PLAIN = { string = "string", integer = "number", number = "number", boolean = "boolean",
  json = "unknown", object = "{ [name: string]: unknown }" }

-- A tree as a type. in_list: it stands before [].
local function type_text(tree, in_list)
  if tree.kind == "list" then
    return type_text(tree.of, true) .. "[]"
  elseif tree.kind == "word" then
    return ("%q"):format(tree.word)
  elseif tree.kind == "either" then
    local list = {}
    for i, one in ipairs(tree.of) do
      list[i] = type_text(one)
    end
    local text = table.concat(list, " | ")
    return in_list and "(" .. text .. ")" or text
  end
  return PLAIN[tree.kind] or tree.kind
end

-- Fields as the inside of an object type.
local function fields_text(fields)
  local list = {}
  for i, name in ipairs(schema.names(fields)) do
    local tree = words.read(fields[name])
    list[i] = ("%s%s: %s"):format(name, tree.optional and "?" or "", type_text(tree))
  end
  return #list > 0 and "{ " .. table.concat(list, "; ") .. " }" or "{ [name: string]: never }"
end

local function named(name)
  local type_of = check.types[name]
  if type_of.is then
    return type_text(words.read(type_of.is))
  elseif type_of.is_span and not type_of.members then
    return "{ role: string; [name: string]: unknown }"
  end
  return fields_text(type_of.fields or type_of.members)
end

emit.named, emit.fields_text, emit.type_text = named, fields_text, type_text

--- {name, about, text} of each named type.
function emit.each_type()
  local list = {}
  for i, name in ipairs(schema.used()) do
    list[i] = { name = name, about = check.types[name].about, text = named(name) }
  end
  return list
end

--- The result of a method as a type.
function emit.result_text(one)
  local tree = words.read(one.result)
  return type_text(tree) .. (tree.optional and " | null" or "")
end

local function methods_text(out, heading, about, list)
  out[#out + 1] = ("\n/** %s */\nexport interface %s {"):format(about, heading)
  for _, one in ipairs(list) do
    out[#out + 1] = ("  /** %s */\n  %q: { params: %s%s };"):format(one.about, one.name,
      fields_text(one.params), one.result and "; result: " .. emit.result_text(one) or "")
  end
  out[#out + 1] = "}"
end

--- The methods that are answered, without notifications.
function emit.methods()
  local list = {}
  for _, name in ipairs(registry.names) do
    local one = registry.methods[name]
    list[#list + 1] = not one.is_notification and one or nil
  end
  return list
end

--- The file.
---@return string
function emit.types()
  local out = { ("// The types of sessile rpc, written by sessile %s: sessile rpc --types ts")
    :format(core.version), "" }
  for _, one in ipairs(emit.each_type()) do
    out[#out + 1] = ("/** %s */\nexport type %s = %s;"):format(one.about, one.name, one.text)
  end
  methods_text(out, "Methods", "What can be asked of the server.", emit.methods())
  methods_text(out, "Asks", "What the server asks.", registry.asks)
  methods_text(out, "Notes", "What the server tells.", registry.notes)
  return table.concat(out, "\n") .. "\n"
end

return emit
