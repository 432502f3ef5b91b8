-- memory, the chain: remembers, tidies up and recalls, one session after the other.

local T = require "sessile.testing"

describe("memory", function()
  local policy = T.load "memory"

  T.laws(policy)
  T.faults(policy)

  it("recalls in a later session what was said in an earlier one, as it is now", function()
    local memory = T.memory()
    policy:remember(
      { { role = "user", content = "My editor is Emacs, and I live in Cologne." } },
      { memory = memory, model = T.model {
        "1 | fact | editor | The user's editor is Emacs. | IDE\n"
          .. "1 | fact | - | The user lives in Cologne. | city, home" } })
    policy:remember({ { role = "user", content = "My editor is Vim now." } },
      { memory = memory,
        model = T.model { "1 | fact | editor | The user's editor is Vim. | IDE" } })
    local result = policy:recall("Which editor, or IDE?", nil, { memory = memory })
    assert.equal(1, #result.rows)
    assert.equal("The user's editor is Vim.", result.rows[1].value)
    assert.truthy(result.block:find("user, fact] \"The user's editor is Vim.\"", 1, true))
  end)

  it("tidies up what it has just remembered", function()
    local memory = T.memory { entries = { "tea", "trains", "vim", "tabs", "windows", "chess",
      "The release manager is Olga." } }
    local asked = {}
    local result = policy:remember(
      { { role = "user", content = "The release manager is Jörg from today." } },
      { memory = memory, model = function(request)
        asked[#asked + 1] = request.purpose
        return request.purpose == "tidy" and "1 newer"
          or "1 | fact | - | The release manager is Jörg. | -"
      end })
    assert.same({ "remember", "tidy" }, asked)
    assert.is_nil(result.refused)
    local values = memory:values()
    assert.equal(7, #values)
    assert.equal("The release manager is Jörg.", values[7])
  end)

  it("gives an option to every policy that has it", function()
    local model = T.model { "none" }
    T.load("memory", { model = "small" }):remember({ { role = "user", content = "hello" } },
      { model = model })
    assert.equal("small", model.requests[1].model)
  end)
end)
