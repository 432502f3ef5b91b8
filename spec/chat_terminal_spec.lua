-- A chat at a terminal: what is typed and seen, and how the terminal is afterwards.

local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
local cli = dofile(here .. "/support/cli.lua")
local terminal = dofile(here .. "/support/terminal.lua")
local home, screen

local missing = terminal.missing()

local function has(text, part)
  assert.truthy(text:find(part, 1, true), ("%q\nis not in\n%s"):format(part, text))
end

before_each(function()
  home = cli.begin()
  assert(os.execute(("mkdir -p -m 700 %s/config/sessile"):format(home)))
  cli.write(home .. "/echo.sh", [[cat >/dev/null; printf 'I hear '; sleep 0.1; printf 'you.']])
  -- Speaks until it is stopped, and tries to take the terminal over.
  cli.write(home .. "/slow.sh", ([[cat >/dev/null; i=0
    while [ $i -lt 300 ]; do
      printf 'word %%s \033[2J\033]0;x' $i; printf '\007\n'; sleep 0.1; i=$((i+1))
    done; echo late >%s/late]]):format(home))
  cli.write(home .. "/config/sessile/config.lua", ([[return { model = "echo", models = {
    echo = { command = { "/bin/sh", "%s/echo.sh" }, window = 4000 },
    slow = { command = { "/bin/sh", "%s/slow.sh" } } } }]]):format(home, home))
end)

after_each(function()
  if screen then
    screen:close()
    screen = nil
  end
  cli.finish()
end)

-- Opens a shell in which `chat` starts a chat.
local function open(options)
  cli.write(home .. "/rc", ([[PS1='$ '
    export HOME=%s XDG_DATA_HOME=%s/data XDG_CONFIG_HOME=%s/config XDG_STATE_HOME=%s/state
    export LC_ALL=C.UTF-8 NO_COLOR=1; unset SESSILE_KEY SESSILE_STORE SESSILE_CONFIG
    chat() { (echo $BASHPID >%s/pid; exec %s %s chat "$@"); }
    cd %s
  ]]):format(home, home, home, home, home, cli.quote(cli.binary), options or "", home))
  screen = terminal.open(home, "bash --noprofile --rcfile " .. home .. "/rc -i", "80x30")
  screen:wait "$"
end

local function seen(name, test, options)
  it(name, function()
    if missing then
      return pending(missing)
    end
    open(options)
    test()
  end)
end

describe("a chat at a terminal", function()
  seen("answers as it comes, and leaves the terminal as it was", function()
    screen:type "stty -a >before; chat talk"
    screen:wait "talk echo 0/4.0k >"
    screen:type "grüße 漢字, what?"
    local text = screen:wait "I hear you."
    has(text, "grüße 漢字, what?")
    screen:wait "/4.0k >\n"
    screen:keys "C-d"
    screen:wait "Go on later: "
    screen:type "stty -a >after; cmp before after && echo SAME"
    screen:wait "\nSAME"
    local _, messages = pcall(cli.json, "show talk")
    assert.equal("grüße 漢字, what?", messages[1].message.content)
    assert.equal("I hear you.", messages[2].message.content)
  end)

  seen("takes slash commands, and says what was meant", function()
    screen:type "chat talk"
    screen:wait ">"
    screen:type "one"
    screen:wait "I hear you."
    screen:type "/tree"
    screen:wait "00000002 assistant"
    screen:type "/tre x"
    screen:wait "Did you mean /tree?"
    screen:type "/compact keep the names"
    screen:wait "tokens"
    screen:type "/title A talk"
    screen:wait "A talk echo"
    screen:type "/label start"
    screen:type "/sessions label list"
    screen:wait "start"
    screen:type "/fork 1"
    screen:wait "Go on there: "
    screen:type "/delete"
    screen:wait "/delete is not for a chat"
    screen:type "/undo"
    screen:wait "took back: one"
    screen:type "//slash"
    screen:wait "I hear you."
    screen:type "/quit"
    screen:wait "Go on later: "
    local messages = cli.json "show talk"
    assert.equal("/slash", messages[#messages - 1].message.content)
    assert.equal(2, #cli.json "list")
  end)

  seen("stops an answer at Ctrl-C, keeps what was said, and is as before", function()
    screen:type "stty -a >before; chat talk --model slow"
    screen:wait "talk slow 0 >"
    screen:type "go"
    screen:wait "word 3"
    screen:keys "C-c"
    local text = screen:wait "stopped; what was said is kept"
    has(text, "word 0 0;x") -- on the screen, which was not cleared
    screen:wait ">\n"
    screen:keys("x", "C-c") -- drops the line, not the chat
    screen:wait "x^C"
    screen:keys "C-d"
    screen:wait "Go on later: "
    screen:type "stty -a >after; cmp before after && echo SAME"
    screen:wait "\nSAME"
    local kept = cli.json("show talk")[2].message
    has(kept.content, "word 3")
    assert.is_true(kept.metadata.interrupted)
    assert.is_nil((io.open(home .. "/late")))
  end)

  seen("puts the terminal back when it is killed", function()
    for _, doing in ipairs { "typing", "answer" } do
      screen:type "clear; stty -a >before; chat talk --model slow; echo ENDED"
      screen:wait "talk slow"
      if doing == "answer" then
        screen:type "go"
        screen:wait "word 1"
      end
      assert(os.execute("kill -TERM " .. cli.read(home .. "/pid")))
      screen:wait "\nENDED"
      screen:type "stty -a >after; cmp before after && echo SAME"
      screen:wait "\nSAME"
    end
  end)

  seen("takes a paste of several lines as one", function()
    screen:type "chat talk"
    screen:wait ">"
    screen:paste "line one\nline two"
    screen:wait "line two"
    screen:keys "Enter"
    screen:wait "I hear you."
    assert.equal("line one\nline two", cli.json("show talk")[1].message.content)
  end)

  seen("keeps no line of a sealed store outside of it, and brings them back", function()
    screen:type "chat talk"
    screen:wait ">"
    screen:type "a secret"
    screen:wait "I hear you."
    screen:keys "C-d"
    screen:wait "Go on later: "
    assert.is_nil((os.execute(("grep -rq 'a secret' %s/state %s/data 2>/dev/null"):format(home,
      home))))
    screen:type "clear; chat talk"
    screen:wait ">"
    screen:keys "Up"
    screen:wait "> a secret"
  end)

  seen("keeps the lines of a plain store for its user alone", function()
    screen:type "chat talk"
    screen:wait ">"
    screen:type "an open word"
    screen:wait "I hear you."
    screen:keys "C-d"
    screen:wait "Go on later: "
    assert(os.execute(("grep -rq 'an open word' %s/state/sessile/history"):format(home)))
    assert(os.execute(("test -z \"$(find %s/state/sessile -perm /077)\""):format(home)))
    assert(os.execute(("rm -r %s/state"):format(home)))
    screen:type "clear; chat talk --no-history"
    screen:wait ">"
    screen:type "not this one"
    screen:wait "I hear you."
    assert.is_nil((io.open(home .. "/state")))
  end, "--plain")
end)
