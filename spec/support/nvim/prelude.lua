--- prelude: before each scenario in Neovim: the plug-in, the stub of CodeCompanion, and helpers.

local stub = dofile(vim.env.STUBS .. "/codecompanion.lua")
local prelude = { stub = stub, out = {}, said = {} }

require("codecompanion").setup { extensions = { sessile = { enabled = true,
  opts = { command = vim.env.SESSILE_BIN, args = { "--plain" } } } } }
prelude.state = require("codecompanion._extensions.sessile").exports

vim.notify = function(text)
  table.insert(prelude.said, text)
end

--- Prints a line for the spec.
function prelude.say(...)
  table.insert(prelude.out, table.concat(vim.tbl_map(tostring, { ... }), " "))
end

--- Waits for something.
function prelude.wait(what, condition)
  if not vim.wait(30000, condition, 2) then
    error("waited in vain: " .. what .. " " .. vim.inspect(prelude.said))
  end
end

--- Waits until everything is written.
function prelude.idle()
  vim.wait(20) -- handlers are scheduled
  prelude.wait("idle", function() return not prelude.state.chats:is_busy() end)
end

--- A question and its answer.
function prelude.talk(chat, question, answer)
  chat:submit(question)
  vim.wait(1)
  chat:done(answer)
end

--- The texts of a list of messages, without the chat's own.
function prelude.texts(list)
  local texts = {}
  for _, message in ipairs(list) do
    if message.role ~= "system" and message.content ~= "" then
      table.insert(texts, message.role .. ": " .. (message.content or "(calls)"))
    end
  end
  return table.concat(texts, " | ")
end

--- Answers the next vim.ui.select: the first row that has this text. Returns a function that waits
--- for it and returns all rows.
function prelude.choose(text)
  local rows
  vim.ui.select = function(items, opts, on_choice)
    rows = vim.tbl_map(opts.format_item, items)
    for i, row in ipairs(rows) do
      if row:find(text, 1, true) then
        return on_choice(items[i], i)
      end
    end
    on_choice(nil)
  end
  return function()
    prelude.wait("a choice", function() return rows end)
    return rows
  end
end

--- Runs a scenario, and ends the editor as a user does.
function prelude.run(scenario)
  local ok, why = pcall(scenario, prelude)
  if not ok then
    prelude.say("FAILED", why)
  end
  vim.fn.writefile(vim.split(table.concat(prelude.out, "\n"), "\n"), vim.env.OUT)
  vim.cmd "qall!"
end

return prelude
