--- model: policies that want a summary ask the model of the chat that the session is open in.

local model = {}

-- What CodeCompanion calls the roles of a request.
local function own_roles(list)
  return vim.tbl_map(function(message)
    local role = message.role == "assistant" and "llm" or message.role
    return { role = role, content = message.content, opts = { visible = false } }
  end, list)
end

--- Answers ask/model. chats: who knows the chat of a session.
function model.answer(chats)
  return function(asked, reply)
    local id = type(asked.session) == "table" and asked.session.id or asked.session
    local chat = chats:with(id)
    if not chat then
      return reply { failed = "the session is open in no chat" }
    end
    local background = require("codecompanion.interactions.background").new {
      adapter = chat.adapter }
    if not background then
      return reply { failed = "the chat's adapter cannot be asked beside the chat" }
    end
    background:ask(own_roles(asked.request.messages), {
      method = "async", silent = true,
      on_done = function(result)
        local text = result and result.output and result.output.content
        if type(text) == "string" and text ~= "" then
          reply { text = text }
        else
          reply { failed = "the model gave no text" }
        end
      end,
      on_error = function(why)
        why = type(why) == "table" and (why.message or why.stderr) or why
        reply { failed = tostring(why) }
      end,
    })
  end
end

return model
