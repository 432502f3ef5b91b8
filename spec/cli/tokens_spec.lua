-- sessile tokens, and what other commands say about where a count comes from.

local cli = require "spec.support.cli"
local sessile, done, json = cli.sessile, cli.done, cli.json
local home

cli.each_test(function(path)
  home = path
  cli.write(home .. "/note.txt", "hello world, this is a text\n")
  cli.write(home .. "/talk.jsonl", [[{"role":"user","content":"hello world"}
{"role":"assistant","content":"hello \u001b[31myou"}
]])
end)

describe("tokens", function()
  it("counts a text", function()
    local out = done(("tokens %s/note.txt"):format(home))
    assert.matches("^%d+ tokens %(estimate, %d+ to %d+%)\n$", out)
    assert.equal(out, (done("tokens -", "hello world, this is a text\n")))
  end)

  it("counts by the model's encoding, or another, or says why not", function()
    local exact = json(("tokens %s/note.txt --model openai/gpt-4o"):format(home))
    if exact.missing then
      pending("the encodings are not built: " .. exact.missing)
    end
    assert.same({ 8, 8, 8, "exact" }, { exact.tokens, exact.low, exact.high, exact.source })
    assert.equal("8 tokens (exact)\n",
      (done(("tokens %s/note.txt --encoding cl100k_base"):format(home))))
    local out, err = sessile(("tokens %s/note.txt --encoding nosuch"):format(home))
    assert.matches("estimate", out)
    assert.matches("nosuch", err)
  end)

  it("counts a recording message by message", function()
    local out = done(("tokens %s/talk.jsonl --each"):format(home))
    assert.matches("user +hello world", out)
    assert.matches("assistant +hello", out)
    assert.is_nil(out:find("\27[31m", 1, true))
    assert.matches("in 2 messages\n$", out)
    local all = json(("tokens %s/talk.jsonl --each"):format(home))
    assert.equal(2, all.messages)
    assert.equal(all.tokens, all.each[1].tokens + all.each[2].tokens)
    -- as a text it is another number
    assert.not_equal(all.tokens, json(("tokens %s/talk.jsonl --from text"):format(home)).tokens)
  end)

  it("counts what a session sends, with tools and a system prompt", function()
    done("new --id talk")
    done [[append talk "hello there"]]
    local bare = json "tokens --session talk"
    assert.equal("estimate", bare.source)
    cli.write(home .. "/tools.json", '[{"name":"look","description":"Look it up.",'
      .. '"input_schema":{"type":"object","properties":{"q":{"type":"string"}}}}]')
    local more = json(("tokens --session talk --tools %s/tools.json --system %s/note.txt"):format(
      home, home))
    assert.is_true(more.tokens > bare.tokens + 20)
    local shown, note = sessile "context talk"
    assert.matches("hello there", shown)
    assert.matches(("%d tokens %%(estimate, %%d+ to %%d+%%)"):format(bare.tokens), note)
    assert.matches(("%d tokens %%(estimate, %%d+ to %%d+%%)"):format(bare.tokens),
      (done "info talk"))
    assert.equal(bare.low, json("context talk").low)
    assert.is_true(json("context talk --model gpt-4o").tokens > 0)
  end)

  it("tells what is wrong", function()
    local _, err, code = sessile "tokens"
    assert.equal(2, code)
    assert.matches("%-%-session", err)
    _, err, code = sessile(("tokens %s/nothing.txt"):format(home))
    assert.equal(3, code)
    assert.matches("nothing.txt", err)
    _, err, code = sessile(("tokens %s/note.txt --from jsonl"):format(home))
    assert.equal(1, code)
    assert.matches("note.txt", err)
    done("new --id talk")
    _, err, code = sessile(("tokens --session talk --tools %s/note.txt"):format(home))
    assert.equal(1, code)
    assert.matches("tools: not JSON", err)
  end)
end)
