--- langgraph: reads the state of a LangGraph thread; its history, which is a list of states, each
-- with all its messages; and lists of LangChain's messages.
--
-- Owns: how a history of lists becomes a tree: states share their common beginning, and a branch
-- begins where a state differs from the earlier ones. Must never hold more than the messages.
--
-- What maps:
--   human, ai, system, tool, function    user, assistant, system, tool, function
--   tool_calls {name, args, id}          tool_calls; args becomes the JSON text
--   usage_metadata                       usage
--   other fields of a message            under "langgraph"
-- A message has the time of the first state that it is in. A state without its messages becomes a
-- custom entry. Messages in LangChain's constructor form
-- ({lc, type, id, kwargs}) and those of messages_to_dict ({type, data}) are read too.

local characters = require "sessile.characters"
local dialect = require "sessile.dialect"
local document = require "sessile.import.document"
local parts = require "sessile.import.parts"
local source = require "sessile.import.source"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local math = dialect.math

local langgraph = {}

langgraph.enter = {
  messages = true, values = true, ["values.messages"] = true, checkpoint = true,
  channel_values = true, ["channel_values.messages"] = true,
  ["checkpoint.channel_values"] = true, ["checkpoint.channel_values.messages"] = true,
}

local ROLES = {
  human = "user", HumanMessage = "user", HumanMessageChunk = "user",
  ai = "assistant", AIMessage = "assistant", AIMessageChunk = "assistant",
  system = "system", SystemMessage = "system", developer = "developer",
  tool = "tool", ToolMessage = "tool", ["function"] = "function", FunctionMessage = "function",
}

-- ---------------------------------------------------------------- messages

local function whole(raw)
  return math.max(0, math.tointeger(tonumber(raw or "")) or 0)
end

local function usage_of(raw)
  local members, fields = parts.members(raw)
  if not members or not fields.input_tokens then
    return nil
  end
  local _, details = parts.members(fields.input_token_details)
  local input = whole(fields.input_tokens)
  local read = math.min(whole(details and details.cache_read), input)
  local written = math.min(whole(details and details.cache_creation), input - read)
  return {
    input = input - read - written, output = whole(fields.output_tokens), cache_read = read,
    cache_write = written,
  }
end

-- Converts calls; nil if one has an unknown form.
local function calls_of(raw)
  local out = {}
  for i, call in ipairs(span.array(raw or "") or {}) do
    local members, fields = parts.members(call)
    if not members or not span.string(fields.id) or not span.string(fields.name)
      or not fields.args then
      return nil
    end
    local rest = parts.rest(members, { id = 1, name = 1, args = 1 })
    out[i] = ('{"id":%s,"name":%s,"arguments":%s%s}'):format(fields.id, fields.name,
      span.quote(fields.args), rest ~= "" and ',"langgraph":{' .. rest .. "}" or "")
  end
  return #out > 0 and out or nil
end

-- A role as ChatMessage has it: any word.
local OWN = { user = "user", assistant = "assistant", system = "system", developer = "developer" }

-- The fields of a message in any form, and its role.
local function read(text)
  local members, fields = parts.members(text)
  if not members then
    return nil
  end
  local kwargs = fields.lc and parts.members(fields.kwargs)
  if kwargs then
    local path = span.array(fields.id or "") or {}
    local role = ROLES[span.string(path[#path]) or ""]
    local _, inner = parts.members(fields.kwargs)
    return role, kwargs, inner, parts.rest(members, { kwargs = 1 })
  end
  local kind = span.string(fields.type)
  local wrapper = ""
  if kind and parts.members(fields.data) then -- of messages_to_dict
    wrapper = parts.rest(members, { data = 1 })
    members, fields = parts.members(fields.data)
  end
  local own = kind == "chat" and span.string(fields.role) or ""
  return ROLES[kind or ""] or OWN[own] or ROLES[own], members, fields, wrapper
end

-- Converts a message; nil and a sentence if it is not one.
local function message_of(text, time)
  local role, members, fields, wrapper = read(text)
  if not role then
    return nil, members and "it is not a message of a known type"
      or "it is not a JSON object, or has a key twice"
  end
  local taken = { content = 1, type = wrapper == "" and 1 or nil }
  local content = fields.content
  local kind = content and span.kind(content)
  if kind ~= "string" and kind ~= "array" then
    if content and kind ~= "null" then
      return nil, "its content is neither text nor blocks"
    end
    content, taken.content = '""', nil
  end
  local calls = role == "assistant" and calls_of(fields.tool_calls)
  taken.tool_calls = calls and 1 or nil
  local call_id = role == "tool" and span.string(fields.tool_call_id) and fields.tool_call_id or nil
  taken.tool_call_id = call_id and 1
  local name = span.string(fields.name) and fields.name or nil
  taken.name = name and 1
  local _, response = parts.members(fields.response_metadata)
  local model = response and (span.string(response.model_name) or span.string(response.model))
  local usage = usage_of(fields.usage_metadata)
  local own = parts.object {
    { "type", wrapper == "" and fields.type or nil }, { "constructor", parts.braced(wrapper) },
    { "message", parts.braced(parts.rest(members, taken)) },
  }
  return parts.object {
    { "role", '"' .. role .. '"' }, { "content", content }, { "name", name },
    { "tool_calls", calls and "[" .. table.concat(calls, ",") .. "]" or nil },
    { "tool_call_id", call_id },
    { "is_error", role == "tool" and span.string(fields.status) == "error" and "true" or nil },
    { "timestamp", time and tostring(time) }, { "model", model and span.quote(model) },
    { "usage", usage and turns.usage_json(usage) },
    { "langgraph", own },
  }, nil, { starts_turn = role == "user", usage = usage, model = model or nil }
end

-- Adds one message. facts: those of the tree, if it is part of one.
local function feed(collector, text, tree, time)
  local json, why, facts = message_of(text, time)
  if not json then
    collector:keep(text, why)
    return false
  end
  for name, value in pairs(tree or {}) do
    facts[name] = value
  end
  collector.settings.model = facts.model or collector.settings.model
  collector:message(json, facts)
  return true
end

-- ---------------------------------------------------------------- a history

local function configured(raw)
  local _, config = parts.members(raw)
  local _, inner = parts.members(config and config.configurable)
  return inner or {}
end

-- The ids of a state, its parent and its thread.
local function names_of(shape)
  local function raw(path)
    local member = shape.by_path[path]
    return member and member.raw
  end
  local own = configured(raw "config")
  local before = configured(raw "parent_config")
  local _, parent = parts.members(raw "parent_checkpoint")
  return {
    id = span.string(raw "checkpoint.checkpoint_id" or own.checkpoint_id or raw "checkpoint_id"
      or raw "checkpoint.id"),
    parent = span.string(before.checkpoint_id or parent and parent.checkpoint_id
      or raw "parent_checkpoint_id"),
    thread = span.string(raw "checkpoint.thread_id" or own.thread_id or raw "thread_id"),
    time = span.string(raw "created_at" or raw "checkpoint.ts"),
  }
end

-- The list of messages of a state.
local function messages_of(shape)
  return document.arrays(shape)[1]
end

-- The states, oldest first: {from, to, names}.
local function states_of(opened, array, state)
  local list, number_of = {}, {}
  for _, from, to in document.elements(opened, array.array, state, true) do
    local shape = document.shape_at(opened, from, langgraph.enter)
    local names = shape and names_of(shape) or {}
    list[#list + 1] = { from = from, to = to, names = names }
    if names.id then
      number_of[names.id] = #list
    end
  end
  local falling = 0
  for i, one in ipairs(list) do
    local parent = number_of[one.names.parent or ""]
    local was = list[i - 1] and list[i - 1].names.time
    if parent and parent ~= i then
      falling = falling + (parent > i and 1 or -1)
    elseif was and one.names.time and was ~= one.names.time then
      falling = falling + (was > one.names.time and 1 or -1)
    end
  end
  for i = 1, falling > 0 and math.floor(#list / 2) or 0 do
    list[i], list[#list + 1 - i] = list[#list + 1 - i], list[i]
  end
  return list
end

-- Adds a state: its new messages follow the known ones.
local function feed_state(collector, opened, one, tree)
  local shape = document.shape_at(opened, one.from, langgraph.enter)
  local array = shape and messages_of(shape)
  local function number()
    tree.count = tree.count + 1
    return tree.count
  end
  local node = tree.root
  if not shape then
    collector.at = number()
    document.keep_range(collector, opened, one.from, one.to, "it is no state")
    return
  end
  document.keep_rest(collector, shape, opened, {}, number)
  for text, from, to in array and document.elements(opened, array.array, {}) or function() end do
    collector.offset = to
    local child = text and node.children[text]
    if not child then
      collector.at = number()
      child = { children = {}, key = "#" .. collector.at }
      if not text then
        document.keep_range(collector, opened, from, to, source.too_long)
        child = node
      elseif feed(collector, characters.escaped(text), { key = child.key, parent = node.key },
        parts.time(one.names.time)) then
        node.children[text] = child
      else
        child.key = node.key
        node.children[text] = child
      end
    end
    node = child
    coroutine.yield()
  end
  collector.head = node.key or nil
end

-- ---------------------------------------------------------------- documents

local function is_state_list(opened, array)
  local text = document.elements(opened, array.array, {})()
  local _, fields = parts.members(text or nil)
  return not text or fields ~= nil and not fields.content and not fields.kwargs
    and (fields.values or fields.checkpoint or fields.channel_values or fields.config) ~= nil
end

-- The records of a thread. Without an id it has no name of its own.
local function records_of(opened, digest, thread, run)
  local records = document.records("langgraph", opened, function(collector)
    collector:identify(digest)
    if thread then
      collector:session(thread)
    end
    run(collector)
  end)
  records.has_name = thread ~= nil
  return records
end

--- Whether a file with this beginning has the format.
---@param shape sessile.import.shape
---@param head string
---@return boolean
function langgraph.recognises(shape, head)
  local has_type = head:find '"type"%s*:%s*"human"' or head:find '"type"%s*:%s*"ai"'
    or head:find '"lc"%s*:%s*1' and head:find '"kwargs"'
  if shape.kind == "array" then
    return has_type ~= nil and head:find '^%s*%[%s*{' ~= nil
      or head:find '"values"%s*:%s*{' ~= nil and head:find '"checkpoint' ~= nil
      or head:find '"channel_values"%s*:' ~= nil
  end
  local list = messages_of(shape)
  return list ~= nil and (list.path ~= "messages" or has_type ~= nil)
end

--- The records of a document.
---@param opened sessile.import.source
---@param shape sessile.import.shape
---@return sessile.import.records records
function langgraph.document(opened, shape)
  local arrays = document.arrays(shape)
  local top = shape.kind == "array" and arrays[1]
  if not (top and is_state_list(opened, top)) then
    local names = names_of(shape)
    local digest = document.digest("langgraph", opened, arrays, names.thread)
    return records_of(opened, digest, names.thread, function(collector)
      document.keep_rest(collector, shape, opened, {})
      document.feed(collector, opened, shape, arrays, function(_, text)
        feed(collector, text, nil, parts.time(names.time))
      end)
    end)
  end
  local state = {}
  local states = states_of(opened, top, state)
  local names = {}
  for i = #states, 1, -1 do -- the oldest that says it has the last word
    names.thread = states[i].names.thread or names.thread
    names.id = states[i].names.id or names.id
  end
  local digest = document.digest("langgraph", opened, {}, (names.thread or "") .. " "
    .. (names.id or ""))
  return records_of(opened, digest, names.thread, function(collector)
    local tree = { count = 0, root = { children = {}, key = false } }
    for _, one in ipairs(states) do
      feed_state(collector, opened, one, tree)
      coroutine.yield()
    end
    collector.at = tree.count
    document.keep_tail(collector, opened, state.broken or shape.broken or shape.rest,
      "it is no state")
  end)
end

return langgraph
