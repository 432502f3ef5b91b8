-- The map of laws names tests: each of them exists, and each row has one.

local PATH = "engine/guard/compliance.md"

local function exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

describe("the map of laws", function()
  it("names only tests that exist, at least one in each row", function()
    local rows = 0
    for line in io.lines(PATH) do
      local proof = line:match "^| [^|]+ | [^|]+ | ([^|]+) |"
      if proof and proof ~= "proved by" then
        local named = 0
        for name in proof:gmatch "`([^`]+)`" do
          named = named + 1
          assert.is_true(exists(name:find "%.lua$" and name or ("tests/%s.c"):format(name)),
            name .. " does not exist")
        end
        assert.is_true(named > 0, line)
        rows = rows + 1
      end
    end
    assert.is_true(rows > 20)
  end)
end)
