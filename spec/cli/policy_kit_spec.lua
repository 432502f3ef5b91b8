-- policy new, show, test, try, bench, and fixture, as somebody types them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local has = expect.has
local sessile, done, json, write = cli.sessile, cli.done, cli.json, cli.write
local home

cli.each_test(function(path) home = path end)

describe("policy new", function()
  it("writes a policy whose spec passes", function()
    local out = done(("policy new frugal --in %s"):format(home))
    has(out, "frugal.lua")
    has(out, "frugal_spec.lua")
    local text, err = done(("policy test %s/frugal_spec.lua --coverage"):format(home))
    has(text, "25 successes / 0 failures / 0 errors")
    has(err, "lines ran (100 %)")
  end)

  it("replaces nothing, and wants a name", function()
    done(("policy new frugal --in %s"):format(home))
    cli.fails(1, ("policy new frugal --in %s"):format(home), "is there already")
    cli.fails(2, "policy new Frugal-2", "is not a policy name")
  end)
end)

describe("policy test", function()
  it("fails when a spec fails, with the smallest conversation", function()
    write(home .. "/naive.lua", [[
      return { name = "naive", truncate = function(state)
        if #state.messages > 6 then state:drop(1, #state.messages - 6) end
      end }
    ]])
    write(home .. "/naive_spec.lua", ([[
      local T = require "sessile.testing"
      describe("naive", function() T.laws(T.load "%s/naive.lua", { runs = 12 }) end)
    ]]):format(home))
    local out, _, code = sessile(("policy test %s/naive_spec.lua"):format(home))
    assert.is_true(code ~= 0)
    has(out, "breaks law 1")
    has(out, "lost its call")
    has(out, "SEED=")
  end)

  it("writes TAP and JUnit", function()
    done(("policy new frugal --in %s"):format(home))
    has(done(("policy test %s --tap"):format(home)), "ok 1 -")
    done(("policy test %s --junit %s/report.xml"):format(home, home))
    has(cli.read(home .. "/report.xml"), "<testsuite")
  end)

  it("watches, and runs again when a file beside the spec changes", function()
    done(("policy new frugal --in %s"):format(home))
    local log = home .. "/watched"
    -- timeout ends the group: what watches, and what it runs
    local pid = io.popen(("timeout 60 %s policy test %s/frugal_spec.lua --watch --tap "
      .. "--filter newest >%s 2>&1 & echo $!"):format(cli.binary, home, log)):read "n"
    local function wait_for(count)
      for _ = 1, 300 do
        local text = io.open(log) and cli.read(log) or ""
        local _, runs = text:gsub("Waiting for a change", "")
        if runs >= count then
          return text
        end
        os.execute "sleep 0.1"
      end
      error("it did not run again:\n" .. cli.read(log))
    end
    wait_for(1)
    local source = cli.read(home .. "/frugal.lua"):gsub("version = 1", "version = 22")
    write(home .. "/frugal.lua", source)
    local text = wait_for(2)
    os.execute("kill " .. pid)
    local _, passed = text:gsub("\nok 1 %- ", "")
    assert.equal(2, passed + (text:find "^ok 1 %- " and 1 or 0))
    assert.is_nil(text:find("leaves open work alone", 1, true)) -- the filter holds
  end)

  it("says where to begin when there is no spec", function()
    cli.fails(3, ("policy test %s"):format(home), "policy new")
  end)
end)

describe("policy try", function()
  it("says that it asks no model, and how to play one", function()
    done "import examples/demo-session.jsonl --id demo"
    cli.fails(1, "policy try summarize demo", "`policy try` asks no model", "--answer")
  end)
end)

describe("policy show", function()
  it("shows hooks and options, or the source", function()
    local out = done "policy show sliding_window"
    has(out, "truncate")
    has(out, "share of the limit")
    local source = done "policy show sliding_window --source"
    assert.equal(cli.read "policies/sliding_window.lua", source)
    has(done "policy show tiered", "options:  those of the policies in the chain")
    assert.is_nil(done("policy show tiered"):find("/../", 1, true))
    local about = json "policy show tiered"
    assert.equal("tiered", about.name)
    assert.same({ "edit_tools", "summarize", "sliding_window" }, about.chain)
  end)

  it("knows the nearest name", function()
    cli.fails(3, "policy show sliding_windw", "sliding_window")
  end)
end)

describe("policy try", function()
  before_each(function()
    done "import examples/demo-session.jsonl --id demo"
  end)

  it("shows the difference and where the tokens go, and writes nothing", function()
    local before = done "context demo --json"
    local out, err = done "policy try edit_tools demo"
    has(out, "~")
    has(out, "replaced")
    has(out, "in all")
    has(err, "Nothing was written")
    assert.equal(before, (done "context demo --json"))
  end)

  it("adds up", function()
    local seen = json "policy try sliding_window demo --window 12000"
    local before, after = 0, 0
    for _, row in pairs(seen.ledger) do
      before, after = before + row.before, after + row.after
    end
    assert.equal(seen.before, before)
    assert.equal(seen.after, after)
  end)

  it("lets somebody play the model", function()
    local out = done "policy try summarize demo --window 12000 --answer 'They fixed the cache.'"
    has(out, "They fixed the cache.")
    local ledger = json "policy try summarize demo --window 12000 --answer 'They did it.'".ledger
    assert.equal(1, ledger.inserted.messages)
    assert.equal(0, ledger.inserted.before)
    assert.is_true(ledger.inserted.after > 0)
    assert.is_true(math.abs(ledger.beside.before - ledger.beside.after) <= 12) -- rounding
  end)
end)

describe("policy bench", function()
  it("prints a row for each size", function()
    local seen = json "policy bench sliding_window --window 20000"
    assert.equal(3, #seen.rows)
    assert.is_true(seen.rows[3].messages >= 10000)
  end)
end)

describe("fixture", function()
  before_each(function()
    write(home .. "/secrets.jsonl", table.concat({
      '{"role":"user","content":"mail jo@example.org, key sk-abc123DEF456, password: hunter2"}',
      '{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"read",'
        .. '"arguments":"{\\"path\\":\\"/home/jo/x\\"}"}]}',
      '{"role":"tool","tool_call_id":"c1",'
        .. '"content":"jo@example.org again, 12.0 and 9007199254740993"}',
    }, "\n") .. "\n")
    done(("import %s/secrets.jsonl --id s"):format(home))
  end)

  it("cuts the messages as they were said", function()
    assert.equal(cli.read(home .. "/secrets.jsonl"), (done "fixture s"))
  end)

  it("takes out what looks like a secret, the same for the same text", function()
    local out, err = done(("fixture s %s/out.jsonl --redact"):format(home))
    assert.equal("", out)
    has(err, "read it before you publish it")
    local text = cli.read(home .. "/out.jsonl")
    for _, secret in ipairs { "jo@example", "sk-abc", "hunter2", "/home/jo" } do
      assert.is_nil(text:find(secret, 1, true), secret)
    end
    local _, count = text:gsub("%[email%-1%]", "")
    assert.equal(2, count)
    has(text, '"tool_call_id":"c1"')
    has(text, "9007199254740993")
    has(done(("policy replay sliding_window %s/out.jsonl"):format(home)), "3")
  end)

  it("writes over nothing", function()
    done(("fixture s %s/out.jsonl"):format(home))
    cli.fails(1, ("fixture s %s/out.jsonl"):format(home), "is there already")
  end)
end)
