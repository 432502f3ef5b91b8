-- edit_tools: replaces old tool output by a line that describes it.
--
-- Use it   first, in every agent that runs tools: files and logs are most of a context, and of
--          little use ten messages later; the tool can be run again.
-- Cost     one pass over sizes when the context has reached `share` of the window; only
--          replaced texts are read. No model is asked.
-- Does     [tool output left out: 12,345 bytes, read_file] in place of the output. Calls,
--          their arguments and other messages do not change, so the model still knows
--          what it did and in which order.
-- Never    touches the newest `preserve_recent` messages, output of at most `min_tokens`
--          tokens, pinned messages, open calls, or (with `keep_errors`) errors.

local MARK = "[tool output left out: "

local function size_of(content)
  if type(content) == "string" then
    return #content
  end
  local size = 0
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" then
      size = size + size_of(type(block.text) == "string" and block.text or block.content)
    end
  end
  return size
end

local function with_commas(n)
  local digits = ("%d"):format(n)
  local head = #digits % 3
  local parts = { head > 0 and digits:sub(1, head) or nil }
  for i = head + 1, #digits, 3 do
    parts[#parts + 1] = digits:sub(i, i + 2)
  end
  return table.concat(parts, ",")
end

-- A result has two forms: a message, or blocks in a message of the user.
local function is_output(message, content)
  if message.role == "tool" or message.role == "function" then
    return message.tool_call_id ~= nil
  end
  if message.role ~= "user" or type(content) ~= "table" or #content == 0 then
    return false
  end
  for _, block in ipairs(content) do
    if type(block) ~= "table" or block.type ~= "tool_result" then
      return false
    end
  end
  return true
end

local function is_error(message, content)
  if message.is_error == true or message.isError == true then
    return true
  end
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and block.is_error == true then
      return true
    end
  end
  return false
end

-- Whether it is replaced already: again would only count the bytes of the line.
local function is_placeholder(content)
  local block = type(content) == "table" and content[1]
  local text = type(block) == "table" and (block.text or block.content) or content
  return type(text) == "string" and text:sub(1, #MARK) == MARK
end

-- The name of the tool: that of the result, else that of its call.
local function tool_of(state, i)
  local message = state.messages[i]
  if type(message.name) == "string" then
    return message.name
  end
  local caller = state.messages[state:pairs_of(i)[1]]
  for _, call in ipairs(type(caller.tool_calls) == "table" and caller.tool_calls or {}) do
    if call.id == message.tool_call_id then
      return call.name
    end
  end
  return nil
end

local function placeholder(state, i, content)
  local name = tool_of(state, i)
  return ("%s%s bytes%s]"):format(MARK, with_commas(size_of(content)),
    type(name) == "string" and ", " .. name or "")
end

-- The text of a message is read once, since each reading costs time for its length.
local function edit(state, i, options)
  local message = state.messages[i]
  local content = message.content
  if not is_output(message, content) or is_placeholder(content) then
    return
  end
  if options.keep_errors and is_error(message, content) then
    return
  end
  state:replace(i, { content = placeholder(state, i, content) })
end

return {
  name = "edit_tools",
  version = 1,
  about = "Replace old tool output by a line that says what was there.",
  options = {
    preserve_recent = { type = "integer", default = 10, min = 2,
      about = "newest messages left alone" },
    min_tokens = { type = "integer", default = 100, min = 30,
      about = "only output of more tokens than this" },
    keep_errors = { type = "boolean", default = true, about = "leave errors alone" },
    share = { type = "number", default = 0.8, min = 0.05, max = 1,
      about = "share of the window that starts it" },
  },

  should_compact = function(state, ctx)
    return state.tokens > ctx.options.share * (state.window - state.reserve)
  end,

  compact = function(state, ctx)
    local messages, options = state.messages, ctx.options
    for i = 1, #messages - options.preserve_recent do
      local message = messages[i]
      if message.open then
        return -- what follows open work stays as it is
      end
      if message.tokens > options.min_tokens and not message.pinned
        and message.role ~= "assistant" then
        edit(state, i, options)
      end
    end
  end,
}
