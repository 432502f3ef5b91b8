-- A configured policy that cannot be loaded: what only reads works and warns once; what would run
-- the policy fails and says how to mend it.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local project = require "spec.support.project"
local has = expect.has

project.each_test(function()
  project.done("new --id bug --title 'Slow start'")
  project.done("append bug 'why is it slow?'")
end)

local READS = { "list", "show bug", "info bug", "tree bug", "export bug", "context bug",
  "search slow", "usage", "stats bug", "check" }

-- The number of times that `part` is in `text`.
local function times(text, part)
  return select(2, text:gsub(part:gsub("%p", "%%%0"), ""))
end

local function read_all(before)
  for _, words in ipairs(READS) do
    local out, err, code = project.sessile(words, before)
    assert.equal(0, code, words .. "\n" .. err)
    assert.not_equal("", out, words)
    assert.equal(1, times(err, "did you mean 'tiered'?"), words .. "\n" .. err)
    assert.equal(0, times(err, "There are no sessions"), words)
  end
end

describe("with a policy that does not exist", function()
  it("what reads works, with one warning that says where the policy is configured", function()
    local path = cli.configure 'return { window = 1000,\n policy = "tierd" }'
    read_all()
    local _, err = project.sessile "list"
    has(err, path .. ":2")
  end)

  it("what reads works when it is the policy of an agent, or a fallback", function()
    cli.configure 'return { agents = { main = { policy = "tierd" } } }'
    has(select(2, project.sessile "show bug"), "did you mean 'tiered'?")
    assert.equal(0, select(3, project.sessile "show bug"))
    cli.configure 'return { fallback = "tierd" }'
    read_all()
  end)

  it("what reads works in a project whose ./sessile.lua nobody trusts", function()
    project.configure 'return { policy = "tierd" }'
    read_all()
  end)

  it("what would run the policy fails, and changes nothing", function()
    cli.configure 'return { policy = "tierd" }'
    local _, err, code = project.sessile "compact bug --window 10"
    assert.equal(3, code)
    has(err, "there is no policy 'tierd': did you mean 'tiered'?")
    has(err, "sessile policy list")
    assert.equal(3, select(3, project.sessile "branch bug 1 --yes --summarize"))
    for _, words in ipairs { "compact bug --policy sliding_window", "branch bug 1 --yes",
      "append bug -", "fork bug --id other", "suspend bug" } do
      _, err, code = project.sessile(words, nil, "more")
      assert.equal(0, code, words .. "\n" .. err)
    end
  end)

  it("--json has the warning on stderr alone", function()
    cli.configure 'return { policy = "tierd" }'
    local out, err = project.sessile "--json list"
    assert.equal("bug", cli.decoded(out)[1].id)
    has(cli.decoded(err:match "^[^\n]+").note, "did you mean 'tiered'?")
  end)
end)

it("a list that cannot look does not say that there are no sessions", function()
  for _, where in ipairs { "postgres://127.0.0.1:1/none", "nosuch:place", "/proc/1/mem" } do
    local out, err, code = project.sessile("list --store " .. where)
    assert.equal("", out)
    assert.not_equal(0, code, where)
    assert.is_nil(err:find("There are no sessions", 1, true), err)
  end
end)
