-- sessile audit, as somebody types it.
-- Own guard: it sets them.

local audited = require "spec.support.audited"
local cli = require "spec.support.cli"
local expect = require "spec.support.expect"

local EVENTS = [[
open method=os
create user=ann agent=coder session=bug-42
append user=ann agent=coder session=bug-42 entry=00000001
append user=bob actor=bot agent=coder session=bug-42 outcome=failure code=DENIED
seal
turn user=ann%0a%1b[31mx agent=coder session=bug-42
]]

local home, root

local function write(lines)
  return audited.write(cli.url(home .. "/data/sessile"), "file:" .. home .. "/config/sessile/key",
    lines)
end

local function lines_of(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

describe("sessile audit", function()
  cli.each_test(function(path)
    home = path
    cli.done "new --id a"
    root = write(EVENTS)
  end)

  it("tail prints the newest events as a table", function()
    local out = cli.done "audit tail -n 3"
    local lines = lines_of(out)
    assert.equal(4, #lines)
    assert.matches("^TIME +USER +OPERATION +ON +OUTCOME$", lines[1])
    expect.has(lines[2], "append")
    expect.has(lines[3], "bob by bot")
    expect.has(lines[3], "failure: DENIED")
    expect.has(lines[4], "turn")
    assert.is_nil(out:find "\27")
    assert.equal(2, #lines_of((cli.done "audit tail --outcome failure")))
    assert.equal(3, #lines_of((cli.done "audit tail --user ann")))
    assert.equal(3, #cli.json "audit tail -n 3")
    assert.same({}, cli.json "audit tail --operation purge")
    local _, said = cli.done "audit tail --operation purge"
    expect.has(said, "no such events")
  end)

  it("tail goes on where a cursor is, and loses nothing", function()
    local position = home .. "/position"
    local words = "audit tail --format jsonl --cursor " .. position
    assert.equal(5, #lines_of((cli.done(words))))
    assert.equal("", (cli.done(words)))
    write "delete user=ann session=bug-42\n"
    expect.has(cli.done(words), '"operation":"delete"')
    assert.equal("", (cli.done(words)))
    cli.write(position, "nonsense\n")
    cli.fails(1, words, "cursor")
  end)

  it("tail prints each format, one line for each event", function()
    for _, format in ipairs { "jsonl", "ecs", "ocsf", "cef", "syslog" } do
      local out = cli.done("audit tail -n 2 --format " .. format)
      assert.equal(2, #lines_of(out), format)
      assert.is_nil(out:find "\27", 1, true)
    end
    cli.fails(2, "audit tail --format xml", "jsonl")
  end)

  it("tail follows", function()
    local command = ("%s %s audit tail --follow --for 3 --json -n 1 > %s/followed 2>&1 & sleep 1")
      :format(cli.env(), cli.quote(cli.binary), home)
    os.execute(command)
    write "fork user=ann session=bug-42\n"
    for _ = 1, 100 do
      if cli.read(home .. "/followed"):find '"fork"' then break end
      os.execute "sleep 0.1"
    end
    local lines = lines_of(cli.read(home .. "/followed"))
    assert.equal("turn", cli.decoded(lines[1]).operation)
    assert.equal("fork", cli.decoded(lines[2]).operation)
    cli.fails(2, "audit tail --for 3", "--follow")
  end)

  it("show prints all events, or one with all that it says", function()
    assert.equal(6, #lines_of((cli.done "audit show --no-pager")))
    local one = cli.done "audit show 00-000/00000003"
    assert.matches("\noperation +create\n", one)
    assert.matches("\nname +ann\n", one)
    assert.equal("create", cli.json("audit show 00-000/00000003").operation)
    cli.fails(3, "audit show 00-000/00000fff", "no event")
  end)

  it("verify says what holds, what is not sealed, and where the key is from", function()
    local out, said = cli.done "audit verify"
    assert.matches("audit +chain intact\n", out)
    assert.matches("sealed +4 events in 1 seal, 1 lane", out)
    assert.matches("not sealed +1 event, the oldest now\n", out)
    assert.matches("root key +the store itself\n", out)
    expect.has(said, "Keep it elsewhere")
    for _, line in ipairs(lines_of(out)) do assert.truthy(#line <= 80, line) end
    out, said = cli.done("audit verify --root " .. root)
    expect.has(out, "--root")
    assert.equal("", said)
    out = cli.done("audit verify", nil, "env SESSILE_AUDIT_ROOT=" .. root)
    expect.has(out, "SESSILE_AUDIT_ROOT")
    cli.write(home .. "/root", (cli.done "audit root"))
    assert.equal(root .. "\n", cli.read(home .. "/root"))
    assert.is_true(cli.json(("audit verify --root %s/root"):format(home)).holds)
    cli.fails(2, "audit verify --root 123", "64 hex digits")
  end)

  it("verify fails with another key, and for what is too old", function()
    local out, _, code = cli.sessile("audit verify --root " .. ("0"):rep(64))
    assert.equal(5, code)
    expect.has(out, "DOES NOT HOLD")
    os.execute "sleep 1.1"
    out, _, code = cli.sessile "audit verify --max-age 1"
    assert.equal(5, code)
    expect.has(out, "not sealed")
    cli.done "audit seal"
    cli.done "audit verify --max-age 1"
  end)

  it("verify names the first event that is wrong", function()
    cli.files_only()
    local plain = home .. "/plain"
    local key = audited.write(plain, "plain", EVENTS)
    local path = plain .. "/agents/guard.audit/00-000.jsonl"
    if not cli.exists(path) then
      path = plain .. "/agents/guard.audit/00-000"
    end
    cli.write(path, (cli.read(path):gsub('"DENIED"', '"DENIES"', 1)))
    local out, _, code = cli.sessile(("audit verify --store %s --plain --root %s"):format(plain,
      key))
    assert.equal(5, code)
    assert.matches("first bad +00%-000/00000004\n", out)
  end)

  it("head prints anchors, which verify reads back", function()
    local out = cli.done "audit head"
    for _, line in ipairs(lines_of(out)) do assert.truthy(#line <= 80, line) end
    cli.write(home .. "/head", out)
    cli.done("audit verify --anchor " .. home .. "/head")
    cli.write(home .. "/head.json", (cli.done "audit head --json"))
    cli.done(("audit verify --anchor %s/head.json"):format(home))
    cli.write(home .. "/head", (out:gsub("%x(%x)\n$", "%1f\n")))
    local _, _, code = cli.sessile("audit verify --anchor " .. home .. "/head")
    assert.equal(5, code)
    cli.write(home .. "/head", "nothing\n")
    cli.fails(2, "audit verify --anchor " .. home .. "/head", "sessile audit head")
  end)

  it("prove makes a proof, which needs no store to be checked", function()
    cli.write(home .. "/proof", (cli.done "audit prove 00-000/00000003"))
    local out = cli.done(("audit prove --check %s/proof --store /nowhere"):format(home))
    expect.has(out, root)
    expect.has(out, "event     create")
    expect.has(out, "key vouches for")
    out = cli.done(("audit prove --check %s/proof --root %s"):format(home, root))
    expect.has(out, "this root key vouches for")
    cli.fails(5, ("audit prove --check %s/proof --root %s"):format(home, ("ab"):rep(32)),
      "does not lead to this root key")
    cli.write(home .. "/proof", (cli.read(home .. "/proof"):gsub("create", "delete")))
    cli.fails(5, ("audit prove --check %s/proof"):format(home), "does not hold")
    cli.fails(2, "audit prove", "--check FILE")
    local _, said, code = cli.sessile "audit prove 00-000/00000009"
    assert.not_equal(0, code)
    expect.has(said, "sessile audit seal")
  end)
end)

describe("sessile audit in a store without one", function()
  cli.each_test(function(path) home = path end)

  it("says so", function()
    cli.done "new --id a"
    for _, words in ipairs { "tail", "show", "verify", "root", "head", "seal" } do
      cli.fails(3, "audit " .. words, "no audit")
    end
  end)
end)
