-- The test kit of memories: what it plays is what the engine does, and bad policies do not pass.

local T = require "sessile.testing"
local memory_laws = require "sessile.testing.memory_laws"

-- The laws that a policy breaks in the generated conversations.
local function broken_by(hooks)
  local policy = T.load(hooks)
  local broken = memory_laws.check(policy, hooks, { runs = 25, seed = 1 })
  local numbers = {}
  for law in pairs(broken) do
    numbers[#numbers + 1] = law
  end
  table.sort(numbers)
  return table.concat(numbers, " "), broken
end

describe("T.laws of a policy of memories", function()
  it("finds one that names nothing, and prints the seed", function()
    local laws, broken = broken_by { name = "bad", remember = function(said, ctx)
      ctx.memory.write { value = ("note %d"):format(#said) }
    end }
    assert.equal("1", laws)
    assert.truthy(broken[1]:find("'bad' breaks law of memory 1", 1, true))
    assert.truthy(broken[1]:find("SEED=%d+ RUNS=1"))
  end)

  it("finds one that rewrites slots without reading them, or ends what is pinned", function()
    assert.equal("3", (broken_by { name = "bad", remember = function(said, ctx)
      ctx.memory.write { value = "note", key = "name", from = said[1].id }
    end }))
    assert.equal("3", (broken_by { name = "bad", tidy = function(entry, _, ctx)
      ctx.memory.write { value = entry.value, replaces = entry.id }
    end }))
  end)

  it("finds one that writes for all what a user said", function()
    assert.equal("5", (broken_by { name = "bad", remember = function(said, ctx)
      ctx.memory.write { value = said[1].content, from = said[1].id, memory = "agent" }
    end }))
  end)

  it("finds one that writes without end, or too much", function()
    assert.equal("6", (broken_by { name = "bad", remember = function(said, ctx)
      for _ = 1, 33 do
        ctx.memory.write { value = "note", from = said[1].id }
      end
    end }))
    assert.equal("6", (broken_by { name = "bad", remember = function(said, ctx)
      ctx.memory.write { value = ("x"):rep(2049), from = said[1].id }
    end }))
  end)

  it("finds one that raises, in every hook", function()
    for _, hook in ipairs { "remember", "tidy", "recall", "admit" } do
      local entries = { [hook] = function() error "no" end, name = "bad" }
      assert.equal("0", (broken_by(entries)), hook)
    end
  end)

  it("passes one that does nothing", function()
    assert.equal("", (broken_by { name = "idle", remember = function() end, tidy = function() end,
      recall = function() end, admit = function() return true end }))
  end)
end)

describe("T.memory", function()
  it("has the entries that it is given, and the methods of a memory", function()
    local memory = T.memory { entries = { "tea", { key = "editor", value = "vim", source = "agent",
      pinned = true }, { value = "maybe", pending = true }, { value = "now", approved = true } } }
    assert.same({ "tea", "vim", "now" }, memory:values())
    assert.equal("agent", memory:read "editor".source)
    assert.is_true(memory:get(memory.ids[2]).pinned)
    assert.equal("maybe", memory:pending()[1].value)
    assert.equal("live", memory:get(memory.ids[4]).state)
    memory:add "coffee"
    assert.equal(4, #memory:list())
    assert.is_true(memory:close())
  end)

  it("is the agent's when there is no user", function()
    local policy = T.load { name = "all", remember = function(said, ctx)
      assert(ctx.memory.room().memory == "agent")
      ctx.memory.write { value = said[1].content, from = said[1].id }
    end }
    local result = policy:remember({ { role = "user", content = "tea" } },
      { memory = T.memory { user = false } })
    assert.is_nil(result.refused)
    assert.same({ "tea" }, result.memory:values())
  end)

  it("tells a hook how much room there is, in the host and in the sandbox alike", function()
    local rooms = {}
    local policy = T.load { name = "room", remember = function(said, ctx)
      rooms[1] = ctx.memory.room()
      local row = ctx.memory.read "name"
      ctx.memory.write { value = said[1].content, key = row.key, from = said[1].id }
      rooms[2] = ctx.memory.room()
    end }
    policy:remember({ { role = "user", content = "tea" } },
      { memory = T.memory { entries = { { key = "name", value = "Ann" } } } })
    assert.same({ memory = "user", writes = 32, ends = 5 }, rooms[1])
    assert.same({ memory = "user", writes = 31, ends = 4 }, rooms[2])
  end)
end)

describe("T.embedder", function()
  it("lets texts without a shared word meet, the same each time", function()
    local embed = T.embedder { { "car", "automobile", "Auto" } }
    local memory = T.memory { entries = { "the automobile is red", "the cat is red" } }
    local vectors = embed { "automobile", "cat", "car" }
    assert.same(vectors[1], vectors[3])
    assert.not_same(vectors[1], vectors[2])
    local again = T.embedder { { "car", "automobile", "Auto" } }
    assert.same(vectors, again { "automobile", "cat", "car" })
    assert.equal(64, #vectors[1])
    assert(memory:embed("words", memory.ids, { vectors[1], vectors[2] }))
    local rows = memory:search("car", { vector = vectors[3], model = "words", weight = 1 })
    assert.equal("the automobile is red", rows[1].value)
    assert.equal(1, embed.calls)
  end)
end)
