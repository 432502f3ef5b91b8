-- The annotations and the module name the same functions and fields.
-- Files only: it compares names.

local sessile = require "sessile"
local guides = require "spec.support.guides"

-- {["sessile.open"] = true, ["Store:create"] = true, …}
local function annotated(text)
  local set = {}
  for name in text:gmatch("\nfunction ([%w_.:]+)%(") do
    local shared = name:match "^AnyMemory:(.*)$" -- a class that two others extend
    if shared then
      set["Memory:" .. shared], set["Memories:" .. shared] = true, true
    else
      set[name] = true
    end
  end
  return set
end

local function registered()
  local set = {}
  local function add(prefix, list)
    for name, value in pairs(list) do
      if type(value) == "function" then
        set[prefix .. name] = true
      end
    end
  end
  add("sessile.", sessile)
  add("key.", sessile.key)
  add("tools.", sessile.tools)
  add("Store:", require "sessile.store".methods)
  add("Session:", require "sessile.session".methods)
  add("Run:", require "sessile.host".methods)
  add("Agent:", require "sessile.interaction.agent".methods)
  add("Encoding:", require "sessile.encoding".methods)
  add("Screens:", require "sessile.screens".methods)
  add("Memory:", require "sessile.memory".methods)
  add("Memories:", require "sessile.memories".methods)
  add("Plan:", require "sessile.outcome".plan_methods)
  return set
end

describe("meta.lua", function()
  local text = guides.read "lua/sessile/meta.lua"

  it("annotates every function that is registered", function()
    local known = annotated(text)
    for name in pairs(registered()) do
      assert.is_true(known[name], name .. " is not annotated")
    end
  end)

  it("annotates no function that is not there", function()
    local known = registered()
    for name in pairs(annotated(text)) do
      if not name:find "^State:" then
        assert.is_true(known[name], name .. " is annotated and does not exist")
      end
    end
  end)

  it("annotates the methods that a state has", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    local checked = 0
    local outcome = assert(s:turn({ { role = "user", content = "x" } }, { policy = {
      truncate = function(state)
        for name in pairs(annotated(text)) do
          local method = name:match "^State:(.*)$"
          if method then
            assert(type(state[method]) == "function", method)
            checked = checked + 1
          end
        end
      end } }))
    assert.equal("unchanged", outcome.policy.verdict)
    assert.equal(7, checked)
  end)

  it("names the fields that handles have", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    for class, handle in pairs { Store = store, Session = s } do
      local block = text:match("\n%-%-%-@class sessile%." .. class .. "\n(.-)local " .. class)
      for field in block:gmatch "@field ([%w_]+) " do -- one that may be nil ends in "?"
        assert.is_not_nil(handle[field], class .. "." .. field)
      end
    end
    local outcome = assert(s:turn { { role = "user", content = "x" } })
    local block = text:match "\n%-%-%-@class sessile%.Outcome\n(.-)\n\n"
    for field in pairs(outcome) do
      if field:sub(1, 1) ~= "_" then
        assert.is_truthy(block:find("@field " .. field, 1, true), "Outcome." .. field)
      end
    end
  end)

  it("is Lua that defines no global", function()
    local globals = setmetatable({}, { __newindex = function(_, name)
      error("global " .. name)
    end })
    assert.is_table(assert(load(text, "meta.lua", "t", globals))())
  end)

  it("gives every handle its name and its close", function()
    local store <close> = assert(sessile.open("ram:"))
    local s = assert(store:create())
    local run <close> = assert(sessile.step(s, "turn", { { role = "user", content = "x" } }))
    for name, handle in pairs { Store = store, Session = s, Run = run } do
      local meta = getmetatable(handle)
      assert.equal("sessile." .. name, meta.__name)
      assert.is_function(meta.__close)
      assert.matches("^sessile%." .. name, tostring(handle))
    end
  end)
end)
