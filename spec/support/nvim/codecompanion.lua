--- codecompanion: stands for CodeCompanion in Neovim's Lua: Debian's Neovim is too old for it.
--
-- It has the shapes of the real chat: messages with _meta.id (a hash of the text, so that two equal
-- texts may have one id), roles user, llm, system and tool, calls under tools.calls, results under
-- tools.call_id, a system message that each chat makes itself, and the events of the real one.

local USER, LLM, SYSTEM = "user", "llm", "system"

local Chat = {}
Chat.__index = Chat

local of_buffer, last, number = {}, nil, 0

-- Neovim before 0.8 gives a handler no data: here the handlers are called themselves.
local handlers = {}
local create_autocmd = vim.api.nvim_create_autocmd

function vim.api.nvim_create_autocmd(event, opts)
  if event ~= "User" then
    return create_autocmd(event, opts)
  end
  handlers[opts.pattern] = opts.callback
end

local function fire(event, data)
  local handler = handlers["CodeCompanion" .. event]
  if handler then
    handler { match = "CodeCompanion" .. event, data = data }
  end
end

-- As the real one: from the text alone.
local function hash(text)
  local sum = 5381
  for i = 1, #text do
    sum = (sum * 33 + text:byte(i)) % 4294967296
  end
  return sum
end

function Chat.new(args)
  number = number + 1
  local self = setmetatable({ id = number * 1000 + vim.loop.os_getpid(), cycle = 1,
    messages = args.messages or {}, title = args.title, opts = args, callbacks = {},
    bufnr = vim.api.nvim_create_buf(true, true),
    adapter = { type = "http", name = "stub", answer = args.answer } }, Chat)
  of_buffer[self.bufnr], last = { chat = self }, self
  table.insert(self.messages, 1, { role = SYSTEM, content = "You help in Neovim.",
    opts = { visible = false }, _meta = { tag = "system_prompt_from_config", cycle = 1, id = 7 } })
  fire("ChatCreated", { bufnr = self.bufnr, id = self.id })
  return self
end

function Chat:add_message(data, opts)
  opts = opts or { visible = true }
  local message = { role = data.role, content = data.content, reasoning = data.reasoning,
    opts = opts, _meta = { cycle = self.cycle,
      id = hash(data.role .. (data.content or "") .. self.cycle) } }
  if data.tool_calls then
    message.tools = { calls = data.tool_calls }
  end
  message._meta.index = #self.messages + 1
  table.insert(self.messages, message)
  return self
end

--- Types a text and sends it. The answer comes with done().
function Chat:submit(text)
  if self.messages[#self.messages].content == "" then
    table.remove(self.messages)
  end
  self:add_message { role = USER, content = text }
  self.current_request = {}
  fire("ChatSubmitted", { bufnr = self.bufnr, id = self.id, type = "http" })
end

--- The model answered. RequestFinished comes before the chat has the answer, as it may.
function Chat:done(text, calls)
  fire("RequestFinished", { bufnr = self.bufnr, id = 1, status = "success", interaction = "chat" })
  self.current_request = nil
  if text then
    self:add_message { role = LLM, content = text }
  end
  if calls then
    return self:add_message({ role = LLM, tool_calls = calls }, { visible = false })
  end
  self.cycle = self.cycle + 1
  fire("ChatDone", { bufnr = self.bufnr, id = self.id })
end

--- A tool's output: of one call it is one message, which grows.
function Chat:add_tool_output(call_id, text)
  for _, message in ipairs(self.messages) do
    if message.tools and message.tools.call_id == call_id then
      message.content = message.content .. "\n\n" .. text
      return
    end
  end
  table.insert(self.messages, { role = "tool", content = text, tools = { call_id = call_id },
    opts = { visible = true }, _meta = { cycle = self.cycle, id = hash("tool" .. text) } })
end

function Chat:tools_finished()
  fire("ToolsFinished", { bufnr = self.bufnr, id = self.id })
end

--- The newest answer is not wanted: it is asked for again.
function Chat:regenerate()
  table.remove(self.messages)
  self.current_request = {}
  fire("ChatSubmitted", { bufnr = self.bufnr, id = self.id, type = "http" })
end

function Chat:close()
  fire("ChatClosed", { bufnr = self.bufnr, id = self.id })
  of_buffer[self.bufnr] = nil
  last = last ~= self and last or nil
  vim.api.nvim_buf_delete(self.bufnr, { force = true })
end

local Background = {}
Background.__index = Background

function Background.new(args)
  return setmetatable({ adapter = args.adapter }, Background)
end

function Background:ask(list, opts)
  assert(opts.method == "async")
  vim.defer_fn(function()
    Background.asked = list
    opts.on_done { status = "success", output = { role = LLM, content = "In short: trams." } }
  end, 5)
end

package.loaded["codecompanion.interactions.chat"] = Chat
package.loaded["codecompanion.interactions.background"] = Background
package.loaded["codecompanion.utils.context"] = {
  get = function(bufnr) return { bufnr = bufnr } end,
}
package.loaded["codecompanion"] = {
  buf_get_chat = function(bufnr) return of_buffer[bufnr].chat end, -- the real one fails so as well
  last_chat = function() return last end,
  setup = function(opts)
    for name, extension in pairs(opts.extensions) do
      require("codecompanion._extensions." .. name).setup(extension.opts or {})
    end
  end,
}
return { Chat = Chat, Background = Background }
