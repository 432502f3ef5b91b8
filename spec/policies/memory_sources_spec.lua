-- What an entry is from, as the engine writes it down: the messages that the policy named, in
-- whatever order, and no others.

local T = require "sessile.testing"

-- The sources of the entry that a policy writes from these of four messages.
local function sources_of(...)
  local numbers = { ... }
  local policy = T.load { name = "writer", remember = function(said, ctx)
    local from = {}
    for i, number in ipairs(numbers) do
      from[i] = said[number].id
    end
    ctx.memory.write { value = "one three", from = from }
  end }
  local result = policy:remember {
    { role = "user", content = "one" }, { role = "assistant", content = "two" },
    { role = "user", content = "three" }, { role = "user", content = "four" },
  }
  assert.is_nil(result.refused)
  local row = result.memory:list()[1]
  local number_of, parts = {}, {}
  for i, message in ipairs(assert(result.session:messages())) do
    number_of[message.id] = i
  end
  for i, from in ipairs(row.from) do
    parts[i] = ("%s-%s"):format(number_of[from.first], number_of[from.last])
  end
  return table.concat(parts, " "), row.source
end

describe("what an entry is from", function()
  it("is the messages that were named, neighbours as one", function()
    assert.same({ "1-1", "user" }, { sources_of(1) })
    assert.same({ "1-1 3-4", "user" }, { sources_of(1, 3, 4) })
    assert.same({ "1-4", "agent" }, { sources_of(1, 2, 3, 4) })
  end)

  it("is the same if they are named in another order, or twice", function()
    assert.same({ "1-1 3-4", "user" }, { sources_of(3, 1, 3, 4) })
    assert.same({ "1-3", "agent" }, { sources_of(1, 3, 1, 2) })
    assert.same({ "1-4", "agent" }, { sources_of(4, 3, 2, 1) })
  end)
end)
