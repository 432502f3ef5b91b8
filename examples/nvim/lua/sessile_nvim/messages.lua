--- messages: CodeCompanion's messages as the engine's, and back.
--
-- A message keeps all that CodeCompanion knows of it under `codecompanion`. Its role, text, calls
-- and results have the engine's names, so that policies and other programs understand them.

local messages = {}

local TO_ENGINE = { llm = "assistant" }
local FROM_ENGINE = { assistant = "llm" }

local is_a_list = vim.islist or vim.tbl_islist -- the older name is deprecated

-- A value without what JSON has not: functions, handles, lists with holes.
local function plain(value)
  local kind = type(value)
  if kind ~= "table" then
    return (kind == "string" or kind == "number" or kind == "boolean" or value == vim.NIL)
      and value or nil
  elseif next(value) == nil then
    return value -- with its metatable: vim.empty_dict() stays an object
  end
  local copy, is_list = {}, is_a_list(value)
  for key, one in pairs(value) do
    copy[(is_list or type(key) == "string") and key or tostring(key)] = plain(one)
  end
  return copy
end

--- What identifies a message of a chat: its id and its size, since a tool's output may grow. nil:
--- it is not stored. Each chat makes system messages with a tag itself; an empty message is the one
--- that the user has not typed yet.
function messages.mark(message)
  local meta, content = message._meta, message.content
  if message.role == "system" and meta and meta.tag then
    return nil
  elseif not message.tools and (content == nil or content == "") then
    return nil
  end
  return meta and meta.id or content or "calls", type(content) == "string" and #content or 0
end

--- A message of a chat as the engine stores it.
function messages.write(message)
  local tools = message.tools or {}
  local calls
  for i, call in ipairs(tools.calls or {}) do
    calls = calls or {}
    local called = call["function"] or {}
    calls[i] = { id = call.id, name = called.name, arguments = called.arguments }
  end
  local rest = plain(message)
  rest.role, rest.content = nil, nil
  return {
    role = TO_ENGINE[message.role] or message.role,
    content = message.content or "",
    tool_calls = calls,
    tool_call_id = tools.call_id,
    codecompanion = next(rest) and rest or nil,
  }
end

-- What a message without calls of CodeCompanion's own has as calls.
local function calls_of(message)
  local calls = {}
  for i, call in ipairs(message.tool_calls or {}) do
    local arguments = call.arguments
    calls[i] = { id = call.id, type = "function", ["function"] = { name = call.name,
      arguments = type(arguments) == "table" and vim.json.encode(arguments) or arguments } }
  end
  return #calls > 0 and calls or nil
end

--- A message of the engine for a chat. read: of session/context.
function messages.read(read)
  local stored = read.message
  local message = stored.codecompanion and vim.deepcopy(stored.codecompanion)
  if not message then -- of a policy or another program
    local calls = calls_of(stored)
    message = {
      _meta = { id = tonumber(read.id or "", 16) or read.key, cycle = 1,
        tag = not read.id and "compact_summary" or nil },
      opts = { visible = true },
      tools = (calls or stored.tool_call_id)
        and { calls = calls, call_id = stored.tool_call_id } or nil,
    }
  end
  message.role = FROM_ENGINE[stored.role] or stored.role
  message.content = stored.content
  if message.content == "" and message.tools and message.tools.calls then
    message.content = nil -- as a chat has it
  end
  return message
end

--- The first line of a text, at most 60 bytes.
function messages.line(text)
  if type(text) ~= "string" then
    return "…"
  end
  local line = vim.trim(text):match "[^\n]*"
  return #line > 60 and vim.fn.strcharpart(line, 0, 59) .. "…" or line
end

return messages
