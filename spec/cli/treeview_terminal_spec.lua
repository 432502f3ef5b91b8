-- The terminal under the tree of a session: nothing reaches it but text, and it is given back.

local cli = require "spec.support.cli"
local terminal = require "spec.support.terminal"
local tree = require "spec.support.tree"
local done, write = cli.done, cli.write

local home

terminal.each_test(function(path) home = path end)

describe("whatever a session holds", function()
  local NASTY = "\27[31mred\27]0;owned\7 \27[2J\27[?1049l\u{202E}rtl\u{200B}zero\u{9B}31m\u{2066} "
    .. "wide日本語👩‍👩‍👧 e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301} end"

  terminal.test("is text on the screen", function(at)
    done("new --id nasty --title " .. cli.quote(NASTY))
    done("append nasty -", NASTY)
    done("label nasty 1 " .. cli.quote(NASTY))
    local id = "id" .. NASTY:sub(1, 40)
    done("new --id " .. cli.quote(id))
    done("append " .. cli.quote(id) .. " -", '{"role":"\27[5mrole","content":"x"}')
    local title = at:is "pane_title"
    local function inert()
      local styled = at:screen(true)
      assert.equal(title, at:is "pane_title")
      assert.equal("1", at:is "alternate_on")
      for _, hidden in ipairs { "\u{202E}", "\u{200B}", "\u{9B}", "\u{2066}", "\u{200D}" } do
        assert.is_nil(styled:find(hidden, 1, true))
      end
      assert.is_nil(styled:gsub("\27%[[%d;]*m", ""):find "[\0-\8\11-\31\127]")
    end
    for _, words in ipairs { "tree nasty", "tree" } do
      tree.open(at, words)
      at:wait "rtl"
      inert()
      at:keys("Enter")
      at:keys("j")
      inert()
      at:keys("Q")
      at:wait_gone "? help"
      at:keys("q", "C-u")
      at:wait "$"
    end
  end)

  terminal.test("passes a wall of its own before the cells, whoever draws", function(at)
    write(home .. "/draw.lua", [==[
      local screen = require "sessile.screen"
      local on <close> = assert(screen.open())
      local used = on:put(1, 1, "a\27[31mb\u{202E}c\u{200B}d\255e\r\n\7f", "")
      on:put(2, 1, "日本語", "bold", 5)
      on:put(3, 80, "日", "")
      on:put(3, 79, "xy-past the edge", "")
      on:put(99, 1, "nowhere", "")
      on:put(4, 1, "used " .. used .. " width " .. screen.width "a日\u{FE0F}", "")
      on:put(5, 1, tostring(pcall(on.put, on, 5, 1, "x", "no_such_style")), "")
      on:put(6, 1, tostring(screen.open()), "")
      on:refresh()
      on:key()
    ]==])
    at:run("run " .. home .. "/draw.lua")
    local seen = at:wait "used"
    local lines = {}
    for line in seen:gmatch "([^\n]*)\n" do
      lines[#lines + 1] = line
    end
    assert.equal("a�[31mb�c�d�e� �f", lines[1])
    assert.equal("日本", lines[2])
    assert.equal((" "):rep(78) .. "xy", lines[3])
    assert.equal("used 17 width 3", lines[4])
    assert.equal("false", lines[5])
    assert.equal("nil", lines[6])
  end)
end)

describe("whatever is drawn", function()
  it("sends a terminal nothing but text and the sequences of the screen itself", function()
    if not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
      pending "needs script(1) and a pseudo-terminal"
      return
    end
    local seed = tonumber(os.getenv "SESSILE_SEED") or os.time()
    print("# seed " .. seed)
    local many = os.getenv "SESSILE_SOAK" == "1" and 1000000 or 4000
    write(home .. "/random.lua", ([==[
      local screen = require "sessile.screen"
      math.randomseed(%d)
      local parts = { "\27[31m", "\27]0;own\7", "\27P", "\u{202E}", "\u{2066}", "\u{200B}", "日",
        "👩‍👩‍👧", "e\u{301}", "\255", "\xED\xA0\x80", "\u{9B}31m", "\0", "\n", "\t", "\u{AD}",
        "\u{FE0F}", "\u{E0041}", "\u{1160}", "word " }
      local on <close> = assert(screen.open())
      for i = 1, %d do
        local text = {}
        for n = 1, math.random(0, 30) do
          text[n] = math.random() < 0.5 and parts[math.random(#parts)]
            or string.char(math.random(0, 255))
        end
        text = table.concat(text)
        local room = math.random(-1, 90)
        local used = on:put(math.random(-1, 26), math.random(-1, 82), text, "bold", room)
        assert(used <= math.max(room, 0) and used <= screen.width(text))
        if i %% 50 == 0 then on:refresh() end
      end
    ]==]):format(seed, many))
    local _, err, code = cli.sessile("run " .. home .. "/random.lua", nil,
      ([[env TERM=xterm-256color sh -c 'script -qec "$*" %s/seen' sh]]):format(home))
    assert.equal(0, code, err)
    local seen = cli.read(home .. "/seen"):gsub("^[^\n]*\n", "", 1):gsub("\n[^\n]*\n$", "")
    assert.is_true(#seen > 10000)
    seen = seen:gsub("\27%[[%d;?>]*%a", ""):gsub("\27[(=>][B0]?", "")
    assert.is_nil(seen:find "[\0-\7\11\12\14-\31\127]")
    for _, code_point in utf8.codes(seen) do
      assert.is_false(code_point >= 0x80 and code_point < 0xA0 or code_point >= 0x200B
        and code_point <= 0x200F or code_point >= 0x202A and code_point <= 0x202E
        or code_point >= 0x2060 and code_point <= 0x206F
        -- Above these are characters of private use, which random bytes may be too.
        or code_point >= 0xE0000 and code_point <= 0xE0FFF)
    end
  end)
end)

describe("the terminal is given back", function()
  for _, signal in ipairs { "TERM", "HUP", "INT", "QUIT", "ABRT", "USR1", "ALRM", "XCPU" } do
    terminal.test("when the program is ended by " .. signal, function(at)
      tree.talk(1)
      local before = at:modes()
      -- A shell for jobs mends the modes itself when one is killed: this one does not.
      write(home .. "/look", ([[
        trap : INT QUIT HUP
        sh -c 'echo $$ >%s/pid; exec %s tree talk'
        stty -a >%s/after
      ]]):format(home, cli.binary, home))
      at:type("sh " .. home .. "/look")
      at:keys "Enter"
      at:wait "? help"
      os.execute(("kill -%s $(cat %s/pid)"):format(signal, home))
      at:wait_gone "? help"
      at:expect_restored(before)
      assert.equal(before, cli.read(home .. "/after"))
    end)
  end

  terminal.test("by Ctrl-C, also while something is asked", function(at)
    tree.talk(1)
    local before = at:modes()
    tree.open(at)
    at:keys("L")
    at:wait "Label of"
    at:keys "C-c"
    at:wait_gone "Label of"
    at:expect_restored(before)
  end)

  terminal.test("while it is stopped, and taken again", function(at)
    tree.talk(3)
    local before = at:modes()
    tree.open(at)
    at:keys("g", "j")
    tree.selected(at, "1")
    at:keys "C-z"
    at:wait "Stopped"
    at:expect_restored(before)
    at:type "bg; sleep 1; fg" -- in the background it stops again, at the screen it wants
    at:keys "Enter"
    tree.selected(at, "1")
    assert.equal("1", at:is "alternate_on")
    at:keys "j"
    tree.selected(at, "2")
    tree.leave(at)
    at:expect_restored(before)
  end)

  terminal.test("by a script that fails while it draws", function(at)
    write(home .. "/fails.lua", [[
      local on <close> = assert(require("sessile.screen").open())
      on:put(1, 1, "drawn")
      on:refresh()
      error "on purpose"
    ]])
    write(home .. "/exits.lua", [[
      local on = assert(require("sessile.screen").open())
      on:refresh()
      os.exit(3)
    ]])
    local before = at:modes()
    at:run("run " .. home .. "/fails.lua")
    at:wait "on purpose"
    at:expect_restored(before)
    at:run("run " .. home .. "/exits.lua; echo code $?")
    at:wait "code 3"
    at:expect_restored(before)
  end)
end)

describe("colours", function()
  terminal.test("are none with NO_COLOR", function(at)
    tree.talk(2)
    tree.open(at)
    assert.is_nil(at:screen(true):find "\27%[[%d;]*[34][0-7]m")
  end, 80, 24, "NO_COLOR=1")

  terminal.test("and cells are none on a dumb terminal: it is text", function(at)
    tree.talk(2)
    at:run "tree talk"
    assert.truthy(at:wait("← head"):find("question 1", 1, true))
    assert.equal("0", at:is "alternate_on")
    at:run "tree talk --select"
    at:wait "cannot place text"
  end, 80, 24, "TERM=dumb")

  terminal.test("and cells depend on a type that is known, or is close to one", function(at)
    tree.talk(2)
    at:type "export TERM=nobody-knows"
    at:keys "Enter"
    at:run "tree talk"
    at:wait "It is text: this terminal cannot place text"
    at:type "export TERM=xterm-nobody-knows"
    at:keys "Enter"
    tree.open(at)
    tree.leave(at)
  end)
end)
