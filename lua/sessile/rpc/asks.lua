--- asks: who answers what a run asks: the client, if rpc/hello offered it, else who is configured.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local host = require "sessile.host"
local model = require "sessile.model"
local results = require "sessile.rpc.results"

local asks = {}

local SLICE_MS = 5 -- of a program that is waited for, between two looks at the client

-- The answer of a client, checked; nil and what is wrong.
local function taken(kind, text, why)
  if not text then
    return nil, why
  elseif core.span.kind(text) ~= "object" then
    return nil, ("the client's answer is no %s: an object expected"):format(kind)
  end
  local spans = kind == "StateAnswer" and { state = true } or nil
  local answer, wrong = check.fields(check.types[kind].fields,
    core.decode(text, spans, check.DEPTH), "the client's answer")
  if answer and answer.failed then
    return nil, answer.failed
  end
  return answer, wrong
end

local function ask_client(request, asked, session)
  local answer, why = taken("ModelAnswer", request:ask("ask/model", {
    session = session and results.bytes(session.id), request = asked,
  }))
  if not answer then
    return nil, why
  elseif answer.later then
    return host.later
  elseif not answer.text then
    return nil, "the client's answer has neither a text, nor failed, nor later"
  end
  return answer.text
end

-- ---------------------------------------------------------------- configured models

-- A function that asks a configured model and lets the server answer others meanwhile. An endpoint
-- gives the server back; a program is looked at in slices, and only one runs at a time.
local function made_of(server, spec, models)
  if type(spec) == "table" and spec.endpoint then
    local copy = {}
    for name, value in pairs(spec) do
      copy[name] = value
    end
    copy.wait = function(seconds)
      local request = server:current()
      if request then
        request:sleep(seconds)
      else
        core.sleep(math.ceil(seconds * 1000)) -- a session that is closed at the end remembers
      end
    end
    spec = copy
  end
  local ask, message = model.make(spec, { models = models })
  if not ask or type(spec) ~= "table" or not spec.command then
    return ask, message
  end
  return function(asked, ctx)
    local request = server:current()
    if not request then
      return ask(asked, ctx)
    end
    request:wait_until(function() return not server.is_busy end)
    server.is_busy = true
    local answer, why, code = ask(asked, setmetatable({ slice_ms = SLICE_MS,
      cancelled = function()
        server:pump()
        return request.cancelled
      end }, { __index = ctx }))
    server.is_busy = false
    return answer, why, code
  end
end

-- Asks; what was cancelled meanwhile says so.
local function ask_configured(request, ask, asked, ctx)
  if not request then
    return ask(asked, ctx)
  end
  local answer, why, code = ask(asked, setmetatable({
    cancelled = function() return request.cancelled end }, { __index = ctx }))
  if request.cancelled then
    return nil, "cancelled", "ECANCELLED"
  end
  return answer, why, code
end

-- The configured model of an agent; nil and why there is none.
local function configured(server, agent)
  local config = server.config
  local own = config and config:for_agent(agent)
  local spec = own and own.model
  if not spec then
    return nil, "no model is configured, and the client did not offer to answer ask/model"
  end
  local resolved = type(spec) == "string" and require "sessile.model.spec".behind(spec,
    config.models) or spec
  if not server.models[resolved] then
    local ask, why = made_of(server, resolved, config.models)
    if not ask then
      return nil, why
    end
    server.models[resolved] = ask
  end
  return server.models[resolved]
end

-- ---------------------------------------------------------------- the functions

--- The model of a store of this server.
function asks.model(server)
  return function(asked, ctx)
    local request, session = server:current(), ctx and ctx.session
    if request and request.cancelled then
      return nil, "cancelled"
    elseif request and server.offers.model then
      return ask_client(request, asked, session)
    end
    local ask, why = configured(server, session and session.agent or nil)
    if not ask then
      return nil, why
    end
    return ask_configured(request, ask, asked, ctx)
  end
end

--- The state of a checkpoint that is due.
function asks.state(server)
  return function(session)
    local request = server:current()
    local answer, why = taken("StateAnswer", request:ask("ask/state",
      { session = results.bytes(session.id) }))
    if not answer then
      error(why, 0)
    end
    return answer.state
  end
end

--- Who embeds, if the client offered it.
function asks.embed(server)
  return function(texts, ctx)
    local request = server:current()
    if not request then
      return nil, "nobody can be asked now"
    end
    local answer, why = taken("EmbedAnswer", request:ask("ask/embed", {
      texts = core.array(texts), purpose = ctx.purpose, model = ctx.model, dims = ctx.dims,
    }))
    if not answer then
      return nil, why
    elseif type(answer.vectors) ~= "table" then
      return nil, "the client's answer has no vectors"
    end
    return answer.vectors
  end
end

return asks
