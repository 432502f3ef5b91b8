-- The examples of whole tasks say what they promise, and leave nothing behind.
-- Files only: examples have folders of their own.
-- Own guard: examples open their stores by themselves.

local example = require "spec.support.example"
local temp = example.temp
local sessile = require "sessile"

-- The one line that begins so.
local function line_of(lines, start)
  local found
  for _, line in ipairs(lines) do
    if line:sub(1, #start) == start then
      assert.is_nil(found, "two lines begin with " .. start)
      found = line
    end
  end
  return assert(found, "no line begins with " .. start)
end

describe("examples/assistant.lua", function()
  teardown(temp.clean)

  it("is closed, comes back, and continues with what was said", function()
    assert.same({
      "user    Help me build a REST API: start with the routes.",
      "  tool  write_file",
      "  tool  list",
      "agent   routes.txt has the first route. Next come the handlers.",
      "(closed)",
      "resumed 'A REST API for tides': 6 messages, model script, thinking low, next: handlers",
      "user    Go on.",
      "  tool  read_file",
      "agent   You wanted a REST API. We have GET /tides: now its handler.",
    }, example.lines "assistant.lua")
  end)

  it("continues in another process, with the same session", function()
    local dir = temp.dir()
    local line = ("%s run examples/assistant.lua %s"):format(example.command, dir)
    for sitting, last in ipairs { "Next come the handlers%.$", "now its handler%.$" } do
      local out, err, status = example.shell(line)
      assert.equal("", err)
      assert.equal(0, status)
      local lines = example.lines_of(out)
      assert.matches(last, lines[#lines])
      local store <close> = assert(sessile.open(dir .. "/sessions", { key = false }))
      assert.equal(1, #store:list())
      local session = assert(store:resume "rest-api")
      assert.equal(({ 6, 10 })[sitting], #session:messages())
      assert.equal("low", session:settings().thinking)
      assert.equal(sitting, #session:checkpoints())
    end
    assert.equal("GET /tides\n", temp.read(dir .. "/project/routes.txt"))
  end)
end)

describe("examples/pipeline.lua", function()
  it("is killed after half of the records and does the other half", function()
    assert.same({
      "record 500 is done: kill -9",
      "resumed at record 501: 50.0 % of 1000 are not run again",
      "1000 records, 4003 pieces\t10 checkpoints",
    }, example.lines "pipeline.lua")
  end)
end)

describe("examples/research.lua", function()
  it("goes two ways, forks both and compares them", function()
    local lines = example.lines "research.lua"
    line_of(lines, "safety    user   Research AI safety techniques.")
    line_of(lines, "          (back to 'the fork in the road'; the model is told: Looked into")
    line_of(lines, "watch     user   Say in one line")
    line_of(lines, "align     user   Say in one line")
    line_of(lines, "2 ways from 'the fork in the road', 3 sessions, 7 messages on this way")
    line_of(lines, "  - user: How would one watch it?")
    line_of(lines, "  * user: Actually, let's focus on alignment.")
    assert.equal("  * assistant: Use both: monitoring; alignment.", lines[#lines])
  end)
end)

describe("examples/subagents.lua", function()
  it("merges what is of use, discards the rest, and answers with it", function()
    local lines = example.lines "subagents.lua"
    line_of(lines, "merged             The cache asks 40,000 times")
    line_of(lines, "merged             The log is written in the background")
    line_of(lines, "discarded          the licence check")
    line_of(lines, "answer             It is the cache: ask once, for all of them.")
    line_of(lines, "the cache          merged     2 messages, begun by 'why-so-slow'")
    line_of(lines, "the log            merged     2 messages, begun by 'why-so-slow'")
    line_of(lines, "the licence check  discarded  2 messages, begun by 'why-so-slow'")
    line_of(lines, "why-so-slow                   5 messages")
  end)
end)

describe("examples/month.lua", function()
  local soak = os.getenv "SESSILE_SOAK"

  it("stays within its window, and every decision is noted before it goes", function()
    local lines = example.lines("month.lua", soak and "10000" or "2000")
    local messages, days, compactions = lines[1]:match "^(%d+) messages in (%d+) days, (%d+) comp"
    assert.is_true(tonumber(messages) > (soak and 10000 or 2000))
    assert.equal("30", days)
    assert.is_true(tonumber(compactions) > 10)
    local shown, tokens, window = lines[2]:match "shown (%d+) messages, (%d+) tokens of (%d+)$"
    assert.is_true(tonumber(shown) > 10 and tonumber(shown) < 400)
    assert.is_true(tonumber(tokens) <= tonumber(window) - 1000)
    local decisions, noted = lines[3]:match "^(%d+) decisions, (%d+) noted"
    -- The newest may still be in the context.
    assert.is_true(tonumber(noted) >= decisions - 8 and tonumber(noted) <= tonumber(decisions))
    assert.is_true(tonumber(noted) > 20)
    local times = lines[4]:match "messages, in [%d.]+ ms with %d+: ([%d.]+) times$"
    print(("# figure: opening %s messages over opening 1,000 = %s"):format(messages, times))
  end)
end)
