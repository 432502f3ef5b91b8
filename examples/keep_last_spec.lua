-- keep_last_spec.lua: the tests of keep_last.lua: the laws, over generated conversations, and the
-- purpose of the policy. Run them with:
--
--     build/bin/sessile policy test examples/keep_last_spec.lua
local T = require "sessile.testing"
local here = debug.getinfo(1, "S").source:match "^@(.*/)" or "./" -- the folder of this file

describe("keep_last", function()
  local policy = T.load(here .. "keep_last.lua", { turns = 4 })

  T.laws(policy)
  T.faults(policy)

  it("keeps the system message and the newest turns", function()
    local r = policy:run(T.fixture(here .. "demo-session.jsonl"))
    assert.lawful(r)
    assert.tool_pairs(r)
    assert.keeps(r, { "system", "last_user" })
    assert.is_true(#r.context < #r.messages / 2)
  end)

  it("leaves a conversation of fewer turns alone", function()
    local r = policy:run {
      { role = "user", content = "Hello." }, { role = "assistant", content = "Hello." },
    }
    assert.equal(0, r.applied)
    assert.equal(2, #r.context)
  end)
end)
