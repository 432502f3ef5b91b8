-- Messages on the command line: typed, piped in as JSON, and sent on to an API.

local cli = require "spec.support.cli"
local decode = require("sessile").decode

local function last(n)
  local list = cli.json "show one"
  return table.move(list, #list - n + 1, #list, 1, {})
end

describe("append and turn", function()
  cli.each_test()

  it("take a message, a list of messages, or one on each line", function()
    cli.done "new --id one"
    cli.done([[append one '{"role":"assistant","content":"hi","n":9007199254740993}']])
    assert.equal("assistant", last(1)[1].message.role)
    assert.matches("9007199254740993", cli.done "export one --format jsonl")
    local out = cli.done("append one -", [[ [{"role":"user","content":"a"},
      {"role":"assistant","content":"b"}] ]])
    assert.equal("00000002\n00000003\n", out)
    out = cli.done("turn one",
      '{"role":"user","content":"c"}\n\n{"role":"assistant","content":"d"}\n')
    assert.equal(2, select(2, out:gsub("%x+\n", "")))
    local said = {}
    for i, one in ipairs(last(5)) do
      said[i] = one.message.content
    end
    assert.same({ "hi", "a", "b", "c", "d" }, said)
  end)

  it("take everything else as text", function()
    cli.done "new --id one"
    for _, text in ipairs { '{"colour":"red"}', "[1,2]", "{torn", "[]", 'x\n{"role":"user"}' } do
      cli.done("append one -", text)
      assert.equal(text, last(1)[1].message.content)
      assert.equal("user", last(1)[1].message.role)
    end
    cli.done("append one - --role user", '{"role":"assistant","content":"x"}')
    assert.equal('{"role":"assistant","content":"x"}', last(1)[1].message.content)
  end)

  it("refuse a message that the engine refuses, whole", function()
    cli.done "new --id one"
    local _, err, code = cli.sessile("append one -",
      '[{"role":"user","content":"a"},{"role":"king","content":"b"}]')
    assert.equal(1, code)
    assert.matches("role", err)
    assert.equal(0, #cli.json "show one")
  end)
end)

describe("turn", function()
  cli.each_test()

  it("lets the policy run, append does not", function()
    cli.done "new --id one"
    for i = 1, 6 do
      cli.done("append one 'message " .. i .. "'")
    end
    local _, err = cli.done "turn one more --policy sliding_window --option messages=3"
    assert.matches("sliding_window compacted the context", err)
    assert.is_true(#cli.json("context one").messages <= 4)
    assert.equal(7, #cli.json "show one")
  end)

  it("tells what ran instead of a policy that failed", function()
    local path = cli.home() .. "/bad.lua"
    cli.write(path, 'return { name = "bad", version = 1, truncate = function() error "no" end }')
    cli.configure(('return { policy = %q, fallback = { "sliding_window", messages = 3 } }')
      :format(path))
    cli.done "new --id one"
    for i = 1, 6 do
      cli.done("append one 'message " .. i .. "'")
    end
    local _, err = cli.done "turn one more"
    assert.matches("bad failed: .*sliding_window ran instead", err)
    assert.matches("sliding_window compacted the context: ", err)
    local done = cli.json "turn one 'and more'"
    assert.equal("refused", done.verdict)
    assert.equal("sliding_window", done.fallback.policy)
    cli.configure(('return { policy = %q }'):format(path))
    _, err = cli.done "turn one 'the last'"
    assert.matches("The turn is written, .*the policy bad failed: ", err)
  end)

  it("leaves a question with --defer", function()
    cli.done "new --id one"
    for i = 1, 12 do
      cli.done(("append one 'message %d %s'"):format(i, ("word "):rep(60)))
    end
    local done = cli.json "turn one more --defer --policy summarize --window 400"
    assert.equal("paused", done.status)
    assert.is_string(done.pending_run)
    assert.equal(1, #done.entries)
  end)
end)

describe("context --to", function()
  cli.each_test()

  it("writes the compacted context as a request", function()
    cli.done "new --id one"
    cli.done("append one -", [[ [{"role":"system","content":"be kind"},
      {"role":"user","content":"old question"},{"role":"assistant","content":"old answer"},
      {"role":"user","content":"look"},
      {"role":"assistant","content":"","tool_calls":[{"id":"c","name":"f","arguments":"{}"}]},
      {"role":"tool","tool_call_id":"c","content":"seen"},
      {"role":"assistant","content":"new answer"}] ]])
    cli.done "compact one --policy sliding_window --option messages=4"
    local openai = decode((cli.done "context one --to openai"))
    assert.equal("system", openai.messages[1].role)
    assert.not_matches("old question", cli.done "context one --to openai")
    assert.matches("old question", cli.done "export one --to openai")
    local call = openai.messages[#openai.messages - 2].tool_calls[1]
    assert.equal("f", call["function"].name)
    local anthropic = decode((cli.done "context one --to anthropic"))
    assert.equal("be kind", anthropic.system)
    assert.equal("user", anthropic.messages[1].role)
    assert.equal("tool_result", anthropic.messages[#anthropic.messages - 1].content[1].type)
    local _, _, code = cli.sessile "context one --to pi"
    assert.equal(2, code)
  end)
end)
