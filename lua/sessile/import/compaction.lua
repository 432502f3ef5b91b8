--- compaction: repeats a compaction that another agent made.
--
-- Owns: the policy that replaces the same messages by the recorded summary. Must never ask a model.
--
-- Messages that the laws of context protect stay beside the summary: system messages at the
-- beginning, pinned ones, the user's last message, open calls, the two newest messages.

local answers = require "sessile.answers"
local sessile = require "sessile"

local compaction = {}

local function summary_of(text, place, time)
  return {
    role = "user", content = text, timestamp = time,
    metadata = { kind = "summary",
      imported = { from = place.from, source = place.source, at = place.at } },
  }
end

--- A message that holds the summary, as JSON.
---@param text string
---@param place sessile.import.place
---@param time integer?
---@return string json
function compaction.message(text, place, time)
  return assert(sessile.encode(summary_of(text, place, time)))
end

-- The messages that must stay, with their calls and results. Without a first message these are the
-- two newest, which the laws protect.
local function find_staying(state, first)
  local messages, stays = state.messages, {}
  local last, question = messages[#messages], nil
  for i = #messages, 1, -1 do
    question = messages[i].id and messages[i].turn == last.turn and i or question
  end
  for i = 1, #messages do
    local is_newer = first and messages[i].id and messages[i].id >= first
    if is_newer or i > #messages - 2 or i == question or messages[i].pinned or messages[i].open then
      for _, k in ipairs(state:pairs_of(i)) do
        stays[k] = true
      end
    end
  end
  return stays
end

---@class sessile.import.compacted
---@field text string       the summary
---@field place sessile.import.place
---@field first string?     the entry of the first message that stays
---@field time integer?
---@field history string[]?  the messages of the new context, as JSON

-- The summary instead of all messages that may go.
local function summarized(state, about)
  local stays, list, covers = find_staying(state, about.first), {}, {}
  local summary = summary_of(about.text, about.place, about.time)
  for i, one in ipairs(state.messages) do
    if stays[i] then
      list[#list + 1] = one
    else
      if #covers == 0 then
        list[#list + 1] = summary
      end
      covers[#covers + 1] = one
    end
  end
  summary.covers = covers
  return #covers > 0 and { messages = list } or nil
end

-- Two messages with the same of these are the same. A message of a state is no table.
local function said(message)
  local plain = { content = message.content, tool_calls = message.tool_calls }
  local words = { message.role, message.tool_call_id or "" }
  for _, call in ipairs(answers.calls(plain)) do
    words[#words + 1] = call.id
  end
  words[#words + 1] = answers.text(plain)
  return table.concat(words, "\0")
end

-- The recorded context: its messages are those that are there, else new ones. What must stay comes
-- after the message that it followed.
local function replaced(state, about)
  local list, at, number = {}, 0, {} -- number: of the message in the state, of each in the list
  for _, json in ipairs(about.history) do
    local message = sessile.decode(json)
    local key, found = said(message), nil
    for i = at + 1, #state.messages do
      found = found or said(state.messages[i]) == key and i or nil
    end
    at = found or at
    if not found then
      message.metadata = type(message.metadata) == "table" and message.metadata or {}
      message.metadata.kind = message.metadata.kind or "summary"
      message.metadata.imported = summary_of("", about.place).metadata.imported
      message.timestamp = message.timestamp or about.time
    end
    list[#list + 1], number[#list + 1] = found and state.messages[found] or message, found or 0
  end
  for i in pairs(find_staying(state)) do
    local before, there = 0, false
    for k, other in ipairs(number) do
      before, there = other ~= 0 and other < i and k or before, there or other == i
    end
    if not there then
      table.insert(list, before + 1, state.messages[i])
      table.insert(number, before + 1, i)
    end
  end
  local kept, covers, newest = {}, {}, nil
  for k, one in ipairs(list) do
    kept[number[k]], newest = true, number[k] == 0 and one or newest
  end
  for i, one in ipairs(state.messages) do
    covers[#covers + 1] = not kept[i] and one or nil
  end
  if newest then
    newest.covers = covers
  end
  return #covers > 0 and { messages = list } or nil
end

local function compact(session, about, build)
  local outcome, message, code = session:compact {
    policy = {
      name = "import",
      compact = function(state)
        return #state.messages > 0 and build(state, about) or nil
      end,
    },
    fallback = false, window = 0,
  }
  if not outcome then
    if code == "EINVALID" or code == "ELIMIT" then
      return false
    end
    return nil, message, code
  end
  return outcome.policy ~= nil and outcome.policy.applied == true
end

--- Repeats a compaction: the context becomes the recorded one; if that is not recorded, or is
--- refused, the summary replaces all messages before `first` (nil: all messages). Returns true;
--- false if the engine refuses it; nil, message, code on another failure.
---@param session table
---@param about sessile.import.compacted
---@return boolean? done
---@return string? message
---@return string? code
function compaction.apply(session, about)
  local done, message, code = false, nil, nil
  if about.history then
    done, message, code = compact(session, about, replaced)
  end
  if done == false then
    return compact(session, about, summarized)
  end
  return done, message, code
end

return compaction
