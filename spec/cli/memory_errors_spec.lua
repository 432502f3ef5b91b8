-- What is wrong with what somebody types about a memory, or brings: each has its sentence and its
-- exit code, and changes nothing.

local cli = require "spec.support.cli"
local temp = require "spec.support.temp"

describe("sessile memory, given what it cannot use,", function()
  cli.each_test()

  local before

  local function store()
    return temp.snapshot(cli.home() .. "/data/sessile/agents")
  end

  before_each(function()
    cli.done [[memory add coder "prefers vim" --key editor]]
    cli.done [[memory add coder "likes tea" --user ann --consent "yes, in chat"]]
    before = store()
  end)

  local function refused(code, words, ...)
    local said = cli.fails(code, words, ...)
    assert.is_true(before == store(), words)
    assert.is_nil(said:find("\n%s+%S+:%d+:"), said) -- no trace of a program
    return said
  end

  it("names an unknown agent, and the next step", function()
    for _, words in ipairs { "show", "stats", "review", "audit", "clear --yes", "search x",
      "rm editor", "edit", "why 1", "export notes" } do
      local name, rest = words:match "^(%S+)%s*(.*)$"
      refused(3, ("memory %s nobody %s"):format(name, rest), 'agent "nobody"',
        "sessile memory add nobody TEXT")
    end
    refused(3, "memory show coder --user bob", "for a user",
      "memory add coder TEXT --user bob --consent WORDS")
    refused(2, "memory add '' x", "the name of the agent is empty")
  end)

  it("refuses a key of 10 KB, or one that nobody can read", function()
    local long = ("k"):rep(10240)
    refused(1, "memory add coder x --key " .. long, "10240 bytes", "[memory_key]", "200")
    refused(1, "memory add coder x --key \"$(printf 'a\\342\\200\\256b')\"", "U+202E")
    refused(1, "memory add coder x --key \"$(printf 'a\\tb')\"", "U+0009")
    refused(3, "memory rm coder " .. long, "no live entry")
  end)

  it("refuses a value that is not UTF-8, empty, or too long", function()
    refused(1, "memory add coder \"$(printf 'caf\\351')\"", "the value is not UTF-8",
      "Nothing was written.")
    refused(1, "memory add coder x --also \"$(printf 'caf\\351')\"", "also is not UTF-8")
    refused(1, "memory add coder ''", "not empty")
    refused(1, "memory add coder \"$(head -c 70000 /dev/zero | tr '\\0' x)\"", "70000 bytes",
      "[memory_value]")
  end)

  it("makes no memory for an entry that it refuses", function()
    refused(1, "memory add fresh \"$(printf 'caf\\351')\"", "not UTF-8")
    refused(1, "memory add fresh x --key " .. ("k"):rep(10240), "[memory_key]",
      "Nothing was written.")
    refused(1, "memory add fresh '' --user bob --consent yes", "not empty")
    refused(3, "memory show fresh", "memory add fresh")
  end)

  it("refuses a MEMORY.md that was edited into nonsense", function()
    if cli.kind then
      return
    end
    os.execute("mkdir -p " .. cli.home() .. "/runtime")
    for script, words in pairs {
      ["1d"] = "line 1: ", ["s/^- .*/no list/"] = "line 5: ", ["s/<!-- 1 -->/<!-- 99 -->/"] = "99",
      ["s/prefers vim//"] = "line 5: the entry has no text",
    } do
      cli.write(cli.home() .. "/editor", ("#!/bin/sh\nsed -i '%s' \"$1\"\n"):format(script))
      os.execute("chmod +x " .. cli.home() .. "/editor")
      local _, err, code = cli.sessile("memory edit coder", nil,
        ("env -u VISUAL EDITOR=%s/editor XDG_RUNTIME_DIR=%s/runtime"):format(cli.home(),
          cli.home()))
      assert.equal(1, code)
      assert.is_truthy(err:find(words, 1, true), err)
      assert.is_true(before == store(), script)
    end
  end)

  it("refuses an import of another format, and says what it looks like", function()
    for text, words in pairs {
      ['{"role":"user"}'] = "JSON of another kind", ["<html></html>"] = "HTML or XML",
      ["a,b,c\n1,2,3\n"] = "a table", ["caf\xe9"] = "no UTF-8", ["\0\1"] = "a binary file",
      [""] = "an empty file", ["# Memory of \"x\"\n\nno list\n"] = "line 3",
    } do
      cli.write(cli.home() .. "/other", text)
      refused(1, "memory import coder " .. cli.home() .. "/other", words, "Nothing was changed")
    end
    assert.is_nil(refused(3, "memory import coder " .. cli.home() .. "/not-there",
      "cannot be read"):find "sessile list")
    assert.is_nil(refused(3, "memory export coder /proc/not-there", "/proc/not-there")
      :find "sessile list")
  end)

  it("says that a user was forgotten", function()
    cli.done "forget ann --yes"
    before = store()
    for _, words in ipairs { "show coder", "search coder tea", "add coder x --consent yes",
      "edit coder", "stats coder", "review coder", "clear coder --yes", "rm coder 1" } do
      local said = refused(7, ("memory %s --user ann"):format(words),
        "the memory of agent \"coder\" for a user", "the secret of this user was forgotten",
        "sessile purge --forgotten")
      assert.is_nil(said:find("session", 1, true), said)
    end
    assert.matches("prefers vim", cli.done "memory show coder")
    cli.done "purge --forgotten --yes"
    cli.done [[memory add coder "likes coffee" --user ann --consent "yes"]]
    assert.matches("likes coffee", cli.done "memory show coder --user ann")
  end)

  it("says that a memory does not open, for whom another was made since", function()
    cli.done "forget ann --yes"
    cli.done [[memory add other "likes coffee" --user ann --consent "yes"]]
    before = store()
    local said = refused(7, "memory show coder --user ann", "was forgotten since", "sessile check")
    assert.is_nil(said:find("SESSILE_KEY", 1, true), said)
  end)
end)
