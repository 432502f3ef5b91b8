--- chats: which chat of CodeCompanion is which session, and how a session becomes a chat.

local messages = require "sessile_nvim.messages"
local writer = require "sessile_nvim.writer"

local chats = {}
chats.__index = chats

--- options: server, agent, turn (fields of each turn, such as policy and window), notify.
function chats.new(options)
  return setmetatable({ options = options, of_chat = {}, of_session = {} }, chats)
end

-- A name for a new session: when it began, so that lists of files are in order.
local function new_id()
  return ("%s-%04x"):format(os.date "%Y%m%d-%H%M%S", vim.loop.hrtime() % 0x10000)
end

local function title_of(chat)
  for _, message in ipairs(chat.messages) do
    if message.role == "user" and message.content and message.content ~= "" then
      return messages.line(message.content)
    end
  end
end

-- Begins to keep a chat in a session.
local function attach(self, chat, id)
  local session = { id = id, agent = self.options.agent }
  local entry = writer.new {
    server = self.options.server, session = session, notify = self.options.notify,
    turn = self.options.turn, mark = messages.mark, write = messages.write, chat = chat,
    list = function() return chat.messages end,
    create = function() return { title = chat.title or title_of(chat) } end,
    on_turn = function(outcome)
      if outcome.policy and outcome.policy.applied then
        self.of_chat[chat.id].is_compacted = true
      end
    end,
  }
  self.of_chat[chat.id], self.of_session[id] = entry, chat
  return entry
end

--- The writer of a chat; a chat that has none gets a session of its own.
function chats:of(chat)
  return self.of_chat[chat.id] or attach(self, chat, new_id())
end

--- The chat that a session is open in; nil if there is none.
function chats:with(id)
  return self.of_session[id]
end

--- Forgets a chat that was closed, after everything is written.
function chats:close(id)
  local entry = self.of_chat[id]
  if entry then
    entry:save(function()
      self.of_chat[id] = nil
      if self.of_session[entry.session.id] == entry.chat then
        self.of_session[entry.session.id] = nil
      end
    end)
  end
end

-- A context as messages of a chat, and of each the entry that it is.
local function from_context(context)
  local list, entries = {}, {}
  for i, read in ipairs(context.messages) do
    list[i], entries[i] = messages.read(read), read.id or false
  end
  return list, entries
end

--- Puts the context of the session into its chat: what the model gets from now on. The chat's own
--- system messages stay, and what is not written yet. done(context) or done(nil, failure).
function chats:refresh(chat, done)
  local entry = self:of(chat)
  entry:hold()
  self.options.server:call("session/context", { session = entry.session },
    function(context, failure)
      if not failure then
        local list, entries = from_context(context)
        local _, new = entry:compare()
        local own, unsent = {}, {}
        for _, message in ipairs(chat.messages) do
          if not messages.mark(message) then
            table.insert(message.role == "system" and own or unsent, message)
          end
        end
        for _, more in ipairs { list, new, unsent } do
          vim.list_extend(own, more)
        end
        chat.messages = own
        entry:continue(context.head, entries)
        entry.is_compacted = nil
      end
      entry:release()
      done(context, failure)
    end)
end

--- Opens a session as a new chat. done(chat) or done(nil, failure).
function chats:open(id, title, done)
  self.options.server:call("session/context",
    { session = { id = id, agent = self.options.agent } }, function(context, failure)
      if failure then
        return done(nil, failure)
      end
      local list, entries = from_context(context)
      table.insert(list, { role = "user", content = "" }) -- the question to come
      local buffer = vim.api.nvim_get_current_buf()
      local chat = require("codecompanion.interactions.chat").new {
        buffer_context = require("codecompanion.utils.context").get(buffer),
        messages = list, title = title, last_role = "user", stop_context_insertion = true,
      }
      if not chat then
        return done(nil, { message = "CodeCompanion opened no chat" })
      end
      attach(self, chat, id):continue(context.head, entries)
      done(chat)
    end)
end

--- Whether something is on its way.
function chats:is_busy()
  for _, entry in pairs(self.of_chat) do
    if entry.busy then
      return true
    end
  end
  return false
end

--- Writes what is new in every chat.
function chats:save_all()
  for _, entry in pairs(self.of_chat) do
    entry:save()
  end
end

return chats
