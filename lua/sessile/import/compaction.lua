--- compaction: repeats a compaction that another agent made.
--
-- Owns: the policy that replaces the same messages by the recorded summary. Must never ask a model.
--
-- Messages that the laws of context protect stay beside the summary: system messages at the
-- beginning, pinned ones, the user's last message, open calls, the two newest messages.

local answers = require "sessile.answers"
local dialect = require "sessile.dialect"
local sessile = require "sessile"
local span = require("sessile.core").span

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
---@field history {json: string?, key: string?, is_new: boolean?}[]?  the messages of the new
---                         context: by their keys, or else the same as those with that JSON text

-- The summary instead of all messages that may go.
local function summarized(state, about)
  local stays, list, covers = find_staying(state, about.first), {}, {}
  local summary = summary_of(about.text, about.place, about.time)
  for i, one in dialect.each(state.messages) do
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

-- The number of a recorded message in the context, if it is there after the message `at`.
local function find(messages, at, one, message)
  local words = not one.is_new and not one.key and said(message)
  for i = at + 1, #messages do
    if words and said(messages[i]) == words or one.key and messages[i].key == one.key then
      return i
    end
  end
end

-- The call that a message answers, if it answers one.
local function answered(message)
  local blocks = message.tool_call_id == nil and message.content
  local first = type(blocks) ~= "string" and blocks and blocks[1]
  return message.tool_call_id or first and first.type == "tool_result" and first.tool_use_id or nil
end

-- Makes a message the user's, with its text as a quotation: no policy may speak for the model
-- or the host.
local function quote(message)
  local quoted = { metadata = message.metadata, timestamp = message.timestamp, role = "user",
    content = ("[%s]\n%s"):format(message.role, answers.text(message)) }
  quoted.metadata.imported.role = message.role
  for name in pairs(message) do
    message[name] = nil
  end
  for name, value in pairs(quoted) do
    message[name] = value
  end
end

-- Completes a new message. One of an edit names what it replaces, and returns its number. Calls
-- are left to the laws.
local function mark(state, message, about)
  message.metadata = type(message.metadata) == "table" and message.metadata or {}
  message.metadata.imported = summary_of("", about.place).metadata.imported
  message.timestamp = message.timestamp or about.time
  local call = answered(message)
  for i, old in dialect.each(call and state.messages or {}) do
    if answered(old) == call then
      message.replaces = { old }
      return i
    end
  end
  message.metadata.kind = message.metadata.kind or "summary"
  if message.role ~= "user" and not (message.role == "tool" and call)
    and #answers.calls(message) == 0 then
    quote(message)
  end
end

-- The messages of a recorded context, what stays by its key once and in the order in which it was,
-- whatever the recording says: no policy may change that order.
local function ordered(state, history)
  local number, staying, out = {}, {}, {}
  for i, message in dialect.each(state.messages) do
    number[message.key] = i
  end
  for _, one in ipairs(history) do
    local at = one.key and not one.is_new and number[one.key]
    if at then
      staying[#staying + 1] = one
      number[one.key] = nil -- named again, it is there already
      one.number = at
    end
  end
  table.sort(staying, function(a, b) return a.number < b.number end)
  local named, next_one = {}, 1
  for _, one in ipairs(history) do
    local is_again = one.key and not one.is_new and named[one.key]
    if one.key then
      named[one.key] = true
    end
    if one.number then
      one, next_one = staying[next_one], next_one + 1
    end
    out[#out + 1] = not is_again and one or nil
  end
  return out
end

-- The recorded context. What must stay comes after the message that it followed.
local function replaced(state, about)
  local list, at, taken = {}, 0, {} -- at: the number, in the context before, of what stays
  for i, one in ipairs(ordered(state, about.history)) do
    local message = sessile.decode(one.json)
    local found = find(state.messages, at, one, message)
    at = found or at
    list[i] = { message = found and state.messages[found] or message, at = found,
      old = found or mark(state, message, about) }
    taken[list[i].old or 0] = true
  end
  for i in pairs(find_staying(state)) do
    if not taken[i] then
      local before = 0
      for k, other in ipairs(list) do
        before = (other.old or i) < i and k or before
      end
      table.insert(list, before + 1, { message = state.messages[i], at = i, old = i })
    end
    taken[i] = true
  end
  local covers, newest, out, changes = {}, nil, {}, false
  for i, one in dialect.each(state.messages) do
    covers[#covers + 1] = not taken[i] and one or nil
  end
  for i, one in ipairs(list) do
    out[i], newest = one.message, not one.old and one.message or newest
    changes = changes or not one.at
  end
  if newest then
    newest.covers = covers
  end
  about.is_there = not changes and #covers == 0
  return not about.is_there and { messages = out } or nil
end

-- The JSON of a message that was in a context; nil if it is not there.
local function json_of(session, key)
  local id, n = key:match "^(%x+)%.?(%d*)$"
  local entry = session:entry(id)
  local _, fields = span.object(entry and entry.json or "null")
  local _, data = span.object(fields and fields.data or "null")
  if n == "" or not data then
    return fields and fields.data
  end
  for _, raw in ipairs(span.array(data.inserted or "[]") or {}) do
    local _, one = span.object(raw)
    if one.n == n then
      return one.message
    end
  end
end

-- Takes compactions back while that brings messages of the recorded context back.
local function take_back(session, history)
  while true do
    local plan = session:uncompact(nil, { dry_run = true })
    local wanted = false
    for _, key in ipairs(plan and plan.restored or {}) do
      local json = json_of(session, key)
      local words = json and said(sessile.decode(json))
      for _, one in ipairs(history) do
        wanted = wanted or one.key == key or not one.key and not one.is_new and words ~= nil
          and words == said(sessile.decode(one.json))
      end
    end
    if not wanted then
      return true
    end
    local done, message, code, retry_ms, rule = session:uncompact()
    if not done then
      return nil, message, code, retry_ms, rule
    end
  end
end

local function compact(session, about, build)
  local outcome, message, code, retry_ms, rule = session:compact {
    policy = {
      name = "import",
      compact = function(state)
        return #state.messages > 0 and build(state, about) or nil
      end,
    },
    fallback = false, window = 0, keep_min = 2,
  }
  if not outcome then
    if code == "EINVALID" or code == "ELIMIT" then
      return false
    end
    return nil, message, code, retry_ms, rule
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
  local done, message, code, retry_ms, rule = false, nil, nil
  if about.history then
    for _, one in ipairs(about.history) do
      one.json = one.json or json_of(session, one.key)
    end
    done, message, code, retry_ms, rule = take_back(session, about.history)
    if done then
      done, message, code, retry_ms, rule = compact(session, about, replaced)
    end
    if done == false and about.is_there then
      return true
    end
  end
  if done == false and about.text ~= "" then
    return compact(session, about, summarized)
  end
  return done, message, code, retry_ms, rule
end

return compaction
