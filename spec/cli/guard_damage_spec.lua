-- A control log that is damaged: nobody is let in, the command line says so, and mends it.
-- Files only: a log is damaged by its bytes.
-- Own guard: it sets them.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local sessile, done, fails = cli.sessile, cli.done, cli.fails
local has = expect.has

local LOG = "/data/sessile/agents/guard.control/000.jsonl"
local MEND = "sessile check --salvage"

-- Changes bytes in the middle of the control log.
local function damage()
  local path = cli.home() .. LOG
  local text = cli.read(path)
  local at = #text // 2
  cli.write(path, text:sub(1, at) .. "####" .. text:sub(at + 5))
end

local function begin(profile)
  cli.configure(('return { guard = %q }'):format(profile))
  done "new --id a --user ann"
  for _, who in ipairs { "eve", "bob", "kim" } do
    done("access lock " .. who)
  end
  local key = done("access key new ann --role editor"):match "%S+"
  done "access lock zoe"
  damage()
  return key
end

-- The events of an operation, oldest first.
local function events(operation)
  return cli.json("audit tail -n 1000 --operation " .. operation)
end

cli.each_test()

for _, profile in ipairs { "standard", "strict" } do
  describe("a damaged control log, with the profile " .. profile, function()
    it("lets nobody in, and each command says what mends it", function()
      local key = begin(profile)
      for _, words in ipairs { "list", "whoami", "access list", "append a hi --user ann" } do
        fails(7, words, "the control log of this store cannot be trusted", MEND)
      end
      local _, err = sessile "--json list"
      assert.equal("control", cli.decoded(err).error.rule)
      local text, told = done "guard status"
      has(text, "guard     " .. profile)
      has(text, "the control log of this store cannot be trusted")
      has(told, MEND)
      assert.equal("damaged", cli.json("guard status").store)
      local _, refused, code = sessile("check --salvage --yes", nil, "env SESSILE_TOKEN=" .. key)
      assert.equal(7, code)
      has(refused, "cannot be trusted")
    end)

    it("is looked at and mended by whoever has the store", function()
      local key = begin(profile)
      local out, err, code = sessile "check"
      assert.equal(5, code)
      has(out, "guard.control/000")
      has(out, MEND)
      has(err, "this is done as the host")
      fails(7, "list", MEND) -- it only looked
      out, err = done "check --salvage --yes"
      has(out, "1 salvaged")
      has(err, "It was the control log")
      done "list"
      assert.equal("set", cli.json("guard status").store)
      assert.equal(0, select(3, sessile("list", nil, "env SESSILE_TOKEN=" .. key)))
      local locked = {}
      for i, lock in ipairs(cli.json("access list").locks) do
        locked[i] = lock.user
      end
      assert.is_true(#locked == 3 and locked[3] == "zoe", table.concat(locked, " "))
    end)

    it("is mended with an event that says so", function()
      begin(profile)
      done "check --salvage --yes"
      local check, mended = events "check", events "host:control_log_salvaged"
      assert.equal(1, check[#check].details.salvage)
      assert.same({ "host", "success" }, { check[#check].role, check[#check].outcome })
      assert.equal(1, #mended)
      assert.equal(1, mended[1].details.lost)
    end)
  end)
end

describe("a damaged control log", function()
  it("is mended with a configuration that sets no guard, and the guard stays", function()
    begin "standard"
    cli.configure "return {}"
    fails(7, "list", "the control log of this store cannot be read, so it counts as guarded", MEND)
    local text, told = done "guard status"
    has(text, "counts as guarded")
    has(told, MEND)
    done "check --salvage --yes"
    fails(7, "list", "this store is guarded (standard), and your configuration sets no guard")
    cli.configure 'return { guard = "standard" }'
    done "list"
    assert.equal(1, #events "host:control_log_salvaged")
  end)
end)
