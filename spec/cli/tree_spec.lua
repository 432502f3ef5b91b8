-- branch and tree, as somebody types them.

local cli = require "spec.support.cli"
local sessile, done, json, write = cli.sessile, cli.done, cli.json, cli.write
local home

cli.each_test(function(path) home = path end)

-- One session of n questions and answers, each an entry of its own.
local function talk(n)
  local lines = {}
  for i = 1, n do
    lines[#lines + 1] = ('{"role":"user","content":"question %d"}'):format(i)
    lines[#lines + 1] = ('{"role":"assistant","content":"answer %d"}'):format(i)
  end
  write(home .. "/talk.jsonl", table.concat(lines, "\n") .. "\n")
  done("import " .. home .. "/talk.jsonl --from jsonl --id talk")
end

-- The lines of a text that hold some words.
local function lines_with(text, words)
  local found = {}
  for line in text:gmatch "[^\n]+" do
    if line:find(words, 1, true) then
      found[#found + 1] = line
    end
  end
  return found
end

local function contents(rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = row.message.content
  end
  return list
end

describe("sessile branch", function()
  before_each(function()
    for _, words in ipairs { "new --id s", "append s one", "append s two", "append s three" } do
      done(words)
    end
  end)

  it("moves the head of a session, and the next message continues there", function()
    local out = done "branch s 1 --yes"
    assert.equal("00000001\n", out)
    done "append s 'another two'"
    assert.same({ "one", "another two" }, contents(json "show s"))
    assert.same({ "one", "two", "three" }, (function()
      done "branch s 3 --yes"
      return contents(json "show s")
    end)())
  end)

  it("asks first, and without an answer changes nothing", function()
    local _, err, code = sessile "branch s 1"
    assert.equal(2, code)
    assert.truthy(err:find("leaving 2 messages behind", 1, true), err)
    _, err = sessile "branch s 2"
    assert.truthy(err:find("leaving 1 message behind", 1, true), err)
    assert.truthy(err:find("--yes", 1, true))
    assert.equal(3, #json "show s")
  end)

  it("takes a summary along, and a label for the entry", function()
    done "label s 00000001 start"
    local result = json "branch s start --summary 'two led nowhere' --yes"
    assert.equal("two led nowhere", result.summary)
    assert.equal(result.head, result.branch_summary)
    assert.equal("00000003", result.from)
    assert.same({ "one", "two led nowhere" }, contents(json("context s").messages))
  end)

  it("asks the policy, and continues without a summary when there is none", function()
    write(home .. "/left.lua", [[return { branch_summary = function(abandoned, ctx)
      return "left " .. #abandoned .. " " .. ctx.instructions end }]])
    os.execute("chmod 600 " .. home .. "/left.lua")
    local result = json("branch s 1 --yes --summarize --instructions names --policy "
      .. home .. "/left.lua")
    assert.equal("left 2 names", result.summary)
    local out, err = done "branch s 3 --yes --summarize"
    assert.equal("00000003\n", out)
    assert.truthy(err:find("no model is configured", 1, true), err)
  end)

  it("names what is there when the entry is not", function()
    assert.equal(3, (select(3, sessile "branch s ff"))) -- nobody is asked about it
    local _, err, code = sessile "branch s ff --yes"
    assert.equal(3, code)
    assert.truthy(err:find("00000003", 1, true), err)
    assert.truthy(err:find("sessile tree s", 1, true), err)
    assert.equal(3, (select(3, sessile "branch s zz --yes")))
    assert.equal(2, (select(3, sessile "branch s 1 --yes --summary x --summarize")))
    assert.equal(3, #json "show s")
  end)
end)

describe("sessile tree", function()
  it("is indented only where it branches, and shows labels and the head", function()
    talk(3)
    done "label talk 4 here"
    done "branch talk 4 --summary 'That was wrong.' --yes"
    local out = done "tree talk"
    assert.equal(1, #lines_with(out, "← head"))
    assert.matches("^● %x+ branch_summary", lines_with(out, "← head")[1])
    assert.matches("^● %x+ .*%[here%]", lines_with(out, "question 2")[1] or "")
    for _, text in ipairs { "question 1", "That was wrong." } do
      assert.matches("^●", lines_with(out, text)[1])
    end
    for _, text in ipairs { "answer 3", "question 3" } do
      assert.matches("^│ ○", lines_with(out, text)[1])
    end
  end)

  it("shows some types alone", function()
    talk(2)
    done "branch talk 1 --summary why --yes"
    assert.equal(1, select(2, done("tree talk --types branch_summary"):gsub("\n", "")))
    local both = json "tree talk --types branch_summary,head"
    assert.equal(2, #both.entries)
    local _, err, code = sessile "tree talk --types messages"
    assert.equal(1, code)
    assert.truthy(err:find("branch_summary", 1, true), err)
  end)

  it("of thousands of entries fits on a screen, unless all are wanted", function()
    talk(1000)
    done "branch talk 400 --yes"
    done "append talk 'another way'"
    local out, err = done "tree talk"
    local _, count = out:gsub("\n", "")
    assert.is_true(count < 60, count .. " lines")
    assert.truthy(err:find("--all", 1, true))
    for _, text in ipairs { "question 1\n", "another way", "← head", "answer 1000", "⋮" } do
      assert.truthy(out:find(text, 1, true), text)
    end
    local folded = 0
    for n in out:gmatch "([%d,]+) messages, %x+ to %x+" do
      folded = folded + tonumber((n:gsub(",", "")))
    end
    -- what is folded and what is shown is all there is
    local shown = #lines_with(out, " user ") + #lines_with(out, " assistant ")
    assert.equal(2001, folded + shown)
    assert.equal(#json("tree talk").entries, select(2, done("tree talk --all"):gsub("\n", "")))
  end)

  it("has number, type, time and labels of an entry on its row", function()
    talk(1)
    done "label talk 2 here"
    local row = lines_with(done "tree talk", "answer 1")[1]
    assert.matches("^● 00000002 assistant +%d%d%d%d%-%d%d%-%d%d %d%d:%d%d +%d+ +answer 1  %[here%]",
      row)
  end)

  it("shows one kind of entry alone, by --type or --filter", function()
    talk(2)
    done "label talk 2 here"
    done "checkpoint talk before"
    assert.equal(1, select(2, done("tree talk --type label"):gsub("\n", "")))
    local asked = done "tree talk --type question"
    assert.falsy(asked:find("assistant", 1, true), asked)
    for _, entry in ipairs(json("tree talk --type question").entries) do
      assert.equal("user", entry.role)
    end
    assert.equal(1, #lines_with(done "tree talk --type label", "[here]"))
    assert.equal(4, select(2, done("tree talk --filter message"):gsub("\n", "")))
    assert.equal("checkpoint", json("tree talk --type checkpoint").entries[1].type)
    assert.equal(0, #json("tree talk --type compaction").entries)
    assert.equal(#json("tree talk").entries, #json("tree talk --type all").entries)
    local _, err, code = sessile "tree talk --type bogus"
    assert.equal(2, code)
    assert.truthy(err:find("compaction", 1, true), err)
    assert.equal(2, (select(3, sessile "tree talk --type label --types turn")))
  end)

  it("shows only what has a text in it, near the words", function()
    talk(200)
    done("append talk '" .. ("hay "):rep(60) .. "Needle'")
    done "label talk 4 the-needle"
    local out = done "tree talk --search needle"
    assert.equal(2, select(2, out:gsub("\n", "")))
    assert.matches("…[hay ]*Needle  ← head", lines_with(out, "Needle")[1])
    assert.truthy(lines_with(out, "question 2")[1])
    assert.equal(1, #json("tree talk --search Needle").entries)
    assert.equal(1, #json("tree talk --search needle --type label").entries)
    local none, err = done "tree talk --search nowhere"
    assert.equal("", none)
    assert.truthy(err:find("No entry has that in it", 1, true))
    assert.equal(2, (select(3, sessile "tree talk --search ''")))
  end)

  it("is text in a pipe, of the newest session, and asks nobody to choose", function()
    talk(1)
    assert.truthy(done("tree"):find("answer 1", 1, true))
    assert.equal(done "tree", (done "tree --text"))
    local _, err, code = sessile("tree talk --select", nil, "setsid")
    assert.equal(1, code)
    assert.truthy(err:find("no terminal", 1, true), err)
    assert.equal(2, (select(3, sessile "tree talk --select --json")))
  end)
end)
