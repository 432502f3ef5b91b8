-- The definitions of tools: what they cost a model, and that they say what a host has to know.

local cli = require "spec.support.cli"
local mcp = require "spec.support.mcp"
local sessile = require "sessile"

cli.each_test()

-- What a model is given of the tools: a host shows it neither annotations nor output schemas.
local function shown(tools)
  local list = sessile.array {}
  for i, tool in ipairs(tools) do
    list[i] = { name = tool.name, description = tool.description, inputSchema = tool.inputSchema }
  end
  return list
end

local function tokens(value)
  cli.write(cli.home() .. "/text", sessile.encode(value))
  return cli.json(("tokens %s/text --encoding o200k_base"):format(cli.home())).tokens
end

for words, most in pairs { [""] = { 700, 1400 }, ["--write"] = { 1000, 2000 } } do
  it(("cost a model at most %d tokens (sessile mcp %s)"):format(most[1], words), function()
    local tools = mcp.ask("tools/list", nil, words).tools
    local for_model, all = tokens(shown(tools)), tokens(tools)
    print(("# figure: tokens of the definitions, mcp %s = %d"):format(words, for_model))
    assert.is_true(for_model > 300 and for_model <= most[1], for_model)
    assert.is_true(all <= most[2], all)
  end)
end

it("have a title, annotations and schemas of objects", function()
  for _, tool in ipairs(mcp.ask("tools/list", nil, "--write").tools) do
    assert.matches("^%l+_%l+$", tool.name)
    assert.is_string(tool.title)
    assert.is_boolean(tool.annotations.readOnlyHint)
    assert.is_false(tool.annotations.openWorldHint)
    for _, schema in ipairs { tool.inputSchema, tool.outputSchema } do
      assert.equal("object", schema.type)
      for _, name in ipairs(schema.required or {}) do
        assert.is_table(schema.properties[name], tool.name .. ": " .. name)
      end
    end
  end
end)

it("are the same each time", function()
  local answers = mcp.run { mcp.request(1, "tools/list"), mcp.request(2, "tools/list") }
  assert.same(answers[1].result, answers[2].result)
end)
