-- Where sessions stand and how they are found: filters, order, ttl, archive, delete, purge.

local guarded = require "spec.support.guarded"
local lists = require "spec.support.lists"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local cli = require "spec.support.cli"
local sessile = require "sessile"

local user = messages.user

local function ids(rows)
  return lists.field(rows, "id")
end

local function sorted(list)
  table.sort(list)
  return list
end

local function code_of(value, message, code)
  assert.is_nil(value)
  assert.is_string(message)
  return code, message
end

stores.each_kind("sessions of", function(open)
  local store

  before_each(function()
    store = open()
  end)

  local function fill()
    for i, given in ipairs {
      { id = "a", title = "Beta release", user = "u1" }, { id = "b", title = "alpha" },
      { id = "c", title = "Gamma RELEASE", agent = "other" },
    } do
      local s <close> = assert(store:create(given))
      for n = 1, i do
        assert(s:append(user(given.id .. n)))
      end
      if i ~= 2 then
        assert(s:label("00000001", "ship"))
        assert(s:pin "00000001")
      end
    end
  end

  it("are listed by agent, user, label and title", function()
    fill()
    assert.same({ "a", "b", "c" }, sorted(ids(store:list())))
    assert.same({ "c" }, ids(store:list { agent = "other" }))
    assert.same({ "a" }, ids(store:list { user = "u1" }))
    assert.same({ "b", "c" }, sorted(ids(store:list { user = "" })))
    assert.same({ "a", "c" }, sorted(ids(store:list { label = "ship" })))
    assert.same({}, ids(store:list { label = "shi" }))
    assert.same({}, ids(store:list { label = "pinned" }))
    assert.same({ "a", "c" }, sorted(ids(store:list { search = "release" })))
    assert.same({ "b" }, ids(store:list { title = "alpha" }))
    assert.same({ "a" }, ids(store:list { label = "ship", search = "BETA" }))
    assert.same({ "ship" }, { table.unpack(store:list { user = "u1" }[1].labels) })
    assert.has_error(function() store:list { status = "gone" } end)
    assert.has_error(function() store:list { sort = "colour" } end)
  end)

  it("are sorted and paged", function()
    fill()
    assert.same({ "a", "c", "b" }, ids(store:list { sort = "title" }))
    assert.same({ "c", "b", "a" }, ids(store:list { sort = "messages" }))
    assert.same({ "b" }, ids(store:list { sort = "messages", offset = 1, limit = 1 }))
    assert.same({}, ids(store:list { sort = "title", offset = 3 }))
    local created = store:list { sort = "created" }
    for i = 2, #created do
      assert.is_true(created[i - 1].created >= created[i].created)
    end
  end)

  it("are listed by the time of their newest entry", function()
    fill()
    local newest = store:list { limit = 1 }[1].modified
    assert.same({}, ids(store:list { since = newest + 1 }))
    assert.equal(3, #store:list { ["until"] = newest + 1 })
    for _, row in ipairs(store:list { since = newest }) do
      assert.equal(newest, row.modified)
    end
  end)

  it("have a status", function()
    fill()
    local a <close> = assert(store:resume { id = "a", user = "u1" })
    assert.equal("active", a:life().status)
    assert(a:suspend { reason = "x" })
    assert.same({ "a" }, ids(store:list { status = "suspended" }))
    assert(a:archive())
    assert.equal("archived", a:life().status)
    assert.same({ "a" }, ids(store:list { status = { "archived", "expired" } }))
    assert(a:archive(false))
    assert(a:cancel())
    assert.same({}, ids(store:list { status = { "archived", "suspended" } }))
    assert.equal("active", store:list { user = "u1" }[1].status)
  end)

  it("expire, are found, used again, and purged by nobody but purge", function()
    local short <close> = assert(store:create { id = "short", ttl = "1ms" })
    local long <close> = assert(store:create { id = "long", ttl = 3600 })
    assert(store:create "never"):close()
    os.execute "sleep 0.01"
    assert.equal("expired", short:life().status)
    assert.equal(1, short:life().ttl)
    assert.equal(long.modified + 3600000, long:life().expires)
    assert.same({ "short" }, ids(store:list { status = "expired" }))
    assert.equal(3, #store:list())
    assert(short:append(user "still here"))
    assert(short:set_ttl "1h")
    assert.equal("active", short:life().status)
    assert.same({}, ids(store:purge()))
    assert(short:set_ttl "1ms")
    os.execute "sleep 0.01"
    assert.same({ "short" }, ids(store:purge { dry_run = true }))
    assert.equal(3, #store:list())
    assert.same({ "short" }, ids(store:purge()))
    assert.same({ "long", "never" }, sorted(ids(store:list())))
    assert.equal("ENOTFOUND", (code_of(short:append(user "too late"))))
    assert.equal("ENOTFOUND", (code_of(store:resume "short")))
  end)

  it("take the ttl of their store, or of their agent", function()
    local timed = open { ttl = { coder = "30d", main = 60 } }
    assert.equal(60000, assert(timed:create "a"):life().ttl)
    assert.equal(30 * 86400000, assert(timed:create { id = "b", agent = "coder" }):life().ttl)
    assert.is_nil(assert(timed:create { id = "c", agent = "else" }):life().ttl)
    assert.is_nil(assert(timed:create { id = "d", ttl = false }):life().ttl)
    assert.equal(5000, assert(timed:create { id = "e", ttl = "5s" }):life().ttl)
    timed:close()
    assert.has_error(function() open { ttl = "soon" } end)
    assert.has_error(function() store:create { id = "f", ttl = "soon" } end)
  end)

  it("are deleted softly and brought back, with all they had", function()
    fill()
    local held = assert(store:resume "b")
    local gone = assert(store:delete("b", { soft = true, reason = "done", actor = "ann" }))
    assert.matches("^%x+$", gone.id_hash)
    assert.same({ "a", "c" }, sorted(ids(store:list())))
    assert.same({ "b" }, ids(store:list { status = "deleted" }))
    local code, message = code_of(store:resume "b")
    assert.equal("ENOTFOUND", code)
    assert.matches("undelete", message)
    assert.equal("ENOTFOUND", (code_of(store:session "b")))
    assert.equal("EEXISTS", (code_of(store:create "b")))
    assert.equal("ENOTFOUND", (code_of(held:append(user "late"))))
    assert.equal("ENOTFOUND", (code_of(store:delete("b", { soft = true }))))
    held:close()
    assert.same({}, ids(store:purge()))
    assert(store:undelete("b", { actor = "bob" }))
    local b <close> = assert(store:resume "b")
    assert.equal(2, #b:messages())
    local facts = {}
    for entry in b:entries { types = { "metadata" } } do
      facts[#facts + 1] = entry.data
    end
    assert.same({ reason = "done", actor = "ann" }, facts[1].deleted)
    assert.equal("bob", facts[2].undeleted.actor)
    assert.equal("ENOTFOUND", (code_of(store:undelete "b")))
    assert.equal("ENOTFOUND", (code_of(store:undelete "nobody")))
  end)

  it("that were deleted softly are purged after their retention", function()
    fill()
    assert(store:delete("b", { soft = true }))
    os.execute "sleep 0.01"
    assert.same({}, ids(store:purge { retention = "90d" }))
    assert.same({}, ids(store:purge { retention = "1ms", agent = "other" }))
    assert.same({ "b" }, ids(store:purge { retention = "1ms" }))
    assert.equal("ENOTFOUND", (code_of(store:undelete "b")))
    assert(store:create "b")
  end)

  it("are deleted for good", function()
    fill()
    assert.equal("ENOTFOUND", (code_of(store:delete "nope")))
    assert.equal("ENOTFOUND", (code_of(store:delete("c", { agent = "main" })))) -- of another agent
    assert.equal("ENOTFOUND", (code_of(store:delete "a"))) -- of a user
    local held = assert(store:resume "b")
    local gone = assert(store:delete "b")
    assert.is_true(gone.bytes > 0 and gone.time > 0)
    assert.equal("ENOTFOUND", (code_of(store:delete "b")))
    assert.equal("ENOTFOUND", (code_of(held:append(user "late"))))
    held:close()
    assert(store:delete { id = { session_id = "a", user_id = "u1" } })
    assert(store:delete("c", { agent = "other" }))
    assert.same({}, ids(store:list()))
    local again <close> = assert(store:create "b")
    assert.equal(0, #again:messages())
    assert.has_error(function() store:delete(nil) end)
  end)
end)

describe("a deleted session", function()
  temp.each_test()

  it("leaves no word and no file but its record, nor what lay beside it", function()
    guarded.unguarded_only "what was decided about a store, and its audit, are files, too"
    temp.files_only "which are left"
    local path = temp.dir() .. "/store"
    local store = assert(sessile.open(path, { key = false }))
    local s = assert(store:create { id = "gone", title = "a secret title" })
    for i = 1, 600 do -- enough for an index
      assert(s:append(user("a secret word " .. i)))
    end
    s:close()
    assert(store:create "gone-too"):close()
    assert(store:create { id = "stays", title = "a public word" }):close()
    os.execute "sleep 2.2" -- so that a list keeps what it found
    assert.equal(3, #store:list())
    temp.write(path .. "/agents/main/gone.torn-77", "a secret word", "600")
    temp.write(path .. "/agents/main/gone.replaced-1", "a secret word", "600")
    assert(store:delete "gone")
    local left = {}
    for _, file in ipairs(temp.files(path)) do
      assert.is_nil(temp.read(file):find("secret", 1, true), file)
      left[#left + 1] = (file:match "[^/]*$":gsub("^deleted%-[%x-]+$", "its record"))
    end
    table.sort(left)
    assert.same({ "gone-too.jsonl", "its record", "keyring", "stays.jsonl" }, left)
    store:close()
  end)

  it("goes also when it does not open", function()
    temp.files_only "one is filled with zeros"
    local path = temp.dir() .. "/store"
    local store = assert(sessile.open(path, { key = sessile.key.secret(("k"):rep(40)) }))
    assert(store:create "hurt"):close()
    local log = path .. "/agents/main/hurt.jsonl"
    temp.write(log, ("\0"):rep(#temp.read(log)))
    assert.is_nil((store:resume "hurt"))
    assert(store:delete "hurt")
    assert.same({}, ids(store:list()))
    store:close()
  end)
end)

describe("the catalog on the command line", function()
  cli.each_test(function()
    cli.done "new --id one --title 'The first'"
    cli.done "append one hello"
    cli.done "new --id two --title 'The second'"
  end)

  local function listed(words)
    return ids(cli.json("list " .. (words or "")))
  end

  it("lists by status, time, label and title", function()
    cli.done "label one 1 ship"
    cli.done "archive two"
    assert.same({ "two" }, listed "--status archived")
    assert.same({ "one" }, listed "--label ship")
    assert.same({ "one" }, listed "--title FIRST")
    assert.equal(2, #listed "--since 1h")
    assert.equal(0, #listed "--until 2020-02-29")
    assert.equal(1, #listed "--offset 1")
    assert.matches("archived", (cli.done "list"), 1, true)
    local _, err, code = cli.sessile "list --since yesterday"
    assert.equal(2, code)
    assert.matches("2026-02-01", err, 1, true)
    for _, words in ipairs { "--status gone", "--since 2025-02-29", "--sort size --limit x" } do
      cli.fails(2, "list " .. words)
    end
    cli.done "archive two --undo"
    assert.same({}, listed "--status archived")
  end)

  it("hides what was deleted softly and brings it back", function()
    local _, note = cli.done "delete one --soft --reason 'not needed' --actor me"
    assert.matches("sessile undelete one", note)
    assert.same({ "two" }, listed())
    assert.same({ "one" }, listed "--status deleted")
    local _, err, code = cli.sessile "show one"
    assert.equal(3, code)
    assert.matches("sessile undelete one", err)
    cli.done "undelete 'The first'"
    assert.matches("hello", (cli.done "show one"), 1, true)
    _, err, code = cli.sessile "undelete one"
    assert.equal(3, code)
    assert.matches("session one is not deleted", err, 1, true)
    cli.no_traceback(err)
  end)

  it("asks before it removes for good", function()
    local _, err, code = cli.sessile "delete one"
    assert.equal(2, code)
    assert.matches("--yes", err, 1, true)
    assert.equal(2, #listed())
    cli.done "delete one --yes"
    cli.fails(2, "delete 'The second' --force", "delete two --yes") -- a title is not enough
    cli.done "delete two --force"
    assert.same({}, listed())
    cli.fails(3, "delete one --yes")
  end)

  it("purges what has expired, when it is told to", function()
    cli.done "new --id short --ttl 1ms"
    assert.same({ "short" }, listed "--status expired")
    assert.equal("expired", cli.json("info short").status)
    assert.matches("expired  short", (cli.done "purge --dry-run"), 1, true)
    assert.equal(3, #listed())
    cli.done "purge --yes"
    assert.equal(2, #listed())
    assert.equal(0, #cli.json("purge").purged)
  end)
end)
