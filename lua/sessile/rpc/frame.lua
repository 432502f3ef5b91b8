--- frame: a line as a message of JSON-RPC 2.0, and the reverse.
--
-- Ids, parameters and results stay the text that came: an id is sent back as it was written.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local errors = require "sessile.rpc.errors"

local frame = {}

local SPANS = { id = true, params = true, result = true, error = true }

local function refused(code, id, message, next_step)
  return nil, code, { id = id, message = message }, next_step
end

-- The text of a member; nil: it is not there.
local function text_of(value)
  return value and value.json
end

--- The message in a line: {id, method, params} of a request or a notification, {id, result, error}
--- of an answer; all but `method` are JSON texts. nil, code, {id, message}, next step.
---@param line string
function frame.read(line)
  local kind = core.span.kind(line)
  local value = core.decode(line, SPANS, check.DEPTH)
  if value == nil then
    return refused(errors.PARSE, nil, "the line is no JSON text in UTF-8, or nested too deep",
      "write each message as one line of JSON")
  elseif kind == "array" then
    return refused(errors.REQUEST, nil, "batches are not taken", "write each request as a line")
  elseif kind ~= "object" then
    return refused(errors.REQUEST, nil, "a request is an object")
  end
  local id = text_of(value.id)
  local id_kind = id and core.span.kind(id)
  if id and id_kind ~= "string" and id_kind ~= "number" then
    return refused(errors.REQUEST, nil, "an id is a string or a number")
  end
  local method = value.method
  if method ~= nil then
    if type(method) ~= "string" then
      return refused(errors.REQUEST, id, "the method's name is a string")
    elseif value.jsonrpc ~= "2.0" then
      return refused(errors.REQUEST, id, 'jsonrpc: "2.0" is missing')
    end
    return { id = id, method = method, params = text_of(value.params) }
  elseif value.result or value.error then
    return { id = id, result = text_of(value.result), error = text_of(value.error) }
  end
  return refused(errors.REQUEST, id, "the message has neither a method nor a result")
end

--- The text of an answer. id, result: JSON texts.
function frame.answer(id, result, failure)
  if failure then
    return ('{"jsonrpc":"2.0","id":%s,"error":%s}'):format(id, assert(core.text(failure)))
  end
  return table.concat { '{"jsonrpc":"2.0","id":', id, ',"result":', result, "}" }
end

--- The text of a request, or, without an id, of a notification.
function frame.call(id, method, params)
  return table.concat { '{"jsonrpc":"2.0",', id and '"id":' .. id .. "," or "", '"method":"',
    method, '","params":', params, "}" }
end

return frame
