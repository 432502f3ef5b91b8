-- policies/screens/README.md: its program, run as it stands there.

local example = require "spec.support.example"
local guides = require "spec.support.guides"
local temp = require "spec.support.temp"

describe("policies/screens/README.md", function()
  teardown(temp.clean)

  it("shows a store whose writes are screened", function()
    local dir = temp.dir()
    local guide = guides.read "policies/screens/README.md"
    temp.write(dir .. "/program.lua", assert(guide:match "\n```lua\n(local sessile.-)\n```"))
    local out, err, status = example.shell(("%s run %s/program.lua"):format(example.command, dir))
    assert.equal(0, status, err)
    assert.equal("The password is [removed: named]\nrefuse\n", out)
  end)
end)
