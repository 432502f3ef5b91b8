-- examples/nvim in Neovim, with a stub of avante.nvim: its histories are sessions.

local editor = require "spec.support.editor"
local expect = require "spec.support.expect"

local has, run, test = expect.has, editor.run, editor.test

editor.each_test()

describe("examples/nvim", function()
  test("keeps avante's histories: saved, loaded in another editor, listed, deleted", function()
    local setup = [[
      local avante = dofile(vim.env.STUBS .. "/avante.lua")
      require("sessile_nvim.avante").setup { command = vim.env.SESSILE_BIN, args = { "--plain" } }
      local History, message = avante.History, avante.message
      local function idle(filename)
        p.wait("avante", function()
          local writers = require("sessile_nvim.avante").state.writers
          local one = writers["__home__jo__tram_app/" .. filename]
          return not one.busy and not one.pending
        end)
      end
    ]]
    local out = run("one", setup .. [[
      local history = History.load(0)
      p.say("new", history.title, #history.messages)
      history.title = "trams"
      history.todos = { { id = "1", content = "look", status = "todo" } }
      local growing = message("assistant", "The", { state = "generating" })
      history.messages = { message("user", "why is it late?"),
        message("assistant", { type = "tool_use", id = "c1", name = "view",
          input = { path = "a" } }),
        message("user", { type = "tool_result", tool_use_id = "c1", content = "points",
          is_error = false }),
        growing }
      History.save(0, history)
      growing.message.content = "The points"
      History.save(0, history)
      growing.message.content, growing.state = "The points froze.", "generated"
      History.save(0, history)
      idle(history.filename)
      vim.fn.writefile({ vim.json.encode(history) }, "history.json")
      local other = History.new()
      other.messages = { message("user", "another thing") }
      History.save(0, other)
      idle(other.filename)
      other.messages[2] = message("assistant", "half an answ", { state = "generating" })
      History.save(0, other)
    ]])
    has(out, "new untitled 0")
    out = run("two", setup .. [[
      local list = History.list(0)
      p.say("list", #list, list[1].messages[1].message.content, list[1].messages[2].message.content)
      local was = vim.json.decode(vim.fn.readfile("history.json")[1])
      local history = History.load(0, was.filename)
      p.say("equal", vim.deep_equal(was, history))
      table.insert(history.messages, message("user", "and now?"))
      History.save(0, history)
      idle(history.filename)
      History.delete(0, list[1].filename)
      vim.wait(10)
      p.say("left", #History.list(0), #History.load(0).messages)
      local found = require("sessile_nvim.avante").state.server:wait("session/tree", {
        session = { id = "__home__jo__tram_app/" .. history.filename, agent = "avante" },
        types = { "message" } })
      p.say("nodes", #found.nodes)
    ]])
    has(out, "list 2 another thing half an answ\nequal true\nleft 1 5\nnodes 5")
  end)
end)
