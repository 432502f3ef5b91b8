--- commands: :Sessile, :SessileTree, :SessileCompact.

local tree = require "sessile_nvim.tree"

local commands = {}

local function row(listed)
  return ("%s  %s  (%d)"):format(os.date("%Y-%m-%d %H:%M", (listed.modified or 0) / 1000),
    listed.title or listed.id, listed.messages or 0)
end

-- Opens a session as a chat.
local function open_chat(state, notify, id, title)
  state.chats:open(id, title, function(_, failure)
    if failure then
      notify(failure.message)
    end
  end)
end

-- :Sessile [WORDS]: picks one of the stored sessions, and opens it.
local function pick(state, notify, words)
  state.server:call("store/list", { agent = state.agent, sort = "modified",
    search = words ~= "" and words or nil }, function(list, failure)
    if failure then
      return notify(failure.message)
    elseif #list == 0 then
      return notify("no session is stored", vim.log.levels.INFO)
    end
    vim.ui.select(list, { prompt = "Session", kind = "sessile", format_item = row },
      function(picked)
        if picked then
          open_chat(state, notify, picked.id, picked.title)
        end
      end)
  end)
end

-- Moves the head of a chat's session to an entry, and opens it as a chat in place of this one.
local function go(state, notify, chat, entry)
  local writer = state.chats:of(chat)
  state.server:call("session/branch", { session = writer.session, entry = entry },
    function(_, failure)
      if failure then
        return notify(failure.message)
      end
      local title = chat.title
      chat:close()
      open_chat(state, notify, writer.session.id, title)
    end)
end

-- :SessileTree: picks a message of the chat's session, on any branch, and goes on there.
local function walk(state, notify, chat)
  local writer = state.chats:of(chat)
  writer:save(function(failure)
    if failure then
      return notify(failure.message)
    end
    local nodes
    state.server:call("session/tree", { session = writer.session, types = { "message" } },
      function(found, why)
        nodes = found and found.nodes or notify(why.message)
      end)
    state.server:call("session/entries", { session = writer.session, types = { "message" },
      limit = 100000 }, function(found, why)
      if not found then
        return notify(why.message)
      elseif nodes then
        vim.ui.select(tree.rows(nodes, found.entries), { prompt = "Go on after", kind = "sessile",
          format_item = function(one) return one.text end }, function(picked)
          if picked then
            go(state, notify, chat, picked.id)
          end
        end)
      end
    end)
  end)
end

-- :SessileCompact [INSTRUCTIONS]: a policy makes the context shorter. With !: takes that back.
local function compact(state, notify, chat, undo, instructions)
  local writer = state.chats:of(chat)
  local method, params = "session/compact", { session = writer.session, policy = state.policy,
    instructions = instructions ~= "" and instructions or nil, window = (writer.turn or {}).window }
  if undo then
    method, params = "session/uncompact", { session = writer.session }
  end
  writer:at_head(function(failure)
    if failure then
      return notify(failure.message)
    end
    state.server:call(method, params, function(outcome, why)
      local result = outcome and outcome.policy or {}
      if why or not (undo or result.applied) then
        writer:release()
        return notify(why and why.message or "nothing was compacted: " .. (result.message
          or result.verdict or outcome.status), not why and vim.log.levels.INFO or nil)
      end
      state.chats:refresh(chat, function(context, reason)
        writer:release()
        notify(reason and reason.message or ("the model gets %d messages, %d tokens now")
          :format(#context.messages, context.tokens), not reason and vim.log.levels.INFO or nil)
      end)
    end)
  end)
end

--- Makes the commands. state: server, chats, agent, policy. chat_of(buffer): its chat, or nil.
function commands.create(state, chat_of, notify)
  local function with_chat(run)
    return function(args)
      local chat = chat_of(vim.api.nvim_get_current_buf()) or require("codecompanion").last_chat()
      if not chat then
        return notify("this buffer is no chat: go to one, or open one with :Sessile")
      end
      if chat.current_request then
        return notify("the chat is waiting for its model: stop it, or wait")
      end
      run(state, notify, chat, args.bang, args.args)
    end
  end
  local create = vim.api.nvim_create_user_command
  create("Sessile", function(args) pick(state, notify, args.args) end,
    { nargs = "*", desc = "Open a stored session" })
  create("SessileTree", with_chat(walk), { desc = "Go to a message and continue there" })
  create("SessileCompact", with_chat(compact), { nargs = "*", bang = true,
    desc = "Make the context shorter; with !: take that back" })
end

return commands
