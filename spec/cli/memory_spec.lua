-- sessile memory: what an agent keeps across sessions, as somebody types it.

local cli = require "spec.support.cli"

describe("sessile memory", function()
  cli.each_test()

  local function run(arguments, expected)
    local out, err, status = cli.sessile(arguments)
    assert.equal(expected or 0, status, arguments .. ": " .. err)
    return out, err
  end

  it("adds, shows, searches, deletes and restores", function()
    assert.equal("1\n", (run [[memory add coder "tests run with make check" --kind procedure]]))
    assert.equal("2\n", (run [[memory add coder "prefers vim" --key editor --also IDE]]))
    assert.equal("3\n", (run [[memory add coder "prefers emacs" --key editor]]))
    local out = run "memory show coder"
    assert.matches("3 +live +fact +editor +prefers emacs\n", out)
    assert.matches("1 +live +procedure +tests run with make check\n", out)
    assert.is_nil(out:find("vim", 1, true))
    assert.matches("^id.-\n1 +1.00 +procedure", (run [[memory search coder "how do tests run?"]]))
    out = run [[memory search coder "how do IDE tests run?" --explain]]
    assert.matches("^1  1%.00  tests run with make check\n"
      .. "    words: test %d%.%d+, run %d%.%d+; together %d%.%d+, %d+%% of what could be met\n",
      out)
    run "memory rm coder editor --reason old --by ann"
    assert.is_nil(run("memory show coder"):find("emacs", 1, true))
    assert.matches("emacs", (run "memory show coder --state deleted"))
    run "memory restore coder 3"
    local _, err = run "memory restore coder 3"
    assert.matches("so already", err)
    assert.matches("3 +live.-\n2 +replaced", (run "memory history coder editor"))
    assert.matches("log entries +6\n", (run "memory stats coder"))
  end)

  it("keeps what is a user's apart, with consent", function()
    local _, err = run([[memory add coder "prefers vim" --user ann]], 3)
    assert.matches("%-%-consent", err)
    run [[memory add coder "prefers vim" --user ann --consent "yes, in chat"]]
    assert.equal("", (run "list"))
    run [[memory add coder "likes tea" --user ann]]
    assert.matches("vim", (run "memory show coder --user ann"))
    assert.is_nil(run("memory show coder --user bob", 3):find "vim")
    assert.matches("likes tea", (run "memory search coder tea --user ann --json"))
  end)

  it("says that what it shows is not all, when the log is damaged", function()
    if cli.kind then
      return
    end
    run [[--plain memory add coder "likes tea" --key drink]]
    run [[--plain memory rm coder drink --reason wronged]]
    run [[--plain memory add coder "likes dogs"]]
    local path = cli.home() .. "/data/sessile/agents/coder.memory/memory.jsonl"
    local text, count = cli.read(path):gsub("wronged", "wrongly")
    assert.equal(1, count)
    cli.write(path, text)
    for _, words in ipairs { "show coder", "search coder tea", "stats coder",
      "history coder drink" } do
      local _, err = run("--plain memory " .. words, 5)
      assert.matches("is damaged at byte", err)
    end
    assert.matches("tea", (run("--plain memory show coder", 5)))
    local out = run("--plain check", 5)
    assert.matches("sessile check [^\n]*%-%-salvage", out)
    assert.is_nil(out:find("check memory", 1, true) or out:find("plain memory", 1, true), out)
    run "--plain check --salvage --yes"
    local _, err = run "--plain memory show coder"
    assert.is_nil(err:find("damaged", 1, true))
    run [[--plain memory add coder "likes cats"]]
  end)

  it("does not speak of consent where an agent is disabled", function()
    cli.configure 'return { agents = { coder = { enabled = false } } }'
    local _, err = run([[memory add coder "likes tea"]], 7)
    assert.matches("agent 'coder' is disabled", err)
    assert.is_nil(err:find("consent", 1, true), err)
  end)

  it("names what is not there, and makes nothing of it", function()
    run [[memory add coder "prefers vim" --key editor]]
    local _, err = run("memory rm coder edtor", 3)
    assert.matches('did you mean "editor"', err)
    assert.matches("memory show coder", err)
    _, err = run("memory show nobody", 3)
    assert.matches("memory add nobody", err)
    run("memory show nobody", 3)
    run("memory rm coder ff", 3)
    run("memory rm coder ffffffff", 1)
    run("memory history coder FFFFFFFF", 1)
    run("memory search coder x --limit 0", 2)
    run("memory add coder ''", 1)
    assert.equal("", (run "list"))
  end)

  it("shows no control characters", function()
    run [[memory add coder "$(printf 'red \033[31m\nend')" ]]
    assert.is_nil(run("memory show coder"):find("\27", 1, true))
  end)
end)
