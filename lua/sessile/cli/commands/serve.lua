--- serve: serves the store over gRPC, to many machines and languages.
--
-- Owns: the settings of the server, and the program that has it. Must never open the store in this
-- process if another program serves.

local guard_open = require "sessile.guard_open"
local paths = require "sessile.paths"
local process = require "sessile.process"
local sessile = require "sessile"
local show = require "sessile.config.show"
local served_defaults = require "sessile.cli.served_defaults"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local ADDRESS = "127.0.0.1:7071"

local has_service, service = pcall(require, "sessile.service")

-- This program again, as the one that can serve.
local function go_on_as_server()
  local path = paths.server()
  if not path then
    return nil, "the server was not installed with this program", "EUNSUPPORTED",
      "Build it: make service, then install again."
  end
  return process.replace({ arg[0], table.unpack(arg) }, path)
end

local function settings(app, args)
  local configured = app.try(app:config()).serve
  return {
    listen = args.listen or configured.listen or ADDRESS,
    cert = configured.cert, key = configured.key, client_ca = configured.client_ca,
    certificate_role = configured.certificate_role, metrics = configured.metrics,
    plain = configured.plain, name = configured.name, advertise = configured.advertise,
    nodes_ca = configured.nodes_ca, no_affinity = configured.affinity == false,
    replicas = configured.replicas,
    workers = configured.workers, sessions = configured.sessions, drain_ms = configured.drain,
    connection_age_ms = configured.connection_age, no_json = configured.json == false,
    no_reflection = configured.reflection == false,
    model = configured.model, config = app.globals.config,
    log = configured.log, show_ids = configured.show_ids,
    sessions_served = not configured.services or configured.services.sessions or false,
    records_served = configured.services and configured.services.records or false,
  }
end

-- Says where it serves, as soon as clients can connect.
local function tell(app, args, given, found)
  if app.json then
    app:print_json(found)
    io.stdout:flush()
    return
  end
  app:out(("%s %s%s at %s, %s.%s\n"):format(args.check and "Would serve" or "Serving",
    found.records and "the records of " or "", terminal.line(found.store), found.address,
    found.tls and "with TLS" or "without TLS",
    found.metrics and (" Metrics are at http://%s/metrics."):format(found.metrics) or ""))
  io.stdout:flush()
  if args.check and not given.guarded then -- a server that begins says it in its log
    app:note "The store has no guard: whoever can connect may do everything."
  end
end

-- The store that says who calls. Records are served without a key, so without what the store itself
-- knows of users and access keys: a guard then goes by tokens, certificates and configured roles.
local function front(app, given, create)
  if given.sessions_served then
    return app.try(app:store(create, { isolation = "worker" }))
  end
  local guard = app:config().guard
  return app.try(sessile.open("ram:", { key = false,
    guard = guard and guard_open.for_host(guard) or nil }))
end

-- What to do about what went wrong.
local function next_step(message, code)
  if code == "EEXISTS" and message:find("is in use", 1, true) then
    return "See who listens there: ss -ltnp. Or choose another: sessile serve --listen 127.0.0.1:0"
  end
  return "What it can be told: sessile help serve"
end

return {
  summary = "serve the store to other machines and languages, over gRPC",
  usage = "serve [--listen ADDRESS] [--check]",
  examples = [[
    sessile serve                        at 127.0.0.1:7071, for this machine
    sessile serve --check                open everything, say what would be served, and end
    sessile serve --listen 0.0.0.0:7071  with `serve = { cert = …, key = … }` configured]],
  options = {
    { "--listen ADDRESS", "where to listen: HOST:PORT, [::1]:PORT or unix:/path" },
    { "--check", "open the store and the address, and end" },
  },
  about = [[
    The server keeps the key, the policies and the models; clients have none of them. What a policy
    asks of a model is left to clients, unless `serve = { model = true }`. With a guard,
    each call needs an access key or a token, or the client's certificate. Without TLS it listens
    only where nobody else can connect. SIGTERM ends it: calls that are under way finish first.
    SIGHUP reads the certificates again. What an operator needs to know is written to standard
    error, a line of JSON each, or text at a terminal (`serve = { log = "warn" }`).

    With `serve = { services = { "records" } }` the clients have the key, and the server keeps what
    it cannot read: `sessile --store grpcs://HOST:PORT/` works as with a store of one's own.]],
  run = function(app, args)
    if not has_service then
      return go_on_as_server()
    end
    app.globals.as_host = true
    local given = settings(app, args)
    local store = front(app, given, not args.check)
    given.guarded = guard_open.is_on(store)
    given.defaults = given.sessions_served and app.try(served_defaults.of(store)) or nil
    local url, folder = stores.place(app.globals)
    given.records = given.records_served and (url or folder) or nil
    given.network = app.globals.network
    local served, message, code = service.run(store._core, given, function(address, metrics)
      tell(app, args, given, { store = show.url(given.records or store.url),
        records = given.records ~= nil, address = address, metrics = metrics,
        tls = given.cert ~= nil, guarded = given.guarded })
      service.notify "READY=1"
      return not args.check
    end)
    return served, message, code, not served and next_step(message, code) or nil
  end,
}
