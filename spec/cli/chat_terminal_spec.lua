-- A chat at a terminal: what is typed and seen, and how the terminal is afterwards.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local terminal = require "spec.support.terminal"
local has = expect.has
local home

terminal.each_test(function(path)
  home = path
  cli.write(home .. "/echo.sh", [[cat >/dev/null; printf 'I hear '; sleep 0.1; printf 'you.']])
  -- Speaks until it is stopped, and tries to take the terminal over.
  cli.write(home .. "/slow.sh", ([[cat >/dev/null; i=0
    while [ $i -lt 300 ]; do
      printf 'word %%s \033[2J\033]0;x' $i; printf '\007\n'; sleep 0.1; i=$((i+1))
    done; echo late >%s/late]]):format(home))
  cli.configure(([[return { model = "echo", models = {
    echo = { command = { "/bin/sh", "%s/echo.sh" }, window = 4000 },
    slow = { command = { "/bin/sh", "%s/slow.sh" } } } }]]):format(home, home))
end)

-- A test with a shell in which `chat` starts a chat.
local function seen(name, test, options)
  terminal.test(name, function(screen)
    screen:enter(("chat() { (echo $BASHPID >%s/pid; exec %s %s chat \"$@\"); }; clear"):format(home,
      cli.quote(cli.binary), options or ""))
    screen:wait(function(text) return text:find "^%$%s*$" end)
    test(screen)
  end, 80, 30, function()
    return ("NO_COLOR=1 LC_ALL=C.UTF-8 XDG_STATE_HOME=%s/state"):format(home)
  end)
end

describe("a chat at a terminal", function()
  seen("answers as it comes, and leaves the terminal as it was", function(screen)
    local before = screen:modes()
    screen:enter "clear; chat talk"
    screen:wait "talk echo 0/4.0k >"
    screen:enter "grüße 漢字, what?"
    local text = screen:wait "I hear you.\ntalk echo"
    has(text, "grüße 漢字, what?")
    screen:wait "/4.0k >\n"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert.equal(before, screen:modes())
    local _, messages = pcall(cli.json, "show talk")
    assert.equal("grüße 漢字, what?", messages[1].message.content)
    assert.equal("I hear you.", messages[2].message.content)
  end)

  seen("takes slash commands, and says what was meant", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "one"
    screen:wait "I hear you.\ntalk echo"
    screen:enter "/tree"
    screen:wait "assistant"
    screen:keys "q"
    screen:wait "/tree\ntalk echo"
    screen:enter "/tre x"
    screen:wait "Did you mean /tree?"
    screen:enter "/compact keep the names"
    screen:wait "tokens"
    screen:enter "/title A talk"
    screen:wait "A talk echo"
    screen:enter "/label start"
    screen:enter "/sessions label list"
    screen:wait "start"
    screen:enter "/restore nowhere" -- a command that fails ends itself, not the chat
    screen:wait "has no checkpoint 'nowhere'"
    screen:enter "/fork 1"
    screen:wait "To continue there: "
    screen:enter "/delete"
    screen:wait "/delete is not for a chat"
    screen:enter "/undo"
    screen:wait "took back: one"
    screen:enter "//slash"
    screen:wait "I hear you.\nA talk echo"
    screen:enter "/retry"
    screen:wait "/retry\nI hear you.\nA talk echo"
    screen:enter "/quit"
    screen:wait "To continue later: "
    local messages = cli.json "show talk"
    assert.equal("/slash", messages[#messages - 1].message.content)
    assert.equal(2, #cli.json "list")
  end)

  seen("stops an answer at Ctrl-C, keeps what was said, and is as before", function(screen)
    local before = screen:modes()
    screen:enter "clear; chat talk --model slow"
    screen:wait "talk slow 0 >"
    screen:enter "go"
    screen:wait "word 3"
    screen:keys "C-c"
    local text = screen:wait "stopped; the answer so far is kept"
    has(text, "word 0 0;x") -- on the screen, which was not cleared
    screen:wait ">\n"
    screen:keys "x"
    screen:wait "> x"
    screen:keys "C-c" -- drops the line, not the chat
    screen:wait "x^C"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert.equal(before, screen:modes())
    local kept = cli.json("show talk")[2].message
    has(kept.content, "word 3")
    assert.is_true(kept.metadata.interrupted)
    assert.is_nil((io.open(home .. "/late")))
  end)

  seen("puts the terminal back when it is killed", function(screen)
    for _, doing in ipairs { "typing", "answer" } do
      local before = screen:modes()
      screen:enter "clear; chat talk --model slow; echo ENDED"
      screen:wait "talk slow"
      if doing == "answer" then
        screen:enter "go"
        screen:wait "word 1"
      end
      assert(os.execute("kill -TERM " .. cli.read(home .. "/pid")))
      screen:wait "\nENDED"
      assert.equal(before, screen:modes())
    end
  end)

  seen("takes a paste of several lines as one", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:paste "line one\nline two"
    screen:wait "line two"
    screen:keys "Enter"
    screen:wait "I hear you.\ntalk echo"
    assert.equal("line one\nline two", cli.json("show talk")[1].message.content)
  end)

  seen("keeps no line of a sealed store outside of it, and brings them back", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "a secret"
    screen:wait "I hear you.\ntalk echo"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert.is_nil((os.execute(("grep -rq 'a secret' %s/state %s/data 2>/dev/null"):format(home,
      home))))
    screen:enter "clear; chat talk"
    screen:wait ">"
    screen:keys "Up"
    screen:wait "> a secret"
  end)

  seen("keeps the lines of a plain store for its user alone", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "an open word"
    screen:wait "I hear you.\ntalk echo"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert(os.execute(("grep -rq 'an open word' %s/state/sessile/history"):format(home)))
    assert(os.execute(("test -z \"$(find %s/state/sessile -perm /077)\""):format(home)))
    assert(os.execute(([[for f in %s/state/sessile/history/*; do
      printf '\377\000\n\033[2J\n\302' >>$f; done]]):format(home)))
    screen:enter "clear; chat talk" -- what is no line in it is passed over
    screen:wait ">"
    screen:keys "Up"
    screen:wait "> an open word"
    screen:keys "C-c"
    screen:wait "an open word^C\ntalk echo"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert(os.execute(("rm -r %s/state"):format(home)))
    screen:enter "clear; chat talk --no-history"
    screen:wait ">"
    screen:enter "not this one"
    screen:wait "I hear you.\ntalk echo"
    assert.is_nil((io.open(home .. "/state")))
  end, "--plain")
end)
