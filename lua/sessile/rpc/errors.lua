--- errors: what a failure is on the wire.
--
-- `code` is the number of the status in sessile.h, or one that JSON-RPC reserves for what it means
-- itself; `data` is {status, next, retry_ms, rule}.

local errors = {}

--- JSON-RPC's own.
errors.PARSE, errors.REQUEST, errors.METHOD = -32700, -32600, -32601
errors.PARAMS, errors.INTERNAL = -32602, -32603

--- The statuses in the order of sessile.h; OK is 0.
errors.statuses = {
  [0] = "OK", "NEEDS", "INVALID", "NOTFOUND", "EXISTS", "CONFLICT", "BUSY", "DAMAGED", "TRUNCATED",
  "SEALED", "DENIED", "LIMIT", "POLICY", "IO", "FULL", "NOMEM", "UNSUPPORTED", "FORKED",
  "SUSPENDED", "CANCELLED", "CLOSED",
}

local number = {}
for n = 0, #errors.statuses do
  number[errors.statuses[n]] = n
end

-- What to do next, where the sentence does not say it.
local NEXT = {
  NOTFOUND = "store/list has the sessions, session/labels and session/tree the entries",
  EXISTS = "session/open opens it; or choose another id",
  CONFLICT = "read what came since (session/entries with after), and repeat it on the new head",
  BUSY = "repeat it; timeout_ms says how long it may wait",
  SUSPENDED = "session/resume_with or session/cancel ends the suspension",
  CANCELLED = "repeat it, if it is still wanted",
  POLICY = "the conversation is unchanged; session/log has what was refused",
}

--- A failure of the module, {code, message, data}, from what it returned after nil.
---@param message string
---@param code string  as "ENOTFOUND"
---@param retry_ms integer?
---@param rule string?
---@return table
function errors.of(message, code, retry_ms, rule)
  local status = tostring(code):match "^E(%u+)$" or "INVALID"
  if status == "USAGE" or not number[status] then
    status = "INVALID"
  end
  return {
    code = number[status], message = tostring(message),
    data = { status = status, next = NEXT[status],
      retry_ms = math.type(retry_ms) == "integer" and retry_ms or nil,
      rule = type(rule) == "string" and rule or nil },
  }
end

--- A failure that JSON-RPC has a number for.
---@param code integer
---@param message string
---@param next_step string?
---@return table
function errors.protocol(code, message, next_step)
  return { code = code, message = message,
    data = { status = code == errors.INTERNAL and "INTERNAL" or "INVALID", next = next_step } }
end

return errors
