-- The chapter "In five minutes" of the service's page, typed as it stands but for the port, and the
-- sentences of its table.
-- Own guard: it sets one.

local certificates = require "spec.support.certificates"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guides = require "spec.support.guides"
local server = require "spec.support.server"
local shell = require "spec.support.shell"

local FREE = [[/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])']]

local function chapter()
  return assert(guides.read "engine/service/README.md":match "\n## In five minutes\n(.-)\n## "
    or guides.read "engine/service/README.md":match "\n## In five minutes\n(.-)\n| file")
end

-- The sentence of the table that begins so.
local function row(text)
  expect.has(chapter(), "| `" .. text)
  return text
end

describe("a server in five minutes", function()
  it("does what it says", function()
    local home = guides.begin()
    finally(cli.finish)
    local block = assert(guides.blocks("\n" .. chapter(), "sh")[1])
    local port = shell.line(FREE)
    cli.write(home .. "/block.sh", (block:gsub("7071", port)))
    local out, err, code = guides.run(
      ("unset XDG_DATA_HOME LD_PRELOAD && exec sh -e %s/block.sh"):format(home))
    assert.equal(0, code, err .. out)
    cli.no_traceback(err)
    expect.has_all(out, { "Would serve", "Serving", "ok\n", "hello from curl", '"not_found"',
      "the address is taken" })
    expect.has_all(err, { ("127.0.0.1:%s is in use"):format(port), "sessile: ",
      "The server ended: every call was finished." })
  end)
end)

describe("a first mistake", function()
  local one

  before_each(cli.begin)
  after_each(function()
    if one then
      one:stop()
    end
    one = nil
    cli.finish()
  end)

  local function get(url, header)
    local curl = "LD_PRELOAD= curl -s -i -m 20 -d '{}' -H 'content-type: application/json' %s %s"
    return shell.output(curl:format(header and "-H " .. shell.quote("authorization: " .. header)
      or "", url))
  end

  it("with a key is named", function()
    cli.configure 'return { guard = "standard" }'
    local key = cli.json("access key new ann --role editor").key
    one = server.start()
    local url = "http://" .. one.address .. "/sessile.v1.SessionService/ListSessions"
    expect.has(get(url, "Bearer " .. key), "200 OK")
    expect.has_all(get(url), { "401", row "who calls? send an access key or a token" })
    expect.has_all(get(url, key), { "401", "does not begin with" })
    local cut = get(url, "Bearer " .. key:gsub("^sesk_", ""))
    expect.has_all(cut, { "401", row "the credential is no access key and no token", "sesk_" })
    local code, message = one:call("ListSessions", {}, "--key " .. key:gsub("^sesk_", ""))
    assert.equal("UNAUTHENTICATED", code)
    expect.has(message, "the credential is no access key and no token")
  end)

  it("with an address is named, and what to do", function()
    one = server.start()
    local said = cli.fails(1, "serve --listen " .. one.address, one.address .. " is in use")
    expect.has(said, "ss -ltnp")
    cli.fails(1, "serve --check --listen " .. one.address, one.address .. " is in use")
  end)

  it("with a scheme is told to the client", function()
    local home = cli.home()
    certificates.authority(home, "ca")
    certificates.sign(home, "ca", "localhost", "DNS:localhost")
    cli.configure(("return { serve = { cert = %q, key = %q } }"):format(home .. "/localhost.pem",
      home .. "/localhost.key"))
    one = server.start()
    expect.has_all(get("http://" .. one.address .. "/healthz"), { "400 Bad Request",
      row "this port speaks TLS", "https://" })
    local code, message = one:call("ListSessions", {}, "--timeout 5")
    assert.equal("UNAVAILABLE", code, message)
    expect.has(one:stop(), "Clients spoke clear text at a port of TLS")
  end)

  it("with a certificate is found before anybody connects", function()
    local home = cli.home()
    certificates.authority(home, "ca")
    certificates.sign(home, "ca", "localhost", "DNS:localhost", -1)
    cli.configure(("return { serve = { cert = %q, key = %q } }"):format(home .. "/localhost.pem",
      home .. "/localhost.key"))
    cli.done "new --id s"
    for _, check in ipairs { "--check ", "" } do
      cli.fails(1, "serve --listen 127.0.0.1:0 " .. check, "the certificate, ",
        "localhost.pem, expired on 20")
    end
  end)
end)
