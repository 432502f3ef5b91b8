-- Sessions of Claude Code, Codex and pi: imported in one command, exported back, and opened there.

local claude_reader = require "spec.support.claude_reader"
local cli = require "spec.support.cli"
local codex_reader = require "spec.support.codex_reader"
local expect = require "spec.support.expect"
local pi_reader = require "spec.support.pi_reader"

local SHELF, CLOSING = "5e551001-0000-4000-8000-000000000001",
  "5e551002-0000-4000-8000-000000000002"
local RECEIPT, PRICES = "019de000-0000-7000-8000-000000000001",
  "019de000-0000-7000-8000-000000000003"
local YARD = "b1b1b1b1-0000-4000-8000-000000000001"

-- What each agent's reader gives a model of the recording that is in the fixtures, and of the file
-- that was exported, which stands where the agent looks for it.
local SESSIONS = {
  { SHELF, "claude", ".claude/projects/-srv-shop/" .. SHELF .. ".jsonl" },
  { CLOSING, "claude", ".claude/projects/-srv-shop/" .. CLOSING .. ".jsonl" },
  { RECEIPT, "codex",
    ".codex/sessions/2026/05/02/rollout-2026-05-02T10-00-00-" .. RECEIPT .. ".jsonl" },
  { PRICES, "codex",
    ".codex/archived_sessions/rollout-2026-04-30T10-00-00-" .. PRICES .. ".jsonl" },
  { YARD, "pi",
    ".pi/agent/sessions/--srv-yard--/2026-05-04T11-00-00-000Z_" .. YARD .. ".jsonl" },
}
local READERS = { claude = claude_reader, codex = codex_reader, pi = pi_reader }

cli.each_test(function(home)
  os.execute("cp -r spec/fixtures/import/home/. " .. cli.quote(home))
end)

-- An empty folder of an agent.
local function folder(name)
  local path = cli.home() .. "/new/" .. name
  os.execute("mkdir -p " .. cli.quote(path))
  return path
end

-- Exports into an agent's folder; the text of the file that is now there, and the report.
local function exported(id, to)
  local report = cli.json(("export %s %s --to %s"):format(id, folder("." .. to), to))
  return cli.read(report.file), report
end

describe("the sessions of three agents", function()
  it("come in with one command, once, go back, and are opened there", function()
    local home = cli.home()
    expect.has(select(2, cli.done "import --all"), "8 sessions (8 new), 25 messages, 25 new")
    expect.has(select(2, cli.done "import --all"), "8 sessions (8 unchanged), 25 messages, 0 new")
    for _, one in ipairs(SESSIONS) do
      local id, to, path = one[1], one[2], one[3]
      local recorded = READERS[to].context(cli.read(home .. "/" .. path))
      assert.is_true(#recorded > 0, id)
      local text
      if to == "pi" then
        text = cli.done(("export %s --to pi"):format(id))
      else
        text = exported(id, to)
      end
      assert.same(recorded, READERS[to].context(text), id)
    end
    -- What was exported is what was imported: the store of somebody else gets the same sessions.
    local before = {}
    for _, one in ipairs(SESSIONS) do
      before[one[1]] = one[2] ~= "pi" and cli.json("context " .. one[1]).tokens or nil
    end
    os.execute(("mkdir -p %s/other"):format(cli.quote(home)))
    local other = "--store " .. cli.quote(home .. "/other/store")
    cli.done(("import %s/new %s"):format(home, other))
    for id, tokens in pairs(before) do
      assert.equal(tokens, cli.json(("context %s %s"):format(id, other)).tokens, id)
    end
  end)

  it("keep their names, uuids and places there", function()
    local home = cli.home()
    cli.done "import --all"
    local text, report = exported(SHELF, "claude")
    assert.equal(folder ".claude" .. "/projects/-srv-shop/" .. SHELF .. ".jsonl", report.file)
    assert.equal("cd /srv/shop && claude --resume " .. SHELF, report.resume)
    local recorded = claude_reader.path(cli.read(home .. "/" .. SESSIONS[1][3]))
    for i, line in ipairs(claude_reader.path(text)) do
      for _, name in ipairs { "uuid", "parentUuid", "timestamp", "cwd", "message", "type" } do
        assert.same(recorded[i][name], line[name])
      end
    end
    expect.has(text, '"customTitle":"The empty shelf"')
    text, report = exported(RECEIPT, "codex")
    assert.truthy(report.file:find "/sessions/%d+/%d+/%d+/rollout%-[^/]+%.jsonl$")
    expect.has(report.file, RECEIPT)
    assert.equal("cd /srv/till && codex resume " .. RECEIPT, report.resume)
    expect.has(text, '"thread_name":"The missing receipt"')
  end)

  it("go from each to each other", function()
    cli.done "import --all"
    for id, to in pairs { [SHELF] = "codex", [RECEIPT] = "claude", [YARD] = "claude" } do
      local text = exported(id, to)
      local said = 0
      for _, message in ipairs(cli.json("context " .. id).messages) do
        local content = message.message.content
        content = type(content) == "string" and content or content[1].text
        if content then
          expect.has(table.concat(READERS[to].context(text), "\n"), content)
          said = said + 1
        end
      end
      assert.is_true(said >= 4)
    end
  end)
end)

describe("export into an agent's folder", function()
  it("names the folder of the session, of a project, or of all sessions", function()
    cli.done "import --all"
    local root = folder ".claude"
    for place, path in pairs { [""] = "/projects/-srv-shop/", ["/projects"] = "/-srv-shop/",
      ["/projects/mine"] = "/" } do
      os.execute("mkdir -p " .. cli.quote(root .. place))
      local report = cli.json(("export %s %s%s --to claude --yes"):format(SHELF, root, place))
      assert.equal(root .. place .. path .. SHELF .. ".jsonl", report.file)
    end
    local days = folder ".codex" .. "/sessions"
    os.execute("mkdir -p " .. cli.quote(days))
    local report = cli.json(("export %s %s --to codex"):format(RECEIPT, days))
    assert.truthy(report.file:sub(#days + 1):find "^/%d%d%d%d/%d%d/%d%d/rollout%-")
  end)

  it("replaces nothing without --yes, and says how to continue", function()
    cli.done "import --all"
    local _, err = cli.done(("export %s %s --to claude"):format(SHELF, folder ".claude"))
    expect.has(err, "To continue there: cd /srv/shop && claude --resume " .. SHELF)
    cli.fails(1, ("export %s %s --to claude"):format(SHELF, folder ".claude"), "is there already")
  end)

  it("gives a name that is no UUID one that is always the same", function()
    cli.done("new --id talk")
    cli.done("append talk", "hello")
    local text = cli.done "export talk --to claude"
    assert.equal(text, cli.done "export talk --to claude")
    local id = text:match '"sessionId":"([^"]+)"'
    assert.truthy(id:find "^%x+%-%x%x%x%x%-8%x%x%x%-a%x%x%x%-%x+$" and #id == 36)
    assert.equal("hello", claude_reader.context(text)[1])
  end)
end)
