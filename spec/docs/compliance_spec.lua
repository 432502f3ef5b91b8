-- The map of laws and the page about security name tests: each of them exists, and each row of the
-- map has one.

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

-- A program of tests/run by its name.
local function is_test(name)
  local folder, rest = name:match "^(%w+)/(.+)$"
  return folder == "spec" and exists(name .. "_spec.lua")
    or folder == "fuzz" and exists(("tests/fuzz/fuzz_%s.c"):format(rest))
    or exists(("tests/%s.c"):format(name)) or exists(("tests/%s.sh"):format(name))
    or exists("tests/" .. rest)
end

-- The items of the lists in a page, each as one text.
local function items(path)
  local list, open = {}, false
  for line in io.lines(path) do
    local begins, goes_on = line:sub(1, 2) == "- ", line:sub(1, 2) == "  "
    if begins then
      list[#list + 1] = line
    elseif open and goes_on then
      list[#list] = list[#list] .. line
    end
    open = begins or open and goes_on
  end
  return list
end

describe("the page about security", function()
  it("names only tests that exist, and one in each claim", function()
    local claims = items "engine/security.md"
    for _, claim in ipairs(claims) do
      local named = 0
      for name in claim:gmatch "`([%l_]+/[%w_/]+)`" do
        named = named + 1
        assert.is_true(is_test(name), name .. " does not exist")
      end
      assert.is_true(named > 0, claim)
    end
    assert.is_true(#claims > 20)
  end)
end)
