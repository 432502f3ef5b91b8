-- endpoint.lua: asks a model of an OpenAI-compatible endpoint.
--
-- It builds the request and reads the answer, streamed or whole. http.lua sends it.

local answers = require "sessile.answers"
local events = require "sessile.model.events"
local http = require "sessile.model.http"
local openai = require "sessile.model.openai"
local options = require "sessile.options"

local endpoint = { models = http.models }

local MOST_EVENT = 4 * 1024 * 1024 -- bytes
local MEMBERS = { "stream_options", "max_tokens" } -- that not every endpoint knows

local function body_of(self, request)
  local more = { stream = true }
  if not self.without.stream_options then
    more.stream_options = { include_usage = true }
  end
  local most = request.max_tokens or self.max_tokens
  more[self.without.max_tokens and "max_completion_tokens" or "max_tokens"] = most
  return openai.encode(request, self.name, more)
end

local function is_stream(wire)
  return wire:status() == 200
    and (wire:header "content-type" or ""):lower():find "^text/event%-stream" ~= nil
end

-- Reads the answer. Returns the message; or nil, a failure, and whether something was shown.
local function read(self, wire, about, secrets)
  local stream = openai.stream(about.on_text, about.on_reasoning)
  local parts, failure, wrong = {}, {}, nil
  local reader = events.reader(function(data)
    local ok, why, said = stream:take(data)
    if not ok then
      wrong = { code = "EIO", message = http.short(secrets, why), again = said == nil }
      if said and (said.code == "context_length_exceeded" or answers.overflow(why)) then
        wrong.code = "EOVERFLOW"
      end
    end
    return ok ~= nil and not stream.ended
  end, MOST_EVENT)
  for piece in http.pieces(wire, about, failure) do
    if is_stream(wire) then
      local on = reader:feed(piece)
      if on == nil then
        wrong = { code = "EIO", message = ("a piece of the answer is longer than %d bytes")
          :format(MOST_EVENT) }
      end
      if not on then
        break
      end
    else
      parts[#parts + 1] = piece
    end
  end
  local whole = stream.ended or stream.finished
  if wrong then
    return nil, wrong, stream.shown
  elseif failure.code and not (whole and failure.code == "EIO") then
    return nil, failure, stream.shown
  elseif wire:status() ~= 200 then
    return nil, http.refusal(self, wire, table.concat(parts), secrets, MEMBERS)
  end
  local message, why
  if is_stream(wire) then
    reader:finish()
    message, why = stream:message()
    return message, wrong or not message and { code = "EIO", message = why, again = true },
      stream.shown
  end
  message, why = openai.decode(table.concat(parts))
  if not message then
    return nil, { code = "EIO", message = http.short(secrets, why) }
  end
  local reasoning = answers.reasoning(message)
  if about.on_reasoning and reasoning then
    about.on_reasoning(reasoning)
  end
  if about.on_text and message.content ~= "" then
    about.on_text(message.content)
  end
  return message
end

--- Sends the request. about: on_text, on_reasoning, stopped, wait.
--- Returns the message; nil, message, code.
function endpoint.ask(self, request, about)
  return http.ask(self, about, function()
    local body, why = body_of(self, request)
    if not body then
      return nil, { code = "EINVALID", message = "the request cannot be written: " .. why }
    end
    return http.try(self, body, about, read)
  end)
end

local endpoint_options = options.shape("sessile.model: endpoint", http.options,
  { max_tokens = "positive", window = "count", dims = "positive" })

--- Checks a table of options and returns the endpoint; nil, message, code. Raises for wrong
--- options.
function endpoint.make(who, given)
  local opts = options.check(who, given, endpoint_options)
  local made, message, code = http.make(who, opts, "/chat/completions")
  if made then
    made.max_tokens = opts.max_tokens
  end
  return made, message, code
end

return endpoint
