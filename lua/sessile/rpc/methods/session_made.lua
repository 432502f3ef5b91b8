--- session_made: session/…: making, opening and ending sessions.

local sessions = require "sessile.rpc.sessions"

-- What can be said of a session without reading its messages.
local function about(s)
  local life, message, code = s:life()
  if not life then
    return nil, message, code
  end
  local head, suspended = s:head(), s:suspended()
  return { id = s.id, agent = s.agent, user = s.user, title = s.title, created = s.created,
    modified = s.modified, head = head, status = life.status, ttl = life.ttl,
    expires = life.expires, deleted = life.deleted, torn = s.torn, damage = s.damage,
    origin = s.origin, parent = s.parent, suspended = suspended or nil }
end

-- All of it.
local function whole(s)
  local made, message, code, retry_ms, rule = about(s)
  if not made then
    return nil, message, code, retry_ms, rule
  end
  made.metadata, made.settings = s:metadata(), s:settings()
  made.events, made.leaves, made.children = s:event_count(), s:leaves(), s:subsessions()
  return made
end

-- Options of a session that a request makes: its names, its parts, its settings.
local function options_of(params, own)
  local given = {}
  for name, value in pairs(params) do
    given[name] = own[name] and value or nil
  end
  return given
end

return function(method, registry)
  local new = registry.with(registry.inherited, {
    id = "string?", agent = "string?", user = "string?", title = "string?", metadata = "object?",
    uuid = "'v4'|'v7'?",
  })
  local settings = registry.with(registry.inherited, { ttl = "Span?" })

  local create = registry.with(new, settings)
  method("session/create", "makes a session; without an id it gets a new one",
    registry.with(create, { store = "string?" }), "Session",
    { of = "server", run = function(_, params, server)
      local store, message, code, retry_ms, rule = server:store(params.store)
      local one
      if store then
        one, message, code, retry_ms, rule =
          store.sessions:open_with("create", options_of(params, create))
      end
      if not one then
        return nil, message, code, retry_ms, rule
      end
      return about(one.session)
    end })

  local open = registry.with(settings, { title = "string?", metadata = "object?" })
  method("session/open", "opens a session with settings that hold while the server runs; with "
    .. "`create` it is made if it is not there", registry.with(open, {
    session = "Name", store = "string?", create = "boolean?",
  }), "Session", { of = "server", run = function(_, params, server)
    local store, message, code, retry_ms, rule = server:store(params.store)
    local one
    if store then
      local given = options_of(params, open)
      for name, value in pairs(sessions.names(params.session)) do
        given[name] = value
      end
      one, message, code, retry_ms, rule =
        store.sessions:open_with(params.create and "session" or "resume", given)
    end
    if not one then
      return nil, message, code, retry_ms, rule
    end
    return about(one.session)
  end })

  method("session/close", "closes a session; it is opened again when it is named", {
    session = "Name", store = "string?",
  }, "boolean", { of = "server", run = function(_, params, server)
    local store, message, code, retry_ms, rule = server:store(params.store)
    if not store then
      return nil, message, code, retry_ms, rule
    end
    return store.sessions:close(params.session)
  end })

  method("session/info", "what is known of a session, but for its messages", {}, "Session",
    { run = function(_, _, s) return whole(s) end })

  method("session/fork", "a new session with everything up to an entry; without one, to the head",
    registry.with(new, { entry = "Id?" }), "Session", { run = function(_, params, s)
      local made, message, code, retry_ms, rule = s:fork(params.entry, options_of(params, new))
      if not made then
        return nil, message, code, retry_ms, rule
      end
      local _ <close> = made
      return about(made)
    end })

  local child = registry.with(new, { context = "boolean?" })
  method("session/child", "a session for a sub-agent, linked to this one", child, "Session",
    { run = function(_, params, s)
      local made, message, code, retry_ms, rule = s:child(options_of(params, child))
      if not made then
        return nil, message, code, retry_ms, rule
      end
      local _ <close> = made
      return about(made)
    end })

  method("session/subsessions", "its children, oldest first", {}, "Subsession[]")

  method("session/merge", "appends the result of this child to its parent, as a message", {
    summary = "string|boolean", role = "string?", metadata = "json?", prompt = "string?",
    max_tokens = "integer?",
  }, "string", { asks = { "model" }, run = function(_, params, s)
    local metadata = params.metadata and require "sessile".decode(params.metadata.json)
    return s:merge { summary = params.summary, role = params.role, prompt = params.prompt,
      metadata = metadata, max_tokens = params.max_tokens }
  end })

  method("session/discard", "says in the parent that this child has no result", {
    reason = "string?",
  }, "boolean")

  method("session/ttl", "how long after its newest entry it expires; without: never", {
    ttl = "Span?",
  }, "boolean", { call = "set_ttl", args = { "ttl" } })

  method("session/archive", "archives it; with `on` false: makes it active", { on = "boolean?" },
    "boolean", { args = { "on" } })

end
