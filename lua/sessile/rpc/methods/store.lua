--- store: store/…: the sessions of a store.

local show = require "sessile.config.show"

local HITS = 1000 -- where no limit is given

-- Takes the deletion of a session that a request names.
local function without_it(server, params)
  local store, message, code = server:store(params.store)
  if not store then
    return nil, message, code
  end
  return store.sessions:close(params.session)
end

local function named(params)
  local names = require "sessile.rpc.sessions".names(params.session)
  names.soft, names.memory, names.reason = params.soft, params.memory, params.reason
  names.actor = params.actor
  return names
end

return function(method, registry)
  local filter = {
    agent = "string?", prefix = "string?", title = "string?", user = "string?", label = "string?",
    since = "Time?", ["until"] = "Time?", status = "string|string[]?",
    sort = "'modified'|'created'|'title'|'size'|'messages'?", limit = "integer?",
  }

  method("store/list", "the sessions, newest first", registry.with(filter, {
    search = "string?", offset = "integer?",
  }), "Listed[]")

  method("store/search", "where a text occurs in titles, labels and messages; at most 1000 places "
    .. "unless a limit is given", registry.with(filter, {
    text = "string", role = "string?", roles = "string[]?", exact = "boolean?",
    head_only = "boolean?",
  }), "Hit[]", { run = function(request, params, store)
    local options, steps = {}, 0
    for name, value in pairs(params) do
      options[name] = value
    end
    options.text, options.store = nil, nil
    options.limit = params.limit or HITS
    options.on_step = function()
      steps = steps + 1
      if steps % 16 == 0 then
        request:breathe()
      end
    end
    local iterator, message, code, closing = store:search(params.text, options)
    if not iterator then
      return nil, message, code
    end
    local _ <close> = closing
    local hits = {}
    for hit in iterator do
      hits[#hits + 1] = hit
      if request.cancelled then
        return nil, "the search was cancelled", "ECANCELLED"
      end
    end
    return hits
  end })

  method("store/count", "the tokens of a text, or of messages outside of a session", {
    text = "string?", messages = "Message[]?", model = "string?", tools = "json?",
    system = "string?",
  }, "Tokens", { run = function(_, params, store)
    if (params.text == nil) == (params.messages == nil) then
      return nil, "store/count: either a text or messages expected", "EINVALID"
    end
    local tokens, info, code, retry_ms, rule
    if params.text then
      tokens, info, code, retry_ms, rule = store:count(params.text)
    else
      tokens, info, code, retry_ms, rule = store:count_messages(params.messages,
        { model = params.model, tools = params.tools, system = params.system })
    end
    return tokens and info, info, code, retry_ms, rule
  end })

  method("store/delete", "deletes a session for good, or softly until it is purged", {
    session = "Name", soft = "boolean?", memory = "boolean?", reason = "string?",
    actor = "string?",
  }, "Deleted", { run = function(request, params, store)
    local closed, message, code = without_it(request.server, params)
    if not closed then
      return nil, message, code
    end
    local gone, retry_ms, rule
    gone, message, code, retry_ms, rule = store:delete(named(params))
    if not gone then
      return nil, message, code, retry_ms, rule
    end
    return type(gone) == "table" and gone or {}
  end })

  method("store/undelete", "brings back a session that was deleted softly", {
    session = "Name", actor = "string?",
  }, "boolean", { run = function(_, params, store)
    return store:undelete(named(params))
  end })

  method("store/open", "opens another store, by a name that requests can give as `store`", {
    name = "string", url = "string",
  }, "Opened", { of = "server", run = function(_, params, server)
    local opened, message, code, retry_ms, rule = server:open_store(params.name, params.url)
    if not opened then
      return nil, message, code, retry_ms, rule
    end
    return { name = params.name, url = show.url(opened.handle.url),
      sealed = opened.handle.sealed }
  end })
end
