-- key_messages: keeps the messages that its rules select, and drops the rest.
--
-- Use it   when rules can tell which messages matter: what the user asked, errors, labelled
--          messages, those with a ticket number.
-- Cost     one pass over the messages when the context has reached `share` of the window;
--          with `pattern` the texts are read too. No model is asked.
-- Keeps    system messages, summaries, the newest `preserve_recent`, unfinished calls, pinned
--          messages, the user's last message; and by option user messages, errors, tool
--          calls, labelled messages, and those whose text matches a Lua pattern.
-- Never    splits a call from its results: if one is kept, all are. Never writes a message of
--          its own, so the model does not know of dropped messages. They stay in the log:
--          `why` explains them, `uncompact` restores them.

local function text_of(content)
  if type(content) == "string" then
    return content
  end
  local parts = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" then
      parts[#parts + 1] = type(block.text) == "string" and block.text or text_of(block.content)
    end
  end
  return table.concat(parts, "\n")
end

-- Whether it is a message of the user with more than results.
local function is_question(message)
  if message.role ~= "user" then
    return false
  end
  if type(message.metadata) == "table" and message.metadata.kind then
    return false
  end
  local content = message.content
  if type(content) ~= "table" or #content == 0 then
    return true
  end
  for _, block in ipairs(content) do
    if type(block) ~= "table" or block.type ~= "tool_result" then
      return true
    end
  end
  return false
end

local function is_error(message)
  if message.is_error == true or message.isError == true then
    return true
  end
  local content = message.role == "user" and message.content
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and block.is_error == true then
      return true
    end
  end
  return false
end

local function is_summary(message)
  local metadata = message.metadata
  local kind = type(metadata) == "table" and metadata.kind
  return kind == "summary" or kind == "branch_summary"
end

local function has_label(message, wanted)
  for _, label in ipairs(message.labels or {}) do
    if wanted[label] then
      return true
    end
  end
  return false
end

local function matters(state, i, options, labels)
  local message = state.messages[i]
  local role = message.role
  if role == "system" or role == "developer" or message.pinned then
    return true
  end
  return options.keep_tools and #state:pairs_of(i) > 1
    or options.keep_errors and is_error(message)
    or options.keep_user and is_question(message)
    or next(labels) and has_label(message, labels)
    or is_summary(message)
    or options.pattern and text_of(message.content):find(options.pattern) ~= nil
end

-- The messages to keep: index -> true. An open call is kept because of the newest of its
-- results, or because it is among the newest messages.
local function choose(state, options)
  local messages, labels = state.messages, {}
  for _, label in ipairs(options.labels or {}) do
    labels[label] = true
  end
  local tail = #messages - options.preserve_recent + 1
  local kept, asked = {}, false
  for i = #messages, 1, -1 do
    local is_last_question = not asked and is_question(messages[i])
    asked = asked or is_last_question
    if i >= tail or is_last_question or matters(state, i, options, labels) then
      for _, k in ipairs(state:pairs_of(i)) do
        kept[k] = true
      end
    end
  end
  return kept
end

return {
  name = "key_messages",
  version = 1,
  about = "Keep user messages, errors and what else you name; drop the rest.",
  options = {
    keep_user = { type = "boolean", default = true, about = "keep what users said" },
    keep_errors = { type = "boolean", default = true, about = "keep errors and their calls" },
    keep_tools = { type = "boolean", default = false, about = "keep calls and results" },
    labels = { type = "list", about = "keep messages with one of these labels" },
    pattern = { type = "string", about = "keep messages whose text matches this Lua pattern" },
    preserve_recent = { type = "integer", default = 10, min = 2,
      about = "newest messages left alone" },
    share = { type = "number", default = 0.8, min = 0.05, max = 1,
      about = "share of the window that starts it" },
  },

  should_compact = function(state, ctx)
    return state.tokens > ctx.options.share * (state.window - state.reserve)
  end,

  compact = function(state, ctx)
    local kept = choose(state, ctx.options)
    for i = 1, #state.messages do
      if not kept[i] then
        state:drop(i)
      end
    end
  end,
}
