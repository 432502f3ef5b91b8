-- lua/sessile/mcp/README.md: its commands, run as they stand there, and its lists of tools and
-- files.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local guides = require "spec.support.guides"
local mcp = require "spec.support.mcp"

local page = guides.read "lua/sessile/mcp/README.md"

before_each(guides.begin)
after_each(cli.finish)

it("shows commands that work", function()
  local run = 0
  cli.done "new --id talk"
  for before, block in page:gmatch "([^\n]*)\n```sh\n(.-)\n```" do
    if not before:find("not run:", 1, true) then
      local out, err, code = guides.run(block)
      assert.equal(0, code, err)
      expect.has(out, '"session":"main/talk"')
      run = run + 1
    end
  end
  assert.equal(1, run)
end)

it("has every tool, and no other", function()
  local listed = {}
  for name in page:gmatch "\n| `(%l+_%l+)` |" do
    listed[name] = true
  end
  for _, tool in ipairs(mcp.ask("tools/list", nil, "--write").tools) do
    assert.is_true(listed[tool.name], tool.name)
    listed[tool.name] = nil
  end
  assert.is_nil(next(listed))
end)

it("has every file", function()
  local pipe <close> = assert(io.popen "cd lua/sessile/mcp && find . -name '*.lua'")
  for path in pipe:lines() do
    expect.has(page, "`" .. path:match "[^/]+$" .. "`")
  end
end)
