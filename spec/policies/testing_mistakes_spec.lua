-- The kit finds what policy authors get wrong: one plausible mistake a file, each caught by the
-- law that names it, on a conversation of a few messages.

local T = require "sessile.testing"

-- mistake -> the law that names it
local MISTAKES = {
  cut_anywhere = 1, forgets_work = 2, edits_in_place = 3, sorts_by_role = 4,
  drops_the_question = 5, drops_the_system = 5, wordy = 6, drops_the_newest = 7,
  speaks_as_system = 3, speaks_as_assistant = 3,
  endless_summary = 10, never_ends = 10, splits_the_summary = 1,
}

local function shown_messages(report)
  local _, count = report:gsub("\n  [t ][^\n]*  %x%x%x%x%x%x%x%x  ", "")
  return count
end

describe("the laws over generated conversations", function()
  for name, law in pairs(MISTAKES) do
    it(("catch the mistake %s by law %d"):format(name, law), function()
      local policy = T.load(("spec/mistakes/%s.lua"):format(name), nil,
        { limits = { policy_ms = 50, policy_gas = 2000000 } })
      local broken = T.check(policy, { runs = 24 })
      assert.is_string(broken[law])
      assert.truthy(broken[law]:find("SEED=%d+"))
      local messages = shown_messages(broken[law])
      assert.is_true(messages >= 1 and messages <= 12, broken[law])
    end)
  end

  it("name the orphan of a policy that cuts anywhere, on a handful of messages", function()
    local broken = T.check(T.load "spec/mistakes/cut_anywhere.lua", { runs = 24 })
    assert.truthy(broken[1]:find("lost its call", 1, true))
    assert.truthy(broken[1]:find("calls c", 1, true))
    assert.truthy(broken[1]:find("answers c", 1, true))
    assert.is_true(shown_messages(broken[1]) <= 10, broken[1])
  end)

  it("find nothing in the policies that ship", function()
    local ours = { "sliding_window", "edit_tools", "key_messages", "merge_dedupe", "summarize",
      "tiered", "token_budget" }
    for _, name in ipairs(ours) do
      local broken, played = T.check(T.load(name), { runs = 30 })
      assert.same({}, broken)
      assert.equal(30, played)
    end
  end)
end)
