-- examples/nvim in Neovim: nothing is lost, whatever happens, and the editor does not wait.

local cli = require "spec.support.cli"
local editor = require "spec.support.editor"
local expect = require "spec.support.expect"
local shell = require "spec.support.shell"

local has, run, stored, test = expect.has, editor.run, editor.stored, editor.test

editor.each_test()

describe("examples/nvim", function()
  test("two editors on one session lose nothing", function()
    run("one", editor.TRAM)
    local both = [[
      p.choose "tram"
      vim.cmd "Sessile"
      p.wait("a chat", function() return require("codecompanion").last_chat() end)
      local chat = require("codecompanion").last_chat()
      vim.fn.writefile({}, "%s.ready")
      p.wait("the other", function() return vim.loop.fs_stat "%s.ready" end)
      for i = 1, 10 do
        p.talk(chat, "%s asks " .. i, "%s hears " .. i)
        vim.wait(5)
      end
      p.idle()
      p.say(p.texts(chat.messages))
    ]]
    local left = editor.line("left", both:format("left", "right", "left", "left"))
    local right = editor.line("right", both:format("right", "left", "right", "right"))
    shell.output(("(%s) & (%s); wait"):format(left, right))
    local list = cli.json "--plain list --agent codecompanion"
    assert.equal(1, #list)
    local out = run("look", ([[
      local session = { id = "%s", agent = "codecompanion" }
      local found = p.state.server:wait("session/entries", { session = session,
        types = { "message" }, limit = 1000 })
      local of = {}
      for _, entry in ipairs(found.entries) do of[entry.id] = entry.data.content end
      p.say("messages", vim.tbl_count(of))
      local ends = {}
      for id, text in pairs(of) do
        if text:find "hears 10$" then
          local path = p.state.server:wait("session/messages", { session = session, at = id })
          local others = 0
          for _, read in ipairs(path) do
            others = others + (read.message.content:match "^%%a+" == "left" and 1 or 0)
          end
          ends[#ends + 1] = ("%%d of %%d"):format(others, #path)
        end
      end
      table.sort(ends)
      p.say(table.concat(ends, ", "))
    ]]):format(list[1].id))
    editor.said "left"
    editor.said "right"
    has(out, "messages 46\n0 of 26, 20 of 26")
  end)

  test("a server that is killed between saves or during one loses and repeats nothing", function()
    local out = run("one", [[
      local chat, asked_again = p.stub.Chat.new {}, 0
      for i = 1, 30 do
        local client = p.state.server.client
        if client and i % 5 == 0 then
          client.take = function() end -- what the server answers is lost with it
        end
        p.talk(chat, "question " .. i, "answer " .. i)
        if i % 5 == 0 then
          vim.wait(50)
          asked_again = asked_again + (p.state.chats:of(chat).pending and 1 or 0)
        elseif i % 3 == 0 then
          p.idle()
        end
        if client and i % 2 == 0 or i % 5 == 0 then
          pcall(function() vim.loop.kill(vim.fn.jobpid(client.job), "sigkill") end)
        end
      end
      p.idle()
      local session = p.state.chats:of(chat).session
      local read = p.state.server:wait("session/messages", { session = session })
      local right = #read == 60
      for i, one in ipairs(read) do
        local n = math.ceil(i / 2)
        right = right and one.message.content == (i % 2 == 1 and "question " or "answer ") .. n
      end
      local found = p.state.server:wait("session/tree", { session = session,
        types = { "message" } })
      p.say("right", right, #read, #found.nodes, #p.said, asked_again > 0)
    ]])
    has(out, "right true 60 60 0 true\n")
    local _, text = stored()
    has(text, "answer 30")
  end)

  test("says so when there is no server, and writes everything when there is one", function()
    local out = run("one", [[
      local command = p.state.server.options.command
      p.state.server.options.command = "/nowhere/sessile"
      local chat = p.stub.Chat.new {}
      p.talk(chat, "anybody?", "no")
      p.wait("a word", function() return #p.said > 0 end)
      p.say((p.said[1]:gsub("%d+%-%d+%-%x+", "ID")))
      p.state.server.options.command = command
      p.talk(chat, "and now?", "yes")
      p.idle()
      local writer = p.state.chats:of(chat)
      local read = p.state.server:wait("session/messages", { session = writer.session })
      p.say(p.texts(vim.tbl_map(function(one) return one.message end, read)))
    ]])
    has(out, "sessile: ID is not stored yet: session/open: ")
    has(out, "user: anybody? | assistant: no | user: and now? | assistant: yes")
  end)

  test("writes what was said last when the editor is closed at once", function()
    run("one", [[
      local chat = p.stub.Chat.new {}
      p.talk(chat, "question", "the very last answer")
    ]])
    local _, text = stored()
    has(text, "the very last answer")
  end)

  test("holds the editor for little", function()
    local out = run("one", [[
      local chat = p.stub.Chat.new {}
      for i = 1, 500 do
        chat:add_message { role = i % 2 == 1 and "user" or "llm",
          content = ("word %d "):format(i):rep(40) }
      end
      local writer = p.state.chats:of(chat)
      writer:save()
      p.idle()
      local function cpu()
        local used = vim.loop.getrusage()
        return (used.utime.sec + used.stime.sec) * 1e6 + used.utime.usec + used.stime.usec
      end
      local times, work = {}, 0
      for i = 1, 300 do
        chat:add_message { role = "user", content = ("more %d "):format(i):rep(40) }
        local from, worked = vim.loop.hrtime(), cpu()
        writer:save()
        times[i], work = (vim.loop.hrtime() - from) / 1000, work + cpu() - worked
        p.wait("written", function() return not writer.busy end)
      end
      table.sort(times)
      local from = cpu()
      vim.json.encode(chat.messages)
      p.say(("# figure: us of the editor for a save in a chat of 500 to 800 messages = %.0f "
        .. "(median; processor time %.0f), to encode that chat whole = %.0f"):format(times[150],
        work / 300, cpu() - from))
    ]])
    has(out, "# figure: ")
    print(out:match "# figure: [^\n]*")
  end)
end)
