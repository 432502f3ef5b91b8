-- A store behind a server of records, by TLS and under a guard: who is trusted, who is refused and
-- with which sentence, and that no credential is ever shown.
-- Own stores: they are behind servers that it starts.
-- Own guard: the servers' own.

local certificates = require "spec.support.certificates"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local jwt = require "spec.support.jwt"
local postgres = require "spec.support.postgres"
local server = require "spec.support.server"
local shell = require "spec.support.shell"

local servers, home

-- A server of the records of a database; settings: Lua, of `serve`, and what stands beside it.
local function start(settings, beside)
  local config = ("%s/server-%d.lua"):format(home, #servers + 1)
  cli.write(config, ('return { serve = { services = { "records" }, %s }, %s }'):format(
    settings or "", beside or ""))
  assert(os.execute("chmod 600 " .. cli.quote(config)))
  local one = server.start("--store sqlite:" .. cli.quote(home .. "/records.db"),
    "env SESSILE_CONFIG=" .. cli.quote(config))
  servers[#servers + 1] = one
  one.port = one.address:match ":(%d+)$"
  return one
end

local function with_tls(pem, key, more)
  return start(("cert = %q, key = %q, %s"):format(pem, key, more or ""))
end

-- Runs `sessile` on a store; before: "env NAME=VALUE". Returns stdout, stderr, the exit code.
local function on(url, words, before)
  return cli.sessile("--store " .. cli.quote(url) .. " " .. words, nil, before)
end

-- The store can be used.
local function served(url, before)
  local out, err, code = on(url, "new --id s" .. #servers, before)
  assert.equal(0, code, out .. err)
  out, err, code = on(url, "show s" .. #servers, before)
  assert.equal(0, code, out .. err)
end

-- It cannot, and all of these parts are said. Returns what was said.
local function refused(code, url, before, ...)
  local out, err, got = on(url, "list", before)
  assert.equal(code, got, out .. err)
  assert.equal("", out)
  expect.has(err, ...)
  cli.no_traceback(err)
  return err
end

local DENIED, IO = 7, 1

describe("a store behind a server", function()
  after_each(function()
    for _, one in ipairs(servers) do
      one:stop()
    end
  end)
  cli.each_test(function(where)
    home, servers = where, {}
  end)

  describe("with TLS", function()
    local ca

    before_each(function()
      ca = certificates.authority(home, "ca")
    end)

    it("is believed by the authority that signed its certificate, and by no other", function()
      local one = with_tls(certificates.sign(home, "ca", "server", "DNS:localhost"))
      local url = ("grpcs://localhost:%s/"):format(one.port)
      served(url .. "?ca=" .. ca)
      refused(DENIED, url, nil, "authority that is not trusted here", "ca=FILE",
        "localhost:" .. one.port)
      refused(DENIED, url .. "?ca=" .. certificates.authority(home, "other"), nil,
        "authority that is not trusted here")
      refused(DENIED, ("grpcs://127.0.0.1:%s/?ca=%s"):format(one.port, ca), nil,
        "is for another name", "127.0.0.1:" .. one.port)
      refused(IO, ("grpc://localhost:%s/"):format(one.port), nil, "in clear text", "grpcs://")
    end)

    -- `sessile serve` does not begin with such a certificate; one that runs may come to have it.
    it("is refused once its certificate has expired", function()
      local pem, key = certificates.sign(home, "ca", "server", "DNS:localhost", -1)
      local said = home .. "/openssl.log"
      local pid = shell.line(("sleep 60 | openssl s_server -accept 127.0.0.1:0 -alpn h2 -cert %s "
        .. "-key %s >%s 2>&1 & echo $!"):format(cli.quote(pem), cli.quote(key), cli.quote(said)))
      local port = server.wait_for(function()
        return cli.read(said):match "ACCEPT 127%.0%.0%.1:(%d+)"
      end, "did not begin to listen")
      refused(DENIED, ("grpcs://localhost:%s/?ca=%s"):format(port, ca), nil, "has expired")
      os.execute("kill " .. pid)
    end)

    it("is refused when it has none", function()
      refused(DENIED, ("grpcs://localhost:%s/?ca=%s"):format(start().port, ca), nil,
        "does not speak TLS", "serve.cert")
    end)

    it("wants a certificate of its clients if it is told to", function()
      local pem, key = certificates.sign(home, "ca", "server", "DNS:localhost")
      local one = with_tls(pem, key, ("client_ca = %q"):format(ca))
      local url = ("grpcs://localhost:%s/?ca=%s"):format(one.port, ca)
      refused(DENIED, url, nil, "wants a certificate of this client", "cert=FILE&key=FILE")
      certificates.authority(home, "other")
      refused(DENIED, ("%s&cert=%s&key=%s"):format(url, certificates.sign(home, "other", "eve")),
        nil, "wants a certificate of this client")
      served(("%s&cert=%s&key=%s"):format(url, certificates.sign(home, "ca", "carol")))
    end)
  end)

  describe("under a guard", function()
    local one, url

    local function token(role, exp)
      return jwt.sign(('{"iss":"https://id.example","aud":"sessile","sub":"ann","exp":%d,'
        .. '"roles":["%s"]}'):format(exp or os.time() + 600, role))
    end

    local function guard()
      cli.write(home .. "/jwks.json", jwt.keys())
      assert(os.execute("chmod 600 " .. cli.quote(home .. "/jwks.json")))
      return ([[guard = { profile = "standard", roles = { mover = { "move_store", all = true } },
        identity = { token = { issuer = "https://id.example", audience = "sessile",
          keys = %q } } }]]):format(home .. "/jwks.json")
    end

    local function as(text)
      return "env SESSILE_TOKEN=" .. cli.quote(text)
    end

    it("serves tokens with the permission move_store, and refuses all others", function()
      one = start(nil, guard())
      url = ("grpc://127.0.0.1:%s/"):format(one.port)
      served(url, as(token "mover"))
      cli.write(home .. "/token", token "mover" .. "\n")
      assert(os.execute("chmod 600 " .. cli.quote(home .. "/token")))
      local out, err, code = on(url .. "?token_file=" .. home .. "/token", "show s1")
      assert.equal(0, code, out .. err)

      refused(DENIED, url, as(token "editor"), "permission move_store is needed")
      refused(DENIED, url, nil, "asks who calls", "SESSILE_TOKEN", "token_file=FILE",
        "127.0.0.1:" .. one.port)
      refused(DENIED, url, as(token("mover", os.time() - 3600)), "the credential is not accepted",
        "127.0.0.1:" .. one.port)
      refused(DENIED, url, as "sesk_wrong", "not accepted")
    end)

    it("serves certificates whose role has the permission", function()
      local ca = certificates.authority(home, "ca")
      local pem, key = certificates.sign(home, "ca", "server", "DNS:localhost")
      local mine = ("&cert=%s&key=%s"):format(certificates.sign(home, "ca", "carol"))
      local function serve(more)
        one = start(("cert = %q, key = %q, client_ca = %q, %s"):format(pem, key, ca, more), guard())
        return ("grpcs://localhost:%s/?ca=%s%s"):format(one.port, ca, mine)
      end
      refused(DENIED, serve "", nil, "permission move_store is needed")
      url = serve 'certificate_role = "mover"'
      served(url)
      -- a token says more than the certificate
      refused(DENIED, url, as(token "editor"), "permission move_store is needed")
    end)

    it("does not show the password of the store that it serves", function()
      if not postgres.server() then
        return pending "there is no PostgreSQL server"
      end
      local config = home .. "/server.lua"
      cli.write(config, 'return { serve = { services = { "records" } } }')
      local place = postgres.place()
      local out, err = cli.done(("--store '%s' --json serve --check --listen 127.0.0.1:0"):format(
        place), nil, "env SESSILE_CONFIG=" .. cli.quote(config))
      assert.is_true(cli.decoded(out).records)
      local password = assert(place:match "//[^:/]+:([^@]+)@")
      assert.is_nil((out .. err):find(password, 1, true))
    end)

    it("shows no credential, whatever goes wrong", function()
      local secret = "s3cr3t" .. shell.line "od -An -tx1 -N12 /dev/urandom | tr -d ' '"
      local ca = certificates.authority(home, "ca")
      local pem, key = certificates.sign(home, "ca", "server", "DNS:localhost")
      one = start(("cert = %q, key = %q"):format(pem, key), guard())
      local place = "localhost:" .. one.port
      url = ("grpcs://%s/?ca=%s"):format(place, ca)
      local said = {}
      local function try(where, before, mode)
        if mode then
          cli.write(home .. "/token", secret .. "\n")
          assert(os.execute(("chmod %s %s/token"):format(mode, cli.quote(home))))
        end
        for _, words in ipairs { "list", "--json list", "show s", "doctor", "keys status",
          "config show" } do
          local out, err = on(where, words, before)
          said[#said + 1] = out .. err
        end
        local store, message = require "sessile".open(where)
        assert.is_nil(store)
        said[#said + 1] = message
      end
      try(url, as(secret))
      try(url, as("sesk_" .. secret .. "_" .. secret))
      try(url, as(secret .. " with a blank"))
      try(("grpcs://%s/"):format(place), as(secret)) -- nobody is shown it there
      try(url .. "&token_file=" .. home .. "/token", nil, 644)
      try(url .. "&token_file=" .. home .. "/token", nil, 600)
      try(("grpcs://ann:%s@%s/"):format(secret, place))
      try(("grpcs://%s@%s/"):format(secret, place))
      try(url .. "&token=" .. secret)
      try(url .. "&password=" .. secret)
      try(("grpcs//ann:%s@%s/"):format(secret, place))
      said[#said + 1] = one:stop()
      said = table.concat(said, "\n")
      expect.has(said, "not accepted", "others may read", "does not belong into it")
      local at = said:find(secret, 1, true)
      assert.is_nil(at, at and said:sub(at - 200, at + 60))
    end)
  end)
end)
