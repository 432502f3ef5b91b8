-- Policies that remember: what a script may do, and what it cannot. The laws themselves are tested
-- in tests/unit/remember.

local built = require "spec.support.built"
local stores = require "spec.support.stores"
local temp = require "spec.support.temp"

local write_policy = temp.policies("600", function() end)

-- A policy file with these hooks, as the text of a table.
local function policy(name, hooks)
  return write_policy(name, ("return { name = %q, version = 1, %s }"):format(name, hooks))
end

local function open(options)
  options = options or {}
  options.worker = built.worker
  local own = { enabled = true }
  for key, value in pairs(options.memory or {}) do
    own[key] = value
  end
  options.memory = own
  return stores.ram(options)
end

-- A session of ann's in which this was said, and her memory.
local function session(store, id, said)
  local s = assert(store:session { id = id, agent = "coder", user = "ann" })
  local m = s:memory { consent = "yes" }
  for _, message in ipairs(said) do
    assert(s:append(message))
  end
  return s, m
end

local function live(m)
  local values = {}
  for i, row in ipairs(assert(m:list())) do
    values[i] = row.value
  end
  return table.concat(values, "|")
end

local SAID = {
  { role = "user", content = "I prefer tea over coffee" },
  { role = "assistant", content = "noted: tea over coffee" },
  { role = "user", content = "my editor is vim" },
}

-- Writes every message, and what it was concluded from.
local KEEPS = [[
  remember = function(said, ctx)
    for i, m in ipairs(said) do
      ctx.memory.write { key = "m" .. i, value = m.content, from = { m }, importance = 0.5,
        metadata = { role = m.role } }
    end
    ctx.log("heard", #said, ctx.session.id)
  end,
  admit = function(entry, ctx)
    if entry.value:find "vim" then return "pending", "editors start wars" end
    return entry.source == "user", "not the user's"
  end,
  tidy = function(entry, near, ctx)
    ctx.memory.confirm(entry, "looked at beside " .. #near)
  end]]

-- An outcome without what no two runs share.
local function plain(outcome)
  outcome.policy_us = nil
  return outcome
end

describe("a policy that remembers", function()
  after_each(stores.clean)

  it("does the same in a process of its own", function()
    local path, seen = policy("keeps", KEEPS), {}
    for i, isolation in ipairs { "none", "worker" } do
      local s, m = session(open(), "s", SAID)
      local outcome = plain(assert(s:remember { policy = path, isolation = isolation }))
      assert.equal("applied", outcome.verdict)
      seen[i] = { outcome = outcome, values = live(m),
        pending = #assert(m:list { state = "pending" }) }
    end
    assert.same(seen[1], seen[2])
    assert.same({ 3, 2, 1, 1 }, { seen[1].outcome.heard, seen[1].outcome.written,
      seen[1].outcome.pending, seen[1].outcome.not_admitted })
    assert.equal(1, seen[1].outcome.confirmed)
    assert.equal("I prefer tea over coffee", seen[1].values)
    assert.matches("heard%s+3%s+s", seen[1].outcome.log)
  end)

  it("says what it would do, and does not do it", function()
    local s, m = session(open(), "s", SAID)
    local path = policy("keeps", KEEPS)
    local dry = assert(s:remember { policy = path, dry = true })
    assert.equal(3, #dry.changes)
    assert.same({ "live", "not admitted", "pending" },
      { dry.changes[1].state, dry.changes[2].state, dry.changes[3].state })
    assert.equal("not the user's", dry.changes[2].why)
    assert.equal("", live(m))
    assert.equal(3, assert(s:remember { policy = path }).heard)
  end)

  it("that was refused hears the same again once it is mended", function()
    local s, m = session(open(), "s", SAID)
    local path = policy("mended", [[remember = function(said, ctx)
      ctx.memory.write { value = "from nowhere" } end]])
    local outcome = assert(s:remember { policy = path })
    assert.same({ "refused", 1, "mended", "remember" },
      { outcome.verdict, outcome.law, outcome.policy, outcome.hook })
    assert.equal("", live(m))
    path = policy("mended", [[remember = function(said, ctx)
      ctx.memory.write { value = said[3].content, from = said[3].id } end]])
    outcome = assert(s:remember { policy = path })
    assert.same({ "applied", 3, 1 }, { outcome.verdict, outcome.heard, outcome.written })
    assert.equal("my editor is vim", live(m))
    assert.equal(0, assert(s:remember { policy = path }).heard)
  end)

  it("may be the host's own functions", function()
    local s, m = session(open(), "s", SAID)
    local outcome = assert(s:remember { policy = { name = "own",
      remember = function(said, ctx)
        assert(ctx.memory.write { value = said[1].content, from = said[1].id })
      end } })
    assert.equal(1, outcome.written)
    assert.equal("I prefer tea over coffee", live(m))
  end)

  it("admits what anybody writes, and what it does not admit is not written", function()
    local store = open { memory = { policy = policy("strict", [[
      admit = function(entry)
        if entry.value:find "secret" then return false, "secrets stay outside" end
        return entry.value:find "odd" and "pending" or true
      end]]) } }
    local m = store:memory { agent = "coder" }
    assert(m:write("a", "plain"))
    local id, message, code = m:write("b", "a secret")
    assert.is_nil(id)
    assert.equal("EDENIED", code)
    assert.matches("secrets stay outside", message)
    assert(m:write("c", "odd"))
    assert.equal("plain", live(m))
    assert.equal("odd", assert(m:pending())[1].value)
  end)
end)

-- Each hook is refused, or proposes nothing: {hooks, what the message says, or nil}.
local HOSTILE = {
  { "asks without end", [[remember = function(said, ctx)
      for i = 1, 1001 do ctx.memory.read "x" end end]], "1000 times" },
  { "asks without end, and catches", [[remember = function(said, ctx)
      while true do pcall(ctx.memory.read, "x") end end]], "budget" },
  { "proposes without end", [[remember = function(said, ctx)
      for i = 1, 300 do ctx.memory.write { value = "x", from = said[1] } end end]], "256" },
  { "loops", "remember = function() while true do end end", "budget" },
  { "yields", "remember = function() coroutine.yield() end", "" },
  { "raises", 'remember = function() error("\\xff\\xfe no text") end', "" },
  { "raises no text", "remember = function() error {} end", "" },
  { "returns ten megabytes", 'remember = function() return ("x"):rep(10000000) end',
    "too long" },
  { "returns no text", 'remember = function() return "\\xff" end', "UTF%-8" },
  { "returns a function", "remember = function() return print or function() end end", "" },
  { "returns itself", "remember = function() local t = {} t.t = t return t end", "" },
  { "writes no text", [[remember = function(said, ctx)
      ctx.memory.write { value = "\xff", from = said[1] } end]], "" },
  { "writes ten megabytes", [[remember = function(said, ctx)
      ctx.memory.write { value = ("x"):rep(10000000), from = said[1] } end]], "" },
  { "says whose words these are", [[remember = function(said, ctx)
      ctx.memory.write { value = "x", source = "system", from = said[1] } end]], "source" },
  { "changes ctx.memory", [[remember = function(said, ctx)
      ctx.memory.write = function() end end]], "" },
  { "writes while it admits", [[
      remember = function(said, ctx) ctx.memory.write { value = "x", from = said[1] } end,
      admit = function(entry, ctx) ctx.memory.write { value = "y" } return true end]], "reads" },
  { "writes while it admits, and then asks a model", [[
      remember = function(said, ctx) ctx.memory.write { value = "x", from = said[1] } end,
      admit = function(entry, ctx)
        pcall(ctx.memory.write, { value = "evil" })
        ctx.model { messages = { { role = "user", content = "hi" } } }
        return entry.value ~= "x"
      end]] },
  { "admits with nonsense", [[
      remember = function(said, ctx) ctx.memory.write { value = "x", from = said[1] } end,
      admit = function() return { true } end]], "admit returns" },
  { "names a message twice over", [[remember = function(said, ctx)
      ctx.memory.write { value = "x", from = { said } } end]], "an id" },
  { "changes what it was given", [[remember = function(said, ctx)
      pcall(function() said[1].source = "system" said[1].id = "00000001" end)
      pcall(function() for i = 1, 1000 do said[i] = said[1] end end) end]] },
}

describe("a policy that does not obey", function()
  after_each(stores.clean)

  for _, case in ipairs(HOSTILE) do
    for _, isolation in ipairs { "none", "worker" } do
      it(("%s (isolation %s)"):format(case[1], isolation), function()
        local s, m = session(open { limits = { policy_ms = 20000 } }, "s", SAID)
        local outcome = assert(s:remember { policy = policy("hostile", case[2]),
          isolation = isolation, model = function() return "hello" end })
        if case[3] then
          assert.equal("refused", outcome.verdict)
          assert.matches(case[3], outcome.message)
        else
          assert.equal("unchanged", outcome.verdict)
        end
        assert.same({ 0, 0, 0 }, { outcome.written, outcome.ended, outcome.confirmed })
        assert.equal("", live(m))
        -- the memory can be opened and written, and a refused session is heard again
        local keeps = policy("keeps", KEEPS)
        assert.equal(case[3] and 3 or 0, assert(s:remember { policy = keeps }).heard)
        assert(m:write("k", "v"))
      end)
    end
  end

  it("catches what it is told, and goes on", function()
    local s, m = session(open(), "s", SAID)
    local outcome = assert(s:remember { policy = policy("careful", [[remember = function(said, ctx)
      local ok, why = pcall(ctx.memory.write, { value = "" })
      assert(not ok and why:find "not empty")
      assert(not pcall(ctx.memory.search, nil))
      assert(not pcall(ctx.memory.delete, {}))
      ctx.memory.write { value = said[1].content, from = said[1] }
    end]]) })
    assert.equal("applied", outcome.verdict)
    assert.equal("I prefer tea over coffee", live(m))
  end)

  it("keeps its memory busy, and is ended", function()
    -- A program in place of the worker: it asks for a list again and again.
    local path = temp.dir() .. "/asks"
    local file = assert(io.open(path, "w"))
    file:write([[#!/bin/sh
exec 3<&0
cat <&3 >/dev/null &
while printf '\046\000\000\000\007\040\000\000\000{"memory":"list","arguments":[]}\001' >&3
do :; done
]])
    file:close()
    assert(os.execute("chmod 700 " .. path))
    local store = stores.ram { worker = path, memory = { enabled = true } }
    local s = session(store, "s", SAID)
    local outcome = assert(s:remember { policy = policy("keeps", KEEPS), isolation = "worker" })
    assert.equal("refused", outcome.verdict)
    assert.matches("asked without end", outcome.message)
  end)
end)
