--- reference: the table of methods in README.md, from the registry.

local registry = require "sessile.rpc.registry"
local schema = require "sessile.rpc.schema"
local words = require "sessile.rpc.words"

local reference = {}

-- Parameters, needed ones first: `session`, `messages`, [`base`, …].
local function parameters(one)
  local needed, free = {}, {}
  for _, name in ipairs(schema.names(one.params)) do
    local list = words.read(one.params[name]).optional and free or needed
    if name ~= "store" then
      list[#list + 1] = ("`%s`"):format(name)
    end
  end
  local text = table.concat(needed, ", ")
  if #free > 0 then
    text = text .. (text ~= "" and ", " or "") .. "[" .. table.concat(free, ", ") .. "]"
  end
  return text
end

--- The rows of the table, as Markdown.
---@return string
function reference.table()
  local out = { "| method | does | parameters | result | may ask |", "|---|---|---|---|---|" }
  for _, name in ipairs(registry.names) do
    local one = registry.methods[name]
    out[#out + 1] = ("| `%s` | %s | %s | %s | %s |"):format(name, one.about, parameters(one),
      one.is_notification and "" or (one.result:gsub("|", "\\|")), table.concat(one.asks, ", "))
  end
  return table.concat(out, "\n")
end

return reference
