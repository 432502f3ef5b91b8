-- sessile serve: a store for clients of other languages, with and without a guard.

local certificates = require "spec.support.certificates"
local cli = require "spec.support.cli"
local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local guarded = require "spec.support.guarded"
local server = require "spec.support.server"
local shell = require "spec.support.shell"

local HI = { { text = '{"role":"user","content":"hi"}' },
  { text = '{"role":"assistant","content":"hello, 1.0"}' } }

local one

describe("sessile serve", function()
  after_each(function()
    if one then
      one:stop()
    end
    one = nil
  end)
  cli.each_test()

  it("serves the store that the commands use, until it is told to end", function()
    guarded.unguarded_only()
    one = server.start()
    local code, made = one:call("CreateSession", { title = "from afar", session = { id = "s" } })
    assert.equal("OK", code, made)
    local turn = { session = { id = "s" }, messages = HI, follows = { entry = 0, once = "a" } }
    local _, first = one:call("Turn", turn)
    local _, again = one:call("Turn", turn)
    assert.same({ nil, true }, { first.again, again.again })
    assert.equal(first.last.id, again.last.id)
    expect.has(cli.done "show s", "hello, 1.0")

    cli.done("append s --role user", "typed here")
    local _, piece = one:call("GetContext", { session = { id = "s" } })
    assert.equal(3, #piece.messages)
    expect.has(piece.messages[3].json.text, "typed here")
    expect.has_all(one:stop(), { "without TLS", "The store has no guard" })
  end)

  it("says in its trailers what the engine says", function()
    guarded.unguarded_only()
    one = server.start()
    local code, message, trailers = one:call("ResumeSession", { session = { id = "none" } })
    assert.equal("NOT_FOUND", code)
    expect.has(message, 'no session "none"')
    assert.equal("ENOTFOUND", trailers["sessile-status"])
    one:call("CreateSession", { session = { id = "s" } })
    one:call("AppendMessage", { session = { id = "s" }, message = HI[1] })
    local conflict, _, why = one:call("Turn", { session = { id = "s" }, messages = HI,
      follows = { entry = 0 } })
    assert.same({ "ABORTED", "ECONFLICT" }, { conflict, why["sessile-status"] })
    code, message = one:call("AppendMessage", { session = { id = "s" },
      message = { text = '{"role":"user"' } })
    assert.equal("INVALID_ARGUMENT", code, message)
  end)

  it("adds nothing to what a disabled agent has", function()
    guarded.unguarded_only()
    cli.done "new --id a --agent coder"
    cli.configure 'return { agents = { coder = { enabled = false } } }'
    one = server.start()
    local a = { id = "a", agent = "coder" }
    local code, message = one:call("AppendMessage", { session = a, message = HI[1] })
    assert.equal("PERMISSION_DENIED", code)
    expect.has(message, "agent 'coder' is disabled (agents.coder.enabled = false)")
    assert.equal("PERMISSION_DENIED",
      (one:call("CreateSession", { session = { id = "b", agent = "coder" } })))
    assert.equal("OK", (one:call("ResumeSession", { session = a })))
    assert.equal("OK", (one:call("CreateSession", { session = { id = "b" } })))
  end)

  describe("with a guard", function()
    local function key(user, role)
      return cli.json(("access key new %s --role %s"):format(user, role)).key
    end

    it("takes keys, gives each user a namespace, and refuses everybody else", function()
      guarded.unguarded_only()
      cli.configure 'return { guard = "standard" }'
      local ann, bob = key("ann", "editor"), key("bob", "viewer")
      one = server.start()
      local code, message, trailers = one:call("ListSessions", {})
      assert.same({ "UNAUTHENTICATED", "EDENIED" }, { code, trailers["sessile-status"] })
      expect.has(message, "authorization: Bearer")
      assert.equal("UNAUTHENTICATED", (one:call("ListSessions", {}, "--key sesk_wrong")))
      assert.equal("OK", (one:call("CreateSession", { session = { id = "s" } }, "--key " .. ann)))
      assert.equal("OK", (one:call("ResumeSession", { session = { id = "s" } }, "--key " .. ann)))
      assert.equal("NOT_FOUND",
        (one:call("ResumeSession", { session = { id = "s" } }, "--key " .. bob)))
      assert.equal("PERMISSION_DENIED",
        (one:call("ResumeSession", { session = { id = "s", user = "ann" } }, "--key " .. bob)))
      assert.equal("PERMISSION_DENIED",
        (one:call("CreateSession", { session = { id = "t" } }, "--key " .. bob)))
      local listed, list = one:call("ListSessions", {}, "--key " .. ann)
      assert.equal("OK", listed, list)
      assert.equal(1, #list.sessions)
      listed, list = one:call("ListSessions", {}, "--key " .. bob)
      assert.same({ "OK", {} }, { listed, list })
    end)

    it("believes a certificate of its authority", function()
      guarded.unguarded_only()
      local home = cli.home()
      certificates.authority(home, "ca")
      certificates.sign(home, "ca", "localhost", "DNS:localhost")
      certificates.sign(home, "ca", "carol")
      cli.configure(([[return { guard = "standard",
        serve = { cert = %q, key = %q, client_ca = %q } }]]):format(home .. "/localhost.pem",
        home .. "/localhost.key", home .. "/ca.pem"))
      one = server.start()
      local tls = ("--ca %s/ca.pem --name localhost"):format(cli.quote(home))
      local as_carol = tls .. (" --cert %s/carol.pem --key-file %s/carol.key"):format(
        cli.quote(home), cli.quote(home))
      assert.equal("UNAVAILABLE", (one:call("ListSessions", {}, tls .. " --timeout 5")))
      local code, made = one:call("CreateSession", { session = { id = "s" } }, as_carol)
      assert.equal("OK", code, made)
      assert.equal("carol", made.session.user)
      expect.has(one:stop(), "with TLS")
    end)
  end)

  describe("with a model of its own", function()
    local COMPACT = { session = { id = "s" }, config = { policies = { { name = "summarize" } } } }

    -- Serves with an endpoint that gives these answers; a session of many messages is there.
    local function served(...)
      guarded.unguarded_only()
      local port, request = endpoints.serve { ... }
      cli.configure(([[return { serve = { model = true },
        model = { endpoint = "http://127.0.0.1:%d/v1", name = "small" } }]]):format(port))
      one = server.start()
      local messages = {}
      for i = 1, 40 do
        local role = i % 2 == 1 and "user" or "assistant"
        messages[i] = { text = ('{"role":"%s","content":"%d: %s"}'):format(role, i,
          ("word "):rep(40)) }
      end
      assert.equal("OK", (one:call("Turn", { session = { id = "s" }, create = true,
        messages = messages })))
      return request
    end

    it("asks it what a policy asks", function()
      if not pcall(require, "socket") then
        return pending "the package lua-socket is not installed"
      end
      local request = served [[json(200,
        '{"choices":[{"message":{"role":"assistant","content":"They said words."}}]}')]]
      local code, outcome = one:call("Compact", COMPACT)
      assert.equal("OK", code, outcome)
      assert.equal("applied", outcome.verdict, outcome.message)
      expect.has(request(1), '"small"', "word word")
      expect.has(cli.done "context s", "They said words.")
    end)

    it("says why it failed, and keeps what was said", function()
      if not pcall(require, "socket") then
        return pending "the package lua-socket is not installed"
      end
      served [[json(401, '{"error":{"message":"no such key"}}')]]
      local code, outcome = one:call("Compact", COMPACT)
      assert.equal("OK", code, outcome)
      assert.equal("refused", outcome.verdict)
      expect.has(outcome.message, "401")
      expect.has(cli.done "context s", "1: word", "40: word")
    end)

    it("is not served when there is none", function()
      guarded.unguarded_only()
      cli.done "new --id s"
      cli.configure "return { serve = { model = true } }"
      cli.fails(1, "serve --check --listen 127.0.0.1:0", "no model is configured")
    end)
  end)

  it("compacts as it is configured for the store, and for an agent", function()
    guarded.unguarded_only()
    cli.configure [[return { policy = { { "sliding_window", messages = 10 } }, ttl = "1h",
      agents = { quiet = { triggers = false, ttl = "2h" } } }]]
    one = server.start()
    local messages = {}
    for i = 1, 40 do
      messages[i] = { text = ('{"role":"%s","content":"%s"}'):format(
        i % 2 == 1 and "user" or "assistant", ("word "):rep(40)) }
    end
    local function turn(agent)
      local session = { id = "s", agent = agent }
      local _, made = one:call("CreateSession", { session = session })
      local code, outcome = one:call("Turn", { session = session, messages = messages })
      assert.equal("OK", code, outcome)
      return outcome.verdict, tonumber(made.ttlMs)
    end
    assert.same({ "applied", 3600000 }, { turn() })
    assert.same({ "no_policy", 7200000 }, { turn "quiet" })
    local code, outcome = one:call("Compact", { session = { id = "s", agent = "quiet" } })
    assert.same({ "OK", "applied" }, { code, outcome.verdict })
  end)

  it("counts calls for Prometheus, without an id in it", function()
    guarded.unguarded_only()
    cli.configure 'return { serve = { metrics = "127.0.0.1:0" } }'
    one = server.start()
    one:call("CreateSession", { session = { id = "secret-name" } })
    one:call("ResumeSession", { session = { id = "none" } })
    local page = shell.output("LD_PRELOAD= curl -s " .. one.metrics)
    expect.has_all(page, { 'sessile_calls_total{method="CreateSession",status="OK"} 1',
      'sessile_calls_total{method="ResumeSession",status="NOT_FOUND"} 1', "sessile_ready 1" })
    assert.is_nil(page:find("secret", 1, true))
  end)

  it("tells which methods there are, unless it is configured not to", function()
    guarded.unguarded_only()
    -- Not curl: 7.88 waits for ever when the answer to a gRPC call comes before it has sent the
    -- call's body.
    local body = cli.home() .. "/body"
    cli.write(body, "\0\0\0\0\3:\1*")
    local function answer(on)
      cli.configure(("return { serve = { reflection = %s } }"):format(on))
      one = server.start()
      local said = shell.output(([[LD_PRELOAD= timeout -k 1 60 nghttp -v -d %s -H ':method: POST' \
        -H 'content-type: application/grpc' -H 'te: trailers' \
        http://%s/grpc.reflection.v1.ServerReflection/ServerReflectionInfo]]):format(
        cli.quote(body), one.address))
      one:stop()
      return said, said:match "grpc%-status: (%d+)"
    end
    local said, status = answer(true)
    assert.equal("0", status)
    expect.has(said, "sessile.v1.SessionService")
    assert.equal("12", select(2, answer(false)))
  end)

  it("is not reached by a page whose name leads to this machine", function()
    guarded.unguarded_only()
    one = server.start()
    local port = one.address:match ":(%d+)$"
    local function status(host)
      return (shell.output(([[LD_PRELOAD= curl -s -o /dev/null -w '%%{http_code}' -H 'Host: %s:%s' \
        -d '{}' -H 'content-type: application/json' \
        http://%s/sessile.v1.SessionService/ListSessions]])
        :format(host, port, one.address)))
    end
    assert.same({ "403", "403", "200", "200", "200" }, { status "evil.example",
      status "127.0.0.1.evil.example", status "localhost", status "127.0.0.1", status "[::1]" })
  end)

  it("does not listen in clear text where others can connect", function()
    guarded.unguarded_only()
    cli.fails(7, "serve --listen 0.0.0.0:0", "clear text", "cert and key")
  end)

  it("says what it would do, and ends, with --check", function()
    guarded.unguarded_only()
    cli.fails(3, "serve --check", "there is no store")
    cli.done "new --id s"
    local said = cli.done "serve --check --listen 127.0.0.1:0"
    expect.has(said, "Would serve")
    cli.configure 'return { serve = { cert = "/nowhere.pem" } }'
    cli.fails(1, "serve --check", "a certificate and its key")
  end)
end)
