-- What other programs remembered, imported: the formats that they write, and what is refused.

local stores = require "spec.support.stores"

local OWN = '# Memory of "coder", 2 entries\n\n## Facts\n\n- **editor**: vim <!-- 2a -->\n\n'
  .. "## Procedures\n\n- make, then\\nmake install <!-- 2b -->\n"

local MEM0 = [[{"results": [
  {"id": "3c90c3cc-0d44-4b50-8888-8dd25736052a", "memory": "Likes hiking", "hash": "5e",
   "metadata": null, "created_at": "2026-02-01T05:31:56Z", "updated_at": null, "user_id": "ann"},
  {"id": "4d", "memory": "Is vegetarian", "metadata": {"category": "food"},
   "created_at": "2026-02-02T05:31:56.000-07:00", "user_id": "ann"}]}]]

local MCP = [[
{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea","speaks German"]}
{"type":"entity","name":"Acme","entityType":"company","observations":[]}
{"type":"relation","from":"Ann","to":"Acme","relationType":"works_at"}
]]

local CLAUDE = [[
---
name: build
description: how the project is built
---
# Project

## Commands
- Build with `make build`
- Test with `make test`,
  never with sudo

The release branch is **main**.
<!-- a comment -->
---
1. First lint
]]

describe("import", function()
  local m

  before_each(function()
    m = assert(stores.ram():memory "coder")
  end)
  after_each(stores.clean)

  local function values(format, text, name)
    local done, message = m:import(text, { name = name })
    assert.truthy(done, message)
    assert.equal(format, done.format)
    local list = {}
    for i, row in ipairs(m:list()) do
      list[i] = row.value
    end
    table.sort(list)
    assert.equal(#list, done.written)
    -- again, and after one was deleted: nothing is added
    local again = assert(m:import(text, { name = name }))
    assert.same({ 0, #list }, { again.written, again.known })
    assert(m:delete(m:list()[1]))
    assert.equal(0, m:import(text, { name = name }).written)
    assert(m:restore(m:list { state = "deleted" }[1]))
    return table.concat(list, "|")
  end

  it("reads our own Markdown", function()
    assert.equal("make, then\nmake install|vim", values("sessile", OWN))
    assert.equal("vim", m:read "editor".value)
    assert.equal("agent", m:read "editor".source)
    assert.equal(1, #m:list { kind = "procedure" })
    local text = m:markdown()
    local other = assert(stores.ram():memory "coder")
    assert(other:import(text))
    assert.equal((text:gsub("<!.-\n", "")), (other:markdown():gsub("<!.-\n", "")))
  end)

  it("reads mem0's JSON, in results or as a list", function()
    assert.equal("Is vegetarian|Likes hiking", values("mem0", MEM0))
    assert.equal(1769904000000, m:search "hiking"[1].holds_from)
    assert.equal(0, m:import(MEM0:match "%[.*%]").written)
  end)

  it("reads the lines of MCP's memory server", function()
    assert.equal("Ann works at Acme|Ann: likes tea|Ann: speaks German", values("mcp", MCP))
    assert.equal(2, #m:search "person")
  end)

  it("reads the graph that MCP's memory server returns", function()
    assert.equal("Ann works at Acme|Ann: likes tea|Ann: speaks German", values("mcp", [[
      {"entities": [{"name": "Ann", "entityType": "person",
                     "observations": ["likes tea", "speaks German"]}],
       "relations": [{"from": "Ann", "to": "Acme", "relationType": "works_at"}]}]]))
    assert.is_nil(m:import '{"entities": [{"name": "Ann"}]}')
    assert.is_nil(m:import '{"entities": [], "relations": 1}')
  end)

  it("names the item of mem0's list that is no memory", function()
    local done, message, code = m:import '[{"memory": "Likes tea"}, {"id": "2"}]'
    assert.same({ nil, "EINVALID" }, { done, code })
    assert.matches("item 2 of the list", message)
    assert.equal(0, m:stats().entries)
  end)

  it("reads Markdown as Claude and OpenClaw write it", function()
    assert.equal("Build with `make build`|First lint|Test with `make test`,\nnever with sudo|"
      .. "The release branch is **main**.", values("markdown", CLAUDE, "build.md"))
    assert.equal(4, #m:search "how the project is built")
    assert.equal("fact", m:list()[1].kind)
    assert(m:import("# 2026-02-01\n- Fixed the login\n", { name = "memory/2026-02-01-login.md" }))
    local row = m:search "login"[1]
    assert.same({ "episode", 1769904000000 }, { row.kind, row.holds_from })
  end)

  for what, text in pairs {
    ["JSON of another kind"] = '{"role":"user","content":"hello"}',
    ["JSON of another kind "] = '[1, 2]', ["HTML or XML"] = "<html><body>x</body></html>",
    ["JSON of another kind  "] = '{"role":"user"}\n{"role":"user"}\n',
    ["JSON that is damaged"] = '{"results": [{"memory": "Likes',
    ["a binary file"] = "SQLite format 3\0\1", ["no UTF%-8"] = "\xff\xfe",
    ["an empty file"] = " \n", ["YAML"] = "memories:\n  - one\n",
    ["a table %(CSV%)"] = "id,memory,date\n1,likes tea,2026\n",
    ["line 3: the heading"] = "# Memory of x\n\n## Songs\n",
  } do
    it("refuses another format: " .. what, function()
      local done, message, code = m:import(text)
      assert.is_nil(done)
      assert.equal("EINVALID", code)
      assert.matches((what:gsub(" +$", "")), message)
      assert.equal(0, m:stats().entries)
    end)
  end

  it("takes arbitrary bytes without an error", function()
    math.randomseed(7)
    for _ = 1, 300 do
      local bytes = {}
      for i = 1, math.random(1, 80) do
        local pieces = { "{", "}", "[", "]", '"memory"', ":", ",", '"type":"entity"', "- ", "# ",
          "\n", "---\n", "a", string.char(math.random(0, 255)) }
        bytes[i] = pieces[math.random(1, #pieces)]
      end
      m:import(table.concat(bytes))
    end
  end)
end)
