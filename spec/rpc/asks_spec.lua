-- `sessile rpc`: what a run asks of the client, and what happens while it waits.

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

local ASKS_MODEL = { name = "summarize", options = { preserve_recent = 2 } }

-- A session with `count` messages.
local function filled(id, count)
  client:call("session/create", { id = id })
  local list = {}
  for i = 1, count do
    list[i] = i % 2 == 1 and user("question " .. i)
      or { role = "assistant", content = "answer " .. i .. (" and more"):rep(20) }
  end
  client:call("session/turn", { session = id, messages = list })
end

-- The next question of the server, unanswered.
local function question()
  local message = client:line()
  assert(message.method and message.id, sessile.encode(message))
  return message
end

local function answer(message, result)
  client:raw(assert(sessile.encode { jsonrpc = "2.0", id = message.id, result = result }))
end

describe("a run that asks", function()
  it("gets the model's text from the client", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    client.asks["ask/model"] = function(params)
      assert.equal("s", params.session)
      assert.is_table(params.request.messages)
      return { text = "a summary of all" }
    end
    local outcome = client:call("session/compact", { session = "s", policy = ASKS_MODEL })
    assert.equal("applied", outcome.policy.verdict)
    has(select(2, client:call("session/context", { session = "s" })), "a summary of all")
  end)

  it("says which request it is", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    client:send("session/compact", { session = "s", policy = ASKS_MODEL }, "my run")
    local asked = question()
    assert.equal("my run", asked.params.run)
    answer(asked, { failed = "not now" })
    local outcome = client:wait "my run"
    has(outcome.policy.message, "not now")
  end)

  it("has no model if the client offers none", function()
    filled("s", 12)
    local outcome = client:call("session/compact", { session = "s", policy = ASKS_MODEL })
    assert.equal("refused", outcome.policy.verdict)
    has(outcome.policy.message, "did not offer")
  end)

  it("refuses wrong answers and goes on", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    for _, wrong in ipairs { "a text", {}, { text = 4 }, { txt = "x" }, { 1, 2 }, sessile.null } do
      client.asks["ask/model"] = function() return wrong end
      local outcome = client:call("session/compact", { session = "s", policy = ASKS_MODEL })
      assert.equal("refused", outcome.policy.verdict)
    end
    client:send("session/compact", { session = "s", policy = ASKS_MODEL }, 900)
    local asked = question()
    client:raw(('{"jsonrpc":"2.0","id":"%s","error":{"code":1,"message":"the model is away"}}')
      :format(asked.id))
    has(client:wait(900).policy.message, "the model is away")
    answer(asked, { text = "late" })
    answer({ id = "ask-99999" }, { text = "of nothing" })
    assert.is_table(client:call("session/info", { session = "s" }))
  end)

  it("is parked if the answer comes later, and answered by another process", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    client.asks["ask/model"] = { later = true }
    local outcome = client:call("session/compact", { session = "s", policy = ASKS_MODEL })
    assert.equal("paused", outcome.status)
    assert.equal(0, (client:finish()))
    client = rpc.start()
    local parked = client:call("session/parked", { session = "s" })
    assert.equal(outcome.pending_run, parked[1].id)
    local done = client:call("session/answer", { session = "s", text = "answered elsewhere",
      policy = ASKS_MODEL })
    assert.equal("applied", done.policy.verdict)
  end)

  it("holds up nobody", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    filled("other", 12)
    client:send("session/compact", { session = "s", policy = ASKS_MODEL }, "a")
    client:send("session/compact", { session = "other", policy = ASKS_MODEL }, "b")
    local first, second = question(), question()
    assert.equal(2, #client:call("store/list"))
    local _, busy = client:try("session/open", { session = "s", window = 1000 })
    assert.equal("BUSY", busy.data.status)
    _, busy = client:try("store/delete", { session = "s" })
    assert.equal("BUSY", busy.data.status)
    answer(second, { text = "second" })
    assert.equal("applied", client:wait("b").policy.verdict)
    answer(first, { text = "first" })
    assert.equal("applied", client:wait("a").policy.verdict)
  end)

  it("lets turns to its session be written, whose policies are left for later", function()
    client:call("rpc/hello", { asks = { "model" } })
    client:call("session/create", { id = "s", policy = ASKS_MODEL, triggers = { messages = 4 } })
    local ids, asked = {}, 0
    for i = 1, 12 do
      ids[i] = client:send("session/turn", { session = "s",
        messages = { user(("q%d "):format(i):rep(40)),
          { role = "assistant", content = "a" .. i } } })
    end
    client.asks["ask/model"] = function()
      asked = asked + 1
      return { text = "so far" }
    end
    local held = 0
    for _, id in ipairs(ids) do
      local outcome = client:wait(id)
      held = held + (outcome.held and 1 or 0)
      assert.equal(outcome.held or false, outcome.held and outcome.policy == nil or false)
    end
    assert.is_true(held > 0)
    assert.is_true(asked < 12, "asked " .. asked)
    assert.equal(24, #client:call("session/messages", { session = "s" }))
    local before = asked
    client:call("session/turn", { session = "s", messages = { user "the next" } })
    assert.is_true(asked >= before)
  end)

  it("is cancelled", function()
    client:call("rpc/hello", { asks = { "model" } })
    filled("s", 12)
    client:send("session/compact", { session = "s", policy = ASKS_MODEL }, "run")
    local asked = question()
    client:raw '{"jsonrpc":"2.0","method":"rpc/cancel","params":{"id":"run"}}'
    local outcome = client:wait "run"
    has(outcome.policy.message, "cancelled")
    answer(asked, { text = "too late" })
    client:raw('{"jsonrpc":"2.0","id":"x","method":"store/list"}\n'
      .. '{"jsonrpc":"2.0","method":"rpc/cancel","params":{"id":"x"}}')
    local rows, failure = client:wait "x"
    assert.is_true(rows ~= nil or failure.data.status == "CANCELLED")
    client:raw '{"jsonrpc":"2.0","method":"rpc/cancel","params":{"id":"nothing"}}'
    client:raw '{"jsonrpc":"2.0","method":"rpc/cancel"}'
    assert.equal(1, #client:call("store/list"))
  end)

  it("ends when the client leaves, and the turn is kept", function()
    client:call("rpc/hello", { asks = { "model" } })
    client:call("session/create", { id = "s", policy = ASKS_MODEL, triggers = { messages = 4 } })
    local list = {}
    for i = 1, 12 do
      list[i] = user(("message %d "):format(i):rep(20))
    end
    client:send("session/turn", { session = "s", messages = list }, 77)
    question()
    local code, rest = client:finish()
    assert.equal(0, code)
    has(rest, "ended its input")
    client = rpc.start()
    assert.equal(12, #client:call("session/messages", { session = "s" }))
  end)

  it("runs the hooks of the client", function()
    client:call("rpc/hello", { asks = { "hook" } })
    filled("s", 12)
    local seen
    client.asks["ask/hook"] = function(params, message)
      seen = params
      local id = client:send("run/message", { run = message.params.run, index = 3 })
      -- its answer comes while the hook waits
      local text
      repeat
        local got, line = client:line()
        text = got.id == id and line
      until text
      has(text, '"content":"question 3"')
      return { edits = { { "keep_last", 4, "messages" } }, log = "kept four" }
    end
    local outcome = client:call("session/compact", { session = "s",
      policy = { name = "mine", hooks = { "truncate" } } })
    assert.equal("applied", outcome.policy.verdict)
    assert.equal("truncate", seen.hook)
    assert.equal("mine", seen.policy)
    assert.equal(12, #seen.columns.key)
    assert.equal("user", seen.columns.role[1])
    assert.same({ "mine: kept four" }, outcome.log)
    assert.equal(4, #client:call("session/context", { session = "s" }).messages)
    client.asks["ask/hook"] = { edits = { { "explode" } } }
    outcome = client:call("session/compact", { session = "s",
      policy = { name = "mine", hooks = { "truncate" } } })
    has(outcome.policy.message, "edit 1 of the client")
    local _, failure = client:try("session/compact", { session = "s",
      policy = { hooks = { "truncat" } } })
    has(failure.message, "'truncate'")
    _, failure = client:try("run/message", { run = 1, index = 1 })
    assert.equal("NOTFOUND", failure.data.status)
  end)

  it("stores what a hook inserted or replaced, and asks should_compact and merge", function()
    client:call("rpc/hello", { asks = { "hook" } })
    filled("s", 10)
    local hooks = {}
    client.asks["ask/hook"] = function(params)
      hooks[#hooks + 1] = params.hook
      if params.hook == "should_compact" then
        return { value = true }
      elseif params.hook == "compact" then
        return { edits = { { "insert", 9, user "in short", { covers = { 1, 8 } } } } }
      end
      return {}
    end
    local outcome = client:call("session/turn", { session = "s", messages = { user "more" },
      policy = { name = "mine", hooks = { "should_compact", "compact" } } })
    assert.equal("applied", outcome.policy.verdict, outcome.policy.message)
    assert.same({ "should_compact", "compact" }, hooks)
    has(select(2, client:call("session/context", { session = "s" })), "in short")
  end)

  it("asks for the state of a checkpoint that is due", function()
    client:call("rpc/hello", { asks = { "state" } })
    client:call("session/create", { id = "s", checkpoint = { messages = 1 } })
    client.asks["ask/state"] = { state = { step = 3 } }
    local outcome = client:call("session/turn", { session = "s", messages = { user "x" } })
    assert.is_string(outcome.checkpoint)
    assert.same({ step = 3 }, client:call("session/restore",
      { session = "s", checkpoint = outcome.checkpoint }).state)
  end)

  it("asks for embeddings", function()
    client:call("rpc/hello", { asks = { "embed" }, embeds = { name = "spec", dims = 2 } })
    client.asks["ask/embed"] = function(params)
      local vectors = {}
      for i, text in ipairs(params.texts) do
        vectors[i] = text:find "cat" and { 1, 0 } or { 0, 1 }
      end
      return { vectors = vectors }
    end
    client:call("memory/write", { key = "pet", value = "a cat" })
    client:call("memory/write", { key = "car", value = "a van" })
    assert.equal(2, client:call("memory/embed").embedded)
    local found = client:call("memory/search", { question = "which cat" })
    assert.equal("pet", found.hits[1].key)
    assert.is_true(found.legs.vectors)
  end)

  it("asks a configured program without holding up others", function()
    cli.configure([[return { model = "slow", models = { slow = { command =
      { "/bin/sh", "-c", "cat >/dev/null; sleep 1; echo thought about it" } } } }]])
    client:stop()
    client = rpc.start()
    filled("s", 12)
    client:send("session/compact", { session = "s", policy = ASKS_MODEL }, "slow")
    local id = client:send("store/list")
    local order = {}
    for _ = 1, 2 do
      local message = client:line()
      order[#order + 1] = message.id
      if message.id == "slow" then
        assert.equal("applied", message.result.policy.verdict)
      end
    end
    assert.same({ id, "slow" }, order)
  end)
end)
