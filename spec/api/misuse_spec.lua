-- A call that is wrong raises at the line that made it, and says which function it was; a text
-- that is no entry is no mistake of the program: nil, a sentence, ENOTFOUND.
-- Files only: wrong calls do not come to a store.
-- Own guard: which line is blamed, and a wrapper has a line.

local sessile = require "sessile"
local stores = require "spec.support.stores"
local user = require("spec.support.messages").user

local store, s, first

stores.each_test(function()
  store = stores.ram()
  s = assert(store:create { id = "bug" })
  first = assert(s:append(user "hello"))
  assert(s:append(user "again"))
end)

-- Each call stands on one line of this file; the second word is what its error begins with.
local wrong = {
  { "sessile.open", function() sessile.open("ram:", { policy = true }) end },
  { "sessile.open", function() sessile.open("ram:", { policy = { "mask", [2.5] = 1 } }) end },
  { "sessile.open", function() sessile.open("ram:", { policy = { compcat = print } }) end },
  { "sessile.open", function() sessile.open("ram:", { key = "abc" }) end },
  { "sessile.open", function() sessile.open("ram:", { kye = "abc" }) end },
  { "sessile.open", function() sessile.open("ram:", { limits = { massage = 1 } }) end },
  { "sessile.open", function() sessile.open("ram:", { triggers = { share = 7 } }) end },
  { "sessile.open", function() sessile.open("ram:", { checkpoint = { keep = 0 } }) end },
  { "sessile.open", function() sessile.open("ram:", { ttl = "soon" }) end },
  { "sessile.open", function() sessile.open("ram:", { agent_info = { verson = "1" } }) end },
  { "sessile.open", function() sessile.open("ram:", { tools = { f = { rum = print } } }) end },
  { "sessile.open", function() sessile.open { load = 1 } end },
  { "sessile.open", function() sessile.open(7) end },
  { "sessile.keys_init", function() sessile.keys_init("ram:", { key = "abc" }) end },
  { "sessile.key.env", function() sessile.key.env(7) end },
  { "sessile.key.command", function() sessile.key.command {} end },
  { "sessile.decode", function() sessile.decode(7) end },
  { "sessile.step", function() sessile.step(s, "trun") end },
  { "sessile.agent", function() sessile.agent { tools = { f = { rum = print } } } end },
  { "sessile.agent", function() sessile.agent(7) end },
  { "sessile.send", function() sessile.send { tools = { f = 7 } } end },
  { "store:create", function() store:create { policy = true } end },
  { "store:create", function() store:create { triggers = { share = 7 } } end },
  { "store:create", function() store:create { uuid = "v5" } end },
  { "store:session", function() store:session(7) end },
  { "store:resume", function() store:resume { id = {} } end },
  { "store:put", function() store:put(7) end },
  { "store:list", function() store:list { sort = "shape" } end },
  { "store:list", function() store:list { status = "lost" } end },
  { "store:purge", function() store:purge { retention = "soon" } end },
  { "store:delete", function() store:delete(7) end },
  { "session:turn", function() s:turn { "hello" } end },
  { "session:turn", function() s:turn(user "hello") end },
  { "session:turn", function() s:turn({}, { policy = true }) end },
  { "session:turn", function() s:turn({}, { fallback = { sumarize = print } }) end },
  { "session:turn", function() s:turn({}, { on_conflict = "hope" }) end },
  { "session:turn", function() sessile.step(s, "turn", { "hello" }) end },
  { "session:compact", function() s:compact { policy = 7 } end },
  { "session:plan", function() s:plan { polciy = "mask" } end },
  { "session:branch", function() s:branch(7) end },
  { "session:branch", function() s:branch(first, { on_conflict = "hope" }) end },
  { "session:branch", function() s:branch(first, { summary = 7 }) end },
  { "session:send", function() s:send("hi", { tools = { f = { rum = print } } }) end },
  { "session:send", function() s:send("hi", { tools = { f = {} } }) end },
  { "session:send", function() s:send {} end },
  { "session:fork", function() s:fork(7) end },
  { "session:fork", function() s:fork { policy = true } end },
  { "session:fork", function() s:fork { tools = { f = { rum = print } } } end },
  { "session:child", function() s:child { titel = "x" } end },
  { "session:entry", function() s:entry(7) end },
  { "session:path", function() s:path(7) end },
  { "session:children", function() s:children() end },
  { "session:common_ancestor", function() s:common_ancestor(first) end },
  { "session:label", function() s:label(7, "x") end },
  { "session:label", function() s:label(first) end },
  { "session:unlabel", function() s:unlabel() end },
  { "session:pin", function() s:pin() end },
  { "session:why", function() s:why() end },
  { "session:uncompact", function() s:uncompact(7) end },
  { "session:restore", function() s:restore(7) end },
  { "session:set_ttl", function() s:set_ttl "soon" end },
  { "session:settings", function() s:settings(7) end },
  { "session:resume_with", function() s:resume_with(7) end },
}

describe("a call that is wrong", function()
  for i, case in ipairs(wrong) do
    local who, call = case[1], case[2]
    local line = debug.getinfo(call, "S").linedefined

    it(("raises at its own line: %d, %s"):format(i, who), function()
      local ok, message = pcall(call)
      assert.is_false(ok)
      local at, text = message:match "misuse_spec%.lua:(%d+): (.*)"
      assert.equal(tostring(line), at, message)
      assert.equal(who, text:sub(1, #who), message)
    end)
  end

  it("is found in a coroutine too, and through a pcall of the method itself", function()
    local run = coroutine.create(function() s:fork(7) end)
    local _, message = coroutine.resume(run)
    assert.matches("misuse_spec%.lua:%d+: session:fork: ", message)
    _, message = pcall(s.fork, s, 7)
    assert.matches("misuse_spec%.lua:%d+: session:fork: ", message)
  end)
end)

-- What is done to an entry, whatever names it.
local on_entry = {
  entry = function(e) return s:entry(e) end,
  path = function(e) return s:path(e) end,
  children = function(e) return s:children(e) end,
  siblings = function(e) return s:siblings(e) end,
  common_ancestor = function(e) return s:common_ancestor(e, first) end,
  label = function(e) return s:label(e, "another") end,
  unlabel = function(e) return s:unlabel(e) end,
  pin = function(e) return s:pin(e) end,
  why = function(e) return s:why(e) end,
  branch = function(e) return s:branch(e) end,
  fork = function(e) return s:fork(e) end,
  ["messages from"] = function(e) return s:messages { from = e } end,
  ["context of a leaf"] = function(e) return s:context { at = e } end,
}

describe("an entry", function()
  for name, call in pairs(on_entry) do
    it("may be named by its label: " .. name, function()
      assert(s:label(first, "start"))
      assert(call "start")
    end)

    it("that is not there is ENOTFOUND: " .. name, function()
      local got, message, code = call "nowhere"
      assert.is_nil(got)
      assert.equal("ENOTFOUND", code)
      assert.truthy(message:find('"nowhere" is neither an entry nor a label', 1, true), message)
      got, message, code = call "0000007f"
      assert.is_nil(got)
      assert.equal("ENOTFOUND", code, message)
    end)

    it("is not chosen among two of one label: " .. name, function()
      assert(s:label(first, "twice"))
      assert(s:label(s:head(), "twice"))
      local got, message, code = call "twice"
      assert.is_nil(got)
      assert.equal("EINVALID", code)
      assert.truthy(message:find(first, 1, true), message)
    end)
  end

  it("is the one with the label, and the head moves there", function()
    assert(s:label(first, "start"))
    assert(s:branch "start")
    assert.equal(1, #s:messages())
    assert.equal(first, s:why("start").key)
    assert.equal(1, #assert(s:fork "start"):messages())
    assert(s:pin "start")
    assert.equal("pinned", s:labels()[1].name == "start" and s:labels()[2].name
      or s:labels()[1].name)
  end)

  it("goes by its id when eight digits are a label too", function()
    assert(s:label(s:head(), first))
    assert.equal("hello", s:entry(first).data.content)
  end)
end)
