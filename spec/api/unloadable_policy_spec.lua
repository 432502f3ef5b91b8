-- A store whose policy cannot be loaded: it does not open, unless the host asks to be told instead.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local user = require("spec.support.messages").user

local told

before_each(function() told = {} end)

local function tell(message, code)
  told[#told + 1] = { message = message, code = code }
end

it("a store with a policy that does not exist does not open", function()
  local store, message, code = sessile.open("ram:", { policy = "tierd" })
  assert.is_nil(store)
  expect.has(message, "did you mean 'tiered'?")
  assert.equal("ENOTFOUND", code)
end)

describe("with on_policy_error", function()
  it("the store opens, its sessions are read and written, and a run fails", function()
    local store <close> = assert(sessile.open("ram:", { policy = "tierd", on_policy_error = tell }))
    assert.equal(1, #told)
    expect.has(told[1].message, "did you mean 'tiered'?")
    assert.equal("ENOTFOUND", told[1].code)
    local s = assert(store:create { id = "bug" })
    assert(s:append(user "hello"))
    assert.equal(1, #s:messages())
    for _, run in ipairs { function() return s:turn { user "again" } end,
      function() return s:compact() end, function() return s:plan() end } do
      local done, message, code = run()
      assert.is_nil(done)
      expect.has(message, "did you mean 'tiered'?")
      assert.equal("ENOTFOUND", code)
    end
    assert.equal(1, #s:messages())
    assert(s:turn({ user "again" }, { policy = "sliding_window" }))
    assert(s:turn({ user "again" }, { policy = false }))
    assert.equal(1, #told)
  end)

  it("so do the policies of agents and a fallback, once for each", function()
    local store <close> = assert(sessile.open("ram:", {
      fallback = { "sliding_window", messges = 4 }, on_policy_error = tell,
      agents = { coder = { policy = "tierd" } },
    }))
    assert.equal(1, #told)
    expect.has(told[1].message, "messges")
    for i = 1, 2 do
      local s = assert(store:session { id = "s" .. i, agent = "coder" })
      assert(s:append(user "hello"))
      local done, message = s:turn { user "again" }
      assert.is_nil(done)
      expect.has(message, "did you mean 'tiered'?")
    end
    assert.equal(2, #told)
    expect.has(told[2].message, "agent 'coder'")
  end)
end)
