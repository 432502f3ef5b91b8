-- codex_reader.lua: what Codex gives a model of a rollout: its items in their order, from the last
-- replacement_history on.

local sessile = require "sessile"

local codex_reader = {}

local function texts(content)
  if type(content) == "string" then
    return content
  end
  local out = {}
  for _, block in ipairs(content or {}) do
    out[#out + 1] = block.text
  end
  return table.concat(out, " ")
end

--- The items of the context.
function codex_reader.items(text)
  local items, first = {}, true
  for raw in text:gmatch "[^\n]+" do
    local line = assert(sessile.decode(raw))
    assert(line.timestamp and line.payload, raw)
    assert(not first or line.type == "session_meta", "a rollout begins with its session_meta")
    first = false
    if line.type == "response_item" then
      items[#items + 1] = line.payload
    elseif line.type == "compacted" then
      items = { table.unpack(line.payload.replacement_history) }
    end
  end
  return items
end

--- The texts of the items.
function codex_reader.context(text)
  local out = {}
  for _, item in ipairs(codex_reader.items(text)) do
    if item.type == "message" then
      out[#out + 1] = texts(item.content)
    else
      out[#out + 1] = item.output and texts(item.output) or "call " .. item.call_id
    end
  end
  return out
end

return codex_reader
