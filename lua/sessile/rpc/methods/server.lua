--- server: rpc/…: who is there, what there is, and what is not wanted any more.

local core = require "sessile.core"
local show = require "sessile.config.show"

local OFFERS = { model = true, hook = true, state = true, embed = true }

-- Takes what the client offers to answer. nil, message, code.
local function offer(server, params)
  local offers = {}
  for _, name in ipairs(params.asks or {}) do
    if not OFFERS[name] then
      return nil, ("rpc/hello: asks: '%s' is none of model, hook, state, embed"):format(
        name:sub(1, 40)), "EINVALID"
    end
    offers[name] = true
  end
  if offers.embed and not params.embeds then
    return nil, "rpc/hello: who embeds has a name: give embeds", "EINVALID"
  elseif offers.embed and not server.offers.embeds and next(server.stores) then
    return nil, "rpc/hello: embed is offered before anything else is asked", "EINVALID"
  end
  offers.embeds = offers.embed and params.embeds or nil
  return offers
end

return function(method, registry)
  method("rpc/hello", "says what the client answers when it is asked, and who the server is", {
    protocol = "integer?", client = "string?", asks = "string[]?", embeds = "Embeds?",
  }, "Hello", { of = "server", run = function(_, params, server)
    local protocol = require "sessile.rpc.version".PROTOCOL
    if params.protocol and params.protocol ~= protocol then
      return nil, ("the client speaks protocol %d, this is %d: use a client of this version "
        .. "(sessile rpc --client)"):format(params.protocol, protocol), "EUNSUPPORTED"
    end
    local offers, message, code = offer(server, params)
    if not offers then
      return nil, message, code
    end
    server.offers = offers
    local store, retry_ms, rule
    store, message, code, retry_ms, rule = server:store()
    if not store then
      return nil, message, code, retry_ms, rule
    end
    return { protocol = protocol, version = core.version, store = show.url(store.handle.url),
      sealed = store.handle.sealed, line = server.most, methods = #registry.names }
  end })

  method("rpc/discover", "the methods, their parameters and results, as an OpenRPC document", {},
    "json", { of = "server", run = function()
      return require "sessile.rpc.discover".document()
    end })

  method("rpc/cancel", "a notification: the request with this id is not wanted any more", {
    id = "json",
  }, "boolean", { of = "server", is_notification = true, run = function(_, params, server)
    server:cancel(params.id.json)
    return true
  end })
end
