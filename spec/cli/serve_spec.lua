-- sessile serve: a store for clients of other languages, with and without a guard.

local cli = require "spec.support.cli"
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
      local _, list = one:call("ListSessions", {}, "--key " .. ann)
      assert.equal(1, #list.sessions)
      _, list = one:call("ListSessions", {}, "--key " .. bob)
      assert.same({}, list)
    end)

    it("believes a certificate of its authority", function()
      guarded.unguarded_only()
      local home = cli.home()
      local function certificate(name, more)
        shell.output(("cd %s && openssl req -newkey rsa:2048 -nodes -keyout %s.key -out %s.csr "
          .. "-subj /CN=%s 2>/dev/null && openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key "
          .. "-CAcreateserial -days 2 -out %s.pem %s 2>/dev/null && chmod 600 %s.key"):format(
          cli.quote(home), name, name, name, name, name, more or "", name))
      end
      shell.output(("cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem "
        .. "-subj /CN=authority -days 2 2>/dev/null"):format(cli.quote(home)))
      certificate "localhost"
      certificate "carol"
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

  it("counts calls for Prometheus, without an id in it", function()
    guarded.unguarded_only()
    cli.configure 'return { serve = { metrics = "127.0.0.1:0" } }'
    one = server.start()
    one:call("CreateSession", { session = { id = "secret-name" } })
    one:call("ResumeSession", { session = { id = "none" } })
    local page = shell.output("curl -s " .. one.metrics)
    expect.has_all(page, { 'sessile_calls_total{method="CreateSession",status="OK"} 1',
      'sessile_calls_total{method="ResumeSession",status="NOT_FOUND"} 1', "sessile_ready 1" })
    assert.is_nil(page:find("secret", 1, true))
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
