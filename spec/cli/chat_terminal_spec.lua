-- A chat at a terminal: what is typed and seen, and how the terminal is afterwards.

local cli = require "spec.support.cli"
local endpoints = require "spec.support.endpoints"
local expect = require "spec.support.expect"
local terminal = require "spec.support.terminal"
local has = expect.has
local home

terminal.each_test(function(path)
  home = path
  cli.write(home .. "/echo.sh", [[cat >/dev/null; printf 'I hear '; sleep 0.1; printf 'you.']])
  cli.write(home .. "/wide.sh", [[cat >/dev/null; sleep 1.5; i=0
    while [ $i -lt 60 ]; do printf 'bre'; printf 'ad '; i=$((i+1)); done; printf 'the end.']])
  cli.write(home .. "/rich.lua", ([[return function(_, ctx)
      local text = io.open("%s/rich.md"):read "a"
      ctx.on_reasoning "Let me "
      ctx.on_reasoning "think."
      for at = 1, #text, 3 do
        ctx.on_text(text:sub(at, at + 2))
      end
      return { content = text, reasoning_content = "Let me think." }
    end]]):format(home))
  -- Speaks until it is stopped, and tries to take the terminal over.
  cli.write(home .. "/slow.sh", ([[cat >/dev/null; i=0
    while [ $i -lt 300 ]; do
      printf 'word %%s \033[2J\033]0;x' $i; printf '\007\n'; sleep 0.1; i=$((i+1))
    done; echo late >%s/late]]):format(home))
  cli.configure(([[return { model = "echo", models = {
    echo = { command = { "/bin/sh", "%s/echo.sh" }, window = 4000 },
    rich = { lua = "%s/rich.lua" },
    wide = { command = { "/bin/sh", "%s/wide.sh" } },
    slow = { command = { "/bin/sh", "%s/slow.sh" } } } }]]):format(home, home, home, home))
end)

-- A test with a shell in which `chat` starts a chat.
local function seen(name, test, options, coloured)
  terminal.test(name, function(screen)
    screen:enter(("chat() { (echo $BASHPID >%s/pid; exec %s %s chat \"$@\"); }; clear"):format(home,
      cli.quote(cli.binary), options or ""))
    screen:wait(function(text) return text:find "^%$%s*$" end)
    test(screen)
  end, 80, 30, function()
    return ("%s LC_ALL=C.UTF-8 XDG_STATE_HOME=%s/state"):format(coloured and "" or "NO_COLOR=1",
      home)
  end)
end

describe("a chat at a terminal", function()
  seen("lists its commands without breaking a word", function(screen)
    screen:enter "chat talk"
    screen:wait "talk >"
    screen:enter "/help"
    has(screen:wait "ends the", "models from\n" .. (" "):rep(37) .. "now on\n")
    screen:keys "C-d"
    screen:wait(function(text) return text:find "%$%s*$" end)
  end)

  seen("answers as it comes, and leaves the terminal as it was", function(screen)
    local before = screen:modes()
    screen:enter "clear; chat talk"
    screen:wait "talk >"
    screen:enter "grüße 漢字, what?"
    local text = screen:wait "I hear you.\ntalk >"
    has(text, "grüße 漢字, what?")
    screen:wait "talk >\n"
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
    screen:wait "I hear you.\ntalk >"
    screen:enter "/tree"
    screen:wait "assistant"
    screen:keys "q"
    screen:wait "/tree\ntalk >"
    screen:enter "/tre x"
    screen:wait "Did you mean /tree?"
    screen:enter "/nope"
    screen:wait "See them: /help" -- /copy is two letters of four away: nobody meant that
    screen:enter "/compact keep the names"
    screen:wait "tokens"
    screen:enter "/title A talk"
    screen:wait "A talk >"
    screen:enter "/label start"
    screen:enter "/sessions label list"
    screen:wait "start"
    screen:enter "/restore nowhere" -- a command that fails ends itself, not the chat
    screen:wait "has no checkpoint 'nowhere'"
    screen:enter "/fork 1"
    screen:wait "To continue there: "
    screen:enter "/branch 1"
    screen:wait "Continue from there: type a message"
    screen:enter "/delete"
    screen:wait "/delete is not for a chat"
    screen:enter "/undo"
    screen:wait "undone: one"
    screen:enter "//slash"
    screen:wait "I hear you.\nA talk >"
    screen:enter "/retry"
    screen:wait "/retry\nI hear you.\nA talk >"
    screen:enter "/quit"
    screen:wait "To continue later: "
    local messages = cli.json "show talk"
    assert.equal("/slash", messages[#messages - 1].message.content)
    assert.equal(2, #cli.json "list")
  end)

  seen("stops an answer at Ctrl-C, keeps what was said, and is as before", function(screen)
    local before = screen:modes()
    screen:enter "clear; chat talk --model slow"
    screen:wait "talk >"
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

  seen("keeps the lines that are typed while the model answers, in their order", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "one"
    screen:enter "two"
    screen:enter "three"
    screen:type "fo" -- and a line that is not ended yet
    screen:wait(function(text)
      return select(2, text:gsub("I hear you%.", "")) == 3 and text:find "talk > fo\n"
    end)
    screen:enter "ur"
    screen:wait(function(text) return select(2, text:gsub("I hear you%.", "")) == 4 end)
    local said = {}
    for _, row in ipairs(cli.json "show talk") do
      said[#said + 1] = row.message.role == "user" and row.message.content or nil
    end
    assert.same({ "one", "two", "three", "four" }, said)
  end)

  seen("makes a session with the first message, not before", function(screen)
    screen:enter "clear; chat talk"
    screen:wait "talk >"
    screen:enter "/tree"
    screen:wait "nothing was said yet"
    screen:enter "/model slow"
    screen:wait "/model slow\ntalk >"
    screen:enter "/model echo"
    screen:keys "C-d"
    screen:wait(function(text) return text:find "\n%$%s*$" end)
    assert.same({}, cli.json "list")
    screen:enter "clear; chat --system 'Be brief.'"
    screen:wait "\n>\n"
    screen:enter "one"
    screen:wait "I hear you.\n>"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert.equal("Be brief.", cli.json("show last")[1].message.content)
  end)

  seen("breaks lines between words, and shows for how long it waits", function(screen)
    screen:enter "clear; chat talk --model wide"
    screen:wait "talk >"
    screen:enter "go"
    screen:wait "waiting for the model, 1 s"
    local text = screen:wait "the end.\ntalk >"
    assert.falsy(text:find("waiting", 1, true))
    local words = text:match "go\n(bread.*)the end"
    assert.equal(60, select(2, words:gsub("bread%f[%s]", "")))
  end)

  seen("shows Markdown as styles and reasoning dimmed, and obeys neither", function(screen)
    cli.write(home .. "/rich.md", "# A title\n\nThis is **very bold** and `code`, `\27[31mred` and "
      .. "**open\n\n- a point\n\n```lua\nlocal **x** = 1\n```\nThe end.\n")
    screen:enter "clear; chat talk --model rich"
    screen:wait "talk >"
    screen:enter "go"
    local text = screen:wait "The end.\ntalk >"
    has(text, "Let me think.\n\nA title\n\nThis is very bold and code, red and **open\n\n"
      .. "• a point\n\n```lua\nlocal **x** = 1\n```\n")
    local styled = screen:screen(true)
    for _, part in ipairs { "\27%[2mLet", "\27%[[0;]*1m[^A\n]*A", "\27%[1mvery", "\27%[36mcode",
      "\27%[36m\27?[^\n]*local %*%*x%*%* = 1" } do
      assert.truthy(styled:find(part), part .. "\n" .. styled:gsub("\27", "^"))
    end
    assert.falsy(styled:find("\27[31m", 1, true))
  end, nil, true)

  seen("changes nothing when the model refuses a summary, and says what to do", function(screen)
    if not pcall(require, "socket") then
      return pending "the package lua-socket is not installed"
    end
    local refusal = "json(429, '{\"error\":{\"message\":\"slow down\"}}', 'retry-after: 0\\r\\n')"
    local chunks = {}
    for i = 1, 8 do -- each question is asked four times
      chunks[i] = refusal
    end
    local port = endpoints.serve(chunks)
    cli.configure(('return { model = { endpoint = "http://127.0.0.1:%d/v1", name = "busy" } }')
      :format(port))
    local lines = {}
    for i = 1, 12 do
      lines[i] = ('{"role":"%s","content":"%s"}'):format(i % 2 == 1 and "user" or "assistant",
        ("word "):rep(200))
    end
    cli.done("import - --from jsonl --id talk", table.concat(lines, "\n"))
    local before = cli.json "info talk"
    screen:enter "clear; chat talk"
    screen:wait "talk >"
    screen:enter "/compact --policy summarize --option preserve_recent=2"
    local text = screen:wait "To try again: /compact."
    has(text, "slow down")
    has(text:gsub("%s+", " "), "/compact --fallback sliding_window")
    assert.equal(before.tokens, cli.json("info talk").tokens)
    assert.equal(before.head, cli.json("info talk").head)
    screen:enter("/compact --policy summarize --option preserve_recent=2 --window 2000 "
      .. "--fallback sliding_window")
    screen:wait "messages left the context"
    assert.truthy(cli.json("info talk").tokens < before.tokens)
  end)

  seen("puts the terminal back when it is killed", function(screen)
    for _, doing in ipairs { "typing", "answer" } do
      local before = screen:modes()
      screen:enter "clear; chat talk --model slow; echo ENDED"
      screen:wait "talk >"
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
    screen:wait "I hear you.\ntalk >"
    assert.equal("line one\nline two", cli.json("show talk")[1].message.content)
  end)

  seen("keeps no line of a sealed store outside of it, and brings them back", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "a secret"
    screen:wait "I hear you.\ntalk >"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert.is_nil((os.execute(("grep -rq 'a secret' %s/state %s/data 2>/dev/null"):format(home,
      home))))
    screen:enter "clear; chat talk"
    screen:wait "run here\ntalk >\n"
    screen:keys "Up"
    screen:wait "> a secret"
  end)

  seen("keeps the lines of a plain store for its user alone", function(screen)
    screen:enter "chat talk"
    screen:wait ">"
    screen:enter "an open word"
    screen:wait "I hear you.\ntalk >"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert(os.execute(("grep -rq 'an open word' %s/state/sessile/history"):format(home)))
    assert(os.execute(("test -z \"$(find %s/state/sessile -perm /077)\""):format(home)))
    assert(os.execute(([[for f in %s/state/sessile/history/*; do
      printf '\377\000\n\033[2J\n\302' >>$f; done]]):format(home)))
    screen:enter "clear; chat talk" -- bytes that are not a line are skipped
    screen:wait "run here\ntalk >\n"
    screen:keys "Up"
    screen:wait "> an open word"
    screen:keys "C-c"
    screen:wait "an open word^C\ntalk >"
    screen:keys "C-d"
    screen:wait "To continue later: "
    assert(os.execute(("rm -r %s/state"):format(home)))
    screen:enter "clear; chat talk --no-history"
    screen:wait "run here\ntalk >\n"
    screen:enter "not this one"
    screen:wait "I hear you.\ntalk >"
    assert.is_nil((io.open(home .. "/state")))
  end, "--plain")
end)
