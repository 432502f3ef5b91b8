-- remember in the real sandbox, under the engine's laws: what it asks, what it takes from an
-- answer, and what it leaves out.

local T = require "sessile.testing"

local policy = T.load "remember"

local talk = {
  { role = "user", author = "Ann",
    content = "I switched to Vim for Lua yesterday.\nNever use tabs." },
  { role = "assistant", content = "Noted. The build takes 14 minutes." },
  { role = "assistant", content = "",
    tool_calls = { { id = "c1", name = "fetch", arguments = "{}" } } },
  { role = "tool", tool_call_id = "c1", content = "The wire number is 4711." },
  { role = "user", author = "Ann", content = "Thanks!" },
}

-- The rows that an answer leads to, oldest first, and the outcome.
local function remember(answer, options, said)
  local result = policy:remember(said or talk, { memory = options and options.memory,
    model = T.model { answer } })
  assert.is_nil(result.refused)
  return result.memory:values(), result
end

describe("remember", function()
  T.laws(policy)
  T.faults(policy)

  describe("asks", function()
    it("with numbered, dated messages of users and agents, and no tool's output", function()
      local model = T.model { "none" }
      local result = policy:remember(talk, { model = model })
      assert.equal(1, model.calls)
      assert.equal("unchanged", result.verdict)
      local request = model.requests[1]
      assert.equal("remember", request.purpose)
      local text = request.messages[2].content
      assert.truthy(text:find "^%[1%] %d%d%d%d%-%d%d%-%d%d user Ann: I switched")
      assert.truthy(text:find("\n    Never use tabs.", 1, true))
      assert.truthy(text:find("agent: Noted.", 1, true))
      assert.is_nil(text:find("4711", 1, true))
    end)

    it("with tools' output when told so; what comes of it waits for a person", function()
      local with_tools = T.load("remember", { tools = true })
      local model = T.model { "3 | fact | - | The wire number is 4711. | -" }
      local result = with_tools:remember(talk, { model = model })
      assert.truthy(model.requests[1].messages[2].content:find("4711", 1, true))
      assert.equal(1, result.pending)
      assert.same({}, result.memory:values())
    end)

    it("nobody, when agents talk among themselves for less than it is worth", function()
      local model = T.model { "none" }
      policy:remember({ { role = "assistant", content = "still working" } }, { model = model })
      assert.equal(0, model.calls)
      policy:remember({ { role = "assistant", content = ("still working "):rep(400) } },
        { model = model })
      assert.equal(1, model.calls)
    end)

    it("nobody, when nothing new was said", function()
      local model = T.model { "none" }
      local first = policy:remember(talk, { model = model })
      policy:remember(nil, { model = model, memory = first.memory, session = first.session })
      assert.equal(1, model.calls)
    end)

    it("in several requests about a long talk, each about its own messages", function()
      local long = {}
      for i = 1, 40 do
        long[i] = { role = i % 2 == 1 and "user" or "assistant",
          content = ("number %d "):format(i) .. ("word "):rep(40) }
      end
      local model = T.model { "1 | fact | - | number 1 word | -" }
      local result = T.load("remember", { batch = 500 }):remember(long, { model = model })
      assert.is_true(model.calls > 3)
      -- message 1 is in the first request alone: the others may not name it
      assert.same({ "number 1 word" }, result.memory:values())
      local seen = {}
      for _, request in ipairs(model.requests) do
        for number in request.messages[2].content:gmatch "%f[^\n%z]%[(%d+)%] " do
          assert.is_nil(seen[number])
          seen[number] = true
        end
      end
      assert.truthy(seen["1"] and seen["40"])
    end)

    it("at most as often as a run may, however small the batches", function()
      local long = {}
      for i = 1, 190 do
        long[i] = { role = "user", content = ("word "):rep(200) .. i }
      end
      local model = T.model { "none" }
      local result = T.load("remember", { batch = 200 }):remember(long, { model = model })
      assert.is_nil(result.refused)
      assert.is_true(model.calls <= 32)
      assert.equal(190, result.heard)
    end)

    it("with the keys that are in use", function()
      local model = T.model { "none" }
      policy:remember(talk, { model = model,
        memory = T.memory { entries = { { key = "editor", value = "Emacs" } } } })
      assert.truthy(model.requests[1].messages[1].content:find("in use: editor", 1, true))
    end)
  end)

  describe("takes from an answer", function()
    it("statements with sources, kind, key, and what they should be found by", function()
      local _, result =
        remember "1 | procedure | editor | Ann uses Vim for Lua. | Which editor? IDE"
      local row = assert(result.memory:read "editor")
      assert.equal("Ann uses Vim for Lua.", row.value)
      assert.equal("procedure", row.kind)
      assert.equal("user", row.source)
      assert.equal("Which editor? IDE", row.also)
      assert.equal("00000001", row.from[1].first)
      assert.equal("live", row.state)
    end)

    it("lists, brackets and tables, as models write them", function()
      assert.same({ "Ann uses Vim.", "never use tabs", "the build takes 14 minutes" }, (remember(
        "Here you are:\n- 1 | fact | - | Ann uses Vim. | -\n| [1] | fact | - | never use tabs |\n"
        .. "* 2 | fact | - | the build takes 14 minutes | build |")))
    end)

    it("nothing that names no message, says nothing, or is far too long; it says so", function()
      local values, result = remember(table.concat({
        "99 | fact | - | Ann uses Vim. | -", "- | fact | - | Ann uses Vim. | -",
        "3 | fact | - | The wire number is 4711. | -", "1 | fact | - | - | -",
        "1 | fact | - | " .. ("Vim "):rep(400) .. "| -", '[{"from": [1], "value": "x"}]',
        "1 | fact | - | Never use tabs. | -" }, "\n"))
      assert.same({ "Never use tabs." }, values)
      local _, count = result.log:gsub("left out", "")
      assert.equal(6, count)
    end)

    it("at most as many as it asked for", function()
      local lines = {}
      for i = 1, 40 do
        lines[i] = ("1 | fact | - | Ann uses Vim for Lua, reason %d. | -"):format(i)
      end
      assert.equal(8, #remember(table.concat(lines, "\n")))
    end)

    it("rules of users only: an agent's rule is a fact", function()
      local _, result = remember "1,2 | procedure | - | The build takes 14 minutes, use Vim. | -"
      assert.equal("fact", result.memory:list()[1].kind)
    end)

    it("the last of two values of one slot", function()
      assert.same({ "Vim yesterday" }, (remember(
        "1 | fact | editor | tabs | -\n1 | fact | editor | Vim yesterday | -")))
    end)
  end)

  describe("and what is known", function()
    it("is confirmed when it is said again, and not written again", function()
      local memory = T.memory { entries = { "Ann uses Vim for Lua!" } }
      local values, result = remember("1 | fact | - | ann uses vim, for Lua | -",
        { memory = memory })
      assert.same({ "Ann uses Vim for Lua!" }, values)
      assert.equal(1, result.confirmed)
      assert.equal(1, memory:list()[1].confirmed)
    end)

    it("is replaced when its slot has another value; the old one stays in the history", function()
      local memory = T.memory { entries = { { key = "editor", value = "Ann uses Emacs." } } }
      remember("1 | fact | editor | Ann uses Vim for Lua. | -", { memory = memory })
      assert.equal("Ann uses Vim for Lua.", memory:read "editor".value)
      assert.equal("Ann uses Emacs.", memory:history "editor"[2].value)
    end)

    it("is not overwritten when it is pinned: the new value stands beside it", function()
      local memory = T.memory { entries = {
        { key = "editor", value = "Ann uses Emacs.", pinned = true } } }
      local values = remember("1 | fact | editor | Ann uses Vim for Lua. | -", { memory = memory })
      assert.same({ "Ann uses Emacs.", "Ann uses Vim for Lua." }, values)
      assert.equal("Ann uses Emacs.", memory:read "editor".value)
    end)

    it("is not overwritten by an agent's words: they wait, and say what they contradict", function()
      local memory = T.memory { entries = {
        { key = "build", value = "the build takes 3 minutes" } } }
      local _, result = remember("2 | fact | build | The build takes 14 minutes. | -",
        { memory = memory })
      assert.equal("the build takes 3 minutes", memory:read "build".value)
      assert.equal(1, result.pending)
    end)

    it("is rewritten in so many slots as a run may end, and the rest stands beside", function()
      local entries, lines = {}, {}
      for i = 1, 8 do
        entries[i] = { key = "slot" .. i, value = "Emacs " .. i }
        lines[i] = ("1 | fact | slot%d | Vim for Lua yesterday %d | -"):format(i, i)
      end
      local values, result = remember(table.concat(lines, "\n"),
        { memory = T.memory { entries = entries } })
      assert.equal(5, result.ended)
      assert.equal(11, #values)
    end)
  end)

  it("says why it failed, and hears the same again", function()
    local failed = policy:remember(talk, { model = T.model { false } })
    assert.truthy(failed.refused:find("the model did not answer, so nothing was heard", 1, true))
    local again = policy:remember(nil, { memory = failed.memory, session = failed.session,
      model = T.model { "1 | fact | - | Ann uses Vim. | -" } })
    assert.equal(failed.heard, again.heard)
    assert.same({ "Ann uses Vim." }, again.memory:values())
  end)

  it("lowers what the model made up: it is the agent's, not the user's", function()
    local _, result = remember "1 | fact | - | Quantum bananas orbit Neptune forever. | -"
    assert.equal("agent", result.memory:list()[1].source)
    assert.equal(1, result.lowered)
  end)
end)
