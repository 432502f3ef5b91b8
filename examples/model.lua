-- model.lua: what the examples ask: an OpenAI-compatible endpoint when one is configured, else
-- the script that an example brings along.
--
--     OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=llama3.2 \
--         build/bin/sessile run examples/assistant.lua
--
-- OPENAI_API_KEY is sent when it is set. HTTP comes from the Debian packages lua-socket and, for
-- https, lua-sec; a script needs neither.
local sessile = require "sessile"

local model = {}

-- A message as such endpoints know it: no fields of ours, calls nested.
local function outgoing(message)
  local calls
  for i, call in ipairs(message.tool_calls or {}) do
    calls = calls or {}
    calls[i] = { id = call.id, type = "function",
      ["function"] = { name = call.name, arguments = call.arguments } }
  end
  local roles = { model = "assistant", ["function"] = "tool" }
  return { role = roles[message.role] or message.role, content = message.content or "",
    tool_calls = calls, tool_call_id = message.tool_call_id }
end

--- The body of a request, as JSON text.
function model.encode(request, name)
  local body = { model = name, messages = {}, max_tokens = request.max_tokens }
  for i, message in ipairs(request.messages) do
    body.messages[i] = outgoing(message)
  end
  for i, tool in ipairs(request.tools or {}) do
    body.tools = body.tools or {}
    body.tools[i] = { type = "function", ["function"] = tool }
  end
  return assert(sessile.encode(body))
end

--- What an endpoint answered, as a message; nil, why, and perhaps a code.
function model.decode(status, text)
  local body = sessile.decode(text)
  body = type(body) == "table" and body or {}
  local choice = type(body.choices) == "table" and body.choices[1]
  if status ~= 200 or type(choice) ~= "table" or type(choice.message) ~= "table" then
    local failure = type(body.error) == "table" and body.error or {}
    return nil, ("the endpoint answered %s: %s"):format(status, failure.message or text),
      failure.code == "context_length_exceeded" and "EOVERFLOW" or nil
  end
  local said, usage = choice.message, body.usage
  return {
    content = type(said.content) == "string" and said.content or "",
    tool_calls = type(said.tool_calls) == "table" and said.tool_calls or nil,
    usage = type(usage) == "table"
      and { input = usage.prompt_tokens, output = usage.completion_tokens } or nil,
  }
end

-- lua-sec checks who signed a certificate, and not whose it is: this does.
local function is_of(certificate, host)
  local names = certificate:extensions()["2.5.29.17"] or {}
  for _, name in ipairs(names.dNSName or {}) do
    local wild = name:lower():match "^%*(%..+)$"
    if name:lower() == host:lower() or wild and host:lower():match "^[^.]+(%..+)$" == wild then
      return true
    end
  end
  return false
end

local function secure_socket()
  local make = require "ssl.https".tcp { verify = "peer", protocol = "any",
    cafile = os.getenv "SSL_CERT_FILE" or "/etc/ssl/certs/ca-certificates.crt" }
  return function()
    local socket = make()
    local connect = socket.connect
    function socket:connect(host, port)
      local ok, why = connect(self, host, port)
      if ok and not is_of(self:getpeercertificate(), host) then
        return nil, "its certificate is not of " .. host
      end
      return ok, why
    end
    return socket
  end
end

local function post(url, key, body)
  local http, ltn12, parts = require "socket.http", require "ltn12", {}
  local done, status = http.request {
    url = url, method = "POST", redirect = false, source = ltn12.source.string(body),
    sink = ltn12.sink.table(parts), create = url:find "^https:" and secure_socket() or nil,
    headers = { ["content-type"] = "application/json", ["content-length"] = #body,
      authorization = key and "Bearer " .. key or nil },
  }
  return done and status, done and table.concat(parts) or status
end

--- A function that asks the endpoint which is configured, or `script` when none is.
function model.choose(script)
  local url, name = os.getenv "OPENAI_BASE_URL", os.getenv "OPENAI_MODEL"
  if not url or url == "" then
    return script
  end
  assert(name, "OPENAI_BASE_URL is set: say with OPENAI_MODEL which of its models to ask")
  assert(pcall(require, url:find "^https:" and "ssl.https" or "socket.http"),
    "an endpoint needs an HTTP library: apt-get install lua-socket lua-sec")
  return function(request)
    local address = url:gsub("/+$", "") .. "/chat/completions"
    local status, text = post(address, os.getenv "OPENAI_API_KEY", model.encode(request, name))
    if status then
      return model.decode(status, text)
    end
    return nil, ("%s: %s"):format(address, text)
  end
end

return model
