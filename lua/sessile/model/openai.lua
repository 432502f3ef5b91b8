-- openai.lua: converts messages and tools to requests of OpenAI-compatible endpoints, and their
-- answers, streamed pieces and errors back.
--
-- Responses are not trusted: any JSON results in an answer or an error message.

local answers = require "sessile.answers"
local core = require "sessile.core"
local dialect = require "sessile.dialect"
local reasoning = require "sessile.model.reasoning"

local math = dialect.math

local openai = {}

-- Limits of one answer. A store limits messages further.
local MOST_TEXT, MOST_CALLS = 8 * 1024 * 1024, 256

-- ---------------------------------------------------------------- outward

local ROLES = { model = "assistant", ["function"] = "tool", developer = "system" }

local function json_text(value)
  return type(value) == "string" and value or core.text(value == nil and {} or value) or "{}"
end

local function call_of(id, name, arguments)
  return { id = id, type = "function",
    ["function"] = { name = name, arguments = json_text(arguments) } }
end

-- An image block, nested as by a provider, or a URL.
local function image_of(block)
  local source = type(block.source) == "table" and block.source or block
  local url = source.url
  if type(source.data) == "string" then
    url = ("data:%s;base64,%s"):format(source.media_type or source.mimeType or "image/png",
      source.data)
  end
  return type(url) == "string" and { type = "image_url", image_url = { url = url } } or nil
end

-- Content blocks as {parts=, calls=, results=}: text and images, calls, and answers to calls.
local function sort_blocks(content)
  local sorted = { parts = {}, calls = {}, results = {}, images = false }
  for _, block in ipairs(content) do
    local kind = type(block) == "table" and block.type
    if kind == "text" and type(block.text) == "string" then
      sorted.parts[#sorted.parts + 1] = { type = "text", text = block.text }
    elseif kind == "image" or kind == "image_url" then
      local image = kind == "image" and image_of(block) or kind == "image_url" and block or nil
      sorted.parts[#sorted.parts + 1] = image
      sorted.images = sorted.images or image ~= nil
    elseif kind == "tool_use" then
      sorted.calls[#sorted.calls + 1] = call_of(block.id, block.name, block.input)
    elseif kind == "tool_result" then
      sorted.results[#sorted.results + 1] = { role = "tool", tool_call_id = block.tool_use_id,
        content = answers.text { content = block.content } }
    end
  end
  return sorted
end

-- Adds one message. It may become several, because each result of a call is a message there.
local function add(list, message)
  local role = ROLES[message.role] or message.role
  local content, calls = message.content, {}
  for i, call in ipairs(type(message.tool_calls) == "table" and message.tool_calls or {}) do
    local inner = type(call["function"]) == "table" and call["function"] or call
    calls[i] = call_of(call.id, inner.name, inner.arguments)
  end
  if type(content) == "table" then
    local sorted = sort_blocks(content)
    table.move(sorted.results, 1, #sorted.results, #list + 1, list)
    table.move(sorted.calls, 1, #sorted.calls, #calls + 1, calls)
    if #sorted.results > 0 and #sorted.parts == 0 and #calls == 0 then
      return
    end
    -- Blocks of text alone are a text, which every endpoint understands.
    content = sorted.images and role ~= "tool" and sorted.parts or answers.text(message)
  end
  local added = {
    role = role, content = content == core.null and "" or content or "",
    tool_calls = #calls > 0 and calls or nil, tool_call_id = message.tool_call_id,
  }
  reasoning.write(message, added)
  list[#list + 1] = added
end

--- The body of a request as JSON text; nil and an error. more: additional members: stream, …
function openai.encode(request, name, more)
  local body = { model = request.model or name, messages = {} }
  for _, message in ipairs(request.messages) do
    add(body.messages, message)
  end
  for i, tool in ipairs(request.tools or {}) do
    body.tools = body.tools or {}
    body.tools[i] = { type = "function", ["function"] = tool }
  end
  for key, value in pairs(more or {}) do
    body[key] = value
  end
  return core.text(body)
end

-- ---------------------------------------------------------------- inward

local function count(value)
  local n = type(value) == "number" and math.tointeger(value)
  return n and n >= 0 and n or nil
end

--- The reported usage in our form: cached tokens are not part of the input. nil: there is none.
function openai.usage(given)
  if type(given) ~= "table" then
    return nil
  end
  local input, output = count(given.prompt_tokens), count(given.completion_tokens)
  if not input and not output then
    return nil
  end
  local details = given.prompt_tokens_details
  local cached = type(details) == "table" and count(details.cached_tokens) or nil
  cached = cached and cached > 0 and cached <= (input or 0) and cached or nil
  return { input = (input or 0) - (cached or 0), output = output or 0, cache_read = cached }
end

local FINE = { stop = true, tool_calls = true, function_call = true }

-- Why an answer ended early, or nil.
local function metadata_of(reason)
  return type(reason) == "string" and not FINE[reason] and { finish_reason = reason } or nil
end

local function text_of(content)
  if type(content) == "table" then
    return answers.text(content)
  end
  return type(content) == "string" and content or ""
end

local function calls_of(given)
  local calls = {}
  for i, call in ipairs(type(given) == "table" and given or {}) do
    if i > MOST_CALLS then
      return nil, ("the answer calls more than %d tools at once"):format(MOST_CALLS)
    end
    local inner = type(call) == "table" and (call["function"] or call)
    if type(inner) ~= "table" or type(inner.name) ~= "string" then
      return nil, "the answer has a tool call without a name"
    end
    calls[i] = { id = type(call.id) == "string" and call.id or nil, name = inner.name,
      arguments = json_text(inner.arguments ~= core.null and inner.arguments or nil) }
  end
  return #calls > 0 and calls or nil
end

--- The error of a failed request: {message, code, param}, each a text or nil.
function openai.failure(text)
  local body = answers.decode(text)
  local failure = type(body) == "table" and body.error or body
  if type(failure) == "string" then
    return { message = failure }
  elseif type(failure) ~= "table" then
    return {}
  end
  local function member(name)
    local value = failure[name]
    return type(value) == "string" and value or nil
  end
  return { message = member "message" or member "detail", code = member "code" or member "type",
    param = member "param" }
end

--- A whole answer as a message; nil and an error.
function openai.decode(text)
  local body = answers.decode(text)
  local choice = type(body) == "table" and type(body.choices) == "table" and body.choices[1]
  local said = type(choice) == "table" and choice.message
  if type(said) ~= "table" then
    return nil, "the endpoint's answer is none: " .. text
  end
  local content = text_of(said.content)
  if content == "" and type(said.refusal) == "string" then
    content = said.refusal
  end
  local calls, why = calls_of(said.tool_calls)
  if why then
    return nil, why
  end
  local message = { role = "assistant", content = content, tool_calls = calls,
    usage = openai.usage(body.usage), metadata = metadata_of(choice.finish_reason) }
  reasoning.read(said, message)
  return message
end

-- ---------------------------------------------------------------- streamed

local Stream = {}
Stream.__index = Stream

--- Joins a streamed answer. on_text(text) gets its text piece by piece, on_reasoning(text) its
--- reasoning; both may be nil.
function openai.stream(on_text, on_reasoning)
  return setmetatable({ parts = {}, reasoning = reasoning.pieces(), size = 0, calls = {},
    on_text = on_text, on_reasoning = on_reasoning, shown = false, ended = false }, Stream)
end

-- The call that a piece belongs to. Most endpoints number the calls; others send each call whole,
-- or begin it with its id.
local function place_of(self, piece)
  local index = count(piece.index)
  for _, call in ipairs(self.calls) do
    if index and call.index == index then
      return call
    end
  end
  local last = self.calls[#self.calls]
  if not index and last and (piece.id == nil or piece.id == last.id) then
    return last
  end
  if #self.calls >= MOST_CALLS then
    return nil
  end
  local call = { index = index, arguments = {} }
  self.calls[#self.calls + 1] = call
  return call
end

local function take_call(self, piece)
  if type(piece) ~= "table" then
    return true
  end
  local call = place_of(self, piece)
  if not call then
    return nil, ("the answer calls more than %d tools at once"):format(MOST_CALLS)
  end
  call.id = call.id or type(piece.id) == "string" and piece.id ~= "" and piece.id or nil
  local inner = type(piece["function"]) == "table" and piece["function"] or {}
  call.name = call.name or type(inner.name) == "string" and inner.name or nil
  local more = inner.arguments
  if type(more) == "table" then
    more = json_text(more)
  end
  if type(more) == "string" then
    self.size = self.size + #more
    call.arguments[#call.arguments + 1] = more
  end
  return true
end

local function report(self, to, text)
  if to then
    self.shown = true
    to(text)
  end
end

--- Adds the data of one event. Returns true; or nil, an error, and the endpoint's own error
--- ({message, code}) if it sent one.
function Stream:take(data)
  if data == "[DONE]" then
    self.ended = true
    return true
  end
  local body = answers.decode(data)
  if type(body) ~= "table" then
    return nil, "the endpoint sent a piece that is not a JSON object"
  elseif body.error ~= nil and body.error ~= core.null then
    local failure = openai.failure(data)
    return nil, failure.message or "the endpoint failed in the middle of its answer", failure
  end
  self.usage = openai.usage(body.usage) or self.usage
  local choice = type(body.choices) == "table" and body.choices[1]
  if type(choice) ~= "table" then
    return true
  end
  if type(choice.finish_reason) == "string" then
    self.reason, self.finished = choice.finish_reason, true
  end
  local delta = type(choice.delta) == "table" and choice.delta or {}
  for _, piece in ipairs(type(delta.tool_calls) == "table" and delta.tool_calls or {}) do
    local ok, why = take_call(self, piece)
    if not ok then
      return nil, why
    end
  end
  local thought, size = self.reasoning:take(delta)
  self.size = self.size + size
  if thought then
    report(self, self.on_reasoning, thought)
  end
  local text = text_of(delta.content)
  if text == "" and type(delta.refusal) == "string" then
    text = delta.refusal
  end
  self.size = self.size + #text
  if self.size > MOST_TEXT then
    return nil, ("the answer is longer than %d bytes"):format(MOST_TEXT)
  end
  if text ~= "" then
    self.parts[#self.parts + 1] = text
    report(self, self.on_text, text)
  end
  return true
end

--- The message, when the stream has ended; nil and why there is none.
function Stream:message()
  if not self.ended and not self.finished then
    return nil, "the connection ended in the middle of the answer"
  end
  local calls = {}
  for i, call in ipairs(self.calls) do
    if not call.name then
      return nil, "the answer has a tool call without a name"
    end
    local arguments = table.concat(call.arguments)
    calls[i] = { id = call.id, name = call.name, arguments = arguments ~= "" and arguments or "{}" }
  end
  local message = { role = "assistant", content = table.concat(self.parts),
    tool_calls = #calls > 0 and calls or nil, usage = self.usage,
    metadata = metadata_of(self.reason) }
  self.reasoning:write(message)
  return message
end

return openai
