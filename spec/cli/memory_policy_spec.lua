-- policy show, try and replay of policies of memories.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local has = expect.has
local done, json, write = cli.done, cli.json, cli.write
local home

cli.each_test(function(path) home = path end)

local function record(name, ...)
  local lines = {}
  for i, text in ipairs { ... } do
    lines[i] = ('{"role":"%s","content":"%s"}'):format(i % 2 == 1 and "user" or "assistant", text)
  end
  write(home .. "/" .. name, table.concat(lines, "\n") .. "\n")
  return home .. "/" .. name
end

describe("policy replay of a policy of memories", function()
  it("shows what would be remembered and recalled, turn by turn, over recordings", function()
    local one = record("one.jsonl", "I prefer green tea.", "Noted.", "Thanks!", "Welcome.")
    local two = record("two.jsonl", "Which tea do I prefer, green tea?", "Green.")
    local out = done(("policy replay remember_said %s %s"):format(one, two))
    assert.truthy(out:find('1  remembered  new %(user%) "I prefer green tea"'), out)
    assert.truthy(out:find('1  recalled +%w+ "I prefer green tea"'), out)
    assert.is_nil(out:find("3  remembered", 1, true))
    local told = json(("policy replay memory %s"):format(one))
    assert.equal(2, told.replays[1].model_calls)
    assert.equal(2, told.replays[1].written)
    assert.equal("I prefer green tea.", told.replays[1].events[1].changes[1].value)
  end)

  it("plays an answer of the model, and says what the laws refuse", function()
    local one = record("one.jsonl", "I prefer green tea.", "Noted.")
    has(done(("policy replay remember %s --answer '1 | fact | drink | Ann prefers tea. | -'")
      :format(one)), 'drink: "Ann prefers tea."')
    write(home .. "/bad.lua", [[return { name = "bad", remember = function(said, ctx)
      ctx.memory.write { value = "x" } end }]])
    has(done(("policy replay %s/bad.lua %s"):format(home, one)), "refused")
  end)
end)

describe("policy try of a policy of memories", function()
  it("shows what would be remembered, and writes nothing, not even a memory", function()
    local one = record("one.jsonl", "I prefer green tea.", "Noted.")
    done(("import %s --id demo"):format(one))
    local out, err = done "policy try remember_said demo"
    has(out, 'new (user) "I prefer green tea"')
    has(err, "2 messages heard; nothing was written.")
    done "policy try remember demo --answer '1 | fact | - | I prefer tea. | -'"
    local files = assert(io.popen(("find %s -name '*.memory'"):format(cli.quote(home))))
    assert.equal("", files:read "a")
    files:close()
  end)

  it("says why a policy is refused", function()
    done(("import %s --id demo"):format(record("one.jsonl", "I prefer tea.", "Noted.")))
    cli.fails(1, "policy try remember demo", "the model did not answer")
  end)
end)

describe("policy show of a policy of memories", function()
  it("has its hooks and options", function()
    local out = done "policy show tidy"
    has(out, "hooks:  tidy")
    has(out, "ask")
    has(done "policy show memory", "remember, then tidy, then recall")
  end)
end)
