-- examples/nvim in Neovim, with a stub of CodeCompanion, over a real server: what a user does.

local built = require "spec.support.built"
local cli = require "spec.support.cli"
local editor = require "spec.support.editor"
local expect = require "spec.support.expect"
local shell = require "spec.support.shell"

local has, run, stored, test = expect.has, editor.run, editor.stored, editor.test

editor.each_test()

describe("examples/nvim", function()
  test("stores each message once, in order, and rewrites nothing", function()
    local out = run("one", editor.TRAM .. [[
      local writer = p.state.chats:of(chat)
      local file = vim.fn.glob(vim.env.XDG_DATA_HOME .. "/sessile/agents/codecompanion/*.jsonl")
      local before = vim.fn.readfile(file)
      chat:submit "read it"
      chat:done(nil, { { id = "c1", type = "function",
        ["function"] = { name = "read", arguments = '{"path":"a"}' } } })
      chat:add_tool_output("c1", "part 1")
      chat:add_tool_output("c1", "part 2")
      chat:tools_finished()
      chat:done "It says so."
      p.idle()
      local after = vim.fn.readfile(file)
      local same = 0
      for i, line in ipairs(before) do
        same = same + (after[i] == line and 1 or 0)
      end
      p.say("same", same == #before, "more", #after > #before)
      local read = p.state.server:wait("session/messages", { session = writer.session })
      local list = vim.tbl_map(function(one) return one.message end, read)
      p.say(p.texts(list))
      p.say(list[8].tool_calls[1].name, list[8].tool_calls[1].arguments, list[9].tool_call_id)
      p.say("kept", vim.deep_equal(chat.messages[3],
        require("sessile_nvim.messages").read { message = list[2] }))
    ]])
    has(out, "same true more true\n")
    has(out, "user: why is the tram late? | assistant: The points froze. | user: ok | "
      .. "assistant: ok | user: ok | assistant: größer 日本 € | user: read it | "
      .. "tool: part 1\n\npart 2 | assistant: It says so.\n")
    has(out, "read {\"path\":\"a\"} c1\nkept true\n")
  end)

  test("opens a stored session in another editor, and goes on", function()
    run("one", editor.TRAM)
    local id = stored()
    local out = run("two", [[
      local rows = p.choose "tram"
      vim.cmd "Sessile"
      p.say("rows", #rows(), rows()[1]:match "why is the tram late%?  %(6%)")
      p.wait("a chat", function() return require("codecompanion").last_chat() end)
      local chat = require("codecompanion").last_chat()
      p.say(p.texts(chat.messages))
      p.talk(chat, "and now?", "It is here.")
      p.idle()
      p.say(chat.title)
    ]])
    has(out, "rows 1 why is the tram late?  (6)\n")
    has(out, "user: ok | llm: ok | user: ok | llm: größer 日本 €\nwhy is the tram late?\n")
    local same, text = stored()
    assert.equal(id, same)
    has(text, "and now?")
    has(text, "It is here.")
    local _, count = text:gsub("The points froze", "")
    assert.equal(1, count)
  end)

  test("branches where an answer is regenerated, and both stay", function()
    local out = run("one", editor.TRAM .. [[
      chat:regenerate()
      chat:done "another answer"
      p.idle()
      local writer = p.state.chats:of(chat)
      local read = p.state.server:wait("session/messages", { session = writer.session })
      p.say(p.texts(vim.tbl_map(function(one) return one.message end, read)))
      local rows = p.choose "größer"
      vim.cmd "SessileTree"
      p.say("rows", table.concat(rows(), "\n"))
      p.wait("the other branch", function()
        local now = require("codecompanion").last_chat()
        return now and now ~= chat
      end)
      chat = require("codecompanion").last_chat()
      p.say("then", p.texts(chat.messages))
      p.talk(chat, "go on", "there")
      p.idle()
      read = p.state.server:wait("session/messages", { session = writer.session })
      p.say("now", p.texts(vim.tbl_map(function(one) return one.message end, read)))
    ]])
    has(out, "user: ok | assistant: another answer\n")
    has(out, "* ? why is the tram late?\n* ! The points froze.\n* ? ok\n* ! ok\n* ? ok\n"
      .. "    ! größer 日本 €\n*   ! another answer\n")
    has(out, "then user: why is the tram late? | llm: The points froze. | user: ok | llm: ok | "
      .. "user: ok | llm: größer 日本 €\n")
    has(out, "| assistant: größer 日本 € | user: go on | assistant: there")
  end)

  test("compacts with the chat's own model, and takes it back", function()
    local out = run("one", [[
      local chat = p.stub.Chat.new {}
      for i = 1, 12 do
        p.talk(chat, ("question %d about trams "):format(i):rep(30),
          ("answer %d "):format(i):rep(60))
      end
      p.idle()
      local before = vim.deepcopy(chat.messages)
      vim.cmd "SessileCompact keep the numbers of the trams and everything that was said of points"
      p.wait("a word", function() return #p.said > 0 end)
      p.say("compacted", #chat.messages < #before, p.said[1])
      p.say("asked", p.stub.Background.asked ~= nil, vim.inspect(p.stub.Background.asked)
        :find("everything that was said of points", 1, true) ~= nil)
      p.say("summary", p.texts(chat.messages):find("In short: trams.", 1, true) ~= nil)
      p.say("system", chat.messages[1]._meta.tag)
      p.talk(chat, "after", "it")
      p.idle()
      vim.cmd "SessileCompact!"
      p.wait("a word", function() return #p.said > 1 end)
      p.say("undone", #chat.messages, #before + 2)
      table.remove(before, 1)
      local back = true
      for i, message in ipairs(before) do
        back = back and vim.deep_equal(message, chat.messages[i + 1])
      end
      p.say("back", back)
      p.talk(chat, "further", "on")
      p.idle()
    ]])
    has(out, "compacted true sessile: the model gets")
    has(out, "asked true true\nsummary true\nsystem system_prompt_from_config\nundone 27 27\n"
      .. "back true")
    local _, text = stored()
    for _, part in ipairs { "question 1 about", "answer 12", "after", "further" } do
      has(text, part)
    end
  end)

  test("puts what a policy left after a turn into the chat, and goes on from there", function()
    local out = run("one", [[
      require("codecompanion").setup { extensions = { sessile = { opts = {
        command = vim.env.SESSILE_BIN, args = { "--plain" },
        turn = { policy = "summarize", window = 1500 } } } } }
      local chat = p.stub.Chat.new {}
      for i = 1, 30 do
        p.talk(chat, ("question %d about trams "):format(i):rep(10),
          ("answer %d "):format(i):rep(20))
        p.idle()
      end
      local session = p.state.chats:of(chat).session
      local context = p.state.server:wait("session/context", { session = session })
      p.say("shorter", #chat.messages < 60, #chat.messages - 1 == #context.messages)
      p.say("path", #p.state.server:wait("session/messages", { session = session }))
      local found = p.state.server:wait("session/tree", { session = session,
        types = { "message" } })
      p.say("nodes", #found.nodes, #p.said)
    ]])
    has(out, "shorter true true\npath 60\nnodes 60 0")
  end)

  test("compacts its own branch when another editor's is at the head", function()
    local out = run("one", [[
      local chat = p.stub.Chat.new {}
      for i = 1, 12 do
        p.talk(chat, ("question %d about trams "):format(i):rep(30),
          ("answer %d "):format(i):rep(60))
      end
      p.idle()
      local session = p.state.chats:of(chat).session
      assert(p.state.server:wait("session/turn", { session = session,
        messages = { { role = "user", content = "from elsewhere" } } }))
      p.talk(chat, "mine", "is here")
      p.idle()
      local function newest()
        local read = p.state.server:wait("session/messages", { session = session, last = 1 })
        return read[1].message.content
      end
      p.say("head", newest())
      vim.cmd "SessileCompact"
      p.wait("a word", function() return #p.said > 0 end)
      p.say("head", newest(), p.said[1]:match "the model gets")
      p.say("chat", p.texts(chat.messages):find("from elsewhere", 1, true) == nil,
        chat.messages[#chat.messages].content)
    ]])
    has(out, "head from elsewhere\nhead is here the model gets\nchat true is here")
  end)

  test("has a README whose snippets run, and that names each file", function()
    local page = cli.read(built.root .. "/examples/nvim/README.md")
    local lines = page:match "```sh\n(.-)```"
    local out, ok = shell.output(("cd %s && %s PATH=%s:\"$PATH\" sh -ec %s 2>&1"):format(
      cli.quote(cli.home()), cli.env(), cli.quote(built.folder .. "/bin"), cli.quote(lines)))
    assert(ok, out)
    assert.equal(cli.read(cli.home() .. "/client/lua/sessile_rpc.lua"),
      cli.read(cli.home() .. "/.config/nvim/lua/sessile_rpc.lua"))
    local codes = {}
    for code in page:gmatch "```lua\n(.-)```" do
      codes[#codes + 1] = code
    end
    assert.equal(3, #codes)
    -- the executable is where it was built
    local sessile = ("vim.env.PATH = %q .. vim.env.PATH\n"):format(built.folder .. "/bin:")
    out = run("one", sessile .. codes[1] .. editor.TRAM .. [[
      dofile(vim.env.STUBS .. "/avante.lua")
    ]] .. codes[2] .. [[
      local History = require("avante.path").history
      local history = History.load(0)
      History.save(0, history)
      p.say("avante", history.title, #History.list(0))
      local print = function(text) p.say(text) end
      ]] .. codes[3] .. [[
      p.wait("the snippet", function() return #p.out > 1 end)
    ]])
    has(out, "avante untitled 0\nstored")
    has(cli.done "export tram-7", "why is it late?")
    has(cli.done "list --agent codecompanion", "why is the tram late?")
    for name in shell.output(("cd %s && find lua -name '*.lua'"):format(
      cli.quote(built.root .. "/examples/nvim"))):gmatch "[^\n]+" do
      has(page, ("(%s)"):format(name))
    end
  end)
end)
