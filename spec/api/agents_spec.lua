-- What a store is told of its agents: how many sessions one may have, which are disabled, and how
-- much of the window is kept free.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local temp = require "spec.support.temp"

local function opened(options, url)
  options.key = false
  local store = assert(sessile.open(url or "ram:", options))
  finally(function() store:close() end)
  return store
end

-- That a call was refused with this code and a sentence that has this part.
local function refusal(code, part, ...)
  expect.has(expect.refused(code, ...), part)
end

teardown(temp.clean)

describe("limits.sessions_per_agent", function()
  it("refuses one session more, however it would be made, and says what to do", function()
    local store = opened { limits = { sessions_per_agent = 2 } }
    local s = store:create { id = "a" }
    s:append { role = "user", content = "hello" }
    assert(s:fork { id = "b" })
    local step = "delete one permanently, or raise the limit"
    refusal("ELIMIT", 'agent "main" has 2 sessions', store:create { id = "c" })
    refusal("ELIMIT", "limit [sessions_per_agent] is 2: " .. step, s:fork { id = "c" })
    refusal("ELIMIT", step, s:child { id = "c" })
    refusal("ELIMIT", step, s:child { id = "c", context = true })
    refusal("ELIMIT", step, store:session { id = "c" })
    local other = opened {}
    refusal("ELIMIT", step, store:put(other:create { id = "c" }))
    assert.equal(2, #store:list())
    assert.same({}, s:subsessions())
    assert.equal("b", store:session { id = "b" }.id)
    assert(s:child { id = "c", agent = "critic" })
    assert(store:delete("b"))
    assert(store:create { id = "c" })
  end)

  it("is no limit by default, or when it is 0", function()
    for _, limits in ipairs { {}, { sessions_per_agent = 0 } } do
      local store = opened { limits = limits }
      for i = 1, 20 do
        assert(store:create { id = "s" .. i })
      end
    end
  end)

  it("is refused where the host has the sessions", function()
    local function nothing() return nil end
    refusal("EUNSUPPORTED", "[sessions_per_agent]", sessile.open(
      { load = nothing, save = nothing, delete = nothing, list = nothing },
      { limits = { sessions_per_agent = 5 }, key = false }))
  end)
end)

describe("a disabled agent", function()
  local why = "agent 'coder' is disabled (agents.coder.enabled = false)"

  local function with_session()
    local place = temp.dir() .. "/store"
    local before = assert(sessile.open(place, { key = false }))
    local s = assert(before:create { id = "a", agent = "coder" })
    assert(s:append { role = "user", content = "hello" })
    before:close()
    return opened({ agents = { coder = { enabled = false } } }, place)
  end

  it("gets no new session", function()
    local store = with_session()
    local main = assert(store:create { id = "m" })
    refusal("EDENIED", why, store:create { id = "b", agent = "coder" })
    refusal("EDENIED", why, store:session { id = "b", agent = "coder" })
    refusal("EDENIED", why, main:fork { id = "b", agent = "coder" })
    refusal("EDENIED", why, main:child { id = "b", agent = "coder" })
    refusal("EDENIED", why, store:put(main, { id = "b", agent = "coder" }))
    refusal("EDENIED", why, store:resume({ id = "a", agent = "coder" }):fork { id = "b" })
    assert.equal(2, #store:list())
  end)

  it("has nothing added to its sessions, and no run", function()
    local store = with_session()
    local s = assert(store:session { id = "a", agent = "coder" })
    local asked = 0
    local function model()
      asked = asked + 1
      return "hi"
    end
    refusal("EDENIED", why, s:append { role = "user", content = "more" })
    refusal("EDENIED", why, s:turn { { role = "user", content = "more" } })
    refusal("EDENIED", why, sessile.step(s, "turn", { { role = "user", content = "more" } }))
    refusal("EDENIED", why, s:send("more", { model = model }))
    refusal("EDENIED", why, sessile.agent { model = model, session = s }:run "more")
    refusal("EDENIED", why, sessile.agent { model = model, store = store, session =
      { id = "b", agent = "coder" } }:run "more")
    refusal("EDENIED", why,
      sessile.agent { name = "coder", model = model, store = store, session = "b" }:run "more")
    assert.equal(0, asked)
    assert.equal(1, #s:messages())
  end)

  it("has no result of a child merged into its session", function()
    local place = temp.dir() .. "/store"
    local before = assert(sessile.open(place, { key = false }))
    assert(before:create({ id = "a", agent = "coder" }):child { id = "c", agent = "critic" })
    before:close()
    local store = opened({ agents = { coder = { enabled = false } } }, place)
    local child = assert(store:resume { id = "c", agent = "critic" })
    refusal("EDENIED", why, child:merge { summary = "done" })
    assert(child:discard())
  end)

  it("has nothing added to its memories, and gets none", function()
    local place = temp.dir() .. "/store"
    local before = assert(sessile.open(place, { key = false }))
    local id = assert(before:memory { agent = "coder" }:write("editor", "vim"))
    before:close()
    local store = opened({ agents = { coder = { enabled = false } } }, place)
    local memory = assert(store:memory { agent = "coder" })
    refusal("EDENIED", why, memory:write("editor", "emacs"))
    refusal("EDENIED", why, store:memory { agent = "coder", user = "ann", consent = "yes" })
    refusal("ENOTFOUND", "", store:memory { agent = "coder", user = "ann", must_exist = true })
    local s = assert(store:resume({ id = "a", agent = "coder" }) or store:create { id = "a" })
    assert.equal("main", s.agent)
    assert(s:memory():write("shell", "bash"))
    assert.equal("vim", memory:read("editor").value)
    assert.equal(id, memory:search("vim")[1].id)
    assert(memory:delete("editor", { reason = "asked" }))
    assert.same({}, memory:list())
  end)

  it("is read, annotated, compacted and deleted as before", function()
    local store = with_session()
    local s = assert(store:resume { id = "a", agent = "coder" })
    assert.equal("hello", s:context()[1].content)
    assert(s:label("00000001", "here"))
    assert(s:compact { policy = "sliding_window" })
    assert(s:export { format = "json", write = function() return true end })
    assert.equal("a", store:list()[1].id)
    assert(store:delete { id = "a", agent = "coder" })
  end)

  it("is another one than those that are not named, or enabled", function()
    local store = opened { agents = { coder = { enabled = true }, critic = { window = 100 } } }
    assert(store:create { agent = "coder" }):append { role = "user", content = "x" }
    assert(store:create { agent = "critic" }):append { role = "user", content = "x" }
  end)
end)

describe("a reserve", function()
  it("that leaves nothing of the window is refused where both are given", function()
    local why = "a reserve of 20 tokens leaves nothing of a window of 20"
    local given = { window = 20, reserve = 20, key = false }
    refusal("EINVALID", why, sessile.open("ram:", given))
    local store = opened {}
    given.key = nil
    refusal("EINVALID", why, store:create(given))
    local s = store:create { window = 20, reserve = 19 }
    refusal("EINVALID", why, s:turn({ { role = "user", content = "x" } }, given))
    assert.same({}, s:messages())
  end)

  it("that leaves nothing of the window is refused where one of them is inherited", function()
    local why = "a reserve of 20 tokens leaves nothing of a window of 15"
    local store = opened { reserve = 20, agents = { critic = { window = 15 } } }
    refusal("EINVALID", why, store:create { id = "a", window = 15 })
    refusal("EINVALID", why, store:create { id = "b", agent = "critic" })
    refusal("EINVALID", why, store:session { id = "c", window = 15 })
    local full = assert(store:create { id = "d" })
    full:append { role = "user", content = "x" }
    refusal("EINVALID", why, full:fork { id = "e", window = 15 })
    refusal("EINVALID", why, full:child { id = "f", window = 15 })
    assert.equal(1, #store:list())
    local s = assert(store:create { window = 15, reserve = 14 })
    refusal("EINVALID", why, s:turn({ { role = "user", content = "x" } }, { reserve = 20 }))
    refusal("EINVALID", "a reserve of 14 tokens leaves nothing of a window of 9",
      s:turn({ { role = "user", content = "x" } }, { window = 9 }))
    assert.same({}, s:messages())
    assert(s:turn({ { role = "user", content = "x" } }, { window = 9, reserve = 8 }))
  end)
end)
