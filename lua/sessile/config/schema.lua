-- schema.lua: the keys of a configuration: kind, default and meaning, in the order in which they
-- are shown.
--
-- `sessile config show` and the checks use this table, and a spec compares it with the one in
-- lua/README.md. Limits and the schemes of stores come from the engine.

local core = require "sessile.core"

local schema = {}

---@class sessile.config.key
---@field name string      as written, "limits.message"
---@field kind string      which check of check.lua reads it
---@field default string   in words
---@field about string
---@field project boolean? an untrusted project's file may set it
---@field own boolean?     no project's file may set it, trusted or not
---@field agent boolean?   may be set for one agent
---@field only_agent boolean?  is set for single agents only
---@field values string[]? of a choice
---@field least integer?   of a number

-- The forms of a store's URL, in Markdown code.
local function forms()
  local list = {}
  for _, one in ipairs(core.schemes()) do
    list[#list + 1] = one.form and ("`%s`"):format(one.form)
  end
  return table.concat(list, ", ")
end

---@type sessile.config.key[]
schema.keys = {
  { name = "store", kind = "store", default = "$XDG_DATA_HOME/sessile", project = true,
    about = ("where sessions are stored: a folder, %s; `postgres` is `$DATABASE_URL`")
      :format(forms()) },
  { name = "key", kind = "key", default = "the key file that is made for you",
    about = "the store's secret: `{ env = \"NAME\" }`, `{ file = \"…\" }`, `{ command = {…} }`; "
      .. "`false`: not sealed" },
  { name = "suite", kind = "choice", values = { "aes-256-gcm", "xchacha20-poly1305" },
    default = "the CPU's best", about = "how a new store is sealed" },
  { name = "agent", kind = "name", default = "main", project = true,
    about = "the agent of new sessions, if none is given" },
  { name = "user", kind = "name", default = "none",
    about = "the user of new sessions, if none is given" },
  { name = "durability", kind = "choice", values = { "sync", "none" }, default = "sync",
    about = "`sync`: a call returns when its data is on the device; `none`: synced at close "
      .. "and by `s:sync()`" },
  { name = "timeout_ms", kind = "timeout", default = "5s", project = true,
    about = "how long a call waits for another writer" },
  { name = "network", kind = "boolean", default = "false",
    about = "allow writes to a store on a network file system" },
  { name = "isolation", kind = "choice", values = { "none", "worker" }, default = "none",
    about = "where policies run: `none`: in this process; `worker`: in a separate one" },
  { name = "worker", kind = "path", default = "as installed",
    about = "the program that runs isolated policies" },
  { name = "policy", kind = "policy", default = "none", project = true, agent = true,
    about = "the policy that compacts contexts: a name, a path, `{ \"name\", option = … }`, a "
      .. "chain; `false`: none" },
  { name = "fallback", kind = "policy", default = "the policy's, if it names one", project = true,
    agent = true,
    about = "the policy that runs after a turn if the first one was refused; `false`: none" },
  { name = "policy_path", kind = "paths", default = "your policies, then those that ship",
    about = "more folders to search for policies" },
  { name = "preserve_recent", kind = "count", least = 0, default = "the policy's: 10",
    project = true, agent = true,
    about = "number of newest messages that a policy does not change, if it has this option" },
  { name = "triggers", kind = "triggers", default = "none", project = true, agent = true,
    about = "when to compact without asking the policy: `messages`, `interval`, `share` (0.8 is "
      .. "80 % of the window), `overflow`, `events`; `false`: never compact automatically" },
  { name = "checkpoint", kind = "checkpoint", default = "by hand, 50 kept", project = true,
    agent = true,
    about = "when turns make checkpoints: `strategy` (`manual`, `periodic`, `event`, `threshold`), "
      .. "`interval`, `messages`, `share`, `events`, `keep`" },
  { name = "window", kind = "tokens", default = "the model's, else unlimited", project = true,
    agent = true, about = "the model's context window" },
  { name = "reserve", kind = "tokens", default = "0", project = true, agent = true,
    about = "part of the window kept free for the answer" },
  { name = "keep_min", kind = "count", least = 0, default = "2", project = true, agent = true,
    about = "number of newest messages that every policy must leave in the context" },
  { name = "model", kind = "model", default = "none", project = true, agent = true,
    about = "the model: a function, `{ command = {…} }`, `{ endpoint = \"…\", name = \"…\" }`, "
      .. "`{ lua = \"./model.lua\" }`, or a name among `models`" },
  { name = "models", kind = "models", default = "none",
    about = "models with names of your own: `{ fast = {…}, good = {…} }`" },
  { name = "encoding", kind = "encoding", default = "the model's", project = true,
    about = "encoding to count tokens with: `cl100k_base`, `o200k_base`, or a file" },
  { name = "encoding_path", kind = "paths", default = "your encodings, then those that ship",
    about = "more folders to search for encodings" },
  { name = "ttl", kind = "ttl", default = "never", agent = true,
    about = "new sessions expire this long after their newest entry" },
  { name = "retention", kind = "time", default = "90d",
    about = "how long `purge` keeps softly deleted sessions" },
  { name = "prices", kind = "prices", default = "list prices",
    about = "what models cost, in US dollars for a million tokens, beside the shipped list: "
      .. "`{ [\"my-model\"] = { input = 0.5, output = 2 } }`, also `cache_read`, `cache_write`" },
  { name = "memory.enabled", kind = "boolean", default = "when called", agent = true,
    about = "long-term memory: `false`: nothing is written to memories, they can be read and "
      .. "deleted from; unless it is `true`, nothing is remembered or recalled automatically" },
  { name = "memory.language", kind = "name", default = "english", project = true, agent = true,
    about = "language of the words in new memories, as `german`" },
  { name = "memory.ttl", kind = "ttl", default = "never", agent = true,
    about = "new entries expire after this time, unless they have a `ttl` of their own" },
  { name = "memory.embed", kind = "embed", default = "none", agent = true,
    about = "who embeds entries and questions, so that a search finds what shares no word with "
      .. "the question: as `model`, and `name` and `dims` are kept with the vectors; `false`: "
      .. "nobody" },
  { name = "memory.name", kind = "name", default = "that of `memory.embed`", agent = true,
    about = "name of what embeds, if it is a function: another one is another model" },
  { name = "memory.dims", kind = "count", least = 1, default = "as it answers", agent = true,
    about = "numbers of a vector, if `memory.embed` does not say" },
  { name = "memory.vectors", kind = "vectors", default = "none", agent = true,
    about = "an index of vectors outside of the store, `{ put = …, search = …, remove = … }`, "
      .. "functions" },
  { name = "memory.weight", kind = "part", default = "0.3", project = true, agent = true,
    about = "weight of embeddings in a search beside words, 0 to 1" },
  { name = "memory.share", kind = "boolean", default = "false", agent = true,
    about = "`true`: `s:memory()` writes to what the agent keeps for all, though the session "
      .. "has a user" },
  { name = "memory.zone", kind = "zone", default = "UTC", project = true, agent = true,
    about = "offset from UTC by which days begin in `day` and `--day`, as `+02:00`" },
  { name = "memory.open", kind = "count", least = 2, default = "64",
    about = "memories that a store keeps open for `s:memory()` and recall, at least 2; beyond that "
      .. "the least recently used one is closed" },
  { name = "memory.recall", kind = "recall", default = "as shown", project = true, agent = true,
    about = "whether and how `send`, agents and `chat` quote memories behind a message, if "
      .. "`memory.enabled` is `true`: `{ budget = 1000, share = 0.05, limit = 8, min = 0.15, "
      .. "near = …, trust = \"agent\", recency = 0.1, importance = 0.1, start = true }`; `false`: "
      .. "only `s:recall()`" },
  { name = "memory.policy", kind = "policy", default = "none", project = true, agent = true,
    about = "the policy that remembers, tidies, admits and recalls, as `\"memory\"`; it is used by "
      .. "itself only if `memory.enabled` is `true`" },
  { name = "memory.remember", kind = "remember", default = "compact, close", project = true,
    agent = true,
    about = "when that policy hears a session: after a compaction, on closing, every so many "
      .. "turns: `{ \"compact\", \"close\", turns = 10 }`; `false`: only `s:remember()`" },
  { name = "memory.trust", kind = "trust", default = "pending", agent = true,
    about = "what becomes of entries with a tool's words: `{ tool = \"pending\" }`: a person has "
      .. "to approve them; `\"live\"`: they are found at once, and recalled if "
      .. "`memory.recall.trust` says so" },
  { name = "guard.profile", kind = "guard", default = "none", own = true,
    about = "who may do what: `guard = \"standard\"`, `\"strict\"`, or a table with this and the "
      .. "keys below, each of which replaces that of the profile (of `rate_limits`, each rate); "
      .. "`\"off\"`: no guard, and a store that had one opens without from then on" },
  { name = "guard.require_principal", kind = "guard", default = "the profile's", own = true,
    about = "`true`: the store's own handle may make views, and nothing else" },
  { name = "guard.plain", kind = "guard", default = "the profile's", own = true,
    about = "`false`: a store that is not sealed does not open" },
  { name = "guard.roles", kind = "guard", default = "viewer, editor, admin, auditor", own = true,
    about = "more roles: `{ support = { \"view_session\", \"read_memory\", all = true } }`; `all`: "
      .. "for the sessions of all users" },
  { name = "guard.identity", kind = "guard", default = "none", own = true,
    about = "whose tokens are believed: `{ token = { issuer = \"https://id.example\", audience = "
      .. "\"sessile\", keys = \"./jwks.json\" } }`, and the claims in `user`, `roles`, `agents`, "
      .. "`actor`" },
  { name = "guard.authorize", kind = "guard", default = "none", own = true,
    about = "a Lua file with a rule of your own, `\"./authorize.lua\"`, which can refuse a call "
      .. "that the rest allows, and gives nothing; `false`: none" },
  { name = "guard.rate_limits", kind = "guard", default = "the profile's", own = true,
    about = "how often: `{ session_creation = \"10/minute\" }`, a `second`, `hour` or `day`, or "
      .. "`\"off\"`; the others are `checkpoint_writes`, `memory_reads`, `memory_writes`, "
      .. "`branch_operations`, `searches`, `exports`, `grants` and `failures`; `shared`: a "
      .. "Redis that all nodes count in; `deny`: refuse what cannot be counted there; `false`: no "
      .. "limits" },
  { name = "guard.audit", kind = "guard", default = "the profile's", own = true,
    about = "whether calls leave events: `true`, `false`, or `{ store = URL, sync = true, reads = "
      .. "false, closed = true }`: kept in another store; synced before a call returns; not of "
      .. "reads; nothing is read either while none can be written" },
  { name = "guard.consent", kind = "guard", default = "the profile's", own = true,
    about = "`true`: a search finds nothing in the memory of a user who does not consent, and only "
      .. "the user consents, or who has `manage_privacy`" },
  { name = "guard.screens", kind = "guard", default = "the profile's", own = true,
    about = "what each text that is written meets: `{ \"no_orders\", { \"secrets\", action = "
      .. "\"redact\", on = { \"message\" } } }`; `false`: none" },
  { name = "guard.schemas", kind = "guard", default = "none", own = true,
    about = "JSON Schemas that JSON has to fit, files or tables, by kind: `{ metadata = "
      .. "\"./metadata.json\", [\"custom:ticket\"] = { … } }`" },
  { name = "guard.urls", kind = "guard", default = "the profile's", own = true,
    about = "what becomes of texts that name local or private machines, by kind: `{ memory = "
      .. "\"refuse\", state = \"refuse\", message = \"flag\", allow = { \"localhost:3000\" } }`, "
      .. "also `only_allowed`, and `resolve`: names are resolved, and what is found is judged; "
      .. "`false`: nothing" },
  { name = "guard.retention", kind = "guard", default = "the profile's", own = true,
    about = "what `purge --old` removes: `{ sessions = \"90d\", memory = \"365d\", audit = "
      .. "\"365d\", deleted = \"30d\", agents = { coder = { sessions = "
      .. "\"7d\" } }, users = … }`, each after its newest entry; `false`: for ever" },
  { name = "serve.listen", kind = "name", default = "127.0.0.1:7071", own = true,
    about = "where `serve` listens: `\"HOST:PORT\"`, `\"[::]:7071\"`, `\"unix:/path\"`" },
  { name = "serve.services", kind = "services", default = "{ \"sessions\" }", own = true,
    about = "what is served: `\"sessions\"`, and `\"records\"`, for clients that have the key "
      .. "themselves and name the store `grpcs://HOST:PORT/`; with records alone the server needs "
      .. "no key" },
  { name = "serve.metrics", kind = "name", default = "none", own = true,
    about = "where Prometheus finds `/metrics`, as `\"127.0.0.1:7072\"`; no ids and no texts are "
      .. "in it" },
  { name = "serve.cert", kind = "path", default = "none", own = true,
    about = "the server's certificate, a PEM file: TLS" },
  { name = "serve.key", kind = "path", default = "none", own = true,
    about = "its key, a PEM file that nobody else may read" },
  { name = "serve.client_ca", kind = "path", default = "none", own = true,
    about = "clients show a certificate of this authority, and its name is the user" },
  { name = "serve.certificate_role", kind = "name", default = "editor", own = true,
    about = "the role of a client that shows a certificate" },
  { name = "serve.plain", kind = "boolean", default = "false", own = true,
    about = "`true`: no TLS although others can connect; for a network that you trust" },
  { name = "serve.name", kind = "name", default = "host and port", own = true,
    about = "the server's name among those that share the store; the same after a restart" },
  { name = "serve.advertise", kind = "name", default = "the address it listens at", own = true,
    about = "`\"HOST:PORT\"` at which the other servers of the store connect to it" },
  { name = "serve.nodes_ca", kind = "path", default = "`client_ca`, else the system's", own = true,
    about = "the authority of the other servers' certificates" },
  { name = "serve.affinity", kind = "boolean", default = "true", own = true,
    about = "`false`: a call is served where it arrives, not by the server that owns its session" },
  { name = "serve.replicas", kind = "count", least = 0, default = "0", own = true,
    about = "standbys of the database that commits wait for; with fewer, the health of `replicas` "
      .. "is NOT_SERVING" },
  { name = "serve.workers", kind = "count", least = 1, default = "8", own = true,
    about = "calls that run at one time" },
  { name = "serve.sessions", kind = "count", least = 1, default = "10000", own = true,
    about = "sessions that the server keeps open" },
  { name = "serve.drain", kind = "time", default = "30s", own = true,
    about = "how long calls may take once the server is told to end" },
  { name = "serve.connection_age", kind = "time", default = "30m", own = true,
    about = "after which a client is asked to connect again, about" },
  { name = "serve.model", kind = "boolean", default = "false", own = true,
    about = "`true`: what a policy asks of a model, in a call that answers once, is asked of the "
      .. "configured one, by at most half of the workers at one time; else clients answer" },
  { name = "serve.json", kind = "boolean", default = "true", own = true,
    about = "`false`: gRPC alone, no JSON" },
  { name = "serve.reflection", kind = "boolean", default = "true", own = true,
    about = "`false`: clients cannot ask which methods and messages there are" },
  { name = "serve.log", kind = "choice", values = { "info", "warn", "error", "off" },
    default = "info", own = true,
    about = "the lowest level of the lines that the server writes to standard error: `info`, "
      .. "`warn`, `error`, `off`; JSON, or text at a terminal" },
  { name = "serve.show_ids", kind = "boolean", default = "false", own = true,
    about = "`true`: log lines and traces name sessions by their ids, not by hashes of them" },
  { name = "agents", kind = "agents", default = "none", project = true,
    about = "settings of single agents: `{ coder = { policy = …, window = … } }`" },
}

-- The default of a limit as a user would write it: "8MiB", "500ms", "128".
local function written(limit)
  if limit.unit == "ms" then
    return limit.default .. "ms"
  end
  local value, prefix = limit.default, 0
  if value == 0 then
    return "none"
  end
  while limit.unit == "size" and prefix < 4 and value % 1024 == 0 do
    value, prefix = math.floor(value / 1024), prefix + 1
  end
  return value .. ({ [0] = "", "KiB", "MiB", "GiB", "TiB" })[prefix]
end

-- One key for each limit of the engine, before `agents`.
for _, limit in ipairs(core.limits()) do
  table.insert(schema.keys, #schema.keys, {
    name = "limits." .. limit.name, kind = limit.unit, least = limit.least > 0 and limit.least
      or nil, default = written(limit), about = limit.about })
end

table.insert(schema.keys, { name = "enabled", kind = "boolean", default = "true", agent = true,
  only_agent = true,
  about = "`false`: this agent gets no new sessions, no turns and nothing in its memories; all of "
    .. "them can be read" })

--- The unit of the kinds that have one.
schema.units = { time = "time", timeout = "time", ms = "time", ttl = "time", size = "size",
  tokens = "tokens" }

-- Names of these keys in other programs. If one is used, the error message suggests ours.
schema.known_elsewhere = {
  backend = "store", base_dir = "store", connection_string = "store", database_url = "store",
  encryption = "key", key_source = "key", key_env_var = "key", passphrase = "key",
  strategy = "policy", compaction = "policy", compaction_strategy = "policy",
  token_threshold = "triggers", trigger = "triggers", auto_compact = "triggers",
  max_context_tokens = "window", context_window = "window", max_tokens = "window",
  checkpoint_interval = "checkpoint", auto_checkpoint = "checkpoint",
  checkpoints = "checkpoint", max_checkpoint_history = "checkpoint",
  max_session_size = "limits", max_sessions_per_agent = "limits", quotas = "limits",
  timeout = "timeout_ms", summary_model = "model",
  expires = "ttl", expiry = "ttl", sessions = "store", tokenizer = "encoding",
  file_path = "store",
  seconds = "interval", interval_ms = "interval", max_history = "keep",
}

schema.by_name = {}
-- The names at the top: "limits" for "limits.message"; by group, the names in it; what may be set
-- for one agent, in the same way.
schema.top, schema.of_agent, schema.groups, schema.groups_of_agent = {}, {}, {}, {}

-- Adds a key to the group that its name begins with.
local function into(groups, group, name, key)
  groups[group] = groups[group] or {}
  groups[group][name] = key
end

for _, key in ipairs(schema.keys) do
  schema.by_name[key.name] = key
  local group, name = key.name:match "^(%a+)%.(.+)$"
  if not key.only_agent then
    schema.top[group or key.name] = key
  end
  if group then
    into(schema.groups, group, name, key)
  end
  if key.agent then
    schema.of_agent[group or key.name] = key
    if group then
      into(schema.groups_of_agent, group, name, key)
    end
  end
end

--- The name of a key for one agent, split: "coder", "memory.ttl" of "agents.coder.memory.ttl". nil:
--- it is none.
function schema.split_agent(name)
  local agent, group, key = name:match "^agents%.(.*)%.(%a+)%.([^.]*)$"
  if agent and (schema.groups_of_agent[group] or {})[key] then
    return agent, group .. "." .. key
  end
  return name:match "^agents%.(.*)%.([^.]*)$"
end

return schema
