-- Folders as Claude Code, Codex and pi keep them: all sessions at once, sub-agents as children.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"

local has = expect.has
local SHELF, CLOSING = "5e551001-0000-4000-8000-000000000001",
  "5e551002-0000-4000-8000-000000000002"
local RECEIPT, UNDER, PRICES = "019de000-0000-7000-8000-000000000001",
  "019de000-0000-7000-8000-000000000002", "019de000-0000-7000-8000-000000000003"
local YARD = "b1b1b1b1-0000-4000-8000-000000000001"

cli.each_test(function(home)
  os.execute("cp -r spec/fixtures/import/home/. " .. cli.quote(home))
end)

-- The sessions of the store by their ids.
local function listed()
  local rows = {}
  for _, row in ipairs(cli.json "list") do
    rows[row.id] = row
  end
  return rows
end

-- Everything in the store.
local function everything()
  local texts = {}
  for id in pairs(listed()) do
    texts[#texts + 1] = cli.done("export " .. id .. " --format jsonl")
  end
  table.sort(texts)
  return texts
end

describe("import --all", function()
  it("finds the sessions of all agents, with titles, folders and git branches", function()
    local out, err = cli.done "import --all"
    assert.equal(8, select(2, out:gsub("\n", "")))
    has(err, "8 sessions (8 new), 25 messages, 25 new")
    has(err, "1 file skipped: there is no message in it: ")
    has(err, "5e551003-0000-4000-8000-000000000003.jsonl")
    local rows = listed()
    for id, title in pairs {
      [SHELF] = "The empty shelf", [CLOSING] = "Closing time", ["agent-a17c0de5"] =
      "Count the shelves", ["agent-0b5e77ed"] = "", [RECEIPT] = "The missing receipt",
      [UNDER] = "", [PRICES] = "Price tags", [YARD] = "The yard",
    } do
      assert.equal(title, rows[id].title or "", id)
    end
    for id, expected in pairs {
      [SHELF] = { cwd = "/srv/shop", branch = "refill" },
      [RECEIPT] = { cwd = "/srv/till", branch = "receipts" }, [YARD] = { cwd = "/srv/yard" },
    } do
      local metadata = cli.json("info " .. id).metadata
      assert.same(expected, { cwd = metadata.cwd, branch = metadata.branch })
    end
    assert.equal(4, #cli.json("show " .. YARD)) -- and "And the gate?" on a branch
    has(cli.done("tree --text " .. YARD), "And the gate?")
  end)

  it("lists them as created when their first message was said", function()
    cli.done "import --all"
    local times, before = {}, math.huge
    for id, row in pairs(listed()) do
      local first = math.huge
      for _, line in ipairs(cli.json("show " .. id)) do
        first = math.min(first, line.message.timestamp)
      end
      assert.equal(first, row.created, id)
      assert.equal(first, cli.json("info " .. id).created, id)
      times[id] = first
    end
    for _, row in ipairs(cli.json "list --sort created") do
      assert.is_true(times[row.id] <= before)
      before = times[row.id]
    end
  end)

  it("makes children of sub-agents", function()
    cli.done "import --all"
    for child, parent in pairs { ["agent-a17c0de5"] = SHELF, ["agent-0b5e77ed"] = CLOSING,
      [UNDER] = RECEIPT } do
      assert.equal(parent, cli.json("info " .. child).parent.id)
      local children = cli.json("children " .. parent).children
      assert.same({ 1, child }, { #children, children[1].id })
    end
    assert.equal(2, #cli.json "show agent-a17c0de5")
    assert.equal(6, #cli.json("show " .. SHELF))
  end)

  it("again brings nothing, and what has grown only what is new", function()
    local home = cli.home()
    cli.done "import --all"
    local before = everything()
    local out, err = cli.done "import --all"
    assert.equal("", out)
    has(err, "8 sessions (8 unchanged), 25 messages, 0 new")
    assert.same(before, everything())
    local path = home .. "/.pi/agent/sessions/--srv-yard--/2026-05-04T11-00-00-000Z_" .. YARD
      .. ".jsonl"
    cli.write(path, cli.read(path) .. '{"type":"message","id":"b0000007","parentId":"b0000006",'
      .. '"timestamp":"2026-05-05T08:00:00.000Z","message":{"role":"user","content":"Thanks."}}\n')
    out, err = cli.done "import --all"
    has(out, "b1b1b1b1")
    has(err, "8 sessions (1 continued, 7 unchanged), 26 messages, 1 new")
    local report = cli.json "import --all"
    assert.same({ 8, 26, 0, 1 }, { report.sessions, report.messages, report.new_messages,
      #report.skipped })
  end)

  it("looks where the variables of the agents point, and says when nothing is there", function()
    local home = cli.home()
    os.execute(("cd %s && mv .codex elsewhere && rm -r .claude .pi"):format(cli.quote(home)))
    local err = cli.fails(3, "import --all", ".claude/projects", ".codex/sessions",
      ".pi/agent/sessions")
    has(err, "sessile import FOLDER")
    local report = cli.decoded((cli.sessile("import --all --json", nil,
      "env CODEX_HOME=" .. cli.quote(home) .. "/elsewhere")))
    assert.equal(3, report.sessions)
  end)

  it("takes no file, and one of them is wanted", function()
    cli.fails(2, "import --all x.jsonl", "--all")
    cli.fails(2, "import", "--all")
  end)
end)

describe("import of a folder", function()
  it("finds what an agent keeps in a home, in the agent's folder and below", function()
    local home = cli.home()
    for folder, count in pairs { [""] = 8, ["/.claude"] = 4, ["/.claude/projects/-srv-shop"] = 4,
      ["/.codex"] = 3, ["/.codex/sessions/2026"] = 2, ["/.pi"] = 1, ["/.pi/agent"] = 1 } do
      local report = cli.json(("import %s%s"):format(home, folder))
      assert.same({ count, 0 }, { report.sessions, report.failed }, folder)
    end
  end)

  it("reads the folders in it, once each", function()
    local home = cli.home()
    os.execute(("cd %s && mkdir -p talks/a talks/b && ln -s .. talks/a/up"):format(home))
    for _, name in ipairs { "a/x", "b/x", "y" } do
      cli.write(("%s/talks/%s.jsonl"):format(home, name), '{"role":"user","content":"hi"}\n')
    end
    cli.write(home .. "/talks/bad.json", "{")
    local out, err = cli.sessile(("import %s/talks"):format(home))
    assert.equal("a/x\nb/x\ny\n", out)
    has(err, "3 sessions (3 new), 3 messages, 3 new")
    has(err, "1 of 4 files could not be imported")
  end)
end)

describe("a sub-agent's recording", function()
  it("whose session is not there is a session, and names the other", function()
    local path = ".claude/projects/-srv-shop/agent-0b5e77ed.jsonl"
    local _, err = cli.done(("import %s/%s"):format(cli.home(), path))
    has(err, "its parent " .. CLOSING .. " is not in the store: it stays a separate session")
    local info = cli.json "info agent-0b5e77ed"
    assert.is_nil(info.parent)
    assert.equal(CLOSING, info.metadata.imported.parent)

    -- as the report said
    cli.done(("import %s/.claude/projects/-srv-shop/%s.jsonl"):format(cli.home(), CLOSING))
    _, err = cli.done(("import %s/.claude/projects"):format(cli.home()))
    assert.is_nil(err:find "sub%-agents")
    assert.is_nil(cli.json "info agent-0b5e77ed".parent)
  end)

  it("is a child in whatever order the folder has the files", function()
    local there = cli.home() .. "/there"
    os.execute(("mkdir %s && cp %s/.codex/sessions/*/*/*/*.jsonl %s"):format(there, cli.home(),
      there))
    os.execute(("mv %s/*%s.jsonl %s/0.jsonl"):format(there, UNDER, there)) -- before its parent
    local _, err = cli.done("import " .. there)
    assert.is_nil(err:find "sub%-agents")
    assert.equal(RECEIPT, cli.json("info " .. UNDER).parent.id)
  end)

  it("without its parent is told of a folder too", function()
    local there = cli.home() .. "/alone"
    os.execute(("mkdir %s && cp %s/.codex/sessions/*/*/*/*%s.jsonl %s"):format(there, cli.home(),
      UNDER, there))
    local _, err = cli.done("import " .. there)
    has(err, "1 session of sub-agents: the parents are not in the store")
    assert.is_nil(cli.json("info " .. UNDER).parent)
  end)
end)
