-- policies/README.md on policies of memories: its policy, its spec and its settings, as they stand.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local guides = require "spec.support.guides"

local text = guides.read "policies/README.md"
local settings = text:match "\n## Policies of memories\n.-\n```lua\n(.-)\n```"
local hooks = text:match "\n## The hooks of a memory\n(.-)\n## "
local blocks = guides.blocks(hooks, "lua")

describe("the guide to policies of memories", function()
  local home
  setup(function() home = cli.begin() end)
  teardown(cli.finish)

  it("has settings that are taken as they stand", function()
    local sessile = require "sessile"
    local store <close> = load(settings .. "\nreturn store", "=snippet", "t", { assert = assert,
      sessile = { open = function(_, options)
        options.key, options.policy_path = false, built.root .. "/policies"
        options.model = function() return "1 | fact | - | My cat is called Tom. | -" end
        return sessile.open("ram:", options)
      end } })()
    local session = assert(store:create { agent = "a" })
    assert(session:turn { { role = "user", content = "My cat is called Tom." } })
    assert(session:close())
    local memory = assert(store:memory { agent = "a" })
    assert.equal("My cat is called Tom.", memory:list()[1].value)
  end)

  it("has a policy of 15 lines or so, and a spec that passes", function()
    local _, lines = blocks[1]:gsub("\n", "")
    assert.is_true(lines < 16)
    cli.write(home .. "/marked.lua", blocks[1])
    cli.write(home .. "/marked_spec.lua", blocks[2])
    local command = ("cd %s && env -u SESSILE_KEY -u SESSILE_STORE HOME=%s %s policy test "
      .. "marked_spec.lua >stdout 2>stderr"):format(cli.quote(home), cli.quote(home),
      cli.quote(cli.binary))
    local _, _, code = os.execute(command)
    local out = cli.read(home .. "/stdout")
    assert.equal(0, code, out .. cli.read(home .. "/stderr"))
    assert.truthy(out:find("8 successes", 1, true), out)
  end)
end)
