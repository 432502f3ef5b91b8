-- Sessions of sub-agents: begun from a parent, merged back or discarded.

local stores = require "spec.support.stores"
local M = require "spec.support.messages"

local user, said = M.user, M.said

stores.each_kind("a child in", function(open)
  local store, s

  before_each(function()
    store = open()
    s = assert(store:create { id = "main task" })
    assert(s:append(user "plan"))
  end)

  it("has a log of its own, and both name each other", function()
    local child = assert(s:child { agent = "searcher", id = "look it up" })
    assert.same({}, assert(child:messages()))
    assert(child:append(user "search"))
    assert.equal("plan", said(s))
    assert.same({ id = "main task", agent = "main", user = "", entry = "00000001" },
      child.parent)
    assert.is_nil(s.parent)
    local rows = assert(s:subsessions())
    assert.equal(1, #rows)
    assert.equal("look it up", rows[1].id)
    assert.equal("searcher", rows[1].agent)
    assert.equal("00000001", rows[1].entry)
    assert.equal("open", rows[1].state)
    assert.equal("00000001", s:head())
    assert(child:close())
    child = assert(store:resume { id = "look it up", agent = "searcher" })
    assert.equal("main task", child.parent.id)
    assert.same({}, assert(child:subsessions()))
    assert.is_true(assert(store:check()).ok)
  end)

  it("begins with the parent's context when asked to", function()
    local child = assert(s:child { context = true })
    assert.equal("plan", said(child))
    assert.equal("main task", child.parent.id)
    assert.equal("main task", child.origin.id)
    assert(child:append(user "more"))
    assert.equal("plan", said(s))
  end)

  it("is merged whatever bytes its agent and id are", function()
    local child = assert(s:child { agent = "\xff\xfe", id = "\0\x80" })
    assert(child:append(user "search"))
    assert(child:merge { summary = "found it" })
    assert.equal("merged", s:subsessions()[1].state)
    assert.same({ kind = "child_summary", child = { b64 = "AIA=" }, agent = { b64 = "//4=" } },
      s:messages { last = 1 }[1].metadata)
  end)

  it("is merged as a message that starts no turn", function()
    local child = assert(s:child { agent = "searcher", id = "c" })
    assert(child:append(user "search"))
    local id = assert(child:merge { summary = "found it" })
    assert.equal("plan found it", said(s))
    local messages = s:messages()
    assert.equal(id, messages[2].id)
    assert.same({ kind = "child_summary", child = "c", agent = "searcher" },
      messages[2].metadata)
    local row = s:subsessions()[1]
    assert.equal("merged", row.state)
    assert.equal(id, row.merged)
    -- the parent's handle has seen it: a turn goes on from there
    assert(s:turn { user "go on" })
    -- and one that is closed is opened for it
    assert(s:close())
    assert(child:merge { summary = "once more", role = "assistant" })
    s = assert(store:resume "main task")
    assert.equal("plan found it go on once more", said(s))
    assert.equal(1, #s:subsessions())
  end)

  it("is summarised by the model", function()
    local asked
    local child = assert(s:child { model = function(request)
      asked = request
      return "in short"
    end })
    assert(child:append(user "search for the needle"))
    assert(child:append { role = "assistant", content = "", tool_calls = {
      { id = "1", name = "grep", arguments = "{}" } } })
    assert(child:merge { summary = true })
    assert.equal("plan in short", said(s))
    assert.equal("child_summary", asked.purpose)
    assert.truthy(asked.messages[2].content:find("needle", 1, true))
    assert.truthy(asked.messages[2].content:find("grep", 1, true))
  end)

  it("takes a summary from a model that answers with messages, and says who asks", function()
    local child = assert(s:child { model = function(_, ctx)
      return { content = { { type = "text", text = "of " .. ctx.session.id } } }
    end, id = "c" })
    assert(child:append(user "search for the needle"))
    assert(child:merge { summary = true })
    assert.equal("plan of c", said(s))
  end)

  it("merges nothing when the model fails", function()
    local child = assert(s:child())
    for model, code in pairs {
      [function() error "no" end] = "EPOLICY",
      [function() return nil, "busy" end] = "EPOLICY",
      [function() return "  " end] = "EPOLICY",
    } do
      local id, message, got = child:merge { summary = true, model = model }
      assert.is_nil(id)
      assert.equal(code, got)
      assert.truthy(message:find("nothing was merged", 1, true))
    end
    assert.equal("EINVALID", select(3, child:merge { summary = true }))
    assert.equal("plan", said(s))
    assert.equal("open", s:subsessions()[1].state)
  end)

  it("can be discarded, and stays readable", function()
    local child = assert(s:child { id = "c" })
    assert(child:append(user "a dead end"))
    assert.is_true(child:discard { reason = "led nowhere" })
    assert.equal("discarded", s:subsessions()[1].state)
    assert.equal("plan", said(s))
    assert.equal("a dead end", said(assert(store:resume "c")))
  end)

  it("is nobody else's", function()
    local child = assert(s:child { id = "c" })
    local other = assert(store:create { id = "other" })
    assert.equal("EINVALID", select(3, child:merge { summary = "x", into = other }))
    assert.equal("EINVALID", select(3, other:merge { summary = "x" }))
    assert.equal("EINVALID", select(3, other:discard()))
    assert.equal("EEXISTS", select(3, s:child { id = "c" }))
    assert.equal(1, #s:subsessions())
    assert.has_error(function() child:merge {} end)
    assert.has_error(function() s:child { contxt = true } end)
  end)

  it("may have children of its own, and comes along in a fork", function()
    local child = assert(s:child { id = "c" })
    local grandchild = assert(child:child { id = "g" })
    assert.equal("c", grandchild.parent.id)
    assert(s:append(user "next"))
    local fork = assert(s:fork())
    assert.equal("c", fork:subsessions()[1].id)
    assert.is_nil(fork.parent)
  end)
end)
