-- Messages of a word or two, and what lists of them say.

local lists = require "spec.support.lists"

local messages = {}

function messages.user(text)
  return { role = "user", content = text }
end

function messages.assistant(text)
  return { role = "assistant", content = text }
end

--- The contents of a list of messages.
function messages.contents(list)
  return lists.field(list, "content")
end

--- The contents of a session's messages as one text, with spaces between.
function messages.said(session)
  return lists.words(session:messages(), "content")
end

return messages
