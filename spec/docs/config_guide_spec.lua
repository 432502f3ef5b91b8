-- The configuration as lua/README.md has it: its table is that of the schema, its examples work.
-- And aixgo.md: the keys that it names exist.
-- Files only: the default folder.

local cli = require "spec.support.cli"
local schema = require "sessile.config.schema"

local guide = cli.read("lua/README.md")
local section = assert(guide:match "\n## Configuration\n(.*)$")

describe("lua/README.md", function()
  it("has the schema's keys, units and defaults, in its order, and no other", function()
    local rows = assert(section:match "\n(| `store`.-\n)\n")
    local expected = {}
    for i, row in ipairs(schema.keys) do
      expected[i] = ("| `%s%s` | %s | %s | %s | %s | %s |\n"):format(
        row.only_agent and "agents.NAME." or "", row.name, schema.units[row.kind] or "",
        row.default, row.project and "yes" or "", row.agent and "yes" or "", row.about)
    end
    assert.equal(table.concat(expected), rows)
  end)

  it("maps the keys of another configuration to keys that exist, or says later", function()
    local there = assert(cli.read("lua/sessile/config/aixgo.md"):match "\n(| `session.*)$")
    local n = 0
    for line in there:gmatch "[^\n]+" do
      local ours = line:match "^| .- | (.-) |"
      local key = ours:match "^`(%l[%w_.]*)"
      if not key then
        assert.truthy(ours:find "^later" or ours:find "^no key: " or ours:find "^`[%u$]", line)
      else
        local of_agent = key:match "^agents%.NAME%.?(.*)"
        local name = of_agent or key
        local row = schema.by_name[name] or schema.by_name[name:match "^[^.]*"]
        assert.truthy(name == "" or row and (row.agent or not of_agent), line)
      end
      n = n + 1
    end
    assert.truthy(n > 30)
  end)

  it("has a file that works, and a program that does what it says", function()
    local home = cli.begin()
    finally(cli.finish)
    local script, file = section:match "\n```lua\n(.-)\n```.-\n```lua\n(.-)\n```"
    cli.configure(file)
    cli.write(home .. "/script.lua", script)
    local out, err, code = cli.sessile(("run %s/script.lua"):format(home))
    assert.equal(0, code, err)
    assert.equal(home .. "/sessions\tfile\n", out)
    cli.done "show bug-42 --agent coder"
  end)
end)
