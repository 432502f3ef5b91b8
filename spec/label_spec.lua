-- Labels, pins, settings and metadata: facts about a session that outlive its handle.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local temp = dofile(here .. "/support/temp.lua")
local messages = dofile(here .. "/support/messages.lua")
local cli = dofile(here .. "/support/cli.lua")
local sessile = require "sessile"

local user, assistant, contents = messages.user, messages.assistant, messages.contents

-- {"00000001 name", …}
local function named(list)
  local rows = {}
  for i, label in ipairs(assert(list)) do
    rows[i] = label.id .. " " .. label.name
  end
  return rows
end

for kind, open in pairs(temp.stores()) do
  describe("a session's facts in " .. kind, function()
    local store, s

    before_each(function()
      store = open()
      s = assert(store:create { id = "s", metadata = { team = "blue", size = 3 } })
      assert(s:turn { user "one", assistant "two" })
    end)

    after_each(function()
      store:close()
      temp.clean()
    end)

    it("hold labels: several on an entry, one on several", function()
      assert.is_true(s:label("00000002", "done"))
      assert.is_true(s:label("00000001", "done"))
      assert.is_true(s:label("00000002", "ship it"))
      assert.same({ "00000001 done", "00000002 done", "00000002 ship it" }, named(s:labels()))
      assert.is_true(s:unlabel("00000002", "done"))
      assert.same({ "00000001 done", "00000002 ship it" }, named(s:labels()))
      local label = s:labels()[2]
      assert.equal("label", s:entry(label.fact).type)
      assert.is_true(label.time >= s.created and label.time <= s.modified)
    end)

    it("are found again by another handle, and never in the context", function()
      local before = s:head()
      assert(s:label("00000001", "start"))
      assert(s:settings { model = "m-1" })
      assert.equal(before, s:head())
      assert.same({ "one", "two" }, contents(s:context()))
      s:close()
      s = assert(store:resume "s")
      assert.same({ "00000001 start" }, named(s:labels()))
      assert.equal("m-1", s:settings().model)
    end)

    it("say what is wrong with a label, and write nothing then", function()
      local function code_of(id, name)
        local value, message, code = s:label(id, name)
        assert.is_nil(value)
        assert.is_string(message)
        return code
      end
      local count = 0
      for _ in s:entries() do count = count + 1 end
      assert.equal("ENOTFOUND", code_of("00000077", "x"))
      assert.equal("EINVALID", code_of("00000001", ""))
      assert.equal("EINVALID", code_of("00000001", "\xff"))
      assert.equal("ELIMIT", code_of("00000001", ("x"):rep(201)))
      assert.equal("EINVALID", code_of("00000000", "pinned")) -- no message
      local _, _, code = s:unlabel("00000001", "never")
      assert.equal("ENOTFOUND", code)
      assert.has_error(function() s:label(1, "x") end)
      assert.has_error(function() s:label("00000001") end)
      assert.has_error(function() s:label("zz", "x") end)
      for _ in s:entries() do count = count - 1 end
      assert.equal(0, count)
    end)

    it("pin a message: no policy drops it", function()
      for i = 1, 10 do
        assert(s:append(user("more " .. i)))
      end
      assert.is_true(s:pin "00000001")
      local drop_old = { compact = function(state) state:keep_last(2, "messages") end }
      local outcome = assert(s:compact { policy = drop_old })
      assert.is_true(outcome.policy.applied)
      assert.same({ "one", "more 9", "more 10" }, contents(s:context()))
      assert.is_true(s:unpin "00000001")
      assert(s:append(user "last"))
      assert(s:compact { policy = drop_old })
      assert.same({ "more 10", "last" }, contents(s:context()))
    end)

    it("refuse a policy that drops or edits a pinned message, by law 5", function()
      for i = 1, 5 do
        assert(s:append(user("more " .. i)))
      end
      assert(s:pin "00000001")
      for name, hook in pairs {
        drop = function(state) state:drop(1) end,
        replace = function(state) state:replace(1, { content = "1" }) end,
      } do
        local outcome = assert(s:compact { policy = { compact = hook } })
        assert.is_false(outcome.policy.applied, name)
        assert.equal(5, outcome.policy.law, name)
        assert.equal("one", s:context()[1].content)
      end
    end)

    it("keep settings member by member; null takes one back", function()
      assert.same({}, s:settings())
      assert.is_true(s:settings { model = "m-1", thinking = "high" })
      assert.is_true(s:settings { model = "m-2", stop = { "END" } })
      assert.same({ model = "m-2", thinking = "high", stop = { "END" } }, s:settings())
      assert.is_true(s:settings { thinking = sessile.null })
      assert.same({ model = "m-2", stop = { "END" } }, s:settings())
      assert(s:settings(sessile.json '{"price":1.50}'))
      assert.matches('"price":1.50', s:settings().json, 1, true)
      assert.has_error(function() s:settings "model" end)
    end)

    it("have every value that ever held in the log", function()
      assert(s:settings { model = "m-1" })
      assert(s:settings { model = "m-2" })
      local held = {}
      for entry in s:entries { types = { "metadata" } } do
        held[#held + 1] = entry.data.settings.model
      end
      assert.same({ "m-1", "m-2" }, held)
    end)

    it("begin metadata with what the session was made with", function()
      assert.same({ team = "blue", size = 3 }, s:metadata())
      assert(s:metadata { size = sessile.null, owner = "ann" })
      assert.same({ team = "blue", owner = "ann" }, s:metadata())
      assert.same({}, s:settings())
    end)
  end)
end

describe("labels on the command line", function()
  before_each(function()
    cli.begin()
    cli.done "new --id bug-42"
    cli.done "append bug-42 'why is it slow?'"
    cli.done "append bug-42 'It reads twice.' --role assistant"
  end)

  after_each(cli.finish)

  it("name an entry wherever one is typed", function()
    assert.equal("00000001\n", cli.done "label bug-42 1 question")
    assert.equal("00000002\n", cli.done "label bug-42 head answer")
    assert.matches("It reads twice", cli.done "show bug-42@answer", 1, true)
    assert.equal("00000001\n", cli.done "label bug-42 question again")
    local list = cli.json "label list bug-42"
    assert.equal(3, #list)
    assert.equal("again", list[2].label)
    assert.equal("00000001", list[2].entry)
    assert.matches("answer", cli.done "label list bug-42", 1, true)
  end)

  it("are taken away, one or all, but for a pin", function()
    cli.done "label bug-42 1 a"
    cli.done "label bug-42 1 b"
    cli.done "label bug-42 1 c"
    cli.done "pin bug-42 1"
    cli.done "label rm bug-42 1 b"
    assert.same({ "b" }, (function()
      local _, err, code = cli.sessile "label rm bug-42 1 b"
      assert.equal(3, code)
      return { err:match '"(b)"' or err }
    end)())
    cli.done "label rm bug-42 a"
    local list = cli.json "label list bug-42"
    assert.equal(1, #list)
    assert.equal("pinned", list[1].label)
    assert.equal("00000001\n", cli.done "unpin bug-42 1")
    assert.equal(0, #cli.json "label list bug-42")
  end)

  it("are not guessed at", function()
    cli.done "label bug-42 1 same"
    cli.done "label bug-42 2 same"
    local _, err, code = cli.sessile "label bug-42 same x"
    assert.equal(2, code)
    assert.matches("00000001, 00000002", err, 1, true)
    _, err, code = cli.sessile "show bug-42@nowhere"
    assert.equal(3, code)
    assert.matches("'nowhere' is no entry of session bug-42", err, 1, true)
    assert.matches("sessile tree bug-42", err, 1, true)
    _, err, code = cli.sessile "pin bug-42 77"
    assert.equal(3, code)
    cli.no_traceback(err)
    -- A session that is called so comes first.
    cli.done "new --id bug-42@same"
    assert.equal("", (cli.done "show bug-42@same"))
    assert.matches("why", cli.done "show bug-42@00000001", 1, true)
  end)

  it("settings are set, shown as they were given, and taken back", function()
    assert.equal('model = "gpt-4o"\nprice = 1.50\n',
      (cli.done "settings bug-42 model=gpt-4o price=1.50"))
    assert.equal("price = 1.50\n", (cli.done "settings bug-42 model=null"))
    assert.matches('"price":1.50', cli.done "--json settings bug-42", 1, true)
    local _, err, code = cli.sessile "settings bug-42 model"
    assert.equal(2, code)
    assert.matches("KEY=JSON", err, 1, true)
  end)

  it("info tells of one session what is known", function()
    cli.done "label bug-42 2 answer"
    cli.done "settings bug-42 model=gpt-4o"
    local info = cli.json "info bug-42"
    assert.equal("bug-42", info.id)
    assert.equal("main", info.agent)
    assert.equal("active", info.status)
    assert.equal("00000002", info.head)
    assert.equal(2, info.messages)
    assert.equal("answer", info.labels[1].label)
    assert.equal("gpt-4o", info.settings.model)
    assert.is_true(info.tokens > 0)
    local out = cli.done "info bug-42"
    assert.matches("answer@00000002", out, 1, true)
    assert.matches('model = "gpt-4o"', out, 1, true)
  end)
end)
