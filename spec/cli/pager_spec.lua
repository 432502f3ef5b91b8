-- Long output on a terminal: a pager shows it, and lines are broken at spaces.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local terminal = require "spec.support.terminal"
local text = require "sessile.cli.terminal"
local has, has_not = expect.has, expect.has_not

terminal.each_test()

-- A session of 60 messages.
local function talk()
  local lines = {}
  for i = 1, 60 do
    lines[i] = ('{"role":"%s","content":"message %d of many"}'):format(
      i % 2 == 1 and "user" or "assistant", i)
  end
  cli.write(cli.home() .. "/talk.jsonl", table.concat(lines, "\n"))
  cli.done(("import %s/talk.jsonl --id talk"):format(cli.home()))
end

local function has_less()
  return os.execute "command -v less >/dev/null 2>&1"
end

describe("a pager", function()
  local function with_less(name, test, env)
    terminal.test(name, function(at)
      if not has_less() then
        return pending "needs less: install the package less"
      end
      talk()
      test(at)
    end, 80, 24, env)
  end

  with_less("shows what is longer than the screen, from its beginning", function(at)
    at:run "show talk"
    at:wait "message 1 of many"
    has_not(at:screen(), "message 60 of many")
    at:type "G"
    at:wait "message 60 of many"
    at:keys "C-c" -- is the pager's
    at:type "q"
    at:wait(function(seen) return seen:find "%$%s*$" end)
    at:enter "echo $((40 + 2))"
    at:wait "42"
  end)

  with_less("is for `search` and `list` too, and what they say comes after it", function(at)
    at:run "search message --limit 40"
    at:wait ":"
    has_not(at:screen(), "The first 40 hits")
    at:type "q"
    at:wait "The first 40 hits"
  end)

  with_less("leaves what fits on the screen, and ends by itself", function(at)
    at:run "show talk --last 2; echo en''ded"
    at:wait "ended"
    has(at:screen(), "message 60 of many")
  end)

  with_less("is not there with --no-pager", function(at)
    at:run "show talk --no-pager; echo en''ded"
    at:wait "ended"
  end)

  terminal.test("is the program that PAGER names", function(at)
    talk()
    at:run "show talk; echo en''ded"
    at:wait "PAGED 179"
    at:wait "ended"
  end, 80, 24, "PAGER='echo PAGED $(wc -l) #'")

  terminal.test("that cannot be started loses nothing", function(at)
    talk()
    at:run "show talk --last 2; echo en''ded"
    at:wait "ended"
    has(at:screen(), "message 60 of many")
  end, 80, 24, "PAGER=/nowhere/pager")
end)

it("in a pipe there is none", function()
  talk()
  local out = cli.sessile("show talk", nil, "env PAGER=/bin/false")
  has(out, "message 60 of many")
end)

describe("text on a terminal", function()
  it("is broken at spaces, and keeps the indentation of its line", function()
    assert.equal("one two three four\nfive six", text.fold("one two three four five six", 20))
    assert.equal("    one two three\n    four five six",
      text.fold("    one two three four five six", 20))
    assert.equal("short\n\n  lines stay", text.fold("short\n\n  lines stay", 20))
    assert.equal("one two three four five", text.fold("one two three four five"))
  end)

  it("is cut within a word that is longer than the line", function()
    local long = ("x"):rep(45)
    local lines = {}
    for line in text.fold("ab " .. long, 20):gmatch "[^\n]+" do
      lines[#lines + 1] = line
      assert.is_true(text.width(line) <= 20)
    end
    assert.equal("ab" .. long, table.concat(lines):gsub(" ", ""))
    assert.equal(("漢"):rep(10) .. "\n" .. ("漢"):rep(2), text.fold(("漢"):rep(12), 20))
  end)

  terminal.test("is wrapped by `show`", function(at)
    cli.done "new --id wide"
    cli.done("append wide -", ("word "):rep(30) .. "last")
    at:run "show wide --no-pager"
    at:wait "last"
    for line in at:screen():gmatch "[^\n]+" do
      assert.is_true(not line:find "word" or line:find "^  word" ~= nil, line)
    end
  end, 60, 24)
end)

describe("help on a terminal", function()
  local commands = { "help", "help import", "help memory add", "help chat", "help export" }
  for _, columns in ipairs { 72, 80 } do
    it(("is broken at spaces to fit into %d columns"):format(columns), function()
      if not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
        pending "needs script(1) and a pseudo-terminal"
        return
      end
      local shell = ([[sh -c 'script -qec "stty cols %d; $*" /dev/null' sh]]):format(columns)
      for _, words in ipairs(commands) do
        local seen = cli.sessile(words, nil, shell):gsub("\27%[%d*m", ""):gsub("\r", "")
        for line in seen:gmatch "[^\n]+" do
          -- What is to be typed is not broken; it can be longer.
          assert.is_true(text.width(line) <= columns or line:find "^  %S" ~= nil
            and not line:find "%[", words .. ": " .. line)
        end
        local function plain(shown) return (shown:gsub("%s+", " ")) end
        assert.equal(plain(cli.done(words)), plain(seen))
      end
    end)
  end
end)
