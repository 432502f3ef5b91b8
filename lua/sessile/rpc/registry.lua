--- registry: every method of `sessile rpc`: its parameters, its result, what it may ask.
--
-- From it come dispatch, checks, rpc/discover, the types of clients and the reference. A group is a
-- file of methods/, which returns function(method): it calls
--
--   method(name, about, params, result, how)
--
-- with type words (words.lua). how = {
--   of = "store" | "session" | "memory" | "server",  -- whose method it is; else by its name
--   call = "turn",         -- that method; else the last word of the name
--   args = { "messages" }, -- parameters that are arguments; the others are its table of options
--   run = function,        -- instead: (request, params, object) -> result; nil, message, code
--   asks = { "model" },    -- what the client may be asked while it runs
--   turns = true,          -- the turn of a session, which a waiting run holds
-- }

local words = require "sessile.rpc.words"

local registry = { methods = {}, names = {} }

--- What sessions, agents and calls can all be given.
registry.inherited = {
  policy = "Policy?", fallback = "Policy?", triggers = "Triggers?", checkpoint = "Checkpoints?",
  window = "integer?", reserve = "integer?", keep_min = "integer?", timeout_ms = "Timeout?",
  isolation = "'none'|'worker'?",
}

--- Fields of several tables in one.
function registry.with(...)
  local fields = {}
  for _, more in ipairs { ... } do
    for name, word in pairs(more) do
      fields[name] = word
    end
  end
  return fields
end

local GROUPS = { "server", "store", "session_made", "session_written", "session_read",
  "session_runs", "watches", "policies", "memory", "memory_more" }

-- What every method of an object is told beside: which.
local WHICH = {
  store = { store = "string?" },
  session = { session = "Name", store = "string?" },
  memory = { agent = "string?", user = "string?", store = "string?" },
  server = {},
}

local function method(name, about, params, result, how)
  how = how or {}
  assert(not registry.methods[name], name)
  local one = {
    name = name, about = about, result = result, asks = how.asks or {}, of = how.of
      or name:match "^(%l+)/", call = how.call or name:match "/([%l_]+)$", args = how.args or {},
    run = how.run, turns = how.turns, is_notification = how.is_notification,
  }
  one.own = params -- without those that name the object
  one.params = registry.with(WHICH[one.of], params)
  one.spans = {}
  for field, word in pairs(one.params) do
    one.spans[field] = words.is_span(words.read(word)) or nil
  end
  words.read(result)
  registry.methods[name] = one
  registry.names[#registry.names + 1] = name
end

for _, group in ipairs(GROUPS) do
  require("sessile.rpc.methods." .. group)(method, registry)
end

--- What the server asks of the client: requests in the other direction.
registry.asks = {
  { name = "ask/model", about = "the model's text; or why there is none; or that it comes later",
    params = { run = "json", session = "Bytes?", request = "json" }, result = "ModelAnswer" },
  { name = "ask/hook", about = "the edits of a hook of the client's policy, and what it returns",
    params = { run = "json", session = "Bytes?", policy = "string", hook = "string",
      reason = "string?", instructions = "string?", options = "json?", now = "integer?",
      tokens = "integer?", window = "integer?", reserve = "integer?", keep_min = "integer?",
      columns = "Columns?", previous = "Columns?", vars = "json?", arguments = "json?" },
    result = "HookAnswer" },
  { name = "ask/state", about = "the client's state for a checkpoint that is due",
    params = { run = "json", session = "Bytes?" }, result = "StateAnswer" },
  { name = "ask/embed", about = "a vector for each text",
    params = { run = "json?", texts = "string[]", purpose = "string?", model = "string?",
      dims = "integer?" }, result = "EmbedAnswer" },
}

--- What the server tells without being asked.
registry.notes = {
  { name = "note/entries", about = "a watched session has entries up to `newest`",
    params = { watch = "integer", session = "Bytes", newest = "string" } },
}

return registry
