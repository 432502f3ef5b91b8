--- discover: the registry as an OpenRPC document.

local core = require "sessile.core"
local registry = require "sessile.rpc.registry"
local schema = require "sessile.rpc.schema"
local words = require "sessile.rpc.words"

local discover = {}

local function parameters(params)
  local list = {}
  for _, name in ipairs(schema.names(params)) do
    local tree = words.read(params[name])
    list[#list + 1] = { name = name, required = not tree.optional, schema = schema.of(tree) }
  end
  return core.array(list)
end

local function described(one)
  local result = one.result and words.read(one.result)
  local made = result and schema.of(result) or nil
  if result and result.optional then
    made = { anyOf = core.array { made, { type = "null" } } }
  end
  return { name = one.name, summary = one.about, paramStructure = "by-name",
    params = parameters(one.params),
    result = made ~= nil and { name = "result", schema = made } or nil,
    ["x-asks"] = one.asks and #one.asks > 0 and core.array(one.asks) or nil }
end

local function all(list)
  local made = {}
  for i, one in ipairs(list) do
    made[i] = described(one)
  end
  return core.array(made)
end

--- The document, as a table.
---@return table
function discover.document()
  local methods, schemas = {}, {}
  for _, name in ipairs(registry.names) do
    local one = registry.methods[name]
    local made = described(one)
    made.result = not one.is_notification and made.result or nil
    methods[#methods + 1] = made
  end
  for _, name in ipairs(schema.used()) do
    schemas[name] = schema.named(name)
  end
  return {
    openrpc = "1.3.2",
    info = { title = "sessile rpc", version = core.version,
      description = "Sessions of agents, over standard input and output: a message a line." },
    methods = core.array(methods), components = { schemas = schemas },
    ["x-asks"] = all(registry.asks), ["x-notes"] = all(registry.notes),
  }
end

return discover
