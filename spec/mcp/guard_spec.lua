-- With a guard on the store, a host of MCP sees and does what its credential may.
-- Own guard: it sets one.

local cli = require "spec.support.cli"
local mcp = require "spec.support.mcp"

local template, home

setup(function()
  home = cli.begin()
  cli.configure [[return { guard = "standard" }]]
  for _, name in ipairs { "ann", "bob" } do
    cli.write(("%s/%s.key"):format(home, name),
      (cli.done(("access key new %s --role %s"):format(name, name == "ann" and "editor"
        or "viewer"))))
    assert(os.execute(("chmod 600 %s/%s.key"):format(cli.quote(home), name)))
  end
  cli.done(("new --id bug --title Crash --token-file %s/ann.key"):format(home))
  cli.done(("append bug 'it crashes' --token-file %s/ann.key"):format(home))
  template = home
end)

teardown(function()
  os.execute("rm -rf " .. cli.quote(template))
end)

cli.each_test(function(path)
  home = path
  os.execute(("cp -a %s/. %s"):format(template, home))
end)

local function as(name, words)
  return ("--token-file %s/%s.key %s"):format(home, name, words or "")
end

it("the owner of a session finds and reads it, and may add to it", function()
  local rows = mcp.tool("session_list", nil, as "ann").sessions
  assert.equal(1, #rows)
  local name = rows[1].session
  local read = mcp.tool("session_read", { session = name }, as "ann")
  assert.equal("it crashes", read.messages[1].text)
  assert.equal(1, #mcp.tool("session_search", { text = "crashes" }, as "ann").hits)
  mcp.tool("session_note", { session = name, text = "look" }, as("ann", "--write"))
end)

it("somebody else finds nothing, and may not read it by its name", function()
  local name = mcp.tool("session_list", nil, as "ann").sessions[1].session
  assert.same({}, mcp.tool("session_list", nil, as "bob").sessions)
  assert.same({}, mcp.tool("session_search", { text = "crashes" }, as "bob").hits)
  for _, words in ipairs { "", "--write" } do
    local refused = mcp.refused("session_read", { session = name }, as("bob", words))
    assert.is_true(refused.status == "NOTFOUND" or refused.status == "DENIED", refused.status)
  end
  local _, wrong = mcp.ask("resources/read", { uri = "sessile://" .. name }, as "bob")
  assert.is_true(wrong.data.status == "NOTFOUND" or wrong.data.status == "DENIED")
end)

it("nobody begins without a credential that is accepted", function()
  cli.write(home .. "/bad.key", "sesk_nobody")
  assert(os.execute(("chmod 600 %s/bad.key"):format(cli.quote(home))))
  local out, _, code = cli.sessile("mcp " .. as "bad", mcp.request(1, "ping") .. "\n")
  assert.equal("", out)
  assert.equal(7, code)
end)
