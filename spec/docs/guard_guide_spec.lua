-- What the pages say of the guard is so: the roles of lua/README.md are the engine's, and the block
-- "A guard in five minutes" of the command line's page does what its words say.
-- Own guard: it sets one.

local core = require "sessile.core"
local cli = require "spec.support.cli"
local guides = require "spec.support.guides"
local sessile = require "sessile"

describe("the table of roles in lua/README.md", function()
  local ROLES = { "viewer", "editor", "admin", "auditor" }
  local rows = {}

  setup(function()
    local page = guides.read "lua/README.md"
    for line in page:gmatch "\n  (|[^\n]+|)%f[\n]" do
      local cells = {}
      for cell in line:sub(2):gmatch "([^|]*)|" do
        cells[#cells + 1] = cell:match "^%s*(.-)%s*$"
      end
      rows[cells[1]:gsub("[`*]", "")] = cells
    end
  end)

  it("is what the engine gives", function()
    local store = assert(sessile.open("ram:", { key = false }))
    assert(store:guard())
    local seen = 0
    for i, role in ipairs(ROLES) do
      local view = assert(store:as { user = "ann", roles = role })
      local who, may = view:who(), {}
      for _, permission in ipairs(who.permissions) do
        may[permission] = true
      end
      assert.equal(role, rows.permission[i + 1])
      assert.equal(who.all and "all" or "own", rows["whose sessions"][i + 1])
      for _, permission in ipairs(core.permissions()) do
        local row = assert(rows[permission], permission)
        assert.equal(may[permission] and "yes" or "", row[i + 1], permission .. " of " .. role)
        seen = seen + 1
      end
      view:close()
    end
    assert.equal(#core.permissions() * #ROLES, seen)
    store:close()
  end)

  it("says what access roles says", function()
    cli.begin()
    finally(cli.finish)
    for _, one in ipairs(cli.json("access roles").permissions) do
      assert.equal(one.allows, rows[one.permission][6])
    end
  end)
end)

describe("a guard in five minutes", function()
  it("refuses what it says that it refuses, and nothing else", function()
    local home = guides.begin()
    finally(cli.finish)
    local chapter = assert(guides.read "lua/sessile/cli/README.md":match
      "\n## A guard in five minutes\n(.-)\n## ")
    local block = assert(guides.blocks("\n" .. chapter, "sh")[1])
    cli.write(home .. "/block.sh", block)
    local out, err, code = guides.run(
      ("unset XDG_DATA_HOME && exec sh -e %s/block.sh"):format(home))
    assert.equal(0, code, err .. out)
    cli.no_traceback(err)
    local refused = 0
    for said in block:gmatch '|| echo "(.-)"' do
      local _, times = out:gsub(said, "")
      assert.equal(1, times, said)
      refused = refused + 1
    end
    assert.equal(5, refused)
    local _, failures = err:gsub("%f[^\n\0]sessile: ", "")
    assert.equal(refused, failures, err) -- each of them, and no other
    assert.truthy(out:find("it crashes", 1, true))
    assert.truthy(out:find("chain intact", 1, true))
    assert.truthy(out:find("Guard\n", 1, true))
  end)
end)
