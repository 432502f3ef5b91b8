-- Forks and whole copies, in Lua and on the command line.

local stores = require "spec.support.stores"
local cli = require "spec.support.cli"
local messages = require "spec.support.messages"
local sessile = require "sessile"

local user, said = messages.user, messages.said

stores.each_kind("a fork in", function(open)
  local store, s

  before_each(function()
    store = open()
    s = assert(store:create { id = "a", title = "a title" })
    assert(s:append(user "one"))
    assert(s:append(user "two"))
    assert(s:append(user "three"))
  end)

  it("has everything up to the entry, and goes its own way", function()
    local fork = assert(s:fork("00000002", { id = "b" }))
    assert.equal("b", fork.id)
    assert.equal("one two", said(fork))
    assert.equal("00000002", fork:head())
    assert.equal("a title", fork.title)
    assert(fork:append(user "other"))
    assert(s:append(user "four"))
    assert.equal("one two other", said(fork))
    assert.equal("one two three four", said(s))
  end)

  it("is saved at once, and says what it is a fork of", function()
    local fork = assert(s:fork("00000001", { id = "b", agent = "critic", title = "mine" }))
    assert(fork:close())
    fork = assert(store:resume { id = "b", agent = "critic" })
    assert.equal("one", said(fork))
    assert.equal("mine", fork.title)
    local origin = fork.origin
    assert.equal("a", origin.id)
    assert.equal("main", origin.agent)
    assert.equal("", origin.user)
    assert.equal("00000001", origin.entry)
    assert.matches("^%x+$", origin.tag)
    assert.is_nil(s.origin)
  end)

  it("is made at the head without an entry, with an id of its own", function()
    local fork = assert(s:fork())
    assert.equal("one two three", said(fork))
    assert.matches("^%x+%-%x+%-7", fork.id)
    assert.equal("one two three", said(assert(s:fork { id = "c" })))
    assert.not_equal("a", store:list({ limit = 1 })[1].id) -- it is younger than its entries
  end)

  it("can be forked, and deleting what it came from does not hurt it", function()
    local b = assert(s:fork("00000002", { id = "b" }))
    local c = assert(b:fork("00000001", { id = "c" }))
    assert(b:close())
    assert.equal("one", said(c))
    assert.equal("b", c.origin.id)
    assert.is_true(assert(store:check()).ok)
  end)

  it("has the policy and the model of its session", function()
    local asked = 0
    local t = assert(store:create { id = "t", model = function()
      asked = asked + 1
      return "in short"
    end, policy = {
      summarize = function(state, ctx)
        local text = assert(ctx.model { messages = { { role = "user", content = "?" } } })
        state:insert(1, { role = "user", content = text }, { covers = { 1, 1 } })
      end,
    } })
    for _, text in ipairs { "a long first question, to be shortened", "b", "c" } do
      assert(t:append(user(text)))
    end
    local fork = assert(t:fork())
    assert.equal("applied", assert(fork:compact()).policy.verdict)
    assert.equal(1, asked)
    assert.equal("unchanged", assert(assert(t:fork { policy = {
      truncate = function() end,
    } }):compact()).policy.verdict)
  end)

  it("says what it refuses", function()
    local function refuse(code, entry, opts)
      local fork, message, got = s:fork(entry, opts)
      assert.is_nil(fork)
      assert.equal(code, got)
      assert.is_string(message)
    end
    refuse("ENOTFOUND", "00000063", { id = "b" })
    refuse("EEXISTS", "00000001", { id = "a" })
    assert.has_error(function() s:fork(7) end)
    assert.has_error(function() s:fork("00000001", { name = "b" }) end)
    s:close()
    refuse("ECLOSED", nil, nil)
  end)

  it("is copied whole into another store", function()
    local other <close> = assert(sessile.open "ram:")
    local copy = assert(other:put(s))
    assert.equal("a", copy.id)
    assert.equal("one two three", said(copy))
    assert.equal(s.created, copy.created)
    local _, _, code = other:put(s)
    assert.equal("EEXISTS", code)
    assert.equal("copy", assert(other:put(s, { id = "copy" })).id)
    -- and back
    assert(other:resume("copy"):append(user "four"))
    assert.equal("one two three four", said(assert(store:put(other:resume "copy"))))
    assert.has_error(function() other:put "a" end)
  end)
end)

describe("sessile fork", function()
  local home

  cli.each_test(function(path)
    home = path
    cli.done "new --id a --title 'A title'"
    cli.done "append a one"
    cli.done "append a two"
  end)

  it("prints nothing but the new id, which list shows", function()
    local out = cli.done "fork a"
    local id = out:match "^(%S+)\n$"
    assert.is_string(id)
    assert.truthy(cli.done("list --json"):find(id, 1, true))
    assert.equal(2, #cli.json("show " .. id))
  end)

  it("takes an entry, an id, a title, an agent", function()
    assert.equal("b\n", (cli.done "fork a 1 --id b --title Other --to-agent critic"))
    local info = cli.json "info b"
    assert.equal(1, info.messages)
    assert.equal("Other", info.title)
    assert.equal("critic", info.agent)
    assert.equal("a", info.origin.id)
    assert.equal("00000001", info.origin.entry)
    assert.matches("forked +from a %(agent main%) at 00000001", (cli.done "info b"))
    assert.is_nil(cli.json("info a").origin)
    assert.equal("c\n", (cli.done "fork a@1 --id c"))
    assert.equal("00000001", cli.json("info c").origin.entry)
    assert.equal(3, (select(3, cli.sessile "fork a@nowhere")))
    cli.done "check"
  end)

  it("info shows a child and its parent", function()
    cli.write(home .. "/child.lua", [[
      local sessile = require "sessile"
      local store <close> = assert(sessile.open(nil, assert(sessile.config())))
      local parent = assert(store:session "p")
      assert(assert(parent:child { id = "c", agent = "searcher" }):discard())
    ]])
    cli.done("run " .. cli.quote(home .. "/child.lua"))
    assert.matches("child of +p %(agent main%) at 00000000", (cli.done "info c"))
    assert.matches("children +c %(agent searcher%) at 00000000, discarded", (cli.done "info p"))
    assert.equal("discarded", cli.json("info p").children[1].state)
  end)

  it("says what is wrong", function()
    local function refuse(words, exit, text)
      local _, err, code = cli.sessile(words)
      assert.equal(exit, code, err)
      assert.truthy(err:find(text, 1, true), err)
      cli.no_traceback(err)
    end
    refuse("fork a 99", 3, "sessile tree a")
    refuse("fork a nonsense", 3, "hexadecimal")
    refuse("fork a --id a", 1, "exists")
    refuse("fork a --id last", 2, "last")
    refuse("fork nobody", 3, "nobody")
    assert.equal(1, #cli.json "list")
  end)
end)
