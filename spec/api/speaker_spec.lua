-- Who speaks in a message, to a person: a question, a tool's result, a reply.

local cli = require "spec.support.cli"
local speaker = require "sessile.speaker"
local stores = require "spec.support.stores"

local function result(id, text, more)
  local block = { type = "tool_result", tool_use_id = id, content = text }
  for name, value in pairs(more or {}) do
    block[name] = value
  end
  return block
end

-- A message, who speaks in it, and whether it asks.
local cases = {
  { { role = "user", content = "why?" }, "user", true },
  { { role = "assistant", content = {
    { type = "tool_use", id = "a", name = "f", input = { n = 1 } },
    { type = "tool_use", id = "b", name = "f", input = { n = 2 } } } }, "assistant", false },
  { { role = "user", content = { result("a", "needle one") } }, "tool", false },
  { { role = "user", content = { result("b", "two"), { type = "text", text = "go on" } } },
    "user", true },
  { { role = "user", content = {} }, "user", true },
  { { role = "user", content = "so far", metadata = { kind = "summary" } }, "user", false },
  { { role = "assistant", content = "", tool_calls = {
    { id = "c", name = "f", arguments = "{}" } } }, "assistant", false },
  { { role = "tool", tool_call_id = "c", content = "needle three" }, "tool", false },
  { { role = "system", content = "be kind" }, "system", false },
}

describe("the speaker of a message", function()
  it("is the tool in a message of the user that holds only results", function()
    for i, case in ipairs(cases) do
      assert.equal(case[2], speaker.of(case[1]), "message " .. i)
      assert.equal(case[3], speaker.asks(case[1]), "message " .. i)
    end
  end)

  it("is the same in a tree, in why, and to a search", function()
    local store = stores.ram()
    local s = assert(store:create { id = "talk" })
    for i, case in ipairs(cases) do
      local id = assert(s:append(case[1]))
      local node = s:tree().nodes[id]
      assert.equal(case[2], node.speaker, "message " .. i)
      assert.equal(case[3], node.starts_turn, "message " .. i)
      assert.equal(case[1].role, node.role)
      assert.equal(case[2], s:why(id).steps[1].role, "message " .. i)
    end
    local found = {}
    for hit in assert(store:search("needle", { role = "tool" })) do
      found[#found + 1] = hit.entry .. " " .. hit.role
    end
    assert.same({ "00000003 tool", "00000008 tool" }, found)
    for _ in assert(store:search("needle", { role = "user" })) do
      error "no user said it"
    end
  end)
end)

describe("on the command line", function()
  cli.each_test()

  it("results in messages of the user are shown as results", function()
    cli.write(cli.home() .. "/talk.json", [[ [
      {"role":"user","content":"why?"},
      {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"n":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,
        "content":"needle"}]},
      {"role":"assistant","content":"so"}] ]])
    cli.done("import " .. cli.home() .. "/talk.json --from anthropic --id talk")
    local shown = cli.done "show talk"
    assert.matches("tool %(error%)", shown)
    assert.equal(1, select(2, shown:gsub("%f[%w]user%f[%W]", "")))
    assert.matches("tool +.*needle", cli.done "tree talk")
    assert.matches("tool +.*needle", cli.done "search needle")
    assert.matches("### tool", cli.done "export talk --format md")
    local page = cli.done "export talk --format html"
    assert.equal(1, select(2, page:gsub('<article class="m user', "")))
    assert.equal(1, select(2, page:gsub('<article class="m tool', "")))
    assert.equal(1, #cli.json "stats talk".rows)
  end)
end)
