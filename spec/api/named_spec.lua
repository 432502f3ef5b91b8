-- Which session a program means: by its id alone, by an id and an agent, or by a row that names it.

local stores = require "spec.support.stores"
local user = require("spec.support.messages").user

stores.each_kind("a session in", function(open)
  local store

  before_each(function()
    store = open()
    for _, names in ipairs { { "one", "coder" }, { "two", "coder" }, { "two", "writer" },
      { "three", "coder" }, { "three", "main" }, { "four", "coder", "ann" } } do
      local s <close> = assert(store:create { id = names[1], agent = names[2], user = names[3] })
      assert(s:append(user(names[2])))
    end
  end)

  local function resumed(...)
    local s <close> = assert(store:resume(...))
    return s.agent, s.user
  end

  it("is found by its id if it is the only one", function()
    assert.equal("coder", (resumed "one"))
    assert.equal("coder", (resumed { id = "one" }))
  end)

  it("is the default agent's, if that has one", function()
    assert.equal("main", (resumed "three"))
    assert.equal("coder", (resumed { id = "three", agent = "coder" }))
  end)

  it("is not chosen among several: the error names them", function()
    local got, message, code = store:resume "two"
    assert.is_nil(got)
    assert.equal("EINVALID", code)
    assert.equal('there are 2 sessions "two": name the agent, one of coder, writer', message)
  end)

  it("is of the user that is named, or of nobody", function()
    local got, _, code = store:resume "four"
    assert.is_nil(got)
    assert.equal("ENOTFOUND", code)
    assert.same({ "coder", "ann" }, { resumed { id = "four", user = "ann" } })
    assert.same({ "coder", "ann" }, { resumed { session_id = "four", user_id = "ann" } })
  end)

  it("is not there if no agent has it", function()
    local got, message, code = store:resume "five"
    assert.is_nil(got)
    assert.equal("ENOTFOUND", code)
    assert.truthy(message:find('"five"', 1, true), message)
    assert.is_nil((store:resume "tw"))
  end)

  it("is named by any row that names it", function()
    for _, row in ipairs(assert(store:list())) do
      local s <close> = assert(store:resume(row))
      assert.same({ row.id, row.agent, row.user or "" }, { s.id, s.agent, s.user })
    end
    for hit in assert(store:search("coder", { agent = "coder", user = "ann" })) do
      assert.same({ "coder", "ann" }, { resumed(hit) })
    end
    local s <close> = assert(store:resume { id = "two", agent = "writer" })
    local child <close> = assert(s:child { id = "child", agent = "helper" })
    assert.equal("helper", (resumed(s:subsessions()[1])))
    assert.equal("writer", (resumed(child.parent)))
    assert.equal("writer", (resumed { id = child.parent, window = 500 }))
  end)

  it("is deleted, restored and checked by its row", function()
    local row = assert(store:list { user = "ann" })[1]
    assert.equal(1, assert(store:check(row)).sessions)
    assert.equal(1, assert(store:check { id = row, salvage = true }).sessions)
    assert(store:delete(row, { soft = true }))
    assert.same({}, assert(store:list { user = "ann" }))
    assert(store:undelete(assert(store:list { status = "deleted" })[1]))
    assert(store:delete(row))
    assert.is_nil((store:resume(row)))
    assert.equal(5, #assert(store:list()))
  end)

  it("is deleted by its id if it is the only one, and never one of several", function()
    local got, message, code = store:delete "two"
    assert.is_nil(got)
    assert.equal("EINVALID", code)
    assert.equal('there are 2 sessions "two": name the agent, one of coder, writer', message)
    assert.equal(6, #assert(store:list()))
    assert(store:delete "one")
    assert.equal(5, #assert(store:list()))
  end)
end)

describe("a store that was opened for", function()
  local folder = require "spec.support.temp".dir() .. "/store"
  local s

  before_each(function()
    local all = stores.open(folder, { key = false })
    s = assert(all:session { id = "x", agent = "coder", user = "ann" })
    assert(all:session { id = "y", agent = "coder" })
  end)
  after_each(stores.clean)

  it("one agent finds no session of another by its id", function()
    local store = stores.open(folder, { key = false, agent = "writer" })
    local got, _, code = store:resume "y"
    assert.is_nil(got)
    assert.equal("ENOTFOUND", code)
    assert.equal("coder", assert(store:resume { id = "y", agent = "coder" }).agent)
  end)

  it("one user finds that user's sessions, of any agent", function()
    local store = stores.open(folder, { key = false, user = "ann" })
    assert.equal(s.agent, assert(store:resume "x").agent)
    local got, _, code = store:resume "y"
    assert.is_nil(got)
    assert.equal("ENOTFOUND", code)
  end)
end)

it("a store of the host's opens a row of its list", function()
  local kept = {}
  local store = stores.open({
    load = function(id) return kept[id] end,
    save = function(id, new) kept[id] = new.records return true end,
    list = function() return { "a" } end,
  })
  assert(store:create "a")
  assert.equal("a", assert(store:resume(store:list()[1])).id)
  assert.is_nil((store:resume "b"))
  stores.clean()
end)
