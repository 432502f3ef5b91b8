-- What runs when a policy was refused, and when nothing runs in its place.

local cli = require "spec.support.cli"
local temp = require "spec.support.temp"
local transcript = require "spec.support.transcript"
local sessile = require "sessile"

local folder
local write = temp.policies("600", function(path) folder = path end)

local function dead()
  return nil, "429: too many requests"
end

-- A session of 30 questions and answers, without a policy so far.
local function filled(options)
  local session = assert(transcript.session(options))
  transcript.play(session, transcript.chat(30, 50), { policy = false })
  return session
end

-- Turns under a policy until it is refused; the outcome of that turn.
local function until_refused(session)
  for _, turn in ipairs(transcript.chat(60, 50)) do
    local outcome = assert(session:turn(turn))
    if outcome.policy.refused then
      return outcome
    end
  end
  error "no turn was refused"
end

describe("after a turn, a failing model", function()
  for name, option in pairs { summarize = { "summarize" }, tiered = { "tiered" } } do
    it("is told with the policy that failed and what ran instead: " .. name, function()
      local session = assert(transcript.session { policy = option, window = 2000, model = dead })
      local outcome = until_refused(session)
      local told = outcome.policy
      assert.equal("summarize", told.name)
      assert.equal("compact", told.hook)
      assert.equal("the model gave no summary: 429: too many requests", told.refused)
      assert.equal("threshold", told.reason)
      assert.equal("sliding_window", told.fallback.name)
      assert.is_true(told.fallback.applied)
      assert.is_true(outcome.tokens.after <= 1000)
      assert.equal("summarize", session:entry(outcome.compaction).data.fallback_of)
      assert.matches("too many requests", session:entry(outcome.refusal).data.message, 1, true)
    end)
  end

  it("gives way to the configured fallback, not to that of the file", function()
    local session = assert(transcript.session { policy = "summarize", window = 2000,
      model = dead, fallback = { "key_messages", preserve_recent = 2 } })
    assert.equal("key_messages", until_refused(session).policy.fallback.name)
  end)

  it("has nothing run in its place when the fallback is false", function()
    local session = assert(transcript.session { policy = "summarize", window = 2000,
      model = dead, fallback = false })
    local outcome = until_refused(session)
    assert.is_nil(outcome.policy.fallback)
    assert.is_nil(outcome.compaction)
    assert.equal(outcome.tokens.before, outcome.tokens.after)
  end)

  it("has the fallback of the file when its answer comes later, and is none", function()
    local session = assert(transcript.session { policy = "summarize", window = 2000,
      model = function() return sessile.later end })
    for _, turn in ipairs(transcript.chat(60, 50)) do
      if assert(session:turn(turn)).status == "paused" then
        break
      end
    end
    local outcome = assert(session:answer(nil, { failed = "no quota" }))
    assert.equal("the model gave no summary: no quota", outcome.policy.refused)
    assert.is_true(outcome.policy.fallback.applied)
  end)
end)

describe("a compaction that a person asks for", function()
  local configured = { "sliding_window", messages = 4, keep = 1 }

  for name, options in pairs { ["the file's"] = {}, ["a configured one"] = {
    fallback = configured } } do
    it("changes nothing when the model fails, whatever the fallback: " .. name, function()
      local session = filled { model = dead, fallback = options.fallback }
      local before = #session:context()
      for _, method in ipairs { "compact", "plan" } do
        local outcome = assert(session[method](session, { policy = "summarize" }))
        assert.equal("the model gave no summary: 429: too many requests", outcome.policy.refused)
        assert.is_nil(outcome.policy.fallback)
      end
      assert.equal(before, #session:context())
    end)
  end

  it("has the fallback that the call names", function()
    local session = filled { model = dead }
    local outcome = assert(session:compact { policy = "summarize", fallback = configured })
    assert.matches("too many requests", outcome.policy.refused, 1, true)
    assert.equal("sliding_window", outcome.policy.fallback.name)
    assert.equal(5, #session:context())
  end)

  it("changes nothing when an answer that came later is none", function()
    local session = filled { model = function() return sessile.later end, fallback = configured }
    local before = #session:context()
    assert.equal("paused", session:compact({ policy = "summarize" }).status)
    local outcome = assert(session:answer(nil, { failed = "no quota" }))
    assert.is_nil(outcome.policy.fallback)
    assert.equal(before, #session:context())
    outcome = assert(session:answer(nil, { failed = "no quota", fallback = configured }))
    assert.is_true(outcome.policy.fallback.applied)
    assert.equal(5, #session:context())
  end)

  it("is another thing when a program asks: then the configured one runs", function()
    local session = filled { model = dead, fallback = configured }
    local outcome = assert(session:compact { policy = "summarize", reason = "overflow" })
    assert.is_true(outcome.policy.fallback.applied)
  end)
end)

describe("a policy's file", function()
  local BROKEN = 'return { name = %q, truncate = function() error("no", 0) end, %s }'

  local function fallback_of(policy)
    local session = assert(transcript.session { policy = policy })
    local outcome = assert(session:turn { { role = "user", content = "hello" } })
    return outcome.policy.fallback and outcome.policy.fallback.name
  end

  it("names its fallback, as the elements of a chain", function()
    write("b", BROKEN:format("b", 'fallback = { "./spare.lua" }'))
    write("spare", 'return { name = "spare", truncate = function() end }')
    assert.equal("spare", fallback_of(folder .. "/b.lua"))
  end)

  it("counts before the files of its chain, and the first of these before the next", function()
    write("one", BROKEN:format("one", 'fallback = { "edit_tools" }'))
    write("two", BROKEN:format("two", 'fallback = { "key_messages", "sliding_window" }'))
    local a, b = folder .. "/two.lua", folder .. "/one.lua"
    assert.equal("key_messages", fallback_of { { a }, { b } })
    write("both", 'return { chain = { "./two.lua", "./one.lua" }, fallback = { "edit_tools" } }')
    assert.equal("edit_tools", fallback_of(folder .. "/both.lua"))
  end)

  it("has no fallback of its fallback", function()
    write("second", BROKEN:format("second", 'fallback = { "edit_tools" }'))
    write("first", BROKEN:format("first", 'fallback = { "./second.lua" }'))
    write("itself", BROKEN:format("itself", 'fallback = { "./itself.lua" }'))
    assert.equal("second", fallback_of(folder .. "/first.lua"))
    assert.equal("itself", fallback_of(folder .. "/itself.lua"))
  end)

  it("is told what is wrong with its fallback", function()
    for text, wrong in pairs {
      ['"edit_tools"'] = "fallback is a list of policies",
      ["{}"] = "fallback is a list of policies",
      ["{ 5 }"] = 'fallback[1] is "name" or {"name", option = …}',
      ['{ "nothing" }'] = "nothing",
      ['{ { "sliding_window", messges = 3 } }'] = "messages",
    } do
      local path = write("b", BROKEN:format("b", "fallback = " .. text))
      local session, message = transcript.session { policy = path }
      assert.is_nil(session)
      assert.matches(wrong, message, 1, true)
      local theirs = write("theirs", BROKEN:format("b", "fallback = " .. text), "666")
      session, message = transcript.session { policy = theirs }
      assert.is_nil(session)
      assert.matches(wrong, message, 1, true)
    end
  end)

  it("that others may write has its fallback as well", function()
    local path = write("theirs", BROKEN:format("b", 'fallback = { { "sliding_window", '
      .. "messages = 4 } }"), "666")
    assert.equal("sliding_window", fallback_of(path))
  end)
end)

describe("sessile compact", function()
  cli.each_test()

  before_each(function()
    cli.done "import examples/demo-session.jsonl --id demo"
  end)

  it("changes nothing when the model fails, and says what may be done", function()
    local err = cli.fails(1, "compact demo --policy summarize",
      "the policy summarize failed: the model gave no summary: no model is configured here",
      "--fallback sliding_window")
    assert.is_nil(err:find("ran instead", 1, true))
    assert.equal(91, #cli.json "context demo".messages)
    local out, _, status = cli.sessile "--json compact demo --policy summarize"
    local verdict = cli.decoded(out)
    assert.equal(1, status)
    assert.equal("refused", verdict.verdict)
    assert.equal("no model is configured here", verdict.model)
    assert.is_nil(verdict.fallback)
  end)

  it("does not use the configured fallback, unless it is named", function()
    cli.configure 'return { policy = "summarize", fallback = "sliding_window" }'
    cli.fails(1, "compact demo", "the policy summarize failed")
    cli.done "compact demo --fallback sliding_window"
  end)

  it("cuts when it is told to, and says what failed", function()
    local given = "compact demo --policy summarize --fallback sliding_window"
    local _, err = cli.done(given .. " --dry-run")
    assert.matches("the policy summarize failed: the model gave no summary", err, 1, true)
    assert.matches("sliding_window ran instead", err, 1, true)
    local verdict = cli.json(given)
    assert.equal("refused", verdict.verdict)
    assert.equal("sliding_window", verdict.fallback.policy)
    assert.equal("applied", verdict.fallback.verdict)
    assert.is_true(verdict.left > 0)
    assert.is_true(verdict.after < verdict.before)
  end)

  it("says why a proposal was not applied that came too late", function()
    local meanwhile = {
      ["the context was compacted, or a compaction undone, meanwhile"] =
        "compact $1 --policy sliding_window --option messages=10",
      ["the head was moved meanwhile"] = "branch $1 5 --yes",
    }
    for why, words in pairs(meanwhile) do
      for _, id in ipairs { "plain", "json" } do
        cli.sessile(("delete %s --yes"):format(id))
        cli.done("import examples/demo-session.jsonl --id " .. id)
      end
      write("model", ("cat >/dev/null; for id in plain json; do set -- $id; %s %s; done "
        .. ">/dev/null; printf 'in short'"):format(cli.binary, words))
      cli.configure(('return { model = { command = { "/bin/sh", "%s/model.lua" } } }')
        :format(folder))
      local text = why .. ": what summarize proposed was not applied"
      local out, _, status = cli.sessile "--json compact json --policy summarize"
      assert.equal("stale", cli.decoded(out).verdict)
      assert.equal(6, status)
      cli.done "delete plain --yes"
      cli.done "import examples/demo-session.jsonl --id plain"
      cli.fails(6, "compact plain --policy summarize", text, "sessile compact plain")
    end
  end)

  it("says what runs instead of a pending run's policy, and which run it is", function()
    local first = cli.done("compact demo --policy summarize --defer"):match "%x+"
    cli.done "compact demo --policy summarize --defer"
    cli.fails(1, ("answer demo --run %s --fail 'no quota'"):format(first),
      "the policy summarize failed: the model gave no summary: no quota")
    local _, err = cli.done "answer demo --fail 'no quota' --fallback sliding_window"
    assert.matches("sliding_window ran instead", err, 1, true)
  end)
end)
