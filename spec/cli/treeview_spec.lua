-- The tree of a session on a terminal, as somebody sits at it: in tmux.

local cli = require "spec.support.cli"
local terminal = require "spec.support.terminal"
local tree = require "spec.support.tree"
local done, json = cli.done, cli.json

terminal.each_test()

describe("the tree on a terminal", function()
  terminal.test("opens at the head, moves by arrows and letters, and is left clean", function(at)
    tree.talk(30)
    local before = at:modes()
    tree.open(at)
    local seen = tree.selected(at, "3c")
    assert.truthy(seen:find("answer 30 +← head"))
    assert.truthy(seen:find("61 entries · 0 branches · [%d,]+ tokens +61/61"), seen)
    assert.equal("1", at:is "alternate_on")
    at:keys "g"
    tree.selected(at, "0")
    at:keys("Down", "Down", "j", "k", "Up", "j")
    assert.truthy(tree.selected(at, "2"):find("2  assistant", 1, true))
    at:keys "NPage"
    at:wait " 15/61"
    at:keys "End"
    tree.selected(at, "3c")
    at:keys "Home"
    tree.selected(at, "0")
    tree.leave(at)
    at:expect_restored(before)
  end)

  terminal.test("shows the entry beside the list where there is room", function(at)
    tree.talk(2)
    tree.open(at)
    local line = at:line "00000004  assistant"
    assert.truthy(line:find("session.*│ 00000004  assistant"), line)
    at:keys "v"
    at:wait_gone "│"
  end, 120, 40)

  terminal.test("folds a question's answers, all of them, and back", function(at)
    tree.talk(3)
    tree.open(at)
    at:keys "C"
    local seen = at:wait "4/4"
    assert.truthy(seen:find("5▸ user +question 3 +%+1"), seen)
    assert.is_nil(seen:find("answer 1 ", 1, true))
    at:keys("Up", "Right")
    at:wait "answer 2"
    at:keys "Left"
    at:wait_gone "answer 2 "
    at:keys("z", "R")
    at:wait "/7"
  end)

  terminal.test("searches, shows what was found, and goes through it", function(at)
    tree.talk(20)
    tree.open(at)
    at:keys("g", "/")
    at:type "question 1"
    at:keys "Enter"
    at:wait "/question 1 1 of 11"
    assert.truthy(at:screen(true):find "\27%[[%d;]*43m[^\27]*question 1")
    at:keys "n"
    tree.selected(at, "13")
    at:keys("N", "N")
    tree.selected(at, "25")
    at:wait "From the bottom again"
    at:keys "Escape"
    at:wait_gone "of 11"
    at:keys "/"
    at:type "no such words"
    at:keys "Enter"
    at:wait "No entry has 'no such words' in it"
  end)

  terminal.test("shows one kind of entry at a time", function(at)
    tree.talk(3)
    done "label talk 2 here"
    done "checkpoint talk before"
    tree.open(at, "tree talk --type label")
    at:wait "labels  1/1"
    at:keys "t"
    at:wait "compactions  0/0"
    at:wait "There is no entry of this kind"
    at:keys("T", "T")
    at:wait "checkpoints  1/1"
    at:keys("T", "T")
    at:wait "questions  3/3"
    at:keys("g", "}")
    at:wait "questions  2/3"
    at:keys "T"
    at:wait "/8"
    at:keys("g", "}", "}", "{") -- over the answers
    tree.selected(at, "1")
    at:keys "{"
    at:wait "There is no question above"
  end)

  terminal.test("labels and pins, and takes both back", function(at)
    tree.talk(2)
    tree.open(at)
    at:keys "L"
    at:wait "Label of 00000004:"
    at:type "keep thiss"
    at:keys("BSpace", "Enter")
    at:wait "labelled 'keep this'"
    assert.truthy(at:line("answer 2"):find("[keep this] ← head", 1, true))
    at:keys "p"
    at:wait "is pinned: policies keep it"
    assert.same({ "keep this", "pinned" }, (function()
      local names = {}
      for _, label in ipairs(json "label list talk") do
        names[#names + 1] = label.label
      end
      table.sort(names)
      return names
    end)())
    at:keys "p"
    at:wait "is pinned no more"
    at:keys("U", "n")
    at:wait_gone "y/n"
    at:keys("U", "y")
    at:wait "is off 00000004"
    at:keys "L"
    at:wait "Label of"
    at:type "never"
    at:keys "Escape"
    at:wait_gone "Label of"
    assert.equal(0, #json "label list talk")
  end)

  terminal.test("moves the head when it was answered with y alone", function(at)
    tree.talk(3)
    tree.open(at)
    at:keys("g", "j", "j", "b")
    at:wait "Continue from 00000002 and leave 4 messages behind? y/n"
    at:keys "Enter"
    at:wait_gone "y/n"
    assert.equal("00000006", json("tree talk").head)
    at:keys "b"
    at:wait "y/n"
    done "append talk meanwhile" -- what was asked about is not what is there now
    at:keys "y"
    at:wait_gone "y/n"
    assert.equal("00000007", json("tree talk").head)
    done "branch talk 6 --yes"
    at:keys("r", "g", "j", "j", "b", "y")
    at:wait "The head is at 00000002"
    assert.equal("00000002", json("tree talk").head)
    local seen = at:wait "← head"
    assert.truthy(seen:find("├─○ +3 +user +question 2"), seen)
    at:keys ":"
    at:type "5"
    at:keys "Enter"
    tree.selected(at, "5")
    at:keys ":"
    at:type "nowhere"
    at:keys "Enter"
    at:wait "'nowhere' is not an entry"
    at:keys "["
    tree.selected(at, "3")
    at:keys "@"
    tree.selected(at, "2")
  end)

  terminal.test("forks, and goes back to checkpoints", function(at)
    tree.talk(2)
    done "checkpoint talk there"
    done "append talk more"
    tree.open(at)
    at:keys("g", "j", "f")
    at:wait "Fork up to 00000001"
    at:type "shorter"
    at:keys "Enter"
    at:wait "session shorter"
    assert.equal(1, #json "show shorter")
    at:keys "f"
    at:wait "Fork up to 00000001"
    at:type "last"
    at:keys "Enter"
    at:wait "the id 'last' is taken"
    at:keys "R"
    at:wait "is no checkpoint"
    at:keys("t", "t", "t")
    at:wait "checkpoints  1/1"
    at:keys("R", "y")
    at:wait "The head is at 00000004 again"
    assert.equal("00000004", json("tree talk").head)
  end)

  terminal.test("says what took a message out of the context, and why", function(at)
    tree.talk(20)
    done "compact talk --policy sliding_window --option messages=4"
    tree.open(at)
    at:keys("g", "j")
    local seen = at:wait "was removed by compaction"
    assert.truthy(seen:find("○   1  user", 1, true), seen)
    assert.truthy(seen:find("sliding_window", 1, true), seen)
    assert.truthy(seen:find("The model does not see it", 1, true), seen)
    at:keys("t", "t", "t", "t", "t", "g")
    at:wait "compactions  1/1"
    assert.truthy(at:wait("in force: yes"):find("compaction +sliding_window"))
  end)

  terminal.test("opens an entry, scrolls in it, and continues to others", function(at)
    local words = {}
    for i = 1, 300 do
      words[i] = "line " .. i
    end
    done "new --id talk"
    done("append talk -", "first")
    done("append talk -", table.concat(words, "\n"))
    tree.open(at)
    at:keys "Enter"
    at:wait "1–22 of"
    at:keys "G"
    at:wait "line 300"
    at:keys "Left"
    at:wait "first"
    at:keys "q"
    tree.selected(at, "1")
  end)

  terminal.test("helps with every key", function(at)
    tree.talk(1)
    tree.open(at)
    at:keys "?"
    local seen = at:wait "Leaving"
    for _, words in ipairs { "Moving", "@        the head", "b        continue from here" } do
      assert.truthy(seen:find(words, 1, true), words)
    end
    at:keys "q"
    at:wait "← head"
  end)

  terminal.test("follows the size of the terminal, the selection kept", function(at)
    tree.talk(30)
    tree.open(at)
    at:keys("g", "j", "j", "j")
    tree.selected(at, "3")
    for _, size in ipairs { { 120, 40 }, { 40, 10 }, { 200, 50 }, { 41, 11 } } do
      at:resize(size[1], size[2])
      local seen = at:wait(function(seen)
        local last = seen:match "[^\n]*\n[^\n]*\n$" or ""
        return last:find("4/61", 1, true) and seen:find "question 2"
      end)
      for line in seen:gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) <= size[1], line)
      end
    end
    at:resize(39, 9)
    at:wait "Too small: 40 by 10 are needed."
    at:resize(80, 24)
    tree.selected(at, "3")
    tree.leave(at)
  end)

  terminal.test("shows what others write, at once on r, else when nobody types", function(at)
    tree.talk(1)
    tree.open(at)
    done "append talk 'from elsewhere'"
    at:keys "r"
    at:wait "← head"
    assert.truthy(at:wait "from elsewhere")
    done "label talk 1 later"
    at:wait "[later]"
  end)
end)

describe("a choice", function()
  terminal.test("of an entry is all that is printed, though stdout is no terminal", function(at)
    tree.talk(3)
    at:type(("x=$(%s tree talk --select); echo \"got $x, $?\""):format(cli.binary))
    at:keys "Enter"
    at:wait "Enter select"
    at:keys("g", "Down", "Down", "Enter")
    at:wait "got 00000002, 0"
    at:type(("x=$(%s tree talk --select); echo \"got $x, $?\""):format(cli.binary))
    at:keys "Enter"
    at:wait "Enter select"
    at:keys "q"
    at:wait "got , 1"
  end)

  terminal.test("of a session comes first when none is named", function(at)
    tree.talk(1)
    done "new --id other --title 'Another one'"
    done "append other hello"
    at:run "tree"
    at:wait "Sessions: which one?"
    at:keys "/"
    at:type "another"
    at:keys "Enter"
    at:wait "/another  1/1"
    at:keys "Enter"
    at:wait "hello"
    at:keys "q"
    at:wait "Sessions: which one?"
    at:keys("Escape", "q")
    at:wait "$"
    at:wait_gone "Sessions"
  end)
end)
