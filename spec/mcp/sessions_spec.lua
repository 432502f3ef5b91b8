-- session_list, session_search, session_read and session_why: what a model gets of sessions.

local cli = require "spec.support.cli"
local expect = require "spec.support.expect"
local mcp = require "spec.support.mcp"

local template, home

local function recording()
  local lines = {}
  for n = 1, 60 do
    lines[#lines + 1] = ('{"role":"user","content":"question %d, %s"}'):format(n, ("why "):rep(40))
    lines[#lines + 1] = ('{"role":"assistant","content":"answer %d"}'):format(n)
  end
  lines[#lines + 1] = ('{"role":"user","content":"%s"}'):format(("é0123456789"):rep(3000))
  lines[#lines + 1] = '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":'
    .. '"function","function":{"name":"grep","arguments":"{\\"for\\":\\"needle\\"}"}}]}'
  lines[#lines + 1] = '{"role":"tool","tool_call_id":"c1","name":"grep","content":"found it"}'
  return table.concat(lines, "\n") .. "\n"
end

setup(function()
  home = cli.begin()
  cli.write(home .. "/talk.jsonl", recording())
  cli.done(("import %s/talk.jsonl --id talk --title 'A long talk'"):format(home))
  cli.done "compact talk --policy sliding_window --window 2000"
  cli.done "new --id small --agent coder --title Refunds"
  cli.done "append small 'we decided for Lua' --agent coder"
  cli.done "new --id small --agent writer"
  cli.done "new --id hers --user ann --title 'Of ann'"
  cli.done "append hers 'a word of ann' --user ann"
  template = home
end)

teardown(function()
  os.execute("rm -rf " .. cli.quote(template))
end)

cli.each_test(function(path)
  home = path
  os.execute(("cp -a %s/. %s"):format(template, home))
end)

local function names(rows)
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = row.session
  end
  table.sort(list)
  return list
end

describe("session_list", function()
  it("names each session so that it can be read", function()
    local found = mcp.tool "session_list"
    assert.same({ "coder/small", "main/hers?user=ann", "main/talk", "writer/small" },
      names(found.sessions))
    assert.is_false(found.more)
    for _, row in ipairs(found.sessions) do
      assert.equal(row.session, mcp.tool("session_read", { session = row.session }).session)
      assert.truthy(row.modified:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$")
    end
  end)

  it("finds by title and agent, in pages", function()
    assert.same({ "coder/small" }, names(mcp.tool("session_list", { search = "refund" }).sessions))
    assert.same({ "writer/small" }, names(mcp.tool("session_list", { agent = "writer" }).sessions))
    local seen = {}
    for offset = 0, 3 do
      local found = mcp.tool("session_list", { limit = 1, offset = offset })
      assert.equal(offset < 3, found.more)
      seen[#seen + 1] = found.sessions[1].session
    end
    table.sort(seen)
    assert.same({ "coder/small", "main/hers?user=ann", "main/talk", "writer/small" }, seen)
  end)
end)

describe("session_search", function()
  it("gives the place of a hit and the words around it", function()
    local found = mcp.tool("session_search", { text = "DECIDED for" })
    assert.equal(1, #found.hits)
    local hit = found.hits[1]
    assert.same({ "coder/small", "message", "user", "Refunds", "we decided for Lua" },
      { hit.session, hit.kind, hit.role, hit.title, hit.text })
    local read = mcp.tool("session_read", { session = hit.session, entry = hit.entry })
    assert.equal("we decided for Lua", read.messages[1].text)
  end)

  it("cuts long texts, and says when there are more hits", function()
    local found = mcp.tool("session_search", { text = "question", limit = 3 })
    assert.equal(3, #found.hits)
    assert.is_true(found.more)
    for _, hit in ipairs(found.hits) do
      assert.is_true(#hit.text < 400)
      expect.has(hit.text, "question")
    end
  end)

  it("finds titles, and messages of one role or agent", function()
    assert.equal("title", mcp.tool("session_search", { text = "of ann" }).hits[1].kind)
    assert.same({}, mcp.tool("session_search", { text = "question", role = "assistant" }).hits)
    assert.same({}, mcp.tool("session_search", { text = "decided", agent = "writer" }).hits)
    assert.equal("INVALID", mcp.refused("session_search", { text = "" }).status)
  end)
end)

describe("session_read", function()
  it("gives the newest messages, with calls and results as text", function()
    local found = mcp.tool("session_read", { session = "main/talk", last = 2 })
    assert.equal(123, found.total)
    assert.equal(121, found.before)
    assert.equal('[call of grep] {"for":"needle"}', found.messages[1].text)
    assert.equal("[result of grep] found it", found.messages[2].text)
    assert.equal("tool", found.messages[2].role)
    assert.equal(nil, found.next)
  end)

  it("gives what is around an entry, and goes on until all was read once", function()
    local found = mcp.tool("session_read", { session = "talk", entry = "a", bytes = 1000 })
    local entries = {}
    for i, row in ipairs(found.messages) do
      entries[i] = row.entry
    end
    expect.has(table.concat(entries, " "), "0000000a")
    assert.is_true(found.before > 0 and entries[1] < "0000000a")
    local last = entries[#entries]
    local more = mcp.tool("session_read", { session = "talk", entry = found.next, bytes = 1000 })
    assert.is_true(more.messages[1].entry > last)
    assert.equal(found.before + #found.messages, more.before)
  end)

  it("cuts a long message at whole characters, and its parts make it whole", function()
    local parts, entry, all = {}, "79", nil
    repeat
      local found = mcp.tool("session_read", { session = "main/talk", entry = entry,
        bytes = 16001 })
      for _, row in ipairs(found.messages) do
        if row.text:find "^[é%d]+$" then
          parts[#parts + 1] = row.text
          all = row.of_bytes or all
          entry = found.next
        end
      end
    until not (entry and entry:find("@", 1, true))
    assert.equal(("é0123456789"):rep(3000), table.concat(parts))
    assert.is_true(#parts > 2)
    assert.equal(36000, all)
  end)

  it("gives the context after compactions", function()
    local found = mcp.tool("session_read", { session = "talk", view = "context" })
    assert.is_true(found.total < 123)
    local refused = mcp.refused("session_read", { session = "talk", view = "context", entry = "1" })
    assert.equal("NOTFOUND", refused.status)
    expect.has(refused.next, "session_why")
  end)

  it("never gives more than was asked for", function()
    for _, bytes in ipairs { 500, 5000, 65536 } do
      local size = 0
      local found = mcp.tool("session_read", { session = "talk", bytes = bytes })
      for _, row in ipairs(found.messages) do
        size = size + #row.text
      end
      assert.is_true(size <= bytes)
    end
  end)

  it("explains what is wrong", function()
    local both = mcp.refused("session_read", { session = "talk", entry = "1", last = 1 })
    assert.equal("INVALID", both.status)
    assert.equal("NOTFOUND", mcp.refused("session_read", { session = "main/none" }).status)
    assert.equal("NOTFOUND",
      mcp.refused("session_read", { session = "talk", entry = "ffff" }).status)
    local several = mcp.refused("session_read", { session = "small" })
    assert.equal("INVALID", several.status)
    expect.has(several.message, "coder, writer")
  end)
end)

describe("session_why", function()
  it("says what became of a message", function()
    local gone = mcp.tool("session_why", { session = "talk", entry = "1" })
    assert.is_false(gone.in_context)
    assert.equal("00000001", gone.entry)
    expect.has(table.concat(gone.steps, "\n"), "sliding_window")
    assert.is_true(mcp.tool("session_why", { session = "small", entry = "1" }, "--agent coder")
      .in_context)
    assert.equal("NOTFOUND",
      mcp.refused("session_why", { session = "talk", entry = "9999" }).status)
  end)
end)

describe("--agent and --user", function()
  it("narrow what is seen", function()
    assert.same({ "coder/small" }, names(mcp.tool("session_list", nil, "--agent coder").sessions))
    assert.same({ "main/hers?user=ann" },
      names(mcp.tool("session_list", nil, "--user ann").sessions))
    assert.same({}, mcp.tool("session_search", { text = "question" }, "--agent coder").hits)
    assert.equal(1, #mcp.tool("session_search", { text = "word of" }, "--user ann").hits)
    assert.equal("coder/small", mcp.tool("session_read", { session = "small" }, "--agent coder")
      .session)
    assert.equal("main/hers?user=ann", mcp.tool("session_read", { session = "hers" }, "--user ann")
      .session)
  end)

  it("deny what is outside", function()
    for _, case in ipairs {
      { "--agent coder", "session_read", { session = "main/talk" } },
      { "--agent coder", "session_why", { session = "sessile://main/talk", entry = "1" } },
      { "--agent coder", "session_list", { agent = "main" } },
      { "--agent coder", "session_search", { text = "x", agent = "main" } },
      { "--user ann", "session_read", { session = "main/hers?user=bob" } },
    } do
      local refused = mcp.refused(case[2], case[3], case[1])
      assert.equal("DENIED", refused.status, case[2])
      expect.has(refused.message, case[1])
    end
    assert.equal("NOTFOUND", mcp.refused("session_read", { session = "main/talk" }, "--user ann")
      .status)
  end)
end)

describe("a call that is wrong", function()
  it("is told to the model", function()
    for _, case in ipairs {
      { "session_why", { session = "talk" }, "'entry' is missing" },
      { "session_why", { session = "talk", entri = "1" }, "did you mean 'entry'?" },
      { "session_list", { limit = 0 }, "from 1 to 200" },
      { "session_list", { limit = "3" }, "from 1 to 200" },
      { "session_read", { session = 5 }, "a text" },
      { "session_read", { session = "talk", view = "all" }, "history, context" },
    } do
      local refused = mcp.refused(case[1], case[2])
      assert.equal("INVALID", refused.status)
      expect.has(refused.message, case[3])
    end
  end)

  it("is an error of the protocol when there is no such tool", function()
    local _, wrong = mcp.ask("tools/call", { name = "session_lst" })
    assert.equal(-32602, wrong.code)
    expect.has(wrong.message, "session_list")
  end)
end)
