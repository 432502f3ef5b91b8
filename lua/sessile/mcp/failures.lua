-- failures.lua: what went wrong, as a status, a sentence and what to do next.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"

local failures = {}

local NEXT = {
  ENOTFOUND = "session_list shows the sessions.",
  EBUSY = "Another program writes to it: try again.",
  ESEALED = "The key of the store does not open it: a person has to look, with `sessile doctor`.",
  EDAMAGED = "A person has to look, with `sessile check`.",
  ETRUNCATED = "A person has to look, with `sessile check`.",
  ECONFLICT = "Read it again, then repeat the call.",
  EDENIED = "A person may allow it.",
  EINVALID = "Change the arguments.",
  EEXISTS = "Choose another name.",
  ELIMIT = "Ask for less, or later.",
  ESUSPENDED = "The session waits for an answer of a person.",
}

-- A text of this server, of the engine, or of a name that somebody chose.
local function sentence(text)
  local shown = clean.line(clean.new():text(tostring(text)))
  return #shown > 500 and shown:sub(1, utf8.offset(shown, 0, 500) - 1) .. "…" or shown
end

--- The failure as a model reads it.
---@param message string?
---@param code string?
---@param step string|false|nil
---@return {status: string, message: string, next: string?}
function failures.told(message, code, step)
  if step == nil or type(step) ~= "string" and step ~= false then
    step = NEXT[code or ""]
  end
  return { status = (code or "EFAILED"):gsub("^E", ""), message = sentence(message or "it failed"),
    next = step or nil }
end

--- The same as the result of a tool.
---@return table
function failures.result(message, code, step)
  return { isError = true, content = core.array { {
    type = "text", text = clean.json(failures.told(message, code, step)),
  } } }
end

--- What run(…) returns. If the engine raised because it could not read something, nil, message,
--- code; anything else that is raised is a defect and is raised again.
function failures.attempt(run, ...)
  local trace
  local returned = table.pack(xpcall(run, function(raised)
    trace = debug.traceback(tostring(raised), 2)
    return raised
  end, ...))
  if returned[1] then
    return table.unpack(returned, 2, returned.n)
  end
  local raised = returned[2]
  local code, message = tostring(raised):match "%f[%u](E%u%u%u+): (.*)$"
  if type(raised) == "string" and not code then
    message, code = raised:match "^(.*) %[(E%u+)%]$"
  end
  if not code then
    error(trace, 0)
  end
  return nil, message, code
end

return failures
