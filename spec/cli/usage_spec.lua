-- `sessile usage` in money: what a recording reports comes first, then the price of the model, and
-- what has no price is named.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local has = expect.has
local done, json = cli.done, cli.json
local home

cli.each_test(function(path) home = path end)

-- A session with a turn of each usage: {model, usage as Lua text}.
local function turns(...)
  local lines = { 'local sessile = require "sessile"',
    'local store = assert(sessile.open(nil, assert(sessile.config())))',
    'local s = store:session "talk"' }
  for _, turn in ipairs { ... } do
    lines[#lines + 1] = ('assert(s:turn({ { role = "user", content = "?" }, { role = "assistant", '
      .. 'content = "!" } }, { model = %q, usage = { %s } }))'):format(turn[1], turn[2])
  end
  cli.write(home .. "/turns.lua", table.concat(lines, "\n") .. "\nstore:close()")
  done("run " .. home .. "/turns.lua", nil, "env SESSILE_STORE=" .. cli.store())
end

describe("usage in money", function()
  it("takes what is reported, and counts the rest at the price of the model", function()
    turns({ "gpt-4o-2024-08-06", "input = 1000000, output = 100000" }, -- 2.50 + 1.00
      { "openai/gpt-4o", "input = 5, cost = 0.25" },
      { "gpt-4o", "input = 5, cost = { total = 1.5e-1 }" })
    local cost = json("usage talk").total.cost
    assert.same({ usd = 3.9, reported = 0.4, complete = true }, cost)
    local out, err = done "usage talk --by model"
    has(out, "COST", "$3.50", "$0.2500", "$0.1500", "$3.90")
    has(err, "list prices of " .. require("sessile.prices").date)
    assert.is_nil(err:find("Without a price", 1, true))
  end)

  it("names the models that have no price, and marks sums without them", function()
    turns({ "gpt-4o", "output = 100000" }, { "mine", "input = 7" })
    local out, err = done "usage talk --by model"
    has(out, "$1.00+", "?")
    has(err, "Without a price: mine")
    assert.is_false(json("usage talk").total.cost.complete)
  end)

  it("has the prices that a person sets, in their own configuration alone", function()
    cli.configure 'return { prices = { mine = { input = 1 }, ["gpt-4o"] = { input = 100 } } }'
    turns({ "mine", "input = 2000000" }, { "gpt-4o-2024-11-20", "input = 10000" })
    assert.same({ usd = 3, reported = 0, complete = true }, json("usage talk").total.cost)
    cli.configure 'return { prices = { mine = { inptu = 1 } } }'
    has(select(2, cli.sessile "usage talk"), "prices.mine.inptu", "did you mean 'input'")
    cli.configure 'return { prices = { mine = { input = -1 } } }'
    has(select(2, cli.sessile "usage talk"), "prices.mine.input", "dollars")
  end)

  it("sums by day, model and agent to the same", function()
    turns({ "gpt-4o", "output = 100000" }, { "o3", "output = 100000" })
    for _, by in ipairs { "day", "model", "agent" } do
      local got = json("usage --by " .. by)
      local sum = 0
      for _, group in ipairs(got.groups) do
        sum = sum + group.cost.usd
      end
      assert.equal(got.total.cost.usd, sum)
      assert.equal(1.8, sum)
    end
    assert.equal(2, #json("usage --by model --since 1d").groups)
    assert.equal(0, #json("usage --by model --until 2020-01-01").groups)
  end)
end)
