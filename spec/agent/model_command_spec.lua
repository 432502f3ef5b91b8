-- A program as a model, as the executable asks it.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile = require "sessile"
local has = expect.has

local home

cli.each_test(function(path) home = path end)

-- Asks a shell script in the executable; prints what came of it.
local function ask(script, more, before)
  cli.write(home .. "/model.sh", script)
  cli.write(home .. "/ask.lua", ([[
    local sessile = require "sessile"
    local model = assert(sessile.model { command = { "/bin/sh", "%s/model.sh", "a b", "$HOME" },
      %s })
    local told = {}
    local answer, message, code = model({ messages = { { role = "user", content = "grüße" } },
      max_tokens = 9 }, function(text) told[#told + 1] = text end)
    io.write(assert(sessile.encode { answer = answer, message = message, code = code,
      told = #told < 100 and table.concat(told) or nil }))
  ]]):format(home, more or ""))
  local out, err, code = cli.sessile(("run %s/ask.lua"):format(home), nil, before)
  assert.equal("", err)
  assert.equal(0, code)
  return assert(sessile.decode(out))
end

describe("a command", function()
  it("gets the request as JSON and its words as they are; its text is the answer", function()
    local got = ask [[printf '%s|%s|' "$1" "$2"; cat]]
    local words, request = got.answer:match "^(a b|%$HOME|)(.*)$"
    assert.equal("a b|$HOME|", words)
    assert.same({ messages = { { role = "user", content = "grüße" } }, max_tokens = 9 },
      sessile.decode(request))
    assert.equal(got.answer, got.told)
  end)

  it("may answer with a message, or with why there is none", function()
    local got = ask [[echo '{"content":"hi","usage":{"input":3},"tool_calls":null}']]
    assert.same({ content = "hi", usage = { input = 3 } }, got.answer)
    assert.equal("hi", got.told)
    got = ask [[echo '{"error":{"message":"too much","code":"EOVERFLOW"}}']]
    assert.equal("too much", got.message)
    assert.equal("EOVERFLOW", got.code)
    assert.equal('{"a":1}', ask([[echo '{"a":1}']]).answer)
    assert.equal("{ x", ask([[echo '{ x']]).answer)
  end)

  it("is told of with what it said when it fails", function()
    local got = ask [[echo half; echo 'no quota' >&2; exit 3]]
    assert.is_nil(got.answer)
    has(got.message, "the program /bin/sh failed with exit code 3: no quota")
    assert.equal("EIO", got.code)
    has(ask("kill -9 $$").message, "was ended by signal 9")
    has(ask("exit 0").message, "printed no answer")
    cli.write(home .. "/ask.lua", [[
      print(select(2, require "sessile".model { command = { "/no/such" } } { messages = {} }))]])
    has(cli.done(("run %s/ask.lua"):format(home)), "the program /no/such: there is no such program")
  end)

  it("need not read, and may read and write a lot", function()
    assert.equal("yes", ask("exec 0<&-; echo yes").answer)
    assert.equal(300000, #ask([[head -c 300000 /dev/zero | tr '\0' x]]).answer)
  end)

  it("is ended when it says nothing for too long, with all that it started", function()
    local got = ask(([[sh -c 'trap "" TERM; sleep 60; echo x > %s/late' & sleep 60]]):format(home),
      "timeout_ms = 300")
    has(got.message, "printed nothing for too long")
    assert.equal("EIO", got.code)
    has(ask("while :; do echo x; sleep 0.1; done", "timeout_ms = 300").message, "takes too long")
    local pipe <close> = assert(io.popen "LD_PRELOAD= ps -ef")
    assert.is_nil(pipe:read "a":find(home .. "/model.sh", 1, true))
  end)

  it("is seen to end by whomever sessile was started", function()
    if not os.execute "env --ignore-signal=CHLD true 2>/dev/null" then
      return pending "this env cannot start a program with a signal ignored"
    end
    local got = ask("echo yes", "timeout_ms = '5s'", "env --ignore-signal=CHLD")
    assert.equal("yes", got.answer, got.message)
  end)

  it("is ended when it never stops", function()
    local got = ask "exec cat /dev/zero"
    assert.equal("ELIMIT", got.code)
  end)

  it("answers although what it started continues", function()
    assert.equal("ready", ask("sleep 30 & echo ready").answer)
  end)

  it("is not asked by another Lua, which says so", function()
    local model, message, code = sessile.model { command = { "true" } }
    assert.is_nil(model)
    assert.equal("EUNSUPPORTED", code)
    has(message, "sessile run")
  end)
end)
