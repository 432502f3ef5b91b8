-- Searching the text of all sessions: in Lua, and as somebody types it.

local stores = require "spec.support.stores"
local messages = require "spec.support.messages"
local cli = require "spec.support.cli"
local sessile = require "sessile"

local user = messages.user

-- Hits as "session kind entry".
local function found(store, text, opts)
  local list = {}
  for hit in assert(store:search(text, opts)) do
    list[#list + 1] = ("%s %s %s"):format(hit.session, hit.kind, hit.entry or "-")
  end
  return list
end

stores.each_kind("searching", function(open)
  local store

  before_each(function()
    store = open()
    for _, given in ipairs {
      { id = "a", title = "Refund", user = "ann" }, { id = "b", agent = "other" },
    } do
      local s <close> = assert(store:create(given))
      assert(s:append(user("please REFUND the order " .. given.id)))
      assert(s:append { role = "assistant", content = "done" })
      assert(s:label("00000002", "refunded"))
    end
  end)

  it("finds titles, labels and messages", function()
    local list = found(store, "refund")
    table.sort(list)
    assert.same({ "a label 00000002", "a message 00000001", "a title -",
      "b label 00000002", "b message 00000001" }, list)
  end)

  it("says where, and what is around it", function()
    local hit = assert(store:search("refund", { agent = "main", role = "user" }))()
    assert.equal("please REFUND the order a", hit.text)
    assert.equal("REFUND", hit.text:sub(hit.first, hit.last))
    assert.equal("a", hit.session)
    assert.equal("main", hit.agent)
    assert.equal("ann", hit.user)
    assert.equal("Refund", hit.title)
    assert.equal("user", hit.role)
    assert.equal("content", hit.field)
    assert.is_true(hit.time > 0)
    assert.is_false(hit.cut_before)
  end)

  it("takes what a list takes", function()
    assert.same({ "b message 00000001" }, found(store, "refund", { agent = "other",
      roles = { "user" } }))
    assert.same({ "a message 00000001" }, found(store, "refund", { user = "ann",
      role = "user" }))
    assert.same({}, found(store, "refund", { exact = true, label = "nothing" }))
    assert.same({ "a message 00000001" }, found(store, "REFUND", { exact = true,
      agent = "main" }))
    assert.same({}, found(store, "refund", { since = os.time() * 1000 + 60000 }))
    assert(store:delete({ id = "a", user = "ann" }, { soft = true }))
    assert.same({ "b label 00000002", "b message 00000001" }, found(store, "refund"))
    assert.equal(3, #found(store, "refund", { status = "deleted" }))
  end)

  it("stops where its caller stops, and at the limit", function()
    local seen = 0
    for _ in assert(store:search "refund") do
      seen = seen + 1
      if seen == 2 then break end
    end
    assert.equal(2, #found(store, "refund", { limit = 2 }))
    assert.equal(#found(store, "refund"), #found(store, "refund", { limit = 0 })) -- no limit
    local all = assert(store:search("refund", { limit = 1 }))
    assert.is_table(all())
    assert.is_nil(all())
    assert.is_nil(all())
  end)

  it("tells how far it is when there is nothing", function()
    local sessions = {}
    assert.same({}, found(store, "nowhere", {
      on_step = function(step) sessions[step.session] = step.total end,
    }))
    assert.same({ a = 2, b = 2 }, sessions)
  end)

  it("refuses what is no text", function()
    local none, message, code = store:search ""
    assert.is_nil(none)
    assert.equal("EINVALID", code)
    assert.truthy(message:find "empty")
    assert.has_error(function() store:search(7) end)
    assert.has_error(function() store:search("x", { colour = "red" }) end)
    assert.has_error(function() store:search("x", { roles = { "nobody" } }) end)
  end)
end)

describe("searching a store of the host's", function()
  it("is not supported, and says so", function()
    local store <close> = assert(sessile.open {
      load = function() return nil end, save = function() return true end,
    })
    local none, _, code = store:search "x"
    assert.is_nil(none)
    assert.equal("EUNSUPPORTED", code)
  end)
end)

describe("sessile search", function()
  cli.each_test(function()
    cli.done "new --id first --title 'The deploy'"
    cli.done("append first -", "the Deploy \27[31mfailed\27]0;owned\7 at noon")
    cli.done "new --id second --agent coder"
    cli.done("append second -", "deploy again, \u{202E}please")
  end)

  it("groups what it found by session, and shows nothing that a terminal obeys", function()
    local out, err = cli.done "search deploy"
    assert.truthy(out:find("first", 1, true))
    assert.truthy(out:find("second  agent coder", 1, true))
    assert.truthy(out:find("The deploy", 1, true))
    assert.truthy(out:find("00000001  user", 1, true))
    assert.truthy(out:find("the Deploy failed", 1, true))
    assert.is_nil(out:find "[\27\7]")
    assert.is_nil(out:find("\u{202E}", 1, true))
    assert.truthy(err:find("3 hits in 2 sessions", 1, true))
  end)

  it("prints JSON whose ranges point at what was found", function()
    local list = cli.json "search DEPLOY --role user"
    assert.equal(2, #list)
    for _, hit in ipairs(list) do
      assert.equal("deploy", hit.text:sub(hit.first, hit.last):lower())
      assert.equal("00000001", hit.entry)
    end
  end)

  it("narrows by agent, moment, role and number", function()
    assert.equal(1, #cli.json "--agent coder search deploy")
    assert.equal(0, #cli.json "search deploy --role tool")
    assert.equal(0, #cli.json "search deploy --until 2020-01-01")
    assert.equal(2, #cli.json "search deploy --limit 2")
    assert.equal(1, #cli.json "search Deploy --exact")
    local _, err, code = cli.sessile "search deploy --since yesterday"
    assert.equal(2, code)
    assert.truthy(err:find("neither a date", 1, true))
  end)

  it("says when there is nothing", function()
    local out, err = cli.done "search nowhere"
    assert.equal("", out)
    assert.truthy(err:find("'nowhere' was not found", 1, true))
    local _, why, code = cli.sessile "search ''"
    assert.equal(1, code)
    assert.truthy(why:find("empty", 1, true))
    cli.no_traceback(why)
  end)

  it("names a session that cannot be read, and finds the others", function()
    cli.files_only "one is damaged"
    local pipe <close> = assert(io.popen("grep -rl . " .. cli.quote(cli.home()) ..
      "/data/sessile/agents --include=*.jsonl --exclude-dir='guard.*'"))
    local paths = {}
    for path in pipe:lines() do
      paths[#paths + 1] = path
    end
    assert.equal(2, #paths)
    local file <close> = assert(io.open(paths[1], "r+"))
    file:seek("set", 30)
    file:write "##########"
    file:close()
    local out, err = cli.done "search deploy"
    assert.truthy(out:find "deploy" or out:find "Deploy")
    assert.truthy(err:find "hits? in 1 session")
    assert.truthy(#err > 60, err)
  end)
end)
