-- The shell blocks of pages, run in order: of the top README, of the command line's, of rpc's. Each
-- page has a scratch folder and home; each block is one sh that stops at the first command that
-- fails. `sessile` is the executable of this build, recorded.jsonl a recording of the pi coding
-- agent, and examples/ that of the project. Nobody answers what a block asks.
--
-- A block that is not to be run has a line of its own above it, with the reason:
--   <!-- not run: installs packages -->
-- The default store is a folder below ~/.local/share, as the text says: so these run once, over
-- files. (The databases have sqlite_spec.lua and others.)

local cli = require "spec.support.cli"
local guides = require "spec.support.guides"

-- The blocks of a text: {line, text, skipped}. skipped: why it is not run.
local function blocks_of(text)
  local found, at, skipped, block = {}, 0, nil, nil
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    at = at + 1
    if block and line:find "^```%s*$" then
      block.text = table.concat(block, "\n") .. "\n"
      block = nil
    elseif block then
      block[#block + 1] = line
    elseif line:find "^```sh%s*$" then
      block = { line = at + 1, skipped = skipped }
      found[#found + 1], skipped = block, nil
    elseif line:find "%S" then
      skipped = line:match "^<!%-%- not run: (.-) %-%->$"
    end
  end
  return found
end

-- They show the default store, in a home of their own.
for _, page in ipairs { "README.md", "lua/sessile/cli/README.md", "lua/sessile/rpc/README.md" } do
  describe("the shell blocks of " .. page, function()
    local home
    local blocks = blocks_of(guides.read(page))

    setup(function()
      home = guides.begin()
      cli.write(home .. "/clone/recorded.jsonl", guides.read "spec/fixtures/pi-small.jsonl")
    end)

    teardown(cli.finish)

    for i, block in ipairs(blocks) do
      if not block.skipped then
        it(("work: block %d, line %d"):format(i, block.line), function()
          cli.write(home .. "/block.sh", block.text)
          local out, err, code = guides.run(("unset XDG_DATA_HOME && exec sh -ev %s/block.sh")
            :format(home))
          assert.equal(0, code, err .. out)
          cli.no_traceback(err)
        end)
      end
    end

    it("are one at least that runs", function()
      local runs = 0
      for _, block in ipairs(blocks) do
        runs = runs + (block.skipped and 0 or 1)
      end
      assert.is_true(runs > 0)
    end)
  end)
end

describe("the blocks of a page", function()
  it("are found, and left out only with a reason", function()
    local found = blocks_of [[
```sh
one
```
<!-- not run: because -->

```sh
two
```
```lua
three
```
```sh
four
five
```
]]
    assert.same({ "one\n", "two\n", "four\nfive\n" },
      { found[1].text, found[2].text, found[3].text })
    assert.same({ 2, nil, "because" }, { found[1].line, found[1].skipped, found[2].skipped })
    assert.is_nil(found[3].skipped)
  end)
end)
