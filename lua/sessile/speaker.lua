--- speaker: what a message is to a person: a question, a tool's result, a reply.
--
-- Owns: who speaks in a message. A message of role user that holds only results of tools, as in
-- Anthropic's API, is the tool's, and one with a metadata.kind was written for the user. The engine
-- decides the same for the nodes of a tree (`speaker`, `starts_turn`).

local speaker = {}

-- Whether the content is results of tools and nothing else.
local function only_results(content)
  if type(content) ~= "table" or #content == 0 then
    return false
  end
  for _, block in ipairs(content) do
    if type(block) ~= "table" or block.type ~= "tool_result" then
      return false
    end
  end
  return true
end

-- Whether somebody else wrote it for the user: a summary, a note.
local function has_kind(message)
  return type(message.metadata) == "table" and message.metadata.kind ~= nil
end

--- Who speaks: the role of the message; "tool" if it is the user's and holds only results.
---@param message table
---@return string
function speaker.of(message)
  local role = type(message.role) == "string" and message.role or "?"
  if role == "user" and not has_kind(message) and only_results(message.content) then
    return "tool"
  end
  return role
end

--- Whether a person asks something here: with this message a turn begins.
---@param message table
---@return boolean
function speaker.asks(message)
  return speaker.of(message) == "user" and not has_kind(message)
end

return speaker
