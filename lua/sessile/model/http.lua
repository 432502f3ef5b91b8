-- http.lua: asks an OpenAI-compatible endpoint over HTTP, whatever it is asked.
--
-- It decides what may be sent where, when a request is repeated, and names each failure. A key is
-- sent only to the endpoint itself (redirects are refused), unencrypted only to this machine, and
-- never shown. A request is not repeated once a part of the answer has been reported.
--
-- endpoint.lua and embedding.lua say what is asked, and read the answers.

local answers = require "sessile.answers"
local core = require "sessile.core"
local dialect = require "sessile.dialect"
local key = require "sessile.key"
local openai = require "sessile.model.openai"
local options = require "sessile.options"

local utf8 = dialect.utf8

local http = {
  --- Seconds before the second try; twice as many before each that follows.
  pause = 0.5,
}

local TIMEOUT_MS, WHOLE = 120000, 10 -- without a byte; times that for all tries together
local SLICE = 100                   -- ms until it is asked again whether to stop
local MOST = 64 * 1024 * 1024       -- bytes of a body; streamed, each is a few hundred a token
local TRIES, MOST_PAUSE = 4, 30
local AGAIN = { [408] = true, [429] = true, [500] = true, [502] = true, [503] = true,
  [504] = true, [529] = true }

-- ---------------------------------------------------------------- where

local LOCAL = { localhost = true, ["127.0.0.1"] = true, ["::1"] = true }

--- A URL as {url=, secure=, here=, text=}; nil and an error message. tail: what its path ends in,
--- as "/embeddings"; it is added unless it is there.
function http.address(url, tail)
  local scheme, authority, path, query = url:match "^(%a+)://([^/?#]+)([^?#]*)(%??[^#]*)$"
  if scheme ~= "http" and scheme ~= "https" then
    return nil, "http://… or https://… is wanted"
  elseif url:find "[%c%s]" then
    return nil, "it has a space or a control character"
  elseif authority:find("@", 1, true) then
    return nil, "a name and a password do not belong in it: give key="
  end
  local host, port = authority:match "^%[([%x:.]+)%]:?(%d*)$"
  if not host then
    host, port = authority:match "^([%w._-]+):?(%d*)$"
  end
  if not host then
    return nil, "it names no host"
  end
  port = tonumber(port)
  if port and (port < 1 or port > 65535) then
    return nil, "it names no port"
  end
  path = path:gsub("/+$", "")
  if path:sub(-#tail) ~= tail then
    path = path .. tail
  end
  local text = ("%s://%s%s"):format(scheme, authority, path)
  return { url = text .. query, text = text, secure = scheme == "https",
    here = LOCAL[host:lower()] ~= nil }
end

-- ---------------------------------------------------------------- keys and headers

-- With "expect" libcurl would wait for a response that few servers send.
local HEADERS = {
  "content-type: application/json", "accept: text/event-stream, application/json",
  "accept-encoding: identity", "user-agent: sessile/" .. core.version, "connection: close",
  "expect:",
}

-- The headers, and the list of secrets in them; nil, message, code.
local function headers_of(self)
  local lines, secrets = table.move(HEADERS, 1, #HEADERS, 1, {}), {}
  local function put(name, value, prefix)
    if type(value) ~= "string" then
      local message, code
      value, message, code = key.text("sessile.model", value)
      if not value then
        return nil, message, code
      end
      secrets[#secrets + 1] = value
    end
    if value:find "[%c]" then
      return nil, ("the header %s cannot have that value: it has a control character")
        :format(name), "EINVALID"
    end
    -- libcurl takes "name:" for a header that is to go, "name;" for one without a value.
    lines[#lines + 1] = value == "" and name .. ";"
      or ("%s: %s%s"):format(name, prefix or "", value)
    return true
  end
  local ok, message, code = true, nil, nil
  if self.key then
    ok, message, code = put("authorization", self.key, "Bearer ")
  end
  for name, value in pairs(self.headers) do
    if ok then
      ok, message, code = put(name, value)
    end
  end
  if not ok then
    return nil, message, code
  end
  return lines, secrets
end

-- Removes the secrets from a text: an endpoint may repeat what it was sent.
local function without(secrets, text)
  for _, secret in ipairs(secrets) do
    local parts, at = {}, 1
    local from, to = text:find(secret, 1, true)
    while from do
      parts[#parts + 1] = text:sub(at, from - 1)
      at = to + 1
      from, to = text:find(secret, at, true)
    end
    parts[#parts + 1] = text:sub(at)
    text = table.concat(parts, "…")
  end
  return text
end

-- An endpoint's message on one line, shortened. Secrets are removed first, because a shortened
-- secret would not be recognized.
function http.short(secrets, text)
  text = without(secrets, text):gsub("[%c%s]+", " ")
  if #text > 500 then
    local stop = utf8.len(text) and utf8.offset(text, 0, 500) or 500
    text = text:sub(1, stop - 1) .. "…"
  end
  return text
end

-- ---------------------------------------------------------------- one try

local CODES = { [400] = "EINVALID", [401] = "EDENIED", [403] = "EDENIED", [404] = "ENOTFOUND",
  [413] = "EOVERFLOW", [422] = "EINVALID", [429] = "ELIMIT" }

--- The failure for a status other than 200: {message=, code=, again=, after=, refused=}. members:
--- those of the request that not every endpoint knows.
function http.refusal(self, wire, text, secrets, members)
  local status = wire:status()
  if status >= 300 and status < 400 then
    return { code = "EDENIED", message = ("it sends us elsewhere (%d), where nothing is sent: "
      .. "name the place itself"):format(status) }
  end
  local said = openai.failure(text)
  local message = http.short(secrets, said.message or text)
  local failure = {
    code = CODES[status] or "EIO",
    message = ("the endpoint answered %d%s"):format(status,
      message ~= "" and ": " .. message or ""),
    again = AGAIN[status] and said.code ~= "insufficient_quota",
    after = tonumber((wire:header "retry-after" or ""):match "^%d+$" or nil),
  }
  if status == 400 and (said.code == "context_length_exceeded"
      or answers.overflow(said.message or text)) then
    failure.code = "EOVERFLOW"
  end
  for _, name in ipairs(members) do
    if status == 400 or status == 422 then
      if said.param == name or (said.message or text):find(name, 1, true) then
        failure.refused = not self.without[name] and (failure.refused or name) or nil
      end
    end
  end
  return failure
end

-- An iterator over the pieces of an answer. If it ends early, the reason is in `failure`.
function http.pieces(wire, about, failure)
  return function()
    while not (about.stopped and about.stopped()) do
      local piece, message, code = wire:read(about.wait and 0 or SLICE)
      if piece ~= "" then
        failure.message, failure.code, failure.again = message, code, code == "EIO"
        return piece
      elseif about.wait then
        about.wait(SLICE / 1000)
      end
    end
    failure.message, failure.code = "stopped", "ECANCELLED"
  end
end

local function variable(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

-- The headers that may be sent there, and their secrets; nil, message, code.
local function permitted_headers(self)
  local lines, secrets, code = headers_of(self)
  if lines and #secrets > 0 and not self.where.secure and not self.where.here
    and not self.insecure then
    return nil, "the key would be sent over a connection that anybody can read: use https, "
      .. "or say insecure = true", "EDENIED"
  end
  return lines, secrets, code
end

-- Sends a request; without a body it is a GET. nil, message, code.
local function send(self, url, lines, body, idle_ms, whole_ms)
  return core.request(url, {
    headers = lines, body = body, ca = self.ca or variable "SSL_CERT_FILE", most = MOST,
    idle_ms = idle_ms, whole_ms = whole_ms, public_only = self.public_only, allow = self.allow,
  })
end

--- One request. read(wire, about, secrets) returns an answer; or nil, a failure, and whether
--- something was shown. So does this.
function http.try(self, body, about, read)
  local lines, secrets, code = permitted_headers(self)
  if not lines then
    return nil, { code = code, message = secrets }
  end
  local wire, why
  wire, why, code = send(self, self.where.url, lines, body, self.timeout_ms,
    math.max(1, about.deadline - core.now()))
  if not wire then
    return nil, { code = code, message = why }
  end
  return dialect.closing(wire, function()
    return read(self, wire, about, secrets)
  end)
end

-- ---------------------------------------------------------------- tries

-- How long to wait before the next attempt; nil: there is none.
local function pause_before(failure, tries)
  if not failure.again or tries >= TRIES then
    return nil
  elseif failure.after then
    return failure.after <= MOST_PAUSE and failure.after or nil
  end
  return http.pause * 2 ^ (tries - 1)
end

-- Waits. Returns true, or nil if the request was cancelled.
local function rest(seconds, about)
  local till = core.now() + seconds * 1000
  while core.now() < till do
    if about.stopped and about.stopped() then
      return nil
    elseif about.wait then
      about.wait(SLICE / 1000)
    else
      core.sleep(math.min(SLICE, math.ceil(till - core.now())))
    end
  end
  return true
end

--- Asks until there is an answer, or no use in asking. about: stopped, wait, and what `try` needs;
--- gets `deadline`. try(self, about): as http.try. Returns the answer; nil, message, code.
function http.ask(self, about, try)
  about.deadline = core.now() + self.timeout_ms * WHOLE
  local tries = 0
  while true do
    local answer, failure, shown = try(self, about)
    if answer then
      return answer
    elseif failure.refused and not self.without[failure.refused] then
      self.without[failure.refused] = true -- sent once more, without it, and from then on
    else
      tries = tries + 1
      local pause = not shown and pause_before(failure, tries)
      if not pause then
        return nil, failure.code == "ECANCELLED" and failure.message
          or ("%s: %s"):format(self.where.text, failure.message), failure.code
      end
      if not rest(pause, about) then
        return nil, "stopped", "ECANCELLED"
      end
    end
  end
end

-- The status of the answer, and the names of models in it.
local function read_models(wire, secrets)
  local parts = {}
  local piece, why, code
  repeat
    piece, why, code = wire:read(SLICE)
    parts[#parts + 1] = piece
  until not piece
  if why then
    return nil, http.short(secrets, why), code
  end
  local answer, names = answers.decode(table.concat(parts)), nil
  for _, one in ipairs(type(answer) == "table" and type(answer.data) == "table"
    and answer.data or {}) do
    if type(one) == "table" and type(one.id) == "string" then
      names = names or {}
      names[one.id] = true
    end
  end
  return wire:status(), names
end

--- Asks which models there are; no model is asked anything. Returns the status of the answer, and
--- the set of names if it has them; nil, message, code: there was no answer.
function http.models(self, timeout_ms)
  local lines, secrets, code = permitted_headers(self)
  if not lines then
    return nil, secrets, code
  end
  local where = self.where
  local url = (where.text:sub(1, -#self.tail - 1) .. "/models") .. where.url:sub(#where.text + 1)
  local wire, why
  wire, why, code = send(self, url, lines, nil, timeout_ms, timeout_ms)
  if not wire then
    return nil, why, code
  end
  return dialect.closing(wire, read_models, secrets)
end

-- ---------------------------------------------------------------- making one

local function check_headers(who, given)
  for name, value in pairs(given) do
    if type(name) ~= "string" or not name:find "^[%w-]+$" then
      options.misuse(who .. ': headers: names expected, as in headers = { ["x-team"] = "blue" }')
    elseif type(value) ~= "string" and not key.is(value) then
      options.misuse(("%s: header '%s': a text or a sessile.key expected"):format(who, name))
    end
  end
  return given
end

--- The options that every endpoint has.
http.options = {
  endpoint = "string", name = "string", key = "any", headers = "table", insecure = "boolean",
  ca = "string", wait = "callable", timeout_ms = "timeout", public_only = "boolean",
  allow = "strings",
}

--- Checks options and returns the endpoint; nil, message, code. Raises for wrong options. tail: as
--- for http.address.
function http.make(who, opts, tail)
  local where, why = http.address(opts.endpoint, tail)
  if not where then
    options.misuse(("%s: endpoint: %s"):format(who, why))
  elseif not opts.name then
    options.misuse(who .. ": name: say which of the endpoint's models to ask")
  elseif opts.key ~= nil and opts.key ~= false and not key.is(opts.key) then
    options.misuse(who .. ": key: sessile.key.env, .file, .command or .secret expected")
  end
  if opts.allow and not opts.public_only then
    options.misuse(who .. ": allow: it says what public_only lets pass, which is not set")
  end
  local made = {
    where = where, name = opts.name, key = opts.key or nil,
    headers = check_headers(who, opts.headers or {}), tail = tail,
    timeout_ms = opts.timeout_ms or TIMEOUT_MS, insecure = opts.insecure, ca = opts.ca,
    wait = opts.wait, without = {}, public_only = opts.public_only, allow = opts.allow,
  }
  local public, message, code = true, nil, nil
  if made.public_only then
    public, message, code = core.url_check(where.url, { allow = made.allow })
  end
  if not public then
    return nil, ("%s: endpoint: %s"):format(who, message), code
  end
  local library
  library, message, code = core.http_library()
  if not library then
    return nil, message, code
  end
  return made
end

return http
