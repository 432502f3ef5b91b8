-- policies/README.md, followed to the letter: its commands and its spec.
-- Files only: what is read there is a folder.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local guides = require "spec.support.guides"

local guide = guides.read("policies/README.md")
  :match "\n## From nothing to a tested policy\n(.-)\n## "

local function blocks(language)
  return guides.blocks(guide, language)
end

describe("the guide for authors of policies", function()
  local home
  setup(function()
    home = cli.begin()
    assert(os.execute(("ln -s %s/examples %s/examples"):format(cli.quote(built.root),
      cli.quote(home))))
  end)
  teardown(cli.finish)

  -- In a folder of its own, as the reader would be.
  local function typed(line)
    local words = assert(line:match "^sessile (.*)$", line)
    cli.write(home .. "/stdin", "")
    local command = ("cd %s && env -u SESSILE_KEY -u SESSILE_STORE HOME=%s XDG_DATA_HOME=%s/data "
      .. "XDG_CONFIG_HOME=%s/config %s %s <stdin >stdout 2>stderr"):format(cli.quote(home),
      cli.quote(home), cli.quote(home), cli.quote(home), cli.quote(cli.binary), words)
    local _, _, code = os.execute(command)
    return cli.read(home .. "/stdout"), cli.read(home .. "/stderr"), code
  end

  it("has commands that work, in their order", function()
    local count = 0
    for _, block in ipairs(blocks "sh") do
      for line in block:gmatch "[^\n]+" do
        local out, err, code = typed(line)
        assert.equal(0, code, line .. "\n" .. out .. err)
        count = count + 1
      end
    end
    assert.is_true(count >= 9)
  end)

  it("has triggers and a fallback that are taken as they stand", function()
    local sessile = require "sessile"
    local snippet = guides.read("policies/README.md")
      :match "\n## When a policy compacts\n.-\n```lua\n(.-)\n```"
    local store = load(snippet .. "\nreturn store", "=snippet", "t", { assert = assert, sessile = {
      open = function(_, options)
        options.key, options.policy_path = false, built.root .. "/policies"
        return sessile.open("ram:", options)
      end,
    } })()
    local s = assert(store:create())
    local message = { role = "user", content = "hello" }
    assert.equal("turn", assert(s:turn { message }).policy.reason)
    assert.equal("event", assert(s:turn({ message }, { event = "deploy" })).policy.reason)
    store:close()
  end)

  it("has a policy built on another that works as it stands", function()
    local snippet = guides.read("policies/README.md")
      :match "\n## A policy that uses another one\n.-\n```lua\n(.-)\n```"
    cli.write(home .. "/polite_window.lua", snippet)
    local T = require "sessile.testing"
    local policy = T.load(home .. "/polite_window.lua", { messages = 4 },
      { policy_path = built.root .. "/policies" })
    local turns = {}
    for i = 1, 4 do
      turns[i] = { { role = "user", content = "question " .. i },
        { role = "assistant", content = "answer " .. i } }
    end
    turns[5] = { { role = "user", content = "the last" } }
    local result = policy:run(turns)
    assert.equal(0, #result.refusals)
    assert.equal(5, #result.context) -- four, and the question that waits for its answer
  end)

  it("has a spec that passes", function()
    cli.write(home .. "/guide_spec.lua", blocks "lua"[1])
    local out, err, code = typed "sessile policy test guide_spec.lua"
    assert.equal(0, code, out .. err)
    assert.truthy(out:find("0 failures / 0 errors", 1, true))
  end)
end)
