--- sessile: chats of CodeCompanion are kept in sessions.
--
--   require("codecompanion").setup { extensions = { sessile = { enabled = true, opts = {} } } }
--
-- What is new is appended after each event; nothing is rewritten, and the editor waits for nothing.
-- :Sessile opens a stored session, :SessileTree goes to a message of it and continues there,
-- :SessileCompact makes the chat shorter, :SessileCompact! takes that back.
--
-- opts: command ("sessile"), args (words before "rpc", such as --store URL), env, agent
-- ("codecompanion"), policy (of :SessileCompact: "summarize"), turn (fields of each turn, such as
-- {policy = "summarize", window = 100000}: then policies run by themselves).

local chats = require "sessile_nvim.chats"
local commands = require "sessile_nvim.commands"
local model = require "sessile_nvim.model"
local server = require "sessile_nvim.server"

local sessile = { exports = {} }

local EVENTS = { "ChatSubmitted", "RequestFinished", "ToolsFinished", "ChatDone", "ChatStopped" }

-- The chat of a buffer; nil if it is none.
local function chat_of(buffer)
  local ok, chat = pcall(require("codecompanion").buf_get_chat, buffer)
  return ok and chat and chat.messages and chat or nil
end

local function notify(text, level)
  vim.notify("sessile: " .. text, level or vim.log.levels.WARN)
end

-- Writes what is new in a chat; a policy may have made it shorter.
local function save(state, chat)
  local entry = state.chats:of(chat)
  entry:save(function(failure)
    if not failure and entry.is_compacted and not chat.current_request then
      state.chats:refresh(chat, function() end)
    end
  end)
end

--- Sets it up; CodeCompanion calls this.
function sessile.setup(opts)
  opts = opts or {}
  if sessile.exports.server then
    sessile.exports.server:stop()
  end
  local state = sessile.exports
  state.policy = opts.policy or "summarize"
  state.agent = opts.agent or "codecompanion"
  state.server = server.new { command = opts.command, args = opts.args, env = opts.env }
  state.chats = chats.new { server = state.server, agent = state.agent, turn = opts.turn,
    notify = notify }
  state.server.options.answers = { model = model.answer(state.chats) }

  local group = vim.api.nvim_create_augroup("sessile", { clear = true })
  for _, event in ipairs(EVENTS) do
    vim.api.nvim_create_autocmd("User", { group = group, pattern = "CodeCompanion" .. event,
      callback = function(args)
        -- some events are fired before the chat has taken what they tell of
        vim.schedule(function()
          local chat = chat_of(args.data and args.data.bufnr)
          if chat then
            save(state, chat)
          end
        end)
      end })
  end
  vim.api.nvim_create_autocmd("User", { group = group, pattern = "CodeCompanionChatClosed",
    callback = function(args)
      state.chats:close(args.data.id)
    end })
  vim.api.nvim_create_autocmd("VimLeavePre", { group = group, callback = function()
    state.chats:save_all()
    vim.wait(5000, function() return not state.chats:is_busy() end, 2)
    state.server:stop()
  end })
  commands.create(state, chat_of, notify)
end

return sessile
