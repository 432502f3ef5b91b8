-- Labels, pins, settings and metadata: facts about a session that outlive its handle.

local stores = require "spec.support.stores"
local temp = require "spec.support.temp"
local messages = require "spec.support.messages"
local cli = require "spec.support.cli"
local transcript = require "spec.support.transcript"
local workers = require "spec.support.workers"
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

stores.each_kind("a session's facts in", function(open)
  local store, s

  before_each(function()
    store = open()
    s = stores.with_turn(store, { id = "s", metadata = { team = "blue", size = 3 } },
      { user "one", assistant "two" })
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
    assert.is_true(label.time >= s.created and label.time <= os.time() * 1000 + 2000)
  end)

  it("leave an entry one by one, or all at once, but for a pin", function()
    for _, name in ipairs { "a", "b", "c" } do
      assert(s:label("00000001", name))
    end
    assert(s:label("00000002", "a"))
    assert(s:pin("00000001"))
    assert.is_true(s:unlabel("00000001", "b"))
    assert.is_true(s:unlabel("00000001"))
    assert.same({ "00000001 pinned", "00000002 a" }, named(s:labels()))
    local ok, message, code = s:unlabel("00000001")
    assert.is_nil(ok)
    assert.equal("ENOTFOUND", code)
    assert.matches("00000001 has no label", message)
    assert.has_error(function() s:unlabel("00000002", 7) end)
    assert.has_error(function() s:unlabel() end)
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
    assert.equal("ENOTFOUND", code_of("zz", "x"))
    assert.equal("EINVALID", code_of("00000001", ""))
    assert.equal("EINVALID", code_of("00000001", "\xff"))
    assert.equal("ELIMIT", code_of("00000001", ("x"):rep(201)))
    assert.equal("EINVALID", code_of("00000000", "pinned")) -- no message
    local _, _, code = s:unlabel("00000001", "never")
    assert.equal("ENOTFOUND", code)
    assert.has_error(function() s:label(1, "x") end)
    assert.has_error(function() s:label("00000001") end)
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

  it("keep a message that is pinned while a policy thinks", function()
    for i = 1, 5 do
      assert(s:append(user("more " .. i)))
    end
    local outcome = assert(s:compact { policy = { compact = function(state)
      assert(s:pin "00000002")
      state:keep_last(1)
    end } })
    assert.equal("stale", outcome.policy.verdict)
    assert.matches("pinned meanwhile", outcome.policy.message, 1, true)
    local found = 0
    for _, m in ipairs(assert(s:context())) do
      found = found + (m.key == "00000002" and 1 or 0)
    end
    assert.equal(1, found)
    -- and on a leaf beside the head
    local base = assert(s:head())
    assert(s:append { role = "user", content = "another way" })
    outcome = assert(s:turn({ { role = "user", content = "beside" } }, {
      base = base, on_conflict = "branch", policy = { truncate = function(state)
        assert(s:pin "00000004")
        state:keep_last(1, "messages")
      end },
    }))
    assert.equal("stale", outcome.policy.verdict, outcome.policy.message)
    assert(s:unpin "00000004")
    -- a label that pins nothing is in nobody's way
    outcome = assert(s:compact { policy = { compact = function(state)
      assert(s:label("00000003", "read"))
      state:drop(3)
    end } })
    assert.equal("applied", outcome.policy.verdict)
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

describe("what policies see of labels", function()
  local path

  -- Notes of each message's labels; and what happens when the list is written to.
  local POLICY = [[
    return { name = "notes", version = 1, truncate = function(state, ctx)
      local seen = {}
      for i = 1, #state.messages do
        local m = state.messages[i]
        seen[i] = table.concat(m.labels, "+") .. (m.pinned and "!" or "")
        assert(not pcall(function() m.labels[1] = "mine" end))
        assert(#m.labels == #state.messages[i].labels)
      end
      state.vars = { seen = table.concat(seen, " ") }
    end }
  ]]

  temp.each_test(function(dir)
    path = dir
    temp.write(path .. "/notes.lua", POLICY, "600")
  end)

  local function play(isolation)
    local store <close> = assert(sessile.open("ram:", {
      key = false, isolation = isolation, worker = workers.path,
      policy_path = path,
    }))
    local s = assert(store:create "s")
    assert(s:append(user "one"))
    assert(s:append(assistant "two"))
    assert(s:label("00000001", "b"))
    assert(s:label("00000001", "a"))
    assert(s:label("00000002", "gone"))
    assert(s:unlabel("00000002", "gone"))
    assert(s:pin "00000002")
    assert(s:label("00000000", "of the header"))
    local outcome = assert(s:turn({ user "three" }, { policy = "notes" }))
    assert.is_nil(outcome.policy.refused)
    return s:entry(outcome.compaction).data.vars.notes.seen, transcript.log(s)
  end

  it("is a list of names, in the order they were put, pins aside, in any isolation", function()
    local seen, log = play(nil)
    assert.equal("b+a ! ", seen)
    local isolated, isolated_log = play "worker"
    assert.equal(seen, isolated)
    assert.equal(log, isolated_log)
  end)

  it("is as it was when the run began", function()
    local store <close> = assert(sessile.open "ram:")
    local s = assert(store:create "s")
    assert(s:append(user "one"))
    assert(s:label("00000001", "before"))
    local seen = {}
    assert(s:turn({ user "two" }, { policy = {
      merge = function(_, state)
        assert(s:label("00000001", "meanwhile"))
        seen[1] = table.concat(state.messages[1].labels, " ")
      end,
      truncate = function(state)
        seen[2] = table.concat(state.messages[1].labels, " ")
      end,
    } }))
    assert.same({ "before", "before" }, seen)
  end)

  it("lets key_messages keep what somebody labelled", function()
    local store <close> = assert(sessile.open("ram:", { policy_path = "policies" }))
    local s = assert(store:create "s")
    for i = 1, 20 do
      assert(s:append(assistant("m" .. i)))
    end
    assert(s:label("00000003", "keep"))
    assert(s:label("00000004", "other"))
    assert(s:pin "00000005")
    local outcome = assert(s:compact { policy = { "key_messages", labels = { "keep" },
      preserve_recent = 2 } })
    assert.is_true(outcome.policy.applied)
    assert.same({ "m3", "m5", "m19", "m20" }, contents(s:context()))
  end)

  it("lets no shipped policy take a pin", function()
    local store <close> = assert(sessile.open("ram:", { policy_path = "policies",
      model = function() return "a summary of it all" end }))
    for _, policy in ipairs {
      { "sliding_window", messages = 4 }, { "key_messages", preserve_recent = 2 },
      { "summarize", preserve_recent = 2 }, { "tiered" }, { "edit_tools" },
    } do
      local s = assert(store:create())
      for i = 1, 40 do
        assert(s:append(i % 2 == 1 and user(("q%d "):format(i) .. ("x"):rep(400))
          or assistant(("a%d "):format(i) .. ("y"):rep(400))))
      end
      assert(s:pin "00000003")
      local outcome = assert(s:compact { policy = policy, window = 3000 })
      assert.is_nil(outcome.policy.refused, policy[1])
      local kept = false
      for _, m in ipairs(s:context()) do
        kept = kept or m.id == "00000003"
      end
      assert.is_true(kept, policy[1])
      if policy[1] ~= "edit_tools" then
        assert.is_true(outcome.policy.applied, policy[1])
      end
    end
  end)
end)

describe("labels on the command line", function()
  cli.each_test(function()
    cli.done "new --id bug-42"
    cli.done "append bug-42 'why is it slow?'"
    cli.done "append bug-42 'It reads twice.' --role assistant"
  end)

  it("name an entry wherever one is typed", function()
    assert.equal("00000001\n", cli.done "label bug-42 1 question")
    assert.equal("00000002\n", cli.done "label bug-42 head answer")
    assert.matches("It reads twice", cli.done "show bug-42@answer", 1, true)
    assert.equal("00000001\n", cli.done "label bug-42 question again")
    local list = cli.json "label list bug-42"
    assert.equal(3, #list)
    assert.equal("again", list[2].label)
    assert.equal("00000001", cli.json("fork bug-42 again --id b").head)
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
    assert.matches("'nowhere' is not an entry of session bug-42", err, 1, true)
    assert.matches("sessile tree bug-42", err, 1, true)
    cli.fails(3, "pin bug-42 77")
    -- A session that is called so comes first.
    cli.done "new --id bug-42@same"
    assert.equal("", (cli.done "show bug-42@same"))
    assert.matches("why", cli.done "show bug-42@00000001", 1, true)
  end)

  it("are not needed when a session is renamed: its title finds it", function()
    cli.done "rename bug-42 'Slow start'"
    assert.matches("why is it slow", cli.done "show 'Slow start'", 1, true)
    assert.same({ session = "bug-42", title = "Slower" }, cli.json "rename 'Slow start' Slower")
    assert.equal("Slower", cli.json "info bug-42".title)
    cli.done "rename bug-42 ''"
    local _, err, code = cli.sessile "rename Slower again"
    assert.equal(3, code)
    assert.matches("there is no session 'Slower'", err, 1, true)
    _, err, code = cli.sessile("rename bug-42 " .. ("x"):rep(1025))
    assert.equal(1, code)
    assert.matches("1024", err, 1, true)
    assert.equal(2, (select(3, cli.sessile "rename bug-42")))
  end)

  it("metadata is set and shown apart from settings", function()
    cli.done "new --id meta"
    cli.done "settings meta --metadata team=blue size=3"
    assert.same({ team = "blue", size = 3 }, cli.json "settings meta --metadata")
    assert.same({}, cli.json "settings meta")
  end)

  it("settings are set, shown as they were given, and removed", function()
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
