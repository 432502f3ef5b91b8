-- Policies on the command line: options, what they say, and that there is no model.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local has = expect.has
local sessile, done, json, write = cli.sessile, cli.done, cli.json, cli.write
local home

local DEMO = "examples/demo-session.jsonl"

cli.each_test(function(path)
  home = path
  write(home .. "/mine.lua", [[
    return {
      name = "mine", version = 1, about = "Keep some turns.",
      options = {
        turns = { type = "integer", default = 20, min = 1, about = "kept" },
        share = { type = "number", default = 1, about = "of what" },
        loud = { type = "boolean", default = false, about = "say so" },
        word = { type = "string", default = "-", about = "to say" },
      },
      compact = function(state, ctx)
        if ctx.options.loud then
          ctx.log(ctx.options.word, ctx.options.turns, ctx.options.share)
        end
        state:keep_last(ctx.options.turns, "turns")
      end,
    }
  ]])
end)

describe("compact", function()
  before_each(function()
    done(("import %s --id demo"):format(DEMO))
  end)

  it("says nothing of models when none was asked", function()
    local _, err = done "compact demo --policy sliding_window --window 8000"
    assert.equal("", err)
    done(("import %s --id other"):format(DEMO))
    local verdict = json "compact other --policy sliding_window --window 8000"
    assert.is_nil(verdict.model)
    assert.same({}, verdict.log)
  end)

  it("passes options, and prints what the policy says", function()
    local _, err = done(("compact demo --policy %s/mine.lua --option turns=2 --option loud=true "
      .. "--option share=0.5 --option word=a=b"):format(home))
    has(err, "a=b 2 0.5")
    local roles = 0
    for _, row in ipairs(json "context demo".messages) do
      roles = roles + (row.message.role == "user" and 1 or 0)
    end
    assert.equal(2, roles)
  end)

  it("refuses options that are wrong", function()
    for words, code in pairs {
      ["--option turns=4"] = 2,
      ["--policy sliding_window --option turns"] = 2,
      ["--policy sliding_window --option =4"] = 2,
      ["--policy sliding_window --option nothing=4"] = 1,
      ["--policy sliding_window --option messages=many"] = 1,
    } do
      local out, err, got = sessile("compact demo " .. words)
      assert.equal(code, got, words .. "\n" .. err)
      assert.equal("", out)
      cli.no_traceback(err)
      has(err, words:match "nothing" or words:match "messages" or "--option")
    end
  end)

  it("shows examples in its help that need no model", function()
    for _, example in ipairs(json "help compact".examples) do
      assert.is_nil(example.command:find("summarize", 1, true))
      assert.is_nil(example.command:find("tiered", 1, true))
    end
  end)
end)

describe("policy replay", function()
  it("of a recording without a message is an error", function()
    local path = cli.home() .. "/nothing.jsonl"
    cli.write(path, '{"type":"session","version":3,"id":"x"}\n')
    cli.fails(1, "policy replay sliding_window " .. path, "no message", "nothing to replay")
  end)

  it("passes options", function()
    local ledger = json(("policy replay examples/keep_last.lua %s --option turns=4"):format(DEMO))
    assert.is_true(#ledger.replays[1].compactions > 0)
    ledger = json(("policy replay examples/keep_last.lua %s"):format(DEMO))
    assert.equal(0, #ledger.replays[1].compactions)
  end)

  it("compacts on a trigger, and says what fired", function()
    write(home .. "/lazy.lua", "return { compact = function(s) s:keep_last(2, 'turns') end }")
    local words = ("policy replay %s/lazy.lua %s"):format(home, DEMO)
    assert.equal(0, #json(words).replays[1].compactions)
    local ledger = json(words .. " --triggers messages=15")
    assert.is_true(#ledger.replays[1].compactions >= 2, ledger)
    for _, row in ipairs(ledger.replays[1].compactions) do
      assert.equal("threshold", row.reason)
    end
    has(done(words .. " --window 12000 --triggers share=0.9,overflow"), "overflow")
    for _, wrong in ipairs { "messages", "mesages=3", "share=2", "messages=3,,",
      "interval=soon" } do
      local _, err, code = sessile(words .. " --triggers " .. wrong)
      assert.equal(2, code, wrong)
      has(err, "option '--triggers'")
    end
  end)

  it("has a fallback run when the policy is refused", function()
    write(home .. "/broken.lua", "return { truncate = function() error 'no luck' end }")
    local words = ("policy replay %s/broken.lua %s --fallback examples/keep_last.lua"):format(
      home, DEMO)
    local ledger = json(words .. " --window 12000").replays[1]
    assert.is_true(#ledger.refusals > 0)
    assert.equal("broken", ledger.refusals[1].policy)
    cli.fails(3, words .. "_not", "keep_last.lua_not")
  end)

  it("blames the policy, not the recording, when the policy does not load", function()
    os.execute(("ln -s %s/mine.lua %s/link.lua"):format(home, home))
    local _, err, code = sessile(("policy replay %s/link.lua %s"):format(home, DEMO))
    assert.equal(7, code)
    has(err, "link.lua")
    assert.is_nil(err:find(DEMO, 1, true))
    assert.is_nil(err:find("key", 1, true))
    cli.fails(3, ("policy replay nothing %s"):format(DEMO), "policy list")
  end)
end)

describe("a policy file that others may write", function()
  before_each(function()
    write(home .. "/theirs.lua", "return {}")
    assert(os.execute(("chmod 666 %s/theirs.lua"):format(home)))
  end)

  it("is replayed in a process of its own", function()
    assert(os.execute(("cp policies/sliding_window.lua %s/theirs.lua"):format(home)))
    local ledger = json(("policy replay %s/theirs.lua %s --window 12000"):format(home, DEMO))
    assert.is_true(#ledger.replays[1].compactions > 0)
  end)

  it("is shown without being run in this one", function()
    write(home .. "/theirs.lua", "return { name = 'theirs',\n"
      .. "  about = string.dump and 'the host ran it' or 'the sandbox ran it' }")
    local out, err = done(("policy show %s/theirs.lua"):format(home))
    assert.is_nil(out:find("the host", 1, true))
    has(err, "process of its own")
  end)
end)

-- What is wrong with a policy is told with file, line and the nearest right name, by every command
-- that loads one.
describe("a policy that does not load", function()
  local wrong = {
    { "return {\n  name = 'p',\n  truncate = function(state\n    state:drop(1)\n  end,\n}\n",
      "p.lua:4:", "')' expected" },
    { "return {\n  trunkate = function() end,\n}\n", "p.lua:2:", "did you mean 'truncate'?" },
    { "return {\n  shouldCompact = function() end,\n}\n", "p.lua:2:",
      "did you mean 'should_compact'?" },
    { "return {\n\n  onTurn = function() end,\n}\n", "p.lua:3:", "there are merge, summarize" },
    { "local x = nil + 1\n", "p.lua:1:", "arithmetic" },
    { "return {\n  options = { turns = { tpye = 'integer' } },\n}\n", "p.lua", "'tpye'" },
  }
  for i, case in ipairs(wrong) do
    it(("is told with its place and what is right: %d"):format(i), function()
      write(home .. "/p.lua", case[1])
      for _, command in ipairs { "show %s", "replay %s " .. DEMO, "bench %s" } do
        local out, err, code = sessile("policy " .. command:format(home .. "/p.lua"))
        assert.is_true(code ~= 0)
        assert.equal("", out)
        assert.is_nil(err:find("traceback", 1, true))
        has(err, case[2])
        has(err, case[3])
      end
    end)
  end

  it("or is not there is told with the nearest name", function()
    for _, command in ipairs { "show %s", "replay %s " .. DEMO, "bench %s" } do
      cli.fails(3, "policy " .. command:format "merge_dedup", "did you mean 'merge_dedupe'?",
        "policy list")
    end
  end)
end)

describe("an unknown second word", function()
  it("is answered with the command that is meant, or with all of them", function()
    expect.has(cli.fails(2, "policy shwo"), "policy show`?")
    local err = cli.fails(2, "policy what?")
    expect.has(err, "there is no command 'policy what?'")
    expect.has(err, "policy replay NAME")
  end)
end)
