-- init.lua: require "sessile": opening a store, and the values that messages are made of.
--
-- Loading the module has no side effect: it touches no file, sets no global and changes no library
-- table. An expected failure returns nil, message, "ECODE"; misuse raises an error.

if _VERSION ~= "Lua 5.4" and not rawget(_G, "jit") then
  error(("sessile needs Lua 5.4 or LuaJIT, and this is %s: run the program with lua5.4, with "
    .. "luajit, or with sessile run"):format(_VERSION), 0)
end

local agent = require "sessile.interaction.agent"
local agents = require "sessile.agents"
local adapter = require "sessile.adapter"
local answers = require "sessile.answers"
local audit = require "sessile.audit"
local core = require "sessile.core"
local encoding = require "sessile.encoding"
local facts = require "sessile.facts"
local guard_open = require "sessile.guard_open"
local host = require "sessile.host"
local inherited = require "sessile.inherited"
local key = require "sessile.key"
local life = require "sessile.life"
local memories = require "sessile.memories"
local memory = require "sessile.memory"
local memory_settings = require "sessile.memory_settings"
local memory_tools = require "sessile.memory_tools"
local migrate = require "sessile.migrate"
local model = require "sessile.model"
local options = require "sessile.options"
local paths = require "sessile.paths"
local send = require "sessile.interaction.send"
local screens = require "sessile.screens"
local session = require "sessile.session"
local settings = require "sessile.interaction.settings"
local store = require "sessile.store"
local triggers = require "sessile.triggers"
local urls = require "sessile.url"

local sessile = {
  version = core.version,
  --- JSON's null.
  null = core.null,
  --- What a model function returns when the answer comes later, perhaps in another process:
  --- the run is pending, and s:answer(text) continues it.
  later = host.later,
  --- Where the secret of a sealed store comes from: key.env, .file, .command, .secret.
  key = { env = key.env, file = key.file, command = key.command, secret = key.secret },
  --- Tools for send and agents.
  tools = { memory = memory_tools.memory },
}

local open_options = options.shape("sessile.open", inherited.kinds, settings.kinds, {
  agent = "string", key = "any", suite = "string", durability = { "sync", "none" },
  network = "boolean", model = "callable", policy_path = "string|strings",
  model_name = "string", encoding = "string", encoding_path = "string|strings",
  count = "callable", worker = "string", limits = "table", ttl = "span|table",
  agent_info = "table", store = "string", user = "string", agents = "table",
  memory = "table", guard = "string|table",
  on_policy_error = "callable",
})

local limits = {}
for _, limit in ipairs(core.limits()) do
  limits[limit.name] = "count"
end
options.shape("sessile.open: limits", limits)

-- The URL of a store; nil, message, code.
local function place(url)
  local where = url and paths.expand_url(url) or paths.default_store()
  if not where then
    return nil, "without a home there is no default store: set HOME or XDG_DATA_HOME, or "
      .. "give a path", "ENOTFOUND"
  end
  return where
end

-- Opens the core's store behind `where`: a URL, or the host's adapter.
local function open_core(where, given)
  local source, value, code
  if type(where) == "table" then
    source, value, code = key.of_records("sessile.open", given.key)
  else
    source, value, code = key.resolve("sessile.open", given.key)
  end
  if not source then
    return nil, value, code
  end
  local chosen = {
    agent = given.agent, key_source = source, key = value, suite = given.suite,
    durability = given.durability, timeout_ms = given.timeout_ms, network = given.network,
    window = given.window, reserve = given.reserve, keep_min = given.keep_min,
    policy_path = paths.policy_path(given.policy_path),
    limits = options.check("sessile.open: limits", given.limits, limits),
    model = given.model_name, count = given.count,
    encoding = given.encoding and paths.encoding(given.encoding),
    encoding_path = paths.encodings(given.encoding_path),
    isolation = given.isolation, worker = paths.worker(given.worker),
    remote = paths.remote_library(),
  }
  if type(where) ~= "table" then
    return core.open(where, chosen)
  end
  local handle, message, retry_ms, rule
  handle, message, code, retry_ms, rule = core.open_records(chosen)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  return adapter.wrap(handle, where, given)
end

--- Opens the store at `url`: a path, "file:PATH", "sqlite:PATH", "postgres://…", "grpcs://…" or
--- "ram:"; nil means the option `store`, else the default store. A table of the host's functions
--- (load, save, delete, list) is an adapter.
function sessile.open(url, opts)
  local given = options.check("sessile.open", opts, open_options)
  if type(url) == "table" then
    adapter.check(url, options.callable)
  else
    options.expect("string?", url, "sessile.open: a path, URL or adapter")
  end
  triggers.resolve("sessile.open", given.triggers) -- raises before anything opens
  given.agents = agents.check("sessile.open", given.agents)
  given.memory = memory_settings.check("sessile.open", given.memory)
  given.ttl = life.check_default("sessile.open: option 'ttl'", given.ttl)
  local wanted = guard_open.wanted(given.guard)
  if url == nil then
    url = given.store
  end
  local where, why, missing = url, nil, nil
  if type(url) ~= "table" then
    where, why, missing = place(url)
  end
  if not where then
    return nil, why, missing
  end
  local called = type(where) == "table" and "adapter" or where
  local handle, message, code, retry_ms, rule
  if guard_open.refuses_plain(wanted, called, given.key == false) then
    return nil, guard_open.plain_refusal, "EDENIED"
  end
  handle, message, code, retry_ms, rule = open_core(where, given)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  local opened
  opened, message, code, retry_ms, rule = store.wrap(handle, called, given)
  if not opened then
    return nil, message, code, retry_ms, rule
  end
  if guard_open.refuses_plain(wanted, called, not opened.sealed) then
    message, code = guard_open.plain_refusal, "EDENIED"
  else
    message, code, retry_ms, rule = select(2, guard_open.set(opened, wanted, given))
  end
  if message then
    opened:close()
    return nil, message, code, retry_ms, rule
  end
  return opened
end

guard_open.open = sessile.open

--- The configuration as options of sessile.open. path: one file in place of the user's own and
--- ./sessile.lua; default: $SESSILE_CONFIG. Nothing else in the library reads these files.
function sessile.config(path)
  options.expect("string?", path, "sessile.config: a path")
  return require "sessile.config".load(path)
end

local keys_options = options.shape("sessile.keys_init", { key = "any", suite = "string" })

--- Creates the keyring of a store, and the user's key file if it is needed and missing. Does not
--- open the store. EEXISTS: the store has a keyring.
function sessile.keys_init(url, opts)
  local given = options.check("sessile.keys_init", opts, keys_options)
  options.expect("string?", url, "sessile.keys_init: a path or URL")
  local where, why, missing = place(url)
  if not where then
    return nil, why, missing
  end
  local source, value, code = key.resolve("sessile.keys_init", given.key)
  if not source then
    return nil, value, code
  end
  return core.keys_init(where, { key_source = source, key = value, suite = given.suite,
    remote = paths.remote_library() })
end

--- Copies every session of one store into another. from, to: a path, a URL, an open store, or
--- {url=, key=, …}. Returns what was done; nil, message, code.
sessile.migrate = migrate.migrate

--- Marks a table as an array, so that an empty one is written as []. Returns it.
function sessile.array(list)
  options.expect("table?", list, "sessile.array: a list")
  return core.array(list or {})
end

--- A value that is written as exactly this JSON text.
function sessile.json(text)
  options.expect("string", text, "sessile.json: a JSON text")
  return core.json(text)
end

--- The engine's fields of a message that was read, {id, key, tokens, time, json}, even if it has
--- fields of these names itself; of an entry, settings or metadata {json}. nil: it was not read.
function sessile.of(message)
  options.expect("table", message, "sessile.of: a message")
  return facts.of(message)
end

--- An encoding, which counts tokens exactly: by name ("cl100k_base", "o200k_base") or by the
--- path of a file. nil, message, code.
sessile.encoding = encoding.open

--- A list of screens, which say whether a text may be written: {"no_orders", {"secrets", action =
--- "redact", on = {"message"}}, schemas = {metadata = schema}}. nil, message, code.
sessile.screen = screens.load

--- Whether no URL in a text leads to a machine that is not public: true; nil, message, code, and
--- what was found.
sessile.url_check = urls.check

--- Whether an address is public: true; nil, message, code.
sessile.address_check = urls.address_check

--- Checks a proof of store:audit_prove, without a store: the event, and the public key that signed
--- it. nil, message, code.
sessile.audit_check = audit.check

--- An event of store:audit as one line: in "jsonl", "ecs", "ocsf", "cef" or "syslog".
sessile.audit_export = audit.export

--- A value as JSON text, written as messages are. nil, message, code.
function sessile.encode(value)
  return core.text(value)
end

local decode_options = options.shape("sessile.decode", { spans = "strings" })

--- The value of a JSON text, read as messages are. nil, message, code. spans: the names of members
--- of the outermost object that are left as they are written: sessile.json of their texts.
function sessile.decode(text, opts)
  options.expect("string", text, "sessile.decode: a text")
  local spans = options.check("sessile.decode", opts, decode_options).spans
  local names = spans and {}
  for _, name in ipairs(spans or {}) do
    names[name] = true
  end
  local value, message = answers.decode(text, names)
  if message then
    return nil, "sessile.decode: the text is " .. message, "EINVALID"
  end
  return value
end

--- A function that asks a model: from a function, a command, an endpoint, a file, or a name.
sessile.model = model.make

--- Starts a run without the loop: kind is "turn" (messages, options), "compact" or "plan"
--- (options), "branch" (id, options) or "answer" (text, options). Step the run until step returns
--- true, and answer each need.
function sessile.step(s, kind, ...)
  return session.begin(s, kind, ...)
end

--- Sends a message to a model, with tools and hooks, without a session: see session:send.
sessile.send = send.send

--- A tool or a hook returns this to pause its loop until somebody answers: {reason=, state=}.
sessile.pause = send.pause

--- A model, its tools and hooks, which can run on any session.
sessile.agent = agent.make

for prefix, functions in pairs {
  ["sessile."] = sessile, ["sessile.key."] = sessile.key,
  ["sessile.tools."] = sessile.tools, ["store:"] = store.methods,
  ["session:"] = session.methods, ["run:"] = host.methods, ["agent:"] = agent.methods,
  ["encoding:"] = encoding.methods, ["memory:"] = memory.methods,
  ["screens:"] = screens.methods,
} do
  options.exact(prefix, functions)
end
options.exact("memory:", memories.methods)

return sessile
