-- why, uncompact and log, as somebody types them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local has = expect.has
local sessile, done, json = cli.sessile, cli.done, cli.json
local home

-- Entries 1 to 6, long ones.
cli.each_test(function(path)
  home = path
  done "new --id talk"
  for i = 1, 6 do
    done(("append talk --role %s -"):format(i % 2 == 1 and "user" or "assistant"),
      ("message %d "):format(i) .. ("word "):rep(40))
  end
  cli.write(home .. "/cover.lua", [[
    return { name = "cover", version = 2, compact = function(state)
      if #state.messages > 3 then
        state:insert(1, { role = "user", content = "in\27[31m short" }, { covers = { 1, 3 } })
      end
    end }
  ]])
  cli.write(home .. "/naive.lua", [[
    return { name = "naive", version = 1, compact = function(state)
      state:drop(#state.messages)
    end }
  ]])
end)

local function compact()
  return json(("compact talk be brief --policy %s/cover.lua"):format(home)).compaction
end

describe("why", function()
  it("says what happened to a message, and what stands for it", function()
    local id = compact()
    local out = done "why talk 2"
    has(out, "00000002  assistant  message 2")
    has(out, "- 00000002 (assistant) was added on ")
    has(out, ("removed by compaction %s (cover, version 2, manual"):format(id))
    has(out, 'which was told "be brief"')
    has(out, "Its summary: in")
    has(out, ("The model sees %s.1 instead."):format(id))
    assert.is_nil(out:find "\27")
    local why = json("why talk " .. id:gsub("^0+", "") .. ".1")
    assert.equal("written", why.steps[1].kind)
    assert.same({ "00000001", "00000002", "00000003" }, why.steps[1].stands_for)
    assert.equal(id, why.steps[1].compaction.id)
    assert.equal("cover", why.steps[1].compaction.policies[1].name)
    assert.is_true(why.in_context)
  end)

  it("refuses what is no entry, and one that is not there", function()
    cli.fails(3, "why talk zz", "'zz' is not an entry of session talk")
    cli.fails(3, "why talk ff", "there is no entry 000000ff", "sessile tree talk")
    cli.fails(2, "why talk")
  end)
end)

describe("compact and uncompact", function()
  it("count one message as one", function()
    done "new --id one"
    for _, text in ipairs { "why?", "since when?", "look" } do
      done(("append one '%s'"):format(text))
    end
    has(done "compact one --policy sliding_window --option messages=2",
      ", 1 message left the context")
    cli.fails(2, "uncompact one", "(1 message put back, 0 removed)?")
  end)
end)

describe("uncompact", function()
  it("shows what would come back, then does it, and can be undone", function()
    local before = json "context talk"
    local id = compact()
    local after = json "context talk"
    local out, err = done "uncompact talk --dry-run"
    has(out, "3 messages put back, 1 removed")
    has(out, "+ 00000001 00000002 00000003")
    has(out, ("- %s.1"):format(id))
    has(err, "Nothing was written")
    assert.same(after, json "context talk")
    err = select(2, done "uncompact talk --yes")
    local again = err:match "sessile uncompact talk (%x+)"
    has(err, ("To redo compaction %s"):format(id))
    assert.same(before.messages, json "context talk".messages)
    local row = json("uncompact talk --yes " .. again)
    assert.equal(again, row.undone)
    assert.same({ id .. ".1" }, row.restored)
    assert.is_false(row.dry_run)
    assert.same(after.messages, json "context talk".messages)
  end)

  it("says why nothing is to be undone", function()
    cli.fails(1, "uncompact talk", "no compaction on the path to the head is in force",
      "sessile log talk")
    cli.fails(3, "uncompact talk 1", "is a message, not a compaction")
    cli.fails(3, "uncompact talk zz")
  end)
end)

describe("info", function()
  it("tells what was said from what a policy made of it", function()
    local info = json "info talk"
    assert.equal(info.messages, info.said_in_context)
    has((done "info talk"), ("%d, %d of them in the context"):format(info.messages, info.messages))
    compact()
    info = json "info talk"
    assert.equal(info.messages - 3, info.said_in_context)
    assert.equal(info.messages - 2, info.in_context)
    local out = done "info talk"
    has(out, ("%d, %d of them in the context"):format(info.messages, info.messages - 3))
    has(out, ("%d messages, 1 added by a policy"):format(info.messages - 2))
  end)
end)

describe("log", function()
  it("has a line for each compaction and refusal", function()
    local out, err = done "log talk"
    assert.equal("", out)
    has(err, "Nothing was compacted here")
    assert.same({}, json "log talk")
    sessile(("compact talk --policy %s/naive.lua"):format(home))
    local id = compact()
    done "uncompact talk --yes"
    has((done "tree talk --text"), "undoes " .. id .. ": ")
    out = done "log talk"
    local lines = {}
    for line in out:gmatch "[^\n]+" do
      lines[#lines + 1] = line
    end
    assert.equal(4, #lines)
    assert.matches("^ENTRY +WHEN +POLICY +REASON +BEFORE +AFTER +REMOVED +KEPT +IN FORCE +WHAT$",
      lines[1])
    assert.matches("naive +manual .*refused +law %d+ %(%l+%): .*00000006", lines[2])
    assert.matches("^" .. id .. " .*cover 2 +manual .* 3 +3 +no +3 covered, 1 inserted$",
      lines[3])
    assert.matches("undoes " .. id .. " +manual .*yes +1 undone, 3 restored$", lines[4])
    local rows = json "log talk"
    assert.equal("refusal", rows[1].kind)
    assert.equal(id, rows[2].id)
    assert.equal(id, rows[3].uncompacts)
    assert.same({}, rows[3].policies)
  end)

  it("is cut to the width of a terminal, in fewer columns than it has in a file", function()
    if not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
      pending "needs script(1) and a pseudo-terminal"
      return
    end
    sessile(("compact talk --policy %s/naive.lua"):format(home))
    compact()
    local words = "log talk"
    local seen = sessile(words, nil, [[sh -c 'script -qec "stty cols 80; $*" /dev/null' sh]])
    local count = 0
    for line in seen:gmatch "[^\r\n]+" do
      count = count + 1
      assert.is_true(utf8.len(line) <= 80, line)
    end
    assert.equal(3, count, seen)
    assert.matches("^ENTRY +WHEN +IN FORCE +WHAT", seen)
    assert.matches("refused +naive: law %d+[^\n]*…", seen)
    assert.matches("yes +cover 2: [%d,]+ → [%d,]+ tokens, 3 covered", seen)
    assert.is_nil(done(words):find "…")
  end)

  it("lists with --all what else befell the session, in the order of the log", function()
    local _, err = done "log talk --all"
    has(err, "Nothing happened to this session")
    done "checkpoint talk before"
    local id = compact()
    done "restore talk before --yes"
    local kinds = {}
    for i, row in ipairs(json "log talk --all") do
      kinds[i] = row.kind
      assert.is_true(row.time > 1e12)
    end
    assert.same({ "checkpoint", "compaction", "restored" }, kinds)
    local lines = {}
    for line in done("log talk --all"):gmatch "[^\n]+" do
      lines[#lines + 1] = line
    end
    assert.matches("^ENTRY +WHEN +KIND +WHAT$", lines[1])
    assert.matches("checkpoint +before$", lines[2])
    assert.matches("^" .. id .. " .*compaction +on another branch$", lines[3])
    assert.matches("restored +checkpoint %x+, to %x+$", lines[4])
    id = compact()
    assert.matches("\n" .. id .. " [^\n]*compaction +[^\n]* tokens, 3 covered, 1 inserted\n",
      (done "log talk --all"))
  end)
end)
