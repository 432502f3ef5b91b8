-- What is said about the policies that ship: each is short, opens with a comment, declares its
-- options in full, and stands in policies/README.md with all of them and their defaults.

local names = { "admit_strict", "edit_tools", "key_messages", "memory", "merge_dedupe", "recall",
  "remember", "remember_said", "sliding_window", "summarize", "tidy", "tiered", "token_budget" }

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("a")
  file:close()
  return text
end

for _, name in ipairs(names) do
  describe(name, function()
    local source = read("policies/" .. name .. ".lua")
    local section = read("policies/README.md"):match("\n## " .. name .. "\n(.-)\n## ")
    local policy = assert(load(source, "=" .. name, "t"))()

    it("is a file of less than 150 lines that says when to use it and what it costs", function()
      local _, lines = source:gsub("\n", "")
      assert.is_true(lines < 150)
      assert.equal("-- " .. name .. ":", source:match("^[^\n]-:"))
      for _, word in ipairs { "\n-- Use it ", "\n-- Cost ", "\n-- Never " } do
        assert.truthy(source:find(word, 1, true), word)
      end
    end)

    it("has a name, a version and a sentence about itself", function()
      assert.equal(name, policy.name)
      assert.equal(1, policy.version)
      assert.equal("string", type(policy.about))
    end)

    it("declares each option with a type and a line about it", function()
      for option, declared in pairs(policy.options or {}) do
        assert.equal("string", type(declared.type), option)
        assert.equal("string", type(declared.about), option)
      end
    end)

    it("stands in the README with every option and its default", function()
      assert.truthy(section)
      for option, declared in pairs(policy.options or {}) do
        local default = section:match("\n| `" .. option .. "` |([^|]*)|")
        assert.truthy(default, option)
        if declared.default ~= nil then
          assert.equal(tostring(declared.default), (default:match("^%s*(.-)%s*$")), option)
        end
      end
    end)
  end)
end
