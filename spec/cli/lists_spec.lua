-- Lists, sums and pictures of the command line: usage, stats, children, copy; what names a
-- session; how wide a table is; the bar of what takes long.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"
local chart = require "sessile.cli.chart"
local has = expect.has
local sessile, done, json = cli.sessile, cli.done, cli.json
local home

cli.each_test(function(path) home = path end)

-- Runs Lua in the store of this home.
local function run(text)
  cli.write(home .. "/run.lua", 'local sessile = require "sessile"\n'
    .. 'local store = assert(sessile.open(nil, assert(sessile.config())))\n'
    .. text .. "\nstore:close()")
  return done("run " .. home .. "/run.lua")
end

describe("a label", function()
  it("names the session it is in, after ids and titles", function()
    done "new --id one"
    done "append one hello"
    done "label one 1 release"
    done "new --id two"
    assert.equal("one", json("info release").id)
    has(done "show release@release", "hello")
    done "new --id three --title release"
    assert.equal("three", json("info release").id)
    done "append two hello"
    done "label two 1 twice"
    done "label one 1 twice"
    cli.fails(2, "info twice", "fits 2 sessions")
  end)
end)

describe("usage", function()
  it("adds up what was reported, by day, model and agent", function()
    run [[
      for _, id in ipairs { "a", "b" } do
        local s = store:create { id = id, agent = id == "a" and "coder" or "critic" }
        for n = 1, 2 do
          assert(s:turn({ { role = "user", content = "q" }, { role = "assistant", content = "r" } },
            { usage = { input = 100, output = 10 * n }, model_name = n == 1 and "big" or "small" }))
        end
      end
    ]]
    local of_one = json "usage a"
    assert.equal(200, of_one.total.input)
    assert.equal(30, of_one.total.output)
    assert.equal("a", of_one.session)
    local all = json "usage"
    assert.equal(400, all.total.input)
    assert.equal(4, all.total.reports)
    local by_agent = json("usage --by agent").groups
    assert.same({ "coder", "critic" }, { by_agent[1].key, by_agent[2].key })
    assert.equal(200, by_agent[1].input)
    local by_model = json("usage --by model").groups
    assert.equal(2, #by_model)
    assert.equal(200, by_model[1].input)
    local by_day = json("usage --by day").groups
    assert.equal(os.date "!%Y-%m-%d", by_day[#by_day].key)
    assert.equal(400, json("usage --since 48h").total.input)
    assert.equal(0, json("usage --until 2020-01-01").total.input)
    assert.equal(200, json("usage --agent coder").total.input)
    has(done "usage --by agent", "critic")
  end)

  it("says so when nobody reported anything", function()
    done "new --id a"
    local out, err = done "usage a"
    has(out, "INPUT")
    has(err, "No provider reported anything")
  end)
end)

describe("stats", function()
  it("draws turns, and marks compactions and checkpoints where they were", function()
    run [[
      local s = store:create { id = "a" }
      for n = 1, 8 do
        assert(s:turn { { role = "user", content = ("word "):rep(100 * n) },
          { role = "assistant", content = "yes" } })
        if n == 4 then assert(s:checkpoint { name = "half way" }) end
      end
      assert(s:compact { policy = "sliding_window", window = 500 })
    ]]
    local stats = json "stats a"
    assert.equal(8, #stats.rows)
    local sum = 0
    for _, row in ipairs(stats.rows) do sum = sum + row.tokens end
    assert.equal(stats.tokens, sum)
    assert.is_true(stats.rows[8].tokens > 2 * stats.rows[1].tokens)
    assert.equal("half way", stats.rows[4].marks[1].text)
    assert.equal("compaction", stats.rows[8].marks[1].kind)
    assert.is_true(stats.context < stats.tokens)
    local out = done "stats a"
    local line = out:match "\n(4 [^\n]*)"
    has(line, "◆ half way")
    has(out:match "\n(8 [^\n]*)", ("█"):rep(40))
    -- put together, none is lost
    local few = done "stats a --rows 3"
    has(few, "1–3")
    has(few, "◆ half way")
    has(few, "16 messages")
    has(done "stats a --by day", os.date "!%Y-%m-%d")
    assert.equal(0, #json("stats a --until 2020-01-01").rows)
    has(done "stats", "1 session, 16 messages")
  end)

  it("draws the least number, and none for nothing", function()
    assert.equal("▏", chart.bar(1, 1000000, 40))
    assert.equal("", chart.bar(0, 10, 40))
    assert.equal(("█"):rep(40), chart.bar(10, 10, 40))
    assert.same({ { 1, 2, 3 }, { 4, 5 } }, chart.groups({ 1, 2, 3, 4, 5 }, 2))
  end)
end)

describe("children", function()
  it("shows those of children too, and the parent", function()
    run [[
      local s = store:create { id = "parent" }
      s:append { role = "user", content = "plan" }
      local child = assert(s:child { agent = "searcher", id = "first" })
      child:append { role = "user", content = "look" }
      assert(child:child { agent = "reader", id = "second" })
    ]]
    local rows = json("children parent").children
    assert.same({ "first", "second" }, { rows[1].id, rows[2].id })
    assert.same({ 0, 1 }, { rows[1].depth, rows[2].depth })
    assert.equal("first", rows[2].parent)
    assert.equal(1, #json("children parent --direct").children)
    assert.equal("parent", json("children first").parent.id)
    has(done "children first", "child of parent (agent main) at 00000001")
    done "delete second --yes"
    rows = json("children parent").children
    assert.is_true(rows[2].gone)
  end)
end)

describe("copy", function()
  it("takes every entry along, sealed with the other store's key", function()
    done "new --id a --title 'To be copied'"
    done "append a one"
    done "append a two"
    done "branch a 1 --yes"
    done "append a other"
    os.execute(("umask 077; head -c 32 /dev/urandom > %s/key"):format(home))
    assert.equal("b\n", (done(("copy a %s --to-key-file %s/key --id b"):format(
      cli.quote(cli.url(home .. "/there")), home))))
    local at = ("--store %s/there --key-file %s/key"):format(home, home)
    assert.equal("To be copied", json(at .. " info b").title)
    local entries = json(at .. " tree b").entries
    assert.equal(#json("tree a").entries, #entries)
    has(done(at .. " show b@2"), "two")
    local _, _, code = sessile(("--store %s/there show b"):format(home))
    assert.equal(7, code) -- with another key
    assert.is_true(json(at .. " check").ok)
  end)
end)

describe("what would be changed", function()
  it("is said by --dry-run, and stays", function()
    done "new --id a"
    assert.equal("a\n", (done "delete a --dry-run"))
    assert.equal(1, #json "list")
    cli.fails(3, "delete nobody --dry-run")
    run [[ store:create { id = "hers", user = "ann" } ]]
    assert.equal("hers\n", (done "forget ann --dry-run"))
    assert.equal(2, #json "list")
    done "keys rotate"
    assert.equal(1, json("keys reseal --dry-run").old_logs + 0 > 0 and 1 or 0)
    has(done "keys reseal --dry-run", "To be sealed again")
    assert.is_true(json("keys reseal --dry-run").old_logs > 0)
  end)
end)

describe("a session in which there is nothing", function()
  it("is no defect anywhere; what would be next is said", function()
    done "new --id e"
    for words, said in pairs {
      ["label list e"] = "sessile label e head NAME", ["checkpoints e"] = "sessile checkpoint e",
      ["log e"] = "Nothing was compacted", ["log e --all"] = "", ["children e"] = "info e",
      ["settings e"] = "sessile settings e", ["settings e --metadata"] = "",
      ["show e"] = "append e",
      ["context e"] = "0 messages", ["tree e"] = "", ["tree e --type label"] = "sessile tree e",
      ["tree e --type compaction"] = "No entry is of that type", ["tree e --search x"] = "No entry",
      ["stats e"] = "no messages", ["stats e --by day"] = "no messages", ["resume e"] = "",
      ["fixture e"] = "0 messages", ["search nothing"] = "was not found", ["usage e"] = "",
      ["compact e --policy sliding_window"] = "nothing", ["policy try tiered e"] = "",
      ["compact e --policy sliding_window --dry-run"] = "",
      ["list --status deleted"] = "sessile list",
      ["export e --format md"] = "", ["export e --to openai"] = "",
    } do
      local out, err = done(words)
      assert.truthy(err:find(said, 1, true), words .. ": " .. err)
      local _, failed, code = sessile("--json " .. words)
      cli.no_traceback(out .. err .. failed)
      assert.equal(0, code, words .. failed)
    end
  end)
end)

describe("a table", function()
  it("goes without columns where a terminal is narrow", function()
    local headings = { "ID", "AGENT", "SIZE>", "TITLE" }
    local rows = { { "0123456789", "an agent", "1 kB", "漢字 a title that is rather long" } }
    for columns = 30, 60 do
      local text = terminal.table(headings, rows, nil, columns, { "SIZE>", "AGENT" })
      for line in text:gmatch "[^\n]+" do
        assert.is_true(terminal.width(line) <= columns, columns .. ": " .. line)
      end
      has(text, "0123456789")
    end
    has(terminal.table(headings, rows, nil, 50, { "SIZE>", "AGENT" }), "an agent")
    -- in a pipe nothing is cut
    has(terminal.table(headings, rows, nil, nil, { "SIZE>" }), "rather long")
    has(terminal.table(headings, rows, nil, nil, { "SIZE>" }), "1 kB")
  end)

  it("takes no time for one that is none", function()
    assert.is_string(terminal.exact(math.maxinteger))
    assert.is_string(terminal.exact(math.mininteger))
    assert.is_string(terminal.ago(math.mininteger, 0))
    assert.is_string(terminal.ago(math.maxinteger, 0))
  end)
end)

describe("a bar", function()
  it("says how much, how fast and how long", function()
    local text = progress.text("importing", 500, 2000, 2, 100)
    has(text, " 25 %  500 of 2,000  250/s  6 s left")
    has(text, "importing [#")
    has(progress.text("importing", 1500000, 3000000, 1, 100, true), "1.5 MB of 3.0 MB  1.5 MB/s")
    for columns = 20, 100 do
      assert.is_true(terminal.width(progress.text("sealing again", 7, 9, 3, columns)) < columns)
    end
    assert.is_nil(progress.text("x", 9, 9, 1, 80):find "left")
  end)
end)

describe("search", function()
  local function texts(words)
    local found = {}
    for i, hit in ipairs(json(words)) do
      found[i] = ("%s %s"):format(hit.session, hit.entry)
    end
    return found
  end

  before_each(function()
    run [[
      for _, id in ipairs { "often", "once" } do
        local s = store:create { id = id }
        for n = 1, id == "often" and 60 or 1 do
          assert(s:append { role = "user", content = "a needle " .. n })
        end
        s:close()
        os.execute "sleep 0.01" -- a later time than that of the other's newest message
      end
    ]]
  end)

  it("prints 50 hits unless more are asked for; with --json all", function()
    local out, err = done "search needle"
    assert.equal(50, select(2, out:gsub("a needle", "")))
    has(err, "The first 50 hits. For more: --limit N")
    out, err = done "search needle --limit 100"
    assert.equal(61, select(2, out:gsub("a needle", "")))
    has(err, "61 hits in 2 sessions.")
    assert.equal(61, #json "search needle")
    assert.equal(2, #json "search needle --limit 2")
    has(select(2, done "search needle --limit 61"), "61 hits in 2 sessions.")
  end)

  it("has the newest session first, or the one with the most hits", function()
    assert.equal("once 00000001", texts("search needle")[1])
    assert.equal("often 00000001", texts("search needle --sort hits")[1])
    assert.equal("once 00000001", texts("search needle --sort hits")[61])
    assert.same({ "often 00000001", "often 00000002" },
      texts("search needle --sort hits --limit 2"))
    cli.fails(2, "search needle --sort luck", "newest", "hits")
  end)
end)

describe("list", function()
  it("shows a session without a title by its first question", function()
    run [[
      local s = store:create { id = "none" }
      assert(s:append { role = "system", content = "be brief" })
      assert(s:append { role = "user", content = { { type = "tool_result", tool_use_id = "c",
        content = "a result" } } })
      assert(s:append { role = "user", content = "why is\n it \27[31mslow?" .. (" and"):rep(40) })
      local titled = store:create { id = "titled", title = "Slow start" }
      assert(titled:append { role = "user", content = "why?" })
      store:create { id = "empty" }
    ]]
    local out = done "list"
    has(out, "why is it slow? and and")
    has(out, "…")
    has(out, "Slow start")
    for _, word in ipairs { "be brief", "a result", "why?", "\27" } do
      expect.has_not(out, word)
    end
    assert.is_nil(json("list")[1].title)
  end)
end)
