-- Messages of a word or two, and what lists of them say.

local messages = {}

function messages.user(text)
  return { role = "user", content = text }
end

function messages.assistant(text)
  return { role = "assistant", content = text }
end

function messages.contents(list)
  local out = {}
  for i, m in ipairs(list) do
    out[i] = m.content
  end
  return out
end

return messages
