-- What `sessile serve` tells its operator: log lines, /metrics as promtool judges it, and spans,
-- metrics and log records for a receiver of OpenTelemetry.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local postgres = require "spec.support.postgres"
local receiver = require "spec.support.receiver"
local server = require "spec.support.server"
local shell = require "spec.support.shell"

local NAME, SAID = "canary-of-a-name", "canary of a text"
local TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
local MESSAGE = ('{"role":"user","content":"%s"}'):format(SAID)

local one, to

-- The log lines among what a server said, each of which has to be JSON.
local function lines(said)
  local all = {}
  for line in said:gmatch "({[^\n]*})\n" do
    all[#all + 1] = cli.decoded(line)
  end
  return all
end

local function find(all, message)
  for _, line in ipairs(all) do
    if line.message:sub(1, #message) == message then
      return line
    end
  end
  return nil
end

-- A server whose telemetry goes there; more: other variables.
local function start_traced(url, more)
  return server.start("", ("env OTEL_EXPORTER_OTLP_ENDPOINT=%s OTEL_BSP_SCHEDULE_DELAY=50 "
    .. "OTEL_METRIC_EXPORT_INTERVAL=100 OTEL_SERVICE_NAME=chat %s"):format(url, more or ""))
end

local function append(words)
  return one:call("AppendMessage", { session = { id = NAME }, message = { text = MESSAGE } }, words)
end

local function page()
  return shell.output("LD_PRELOAD= curl -s " .. one.metrics)
end

local function end_all()
  for _, each in ipairs { one or false, to or false } do
    if each then
      each:stop()
    end
  end
  one, to = nil, nil
end

describe("a server", function()
  after_each(end_all)
  cli.each_test()
  before_each(function() guarded.unguarded_only() end)

  it("writes a line of JSON for what its operator needs to know", function()
    one = server.start()
    assert.equal("OK", (one:call("CreateSession", { session = { id = NAME } })))
    assert.equal("OK", (append()))
    local said = one:stop()
    expect.has_all(said, { "Serving ", "without TLS" }) -- for people
    local all = lines(said)
    local began = find(all, "The server began to serve.")
    assert.equal(one.address, began.address)
    assert.same({ false, false, "info" }, { began.tls, began.guard, began.level })
    assert.matches("^%d+%-%d%d%-%d%dT", began.time)
    assert.equal("warn", find(all, "The store has no guard").level)
    assert.truthy(find(all, "The server was told to end"))
    assert.truthy(find(all, "The server ended: every call was finished."))
    expect.has_none(said, { NAME, SAID })
  end)

  it("writes only lines of the level that is configured", function()
    cli.configure 'return { serve = { log = "error" } }'
    one = server.start()
    assert.same({}, lines(one:stop()))
    cli.configure 'return { serve = { log = "loud" } }'
    local _, err, code = cli.sessile "serve --check"
    assert.equal(1, code)
    expect.has(err, "'serve.log': info or warn or error or off expected, got \"loud\"")
  end)

  it("writes text at a terminal", function()
    if os.execute "command -v script >/dev/null" ~= true then
      pending "script, of util-linux, is not here"
      return
    end
    cli.done "new --id s"
    local said = shell.output(("timeout -s TERM 5 script -qec %s /dev/null </dev/null 2>&1"):format(
      cli.quote(("%s %s serve --listen 127.0.0.1:0"):format(cli.env(), cli.quote(cli.binary)))))
    expect.has(said, "Serving ")
    assert.matches("%d%d:%d%d:%d%d info  The server began to serve%. %(address=\"127", said)
    assert.matches("%d%d:%d%d:%d%d warn  The store has no guard", said)
  end)

  it("has numbers that promtool accepts, and a row for what happened", function()
    if os.execute "command -v promtool >/dev/null" ~= true then
      pending "promtool is not here: apt-get install prometheus"
      return
    end
    cli.configure [[return { guard = { profile = "standard",
      rate_limits = { session_creation = "1/hour" } }, serve = { metrics = "127.0.0.1:0" } }]]
    local key = cli.json("access key new ann --role editor").key
    one = server.start()
    assert.equal("OK", (one:call("CreateSession", { session = { id = NAME } }, "--key " .. key)))
    assert.equal("RESOURCE_EXHAUSTED",
      (one:call("CreateSession", { session = { id = "second" } }, "--key " .. key)))
    assert.equal("UNAUTHENTICATED", (append "--key sesk_wrong"))
    os.execute(("LD_PRELOAD= curl -sN -m 20 -H 'authorization: Bearer %s' "
      .. "'http://%s/v1/events?id=%s' >%s/events & "
      .. "echo $! >%s/curl"):format(key, one.address, NAME, cli.quote(cli.home()),
      cli.quote(cli.home())))
    for _ = 1, 200 do
      if page():find("sessile_watched 1", 1, true) then
        break
      end
      os.execute "sleep 0.05"
    end
    assert.equal("OK", (append("--key " .. key)))
    local text = page()
    os.execute(("kill $(cat %s/curl)"):format(cli.quote(cli.home())))
    expect.has_all(text, { 'sessile_limit_refusals_total{rule="session_creation"} 1',
      'sessile_calls_total{method="AppendMessage",status="OK"} 1', "sessile_watched 1",
      "sessile_sessions_kept 1", "sessile_sessions_opened_total 1",
      'sessile_calls_total{method="AppendMessage",status="UNAUTHENTICATED"} 1' })
    assert.is_true(tonumber(text:match "\nsessile_sessions_kept_bytes (%d+)") > 1000)
    assert.is_true(tonumber(text:match "\nsessile_events_sent_total (%d+)") > 0)
    expect.has_none(text, { NAME, SAID, key, "ann" })
    cli.write(cli.home() .. "/page", text)
    assert.equal("", shell.output(("promtool check metrics <%s/page 2>&1"):format(
      cli.quote(cli.home()))))
  end)

  it("counts what a database has, and where calls were served", function()
    if not postgres.server() then
      pending "there is no PostgreSQL server here"
      return
    end
    local place = postgres.place()
    cli.configure(('return { store = %q, key = false, serve = { metrics = "127.0.0.1:0" } }')
      :format(place))
    one = server.start()
    assert.equal("OK", (one:call("CreateSession", { session = { id = NAME } })))
    local text = page()
    expect.has_all(text, { 'sessile_calls_routed_total{where="here"} 1', "sessile_nodes 1",
      "sessile_timeline 1\n", 'sessile_pool_connections{state="busy"}' })
    assert.is_true(tonumber(text:match 'sessile_pool_connections{state="idle"} (%d+)') > 0)
    assert.is_true(math.abs(tonumber(text:match "\nsessile_clock_offset_seconds (%S+)")) < 60)
    one:stop()
    one = nil
    postgres.clean()
  end)
end)

describe("a server with a receiver of telemetry", function()
  after_each(end_all)
  cli.each_test()
  before_each(function() guarded.unguarded_only() end)

  if not receiver.is_there() then
    pending "there is no decoder: apt-get install python3-protobuf protobuf-compiler"
    return
  end

  local function span_of(name)
    for _, span in ipairs(to:records "/v1/traces") do
      if span.traceId == TRACE and span.name == name then
        return span
      end
    end
    return nil
  end

  it("sends spans, metrics and log records, without a name, a text or a credential", function()
    cli.configure 'return { guard = "standard" }'
    local key = cli.json("access key new ann --role editor").key
    to = receiver.start "200"
    one = start_traced(to.url)
    local traced = ("--key %s --header traceparent=00-%s-%s-01"):format(key, TRACE, CALLER)
    assert.equal("OK", (one:call("CreateSession", { session = { id = NAME } }, "--key " .. key)))
    assert.equal("OK", (append(traced)))
    assert.equal("UNAUTHENTICATED", (append "--key sesk_canary_of_a_key"))
    local call = to:wait(function()
      return span_of "sessile.v1.SessionService/AppendMessage"
    end, "no span came")
    assert.same({ CALLER, 2, "chat" }, { call.parentSpanId, call.kind,
      call.resource["service.name"] })
    local attributes = receiver.attributes(call.attributes)
    assert.equal("grpc", attributes["rpc.system"])
    assert.matches("^%x+$", attributes["session.id"])
    for _, part in ipairs { "credential", "queue", "engine" } do
      assert.equal(call.spanId, to:wait(function()
        return span_of(part)
      end, "no part came").parentSpanId)
    end
    local metrics = to:wait(function()
      local found = {}
      for _, metric in ipairs(to:records "/v1/metrics") do
        found[metric.name] = metric
      end
      return found.sessile_sessions_kept and found
    end, "no metrics came")
    assert.truthy(metrics.sessile_calls_total)
    one:stop()
    local record = to:wait(function()
      for _, each in ipairs(to:records "/v1/logs") do
        if each.body.stringValue == "The server began to serve." then
          return each
        end
      end
      return nil
    end, "no log record came")
    assert.equal("INFO", record.severityText)
    assert.equal(one.address, receiver.attributes(record.attributes).address)
    expect.has_none(cli.read(to.log), { NAME, SAID, key, "canary_of_a_key", "sesk_" })
  end)

  it("goes on without it, and counts what it drops", function()
    cli.configure 'return { serve = { metrics = "127.0.0.1:0" } }'
    -- nobody listens; one is overloaded; one does not answer while the server runs
    for _, answers in ipairs { "", "503", "200;sleep=60000" } do
      to = receiver.start(answers == "" and "200" or answers)
      if answers == "" then
        to:stop()
      end
      one = start_traced(to.url, "OTEL_BSP_MAX_QUEUE_SIZE=4 OTEL_BSP_MAX_EXPORT_BATCH_SIZE=2")
      one:call("CreateSession", { session = { id = NAME } })
      for _ = 1, 3 do
        assert.equal("OK", (append()))
      end
      local dropped = tonumber(page():match
        'sessile_telemetry_dropped_total{signal="traces"} (%d+)')
      assert.is_true(dropped > 0, answers)
      local said = one:stop()
      assert.truthy(find(lines(said), "Telemetry was dropped"), said)
      if answers ~= "200;sleep=60000" then
        assert.truthy(find(lines(said), "The receiver of "), said)
      end
      to:stop()
      cli.done("delete --yes " .. NAME)
    end
  end)
end)
