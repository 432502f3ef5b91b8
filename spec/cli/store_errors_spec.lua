-- A store that cannot be used, as somebody meets it who types a command: the exit code, a sentence
-- that names what to mend, and never a password, as it is or as it was written.

local cli = require "spec.support.cli"
local postgres = require "spec.support.postgres"

local USAGE, DENIED, OTHER = 2, 7, 1
local home

cli.each_test(function(path) home = path end)

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- What nobody may read: the password of a URL, however it is written.
local function tells_nothing(url, text)
  local password = url:match "^[^:]+://[^:@/]*:([^@]*)@"
  if password then
    assert.is_nil(text:find(password, 1, true), "the password as it is written:\n" .. text)
    assert.is_nil(text:find(decoded(password), 1, true), "the password:\n" .. text)
  end
end

-- Runs a command that fails so over that store; the sentence has each of the words.
local function fails(code, url, words, ...)
  for _, form in ipairs { "", "--json " } do
    local out, err, got = cli.sessile(("%s%s --plain --store %s"):format(form, words,
      cli.quote(url)))
    assert.equal(code, got, words .. "\n" .. out .. err)
    for _, part in ipairs { ... } do
      assert.truthy((out .. err):find(part, 1, true), ("%q is not in\n%s%s"):format(part, out, err))
    end
    tells_nothing(url, out .. err)
    cli.no_traceback(err)
    if url:find "^postgres" then
      assert.is_nil(err:find("owner and the mode", 1, true), err) -- there is no file to look at
    end
  end
end

describe("PostgreSQL", function()
  local server, reason = postgres.server()

  -- it(), or pending where there is no server.
  local function with_server(name, test)
    it(name, function()
      if not server then
        return pending(reason)
      end
      test(server)
    end)
  end

  teardown(function()
    if server then
      postgres.clean()
    end
  end)

  -- The URL with other parts; what is not given stays.
  local function changed(url, parts)
    local scheme, user, password, host, database =
      url:match "^(%w+://)([^:]+):([^@]*)@([^/]+)/(.*)$"
    return ("%s%s:%s@%s/%s"):format(scheme, parts.user or user, parts.password or password,
      parts.host or host, parts.database or database)
  end

  local function new(url)
    local out, err, code = cli.sessile("new --id a --plain --store " .. cli.quote(url))
    assert.equal(0, code, out .. err)
    tells_nothing(url, out .. err)
  end

  with_server("a server that is not there is named", function()
    fails(OTHER, changed(server.tcp, { host = "127.0.0.1:1" }), "list", "127.0.0.1:1",
      "cannot be reached", "server runs")
    fails(OTHER, changed(server.tcp, { host = "no-such-host.invalid:1" }), "list",
      "no-such-host.invalid")
    fails(OTHER, changed(server.tcp, { host = "%2Fnowhere%2Fat%2Fall" }), "list", "/nowhere/at/all")
  end)

  with_server("a wrong password is DENIED, and not repeated", function()
    fails(DENIED, changed(server.tcp, { password = "not%2Bthis%25one" }), "list", "password")
    fails(DENIED, changed(server.url, { user = "nobody_here" }), "list", "nobody_here")
  end)

  with_server("a database that is not there is named", function()
    fails(OTHER, changed(server.url, { database = "elsewhere" }), "list", "elsewhere", "createdb")
  end)

  with_server("a certificate that nobody vouches for is not believed", function()
    if server.ca == "" then
      return pending "the server has no TLS: there is no openssl here"
    end
    local other = home .. "/other.crt"
    assert(os.execute(("openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=other "
      .. "-keyout %s/other.key -out %s 2>/dev/null"):format(home, other)))
    fails(OTHER, server.tcp .. "?sslmode=verify-full&sslrootcert=" .. other, "list", "certificate")
    local url = postgres.place(server.tcp .. "?sslmode=verify-full&sslrootcert=" .. server.ca)
    new(url) -- and one that somebody vouches for is
  end)

  with_server("rights that are not enough are DENIED", function()
    local url, schema = postgres.place()
    new(url)
    local role = schema .. "_reader"
    assert(postgres.sql(server.admin, ("create role %s login password 'look/only'"):format(role)))
    assert(postgres.sql(server.url, ("grant usage on schema %s to %s; grant select on all tables "
      .. "in schema %s to %s"):format(schema, role, schema, role)))
    local theirs = changed(url, { user = role, password = "look%2Fonly" })
    local out, err, code = cli.sessile("list --plain --store " .. cli.quote(theirs))
    assert.equal(0, code, err)
    assert.truthy(out:find("a", 1, true))
    fails(DENIED, theirs, "new --id b", role)
    fails(DENIED, theirs, "append a hello", role)
    assert(postgres.sql(server.url, ("revoke all on all tables in schema %s from %s; "
      .. "revoke all on schema %s from %s"):format(schema, role, schema, role)))
    assert(postgres.sql(server.admin, "drop role " .. role))
  end)

  with_server("no password is in a command that is shown", function()
    local url = postgres.place() .. "&sslpassword=geheim"
    new(url)
    local out, err = cli.sessile("show none --plain --store " .. cli.quote(url))
    assert.truthy(err:find("--store", 1, true), out .. err)
    assert.is_nil((out .. err):find("geheim", 1, true), out .. err)
  end)

  with_server("a database that is read-only is DENIED, and says so", function()
    local url = postgres.place()
    new(url)
    local closed = url .. "&options=-c%20default_transaction_read_only%3Don"
    fails(DENIED, closed, "append a hello", "can only be read")
    fails(DENIED, closed, "new --id b", "can only be read")
    assert.equal("", (cli.done("show a --plain --store " .. cli.quote(closed))))
  end)

  with_server("a schema of a newer engine is left alone", function()
    local url, schema = postgres.place()
    new(url)
    local column = assert(postgres.sql(server.url, ("select table_name || '.' || column_name "
      .. "from information_schema.columns where table_schema = '%s' and column_name = 'version' "
      .. "limit 1"):format(schema)))
    local name = assert(column:match "^([%w_]+)%.")
    assert(postgres.sql(server.url, ("update %s.%s set version = 1000"):format(schema, name)))
    fails(OTHER, url, "list", "newer")
    fails(OTHER, url, "new --id b", "newer")
    assert.equal("1000", postgres.sql(server.url,
      ("select version from %s.%s"):format(schema, name)))
  end)

  it("a URL with a slip in it says what a URL is", function()
    local host = ":5432/agents"
    for _, url in ipairs {
      "postgresql//me:geheim@db.example" .. host, "postgres:me:geheim@db.example" .. host,
      "postgres:/me:geheim@db.example" .. host, "postgresq://me:geheim@db.example" .. host,
      "postgres://me:geheim@db.example:port/agents", "postgres://me:ge%heim@db.example" .. host,
      "postgres://me:ab/geheim@db.example" .. host, "postgres://me:ab@geheim@db.example" .. host,
      "postgres://me:ab?geheim@db.example" .. host, "postgres://me:ab#geheim@db.example" .. host,
      "postgres://me:geheim@db.example/agents?shcema=x",
      "postgres://me:geheim@db.example/agents?pool=none",
      "postgres://me:geheim@db.example/agents?schema=no%20name",
    } do
      local out, err, code = cli.sessile("list --plain --store " .. cli.quote(url))
      assert.equal(OTHER, code, url .. "\n" .. out .. err)
      assert.is_nil((out .. err):find("heim", 1, true), url .. "\n" .. out .. err)
      assert.truthy(err:find("postgres", 1, true) or err:find("URL", 1, true), err)
    end
    assert.equal(USAGE, select(3, cli.sessile "list --store"))
  end)
end)

describe("SQLite", function()
  local url

  before_each(function()
    url = "sqlite:" .. home .. "/sessions.db"
  end)

  local function sql(text)
    local pipe <close> = assert(io.popen(("python3 -c %s %s 2>&1"):format(cli.quote(
      "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
      .. "print(*[r[0] for s in sys.argv[2].split(';') for r in c.execute(s)]); c.commit()"),
      cli.quote(home .. "/sessions.db") .. " " .. cli.quote(text))))
    return (pipe:read "a":gsub("%s+$", ""))
  end

  local function new()
    cli.done("new --id a --plain --store " .. cli.quote(url))
  end

  it("a file that is no database is not touched", function()
    cli.write(home .. "/sessions.db", "this is no database\n" .. ("x"):rep(4096))
    local before = cli.read(home .. "/sessions.db")
    local out, err, code = cli.sessile("new --id a --plain --store " .. cli.quote(url))
    assert.not_equal(0, code, out)
    assert.truthy(err:find("sessions.db", 1, true), err)
    cli.no_traceback(err)
    assert.equal(before, cli.read(home .. "/sessions.db"))
  end)

  it("a folder is no file", function()
    fails(DENIED, "sqlite:" .. home, "new --id a", home, "file")
    fails(OTHER, "sqlite:", "list", "sqlite:", "file")
  end)

  it("a schema of a newer engine is left alone", function()
    new()
    if sql "pragma user_version" ~= "1" then
      return pending "there is no python3 with sqlite3 here"
    end
    sql "pragma user_version = 1000"
    fails(OTHER, url, "list", "sessions.db", "newer")
    fails(OTHER, url, "append a hello", "sessions.db", "newer")
    assert.equal("1000", sql "pragma user_version")
  end)

  it("a file that may not be written is read, and DENIED to who writes", function()
    if not cli.is_root() then
      return pending "needs root, to become somebody else"
    end
    local pipe <close> = assert(io.popen "mktemp -d /tmp/sessile-open.XXXXXX")
    local open = pipe:read "l"
    finally(function() os.execute("rm -rf " .. open) end)
    os.execute("chmod 755 " .. open)
    if not os.execute(("%s %s version >/dev/null 2>&1"):format(cli.as_nobody, cli.binary)) then
      return pending "this tree may not be read by somebody else"
    end
    os.execute(("chown 65534 %s"):format(open))
    local theirs = "sqlite:" .. open .. "/theirs.db"
    local function as_nobody(words)
      return cli.sessile(words .. " --plain --store " .. cli.quote(theirs), nil, cli.as_nobody)
    end
    assert.equal(0, (select(3, as_nobody "new --id a")))
    os.execute(("chmod 400 %s/theirs.db; chmod 500 %s"):format(open, open))
    local out, err, code = as_nobody "append a hello"
    assert.equal(DENIED, code, out .. err)
    assert.truthy(err:find("theirs.db", 1, true), err)
  end)

  it("a full disk is told, and what was there stays", function()
    if not cli.is_root() or not os.execute "unshare -m true 2>/dev/null" then
      return pending "needs root and a mount namespace, for a small disk"
    end
    -- one shell in a namespace of its own: the small disk goes with it
    local script = home .. "/full.sh"
    cli.write(script, ([[
mkdir %s/small && mount -t tmpfs -o size=1m,mode=700 none %s/small || exit 99
s="%s"; u=sqlite:%s/small/sessions.db
"$s" new --id a --plain --store $u || exit 98
"$s" append a kept --plain --store $u || exit 97
head -c 2000000 /dev/zero | tr '\0' x > %s/large
"$s" append a - --plain --store $u < %s/large; echo "code $?"
"$s" show a --plain --store $u || exit 96
"$s" check --plain --store $u || exit 95
]]):format(home, home, cli.binary, home, home, home))
    local pipe <close> = assert(io.popen(("unshare -m sh %s 2>&1"):format(script)))
    local said = pipe:read "a"
    if said:find("mount:", 1, true) then
      return pending "no file system may be mounted here"
    end
    assert.truthy(pipe:close(), said)
    assert.truthy(said:find("code 1", 1, true), said)
    assert.truthy(said:find("no space", 1, true) or said:find("full", 1, true), said)
    assert.truthy(said:find("kept", 1, true), said)
    assert.is_nil(said:find "xxxxxxxx", said)
  end)
end)
