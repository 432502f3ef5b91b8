-- messages.lua: JSON-RPC 2.0: what a line asks, and lines that answer.
--
-- The id of a request goes back as it was written. A line that is wrong costs an error, never the
-- connection.

local characters = require "sessile.characters"
local core = require "sessile.core"

local span = core.span

local messages = {}

messages.PARSE, messages.REQUEST, messages.METHOD, messages.PARAMS, messages.INTERNAL =
  -32700, -32600, -32601, -32602, -32603

local MOST_ID = 256 -- bytes

-- The text of the id; nil: there is none. false: it is none that a request can have.
local function id_of(raw)
  local id
  for _, member in ipairs(span.object(raw)) do
    if member.key == "id" then
      id = member.raw
    end
  end
  if not id then
    return nil
  end
  local kind = span.kind(id)
  return #id <= MOST_ID and (kind == "string" or kind == "number") and id or false
end

--- An answer that is an error. Without an id it is about a line that nobody could read.
---@param id string?  as it was written
---@param code integer
---@param message string
---@param data table?
---@return string
function messages.error(id, code, message, data)
  local text = core.text { jsonrpc = "2.0", error = { code = code, message = message,
    data = data } }
  return characters.inert(id and ('{"id":%s,%s'):format(id, text:sub(2)) or text)
end

--- An answer.
---@param id string
---@param result table
---@return string
function messages.result(id, result)
  return characters.inert(('{"jsonrpc":"2.0","id":%s,"result":%s}'):format(id, core.text(result)))
end

--- What a line asks: {id, method, params}; without an id it is a notification. nil, and perhaps the
--- line that answers: it asks nothing, or is wrong.
---@param line string
---@return {id: string?, method: string, params: table}?
---@return string? answer
function messages.read(line)
  local value = span.valid(line) and core.decode(line)
  if not value then
    return nil, messages.error(nil, messages.PARSE, "this line is no JSON in UTF-8")
  elseif span.kind(line) == "array" then
    return nil, messages.error(nil, messages.REQUEST,
      "batches are not supported: send one message a line")
  elseif span.kind(line) ~= "object" then
    return nil, messages.error(nil, messages.REQUEST, "a message is an object")
  end
  local id = id_of(line)
  if value.method == nil and (value.result ~= nil or value.error ~= nil) then
    return nil -- an answer, and nothing was asked
  elseif value.jsonrpc ~= "2.0" or type(value.method) ~= "string" or id == false then
    return nil, messages.error(id or nil, messages.REQUEST, "a request has jsonrpc \"2.0\", a "
      .. "method that is a text, and an id that is a text or a number")
  end
  local params = value.params
  if params == nil then
    params = {}
  end
  if type(params) ~= "table" or #params > 0 then
    return nil, id and messages.error(id, messages.PARAMS, "params: an object expected")
  end
  return { id = id, method = value.method, params = params }
end

return messages
