--- memory: memory/…: what an agent keeps across sessions, of a user or for all.

local core = require "sessile.core"

local function decoded(value)
  return value and core.decode(value.json)
end

return function(method, registry)
  local filter = {
    state = "string?", kind = "string?", source = "string?", since = "Time?", ["until"] = "Time?",
    holds_at = "Time?", prefix = "string?", session = "string?", session_agent = "string?",
  }
  local verdict = { entry = "string", reason = "string?", by = "string?" }

  method("memory/open", "makes a memory if it is not there; consent: the user's words", {
    consent = "string?", language = "string?", must_exist = "boolean?", agent = "string?",
    user = "string?", store = "string?",
  }, "boolean", { of = "server", run = function(_, params, server)
    local store, message, code, retry_ms, rule = server:store(params.store)
    local made
    if store then
      made, message, code, retry_ms, rule = store.handle:memory { agent = params.agent,
        user = params.user, consent = params.consent, language = params.language,
        must_exist = params.must_exist }
    end
    if not made then
      return nil, message, code, retry_ms, rule
    end
    made:close()
    store.sessions:close_memories()
    return true
  end })

  method("memory/write", "an entry; a key's live entry is replaced", {
    key = "string?", value = "string", kind = "string?", source = "string?", also = "string?",
    author = "string?", replaces = "string[]?", was = "string|boolean?", metadata = "json?",
    ttl = "Span?", pending = "boolean?", pinned = "boolean?", importance = "number?",
    holds_from = "Time?", holds_until = "Time?",
  }, "string", { run = function(_, params, m)
    local given = {}
    for name, value in pairs(params) do
      given[name] = value
    end
    for _, name in ipairs { "key", "value", "agent", "user", "store" } do
      given[name] = nil
    end
    given.metadata = decoded(params.metadata)
    return m:write(params.key, params.value, given)
  end })

  method("memory/read", "the live entry of a key", { key = "string" }, "MemoryRow",
    { args = { "key" } })
  method("memory/get", "an entry by its id", { id = "string" }, "MemoryRow", { args = { "id" } })
  method("memory/list", "entries, newest first; live ones unless `state` says otherwise",
    registry.with(filter, { day = "string?", limit = "integer?", offset = "integer?" }),
    "MemoryRow[]")

  method("memory/search", "entries that answer a question, best first", registry.with(filter, {
    question = "string", limit = "integer?", vector = "json?", model = "string?",
    weight = "number?", recency = "number?", importance = "number?", min = "number?",
    explain = "boolean?",
  }), "Found", { asks = { "embed" }, run = function(_, params, m)
    local given = {}
    for name, value in pairs(params) do
      given[name] = value
    end
    given.question, given.agent, given.user, given.store = nil, nil, nil, nil
    given.vector = decoded(params.vector)
    local rows, info, code, retry_ms, rule = m:search(params.question, given)
    if not rows then
      return nil, info, code, retry_ms, rule
    end
    return { hits = rows, legs = info and info.legs }
  end })

  method("memory/history", "what led to an entry, newest first", { entry = "string" },
    "MemoryRow[]", { args = { "entry" } })
  method("memory/pending", "entries that wait for a person", {}, "MemoryRow[]")
  method("memory/why", "where an entry comes from, and what ended it", { entry = "string" },
    "MemoryWhy", { args = { "entry" } })
  method("memory/audit", "what a person should look at: a help, not a proof", {},
    "MemoryFinding[]")

  for _, one in ipairs {
    { "delete", "ends an entry for good" }, { "reject", "undoes an entry" },
    { "approve", "a person vouches for an entry" },
    { "restore", "takes back what ended an entry" }, { "pin", "pins an entry" },
    { "unpin", "takes the pin off" }, { "confirm", "it was heard again elsewhere" },
  } do
    method("memory/" .. one[1], one[2], verdict, "boolean", { args = { "entry" } })
  end
end
