-- Which rows of a session's tree are to be seen, without a terminal.

local find = require "sessile.cli.treeview.find"
local model = require "sessile.cli.treeview.model"
local nodes = require "sessile.cli.treeview.nodes"
local preview = require "sessile.cli.treeview.preview"
local prompt = require "sessile.cli.treeview.prompt"
local wrap = require "sessile.cli.treeview.wrap"
local stores = require "spec.support.stores"

local store, s

stores.each_test(function()
  store = stores.open "ram:"
  s = assert(store:session "s")
end)

local function say(role, content)
  return assert(s:append { role = role, content = content })
end

local function look()
  return model.new(assert(s:tree()), function(node) return nodes.words(s, node) end)
end

local function ids(m)
  local list = {}
  for i, index in ipairs(m.visible) do
    list[i] = m.rows[index].node.id:match "^0*(.+)$"
  end
  return table.concat(list, " ")
end

local function all(m)
  while m:scan(function() return true end) do end
end

-- 0 session, 1 user, 2 assistant, 3 tool, 4 user, 5 assistant; of 2 the branch 6 head, 7 user.
local function forked()
  say("user", "one")
  say("assistant", "two")
  say("tool", "three")
  say("user", "four")
  say("assistant", "five")
  assert(s:branch "00000002")
  say("user", "seven")
end

describe("the rows of a tree", function()
  it("run straight down however long a conversation is, the head selected", function()
    for i = 1, 400 do
      say(i % 2 == 1 and "user" or "assistant", "m" .. i)
    end
    local m = look()
    assert.equal(401, #m.visible)
    assert.equal(401, m.at)
    for _, row in ipairs(m.rows) do
      assert.equal(0, row.depth)
    end
  end)

  it("set branches in, before the path to the head continues", function()
    forked()
    local m = look()
    assert.equal("0 1 2 3 4 5 7", (ids(m):gsub(" 6", "")))
    local depth = {}
    for _, row in ipairs(m.rows) do
      depth[row.node.id] = row.depth
    end
    assert.equal(0, depth["00000007"])
    for _, id in ipairs { "00000003", "00000004", "00000005" } do
      assert.equal(1, depth[id])
    end
  end)

  it("are as deep as branches are, and no stack is", function()
    say("user", "root")
    for i = 1, 3000 do
      local at = s:head()
      say("assistant", "left " .. i)
      assert(s:branch(at))
      say("user", "on " .. i)
    end
    local m = look()
    assert.is_true(#m.rows >= 6001)
    local newest = s:head()
    assert(s:branch "00000002")
    m = look() -- now each branch hangs off the one before
    assert.is_true(m:go_to(newest))
    assert.is_true(m:row().depth > 0)
  end)
end)

describe("folding", function()
  it("leaves a row for each question, and takes them apart again", function()
    for i = 1, 3 do
      say("user", "q" .. i)
      say("assistant", "calls" .. i)
      say("tool", "result" .. i)
    end
    local m = look()
    m:fold_all(true)
    assert.equal("0 1 4 7", ids(m))
    assert.equal("00000007", m:node().id) -- what folds the head
    assert.equal(2, m:row().under)
    m:move(-1)
    assert.is_true(m:unfold())
    assert.equal("0 1 4 5 6 7", ids(m))
    assert.is_true(m:unfold()) -- into it
    assert.equal("00000005", m:node().id)
    m:fold() -- what cannot be folded goes to what folds it
    assert.equal("00000004", m:node().id)
    assert.is_true(m:fold())
    assert.equal("0 1 4 7", ids(m))
    m:fold_all(false)
    assert.equal(10, #m.visible)
  end)

  it("leaves compactions, and says where the head is", function()
    for i = 1, 3 do
      say("user", "q" .. i)
      say("assistant", "a" .. i)
    end
    local out = assert(s:compact { policy = { "sliding_window", messages = 2 } })
    assert.is_truthy(out)
    say("assistant", "more")
    local m = look()
    m:fold_all(true)
    assert.equal("0 1 3 5 7", ids(m))
    assert.equal("00000005", m.head_at)
    m:fold_all(false)
    assert.equal("00000008", m.head_at)
  end)

  it("folds a branch at its first entry, and what hangs off an entry at that", function()
    forked()
    local m = look()
    m:go_to "00000003"
    m:fold()
    assert.is_nil(ids(m):find("4", 1, true))
    assert.truthy(ids(m):find("3", 1, true))
    m:go_to "00000002"
    m:fold()
    assert.is_nil(ids(m):find("3", 1, true))
    assert.truthy(ids(m):find("7", 1, true))
  end)

  it("gives way to whoever goes to what it hides", function()
    forked()
    local m = look()
    m:fold_all(true)
    assert.is_true(m:go_to "00000005")
    assert.equal("00000005", m:node().id)
    assert.is_false(m:go_to "00000099")
  end)
end)

describe("the kinds of entries", function()
  it("are shown alone, and the selection stays where it can", function()
    forked()
    s:label("00000002", "here")
    s:checkpoint { name = "cp" }
    local m = look()
    m:next_kind(1)
    assert.equal("question", m.kind)
    assert.equal("1 4 7", ids(m))
    m:go_to "00000001"
    assert.is_true(m:question(1))
    assert.equal("00000004", m:node().id)
    m:show "all"
    assert.is_true(m:question(-1))
    assert.equal("00000001", m:node().id)
    assert.is_false(m:question(-1))
    m:show "question"
    m:show "all"
    m:go_to "00000003"
    m:show "message"
    assert.equal("00000003", m:node().id)
    m:show "label"
    assert.equal("2", ids(m))
    m:show "checkpoint"
    assert.equal(1, #m.visible)
    assert.equal("checkpoint", m:node().type)
    m:show "compaction"
    assert.equal(0, #m.visible)
    assert.is_nil(m:node())
    assert.is_false(m:move(1))
    m:next_kind(1)
    assert.equal("all", m.kind)
    assert.is_truthy(m:node())
  end)
end)

describe("searching", function()
  it("selects the first hit from the selection on, then the others, round and round", function()
    for i = 1, 9 do
      say("user", i % 3 == 0 and "a Needle, 100%" or "hay")
    end
    local m = look()
    m:go_to "00000004"
    m:find "needle, 100%"
    all(m)
    assert.equal("00000006", m:node().id)
    assert.same({ 2, 3 }, { m:hit() })
    assert.same({ true, false }, { m:next_hit(1) })
    assert.same({ true, true }, { m:next_hit(1) })
    assert.equal("00000003", m:node().id)
    assert.same({ true, true }, { m:next_hit(-1) })
    assert.equal("00000009", m:node().id)
    m:find "NEEDLE" -- a large letter is meant
    all(m)
    assert.is_false((m:next_hit(1)))
    assert.equal("00000009", m:node().id)
  end)

  it("looks into labels and calls, and unfolds what it finds", function()
    say("user", "q")
    assert(s:append { role = "assistant", content = "", tool_calls = {
      { id = "1", name = "read_file", arguments = '{"path":"secret.txt"}' } } })
    s:label("00000001", "before-deploy")
    local m = look()
    m:fold_all(true)
    m:find "secret.txt"
    all(m)
    assert.equal("00000002", m:node().id)
    m:find "before-dep"
    all(m)
    assert.equal("00000001", m:node().id)
  end)

  it("continues while somebody types, a slice at a time", function()
    for i = 1, 50 do
      say("user", i == 40 and "needle" or "hay")
    end
    local m, slices = look(), 1
    m:move(-1000)
    m:find "needle"
    while m:scan(function() return false end) do
      slices = slices + 1
    end
    assert.equal(51, slices)
    assert.equal("00000028", m:node().id)
  end)

  it("shows what was found, however far into a text it is", function()
    local finder = find.finder "needle"
    local long = ("ä hay "):rep(50) .. "needle " .. ("hay "):rep(50)
    local shown = find.shown(long, finder, 30)
    assert.truthy(utf8.len(shown))
    assert.is_true(select(2, finder(shown)) <= 40)
    assert.same({ { "a ", false }, { "Needle", true }, { " b ", false }, { "needle", true } },
      find.pieces("a Needle b needle", finder))
  end)
end)

describe("a reload", function()
  it("keeps what is selected, folded, shown and searched for", function()
    forked()
    local m = look()
    m:show "message"
    m:find "four"
    all(m)
    m:go_to "00000003"
    m:fold()
    say("assistant", "four more")
    m:load(assert(s:tree()))
    assert.equal("00000003", m:node().id)
    assert.equal("message", m.kind)
    assert.is_nil(ids(m):find(" 4 ", 1, true))
    all(m)
    assert.equal(2, (select(2, m:hit())))
    assert.equal("00000003", m:node().id)
  end)
end)

describe("the first row on the screen", function()
  it("moves only as far as the selection needs it", function()
    for i = 1, 30 do
      say("user", "m" .. i)
    end
    local m = look()
    for height = 1, 40 do
      for _, at in ipairs { 1, 2, 15, 16, 14, 30, 31, 1 } do
        m.at = at
        m:scroll(height)
        assert.is_true(m.top >= 1 and m.top <= at and at < m.top + height)
        assert.is_true(m.top == 1 or m.top + height - 1 <= #m.visible)
      end
    end
  end)
end)

describe("a line that is typed", function()
  it("is edited by whole characters, and takes no control character", function()
    local text, at = "", 0
    for _, key in ipairs { "a", "ä", "日", "left", "backspace", "\27", "ctrl-z", "\u{202E}", "x",
      "end", "!", "home", "delete" } do
      text, at = prompt.edit(text, at, key)
    end
    assert.equal("x日!", text)
    assert.equal(0, at)
    assert.same({ "one ", 4 }, { prompt.edit("one two", 7, "ctrl-w") })
    assert.same({ "two", 0 }, { prompt.edit("one two", 4, "ctrl-u") })
  end)
end)

describe("JSON that is looked at", function()
  it("has a member a line, and its texts as they stand", function()
    local text = [[{"a":1,"b":["x,{\"y\\",{}],"c":"\\"}]]
    assert.equal('{\n  "a": 1,\n  "b": [\n    "x,{\\"y\\\\",\n    {}\n  ],\n  "c": "\\\\"\n}',
      preview.spread(text))
    for i = 1, #text do -- cut off anywhere it is no error
      assert.is_string(preview.spread(text:sub(1, i)))
    end
  end)
end)

describe("text in lines", function()
  it("ends them at spaces, and in the middle of what has none", function()
    local lines = wrap.lines("one two three\n\nabcdefghijkl\n日本語のテキスト", 8)
    local list = {}
    for i = 1, lines:count() do
      list[i] = lines:line(i)
    end
    assert.same({ "one two", "three", "", "abcdefgh", "ijkl", "日本語の", "テキスト" }, list)
    assert.is_nil(lines:line(8))
    assert.equal(0, wrap.lines("", 10):count())
  end)

  it("of megabytes are made as they are looked at", function()
    local lines = wrap.lines(("word "):rep(400000), 40)
    assert.truthy(lines:line(20))
    local whole, made = lines:known()
    assert.is_false(whole)
    assert.is_true(made < 1000)
    local text = {}
    for i = 1, lines:count() do
      assert.is_true(#lines:line(i) <= 40)
      text[i] = lines:line(i)
    end
    assert.equal(400000, select(2, table.concat(text, " "):gsub("word", "")))
  end)
end)
