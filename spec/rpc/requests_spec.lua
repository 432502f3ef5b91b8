-- `sessile rpc`: lines, requests and their answers, refusals.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local rpc = require "spec.support.rpc"
local sessile = require "sessile"

local has = expect.has

local client

after_each(function()
  client:stop()
end)

cli.each_test(function()
  client = rpc.start()
end)

local function user(text)
  return { role = "user", content = text }
end

describe("sessile rpc", function()
  it("says who it is", function()
    local hello = client:call("rpc/hello", { protocol = 1, client = "spec" })
    assert.equal(1, hello.protocol)
    assert.equal(sessile.version, hello.version)
    assert.equal(64 << 20, hello.line)
    assert.is_string(hello.store)
  end)

  it("refuses another protocol", function()
    local _, failure = client:try("rpc/hello", { protocol = 2 })
    assert.equal("UNSUPPORTED", failure.data.status)
  end)

  it("writes a turn and reads it as it came", function()
    client:call("session/create", { id = "bug" })
    local outcome = client:call("session/turn",
      '{"session":"bug","messages":[{"role":"user","content":"h\\u00e9","n":1.50,'
        .. '"big":9007199254740993}]}')
    assert.same({ "00000001" }, outcome.ids)
    local _, line = client:call("session/messages", { session = "bug" })
    has(line, '"message":{"role":"user","content":"h\\u00e9","n":1.50,"big":9007199254740993}')
    client:call("session/custom", '{"session":"bug","data":{"kind":"step","n":1.50,"t":[1e2]}}')
    _, line = client:call("session/entries", { session = "bug", types = { "custom" } })
    has(line, '"n":1.50,"t":[1e2]')
  end)

  it("keeps states and metadata as they came", function()
    client:call("session/create", '{"id":"s","metadata":{"a":1.0}}')
    client:call("session/checkpoint", '{"session":"s","name":"x","state":{"v":2.50}}')
    client:call("session/append", { session = "s", message = user "later" })
    local _, line = client:call("session/restore", { session = "s", checkpoint = "x" })
    has(line, '"state":{"v":2.50}')
    _, line = client:call("session/info", { session = "s" })
    has(line, '"metadata":{"a":1.0}')
  end)

  it("reads what was written from where the client was", function()
    client:call("session/create", { id = "s" })
    local ids = client:call("session/write", { session = "s", entries = {
      { message = user "one" }, { custom = { kind = "k" }, source = "host" },
      { message = user "two" },
    } })
    assert.equal(3, #ids)
    local page = client:call("session/entries", { session = "s", after = ids[1], limit = 1 })
    assert.equal("custom", page.entries[1].type)
    page = client:call("session/entries", { session = "s", after = page.next })
    assert.equal("two", page.entries[1].data.content or page.entries[1].data.message.content)
    assert.is_nil(page.next)
  end)

  it("writes once what is asked twice", function()
    client:call("session/create", { id = "s" })
    local turn = { session = "s", messages = { user "one" }, base = "00000000", once = "t1" }
    local first = client:call("session/turn", turn)
    local second = client:call("session/turn", turn)
    assert.same(first.ids, second.ids)
    assert.is_true(second.again)
    assert.equal(1, #client:call("session/messages", { session = "s" }))
    local _, failure = client:try("session/turn",
      { session = "s", messages = { user "two" }, base = "00000000" })
    assert.same({ 5, "CONFLICT" }, { failure.code, failure.data.status })
    has(failure.data.next, "session/entries")
  end)

  it("takes names of all kinds", function()
    client:call("session/create", { id = "same", agent = "a" })
    client:call("session/create", { id = "same", agent = "b", user = "ann" })
    client:call("session/append",
      { session = { id = "same", agent = "b", user = "ann" }, message = user "b" })
    assert.equal(1, #client:call("session/messages",
      { session = { id = "same", agent = "b", user = "ann" } }))
    assert.equal(0, #client:call("session/messages", { session = { id = "same", agent = "a" } }))
    local made = client:call("session/create", { agent = "a" })
    assert.is_string(made.id)
  end)

  it("uses more sessions than it keeps open", function()
    for i = 1, 70 do
      client:call("session/create", { id = "s" .. i })
    end
    for i = 1, 70 do
      client:call("session/append", { session = "s" .. i, message = user(tostring(i)) })
    end
    assert.equal("1", client:call("session/messages", { session = "s1" })[1].message.content)
  end)

  it("refuses unknown names, with the nearest", function()
    local _, failure = client:try("session/trun", {})
    assert.equal(-32601, failure.code)
    has(failure.message, "session/turn")
    _, failure = client:try("session/turn", { session = "s", mesages = {} })
    assert.equal(-32602, failure.code)
    has(failure.message, "'messages'")
    _, failure = client:try("session/turn", { session = "s" })
    has(failure.message, "messages is missing")
    _, failure = client:try("session/turn", { session = "s", messages = user "x" })
    has(failure.message, "a list expected, got object")
    _, failure = client:try("store/list", { limit = "ten" })
    has(failure.message, 'an integer expected, got "ten"')
    _, failure = client:try("session/messages", { session = "nobody" })
    assert.same({ 3, "NOTFOUND" }, { failure.code, failure.data.status })
    _, failure = client:try("store/list", { since = "soon" })
    assert.equal(-32602, failure.code)
  end)

  it("answers everything that came before the end of its input", function()
    client:call("session/create", { id = "s" })
    for i = 1, 300 do
      client:send("session/append", { session = "s", message = user("x" .. i) })
    end
    local code, rest, said = client:finish()
    assert.equal(0, code)
    assert.equal(300, select(2, rest:gsub("\n", "")))
    assert.is_nil(said:find "traceback")
    client = rpc.start()
    assert.equal(300, #client:call("session/messages", { session = "s" }))
  end)

  it("does not wait for a client that writes without reading", function()
    client:call("session/create", { id = "s" })
    client:call("session/append", { session = "s", message = user(("x"):rep(100000)) })
    local ids = {}
    for i = 1, 100 do -- 10 MB of answers that nobody reads yet
      ids[i] = client:send("session/messages", { session = "s", role = "user" })
    end
    for _, id in ipairs(ids) do
      assert.equal(1, #client:wait(id))
    end
  end)

  it("ends when nobody reads its answers", function()
    client:call("rpc/hello", {})
    assert.equal(0, client:leave "store/list")
  end)

  it("does not begin what was cancelled before", function()
    client:call("session/create", { id = "s" })
    client:call("session/append", { session = "s", message = user(("x"):rep(100000)) })
    for _ = 1, 120 do -- more than what is queued before anything else begins
      client:send("session/messages", { session = "s" })
    end
    client:send("session/title", { session = "s", title = "never" }, "late")
    client:raw '{"jsonrpc":"2.0","method":"rpc/cancel","params":{"id":"late"}}'
    local _, failure = client:wait "late"
    assert.same({ 19, "CANCELLED" }, { failure.code, failure.data.status })
    assert.equal("", client:call("session/title", { session = "s" }))
  end)

  it("opens another store by a name", function()
    client:call("store/open", { name = "other", url = "ram:" })
    client:call("session/create", { id = "r", store = "other" })
    client:call("session/append", { session = "r", store = "other", message = user "in memory" })
    assert.equal(1, #client:call("store/list", { store = "other" }))
    assert.equal(0, #client:call("store/list"))
    local _, failure = client:try("store/list", { store = "third" })
    has(failure.message, "store/open")
  end)

  it("tells of new entries while somebody watches", function()
    client:call("session/create", { id = "s" })
    local watch = client:call("session/watch", { session = "s" })
    local other = rpc.start()
    local id = other:call("session/append", { session = "s", message = user "from elsewhere" })
    local note = client:note()
    assert.equal("note/entries", note.method)
    assert.same({ watch.watch, "s", id }, { note.params.watch, note.params.session,
      note.params.newest })
    id = client:call("session/append", { session = "s", message = user "my own" })
    assert.equal(id, client:note().params.newest)
    assert.is_true(client:call("session/unwatch", { watch = watch.watch }))
    other:finish()
  end)

  it("has a method for each part of a session", function()
    client:call("session/create", { id = "s", title = "T" })
    local first = client:call("session/append", { session = "s", message = user "one" })
    client:call("session/append", { session = "s", message = user "two" })
    assert.equal("New", client:call("session/title", { session = "s", title = "New" }))
    assert.is_true(client:call("session/label", { session = "s", entry = first, name = "start" }))
    assert.equal("start", client:call("session/labels", { session = "s" })[1].name)
    assert.is_true(client:call("session/pin", { session = "s", entry = "start" }))
    assert.is_true(client:call("session/unpin", { session = "s", entry = "start" }))
    assert.equal("big", client:call("session/settings",
      { session = "s", set = { model = "big" } }).model)
    assert.equal("user", client:call("session/tree", { session = "s" }).nodes[2].role)
    assert.equal(3, #client:call("session/path", { session = "s" }))
    assert.is_true(client:call("session/tokens", { session = "s" }).tokens > 0)
    assert.is_true(client:call("session/context", { session = "s" }).tokens > 0)
    assert.is_true(client:call("session/why", { session = "s", entry = first }).in_context)
    assert.equal("two", client:call("session/pop", { session = "s" })[1].message.content)
    has(client:call("session/export", { session = "s", format = "md" }).text, "one")
    local trace = { session = "s", to = "otel" }
    assert.is_nil(client:call("session/export", trace).text:find("one", 1, true))
    trace.content = true
    has(client:call("session/export", trace).text, "one")
    local fork = client:call("session/fork", { session = "s", id = "f" })
    assert.equal("s", fork.origin.id)
    client:call("session/child", { session = "s", agent = "helper", id = "c" })
    local c = { id = "c", agent = "helper" }
    client:call("session/append", { session = c, message = user "did it" })
    client:call("session/merge", { session = c, summary = "done" })
    assert.equal("merged", client:call("session/subsessions", { session = "s" })[1].state)
    assert.equal("paused", client:call("session/suspend", { session = "s", reason = "r" }).status)
    local _, failure = client:try("session/append", { session = "s", message = user "no" })
    assert.equal("SUSPENDED", failure.data.status)
    assert.equal("r", client:call("session/info", { session = "s" }).suspended.reason)
    client:call("session/resume_with", { session = "s", messages = { user "go on" } })
    assert.equal("message", client:call("store/search", { text = "go on" })[1].kind)
    assert.is_true(client:call("store/count", { text = "some words" }).tokens > 0)
    assert.is_true(#client:call("policy/list") > 3)
    client:call("store/delete", { session = "f", soft = true })
    assert.is_true(client:call("store/undelete", { session = "f" }))
    assert.is_true(client:call("session/clear", { session = "f" }))
    assert.same({}, client:call("session/messages", { session = "f" }))
  end)
end)
