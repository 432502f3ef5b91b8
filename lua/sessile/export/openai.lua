--- openai: the conversation as a request of OpenAI's Chat Completions: {"messages": […]}.
--
-- Owns: the form of a message. Must never write what that API refuses: see conversation.lua. A
-- session that was imported from a document gets the other members of the document back; one that
-- was imported from a bare list becomes a bare list.

local conversation = require "sessile.export.conversation"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span

-- Fields of ours, or of another agent, that no API knows.
local OURS = {
  role = 1, content = 1, tool_calls = 1, tool_call_id = 1, usage = 1, timestamp = 1,
  metadata = 1, model = 1, author = 1, is_error = 1, pi = 1, claude = 1, codex = 1,
  langgraph = 1, openai = 1, anthropic = 1,
}

-- A block in the form of this API; nil if it has none. Blocks that are left out are counted.
local function block_of(raw, counts, is_assistant)
  local members, fields = span.object(raw)
  local kind = members and span.string(fields.type)
  if kind == "text" and span.string(fields.text) then
    local rest = parts.rest(members, { type = 1, text = 1, cache_control = 1, citations = 1,
      textSignature = 1 })
    return ('{"type":"text","text":%s%s}'):format(fields.text, rest ~= "" and "," .. rest or "")
  elseif kind == "image_url" or kind == "input_audio" or kind == "file" or kind == "refusal" then
    return raw
  elseif kind == "input_image" and span.string(fields.image_url) then
    return '{"type":"image_url","image_url":{"url":' .. fields.image_url .. "}}"
  elseif kind == "image" and not is_assistant then
    local _, own = span.object(fields.source or raw)
    own = type(own) == "table" and own or {}
    local media = span.string(own.media_type or own.mimeType)
    local data, url = span.string(own.data), span.string(own.url)
    if media and data or url then
      return '{"type":"image_url","image_url":{"url":'
        .. span.quote(url or "data:" .. media .. ";base64," .. data) .. "}}"
    end
  end
  counts.left_out = counts.left_out + 1
  return nil
end

-- The content of a message; only_text: the API allows no pictures here.
local function content_of(said, counts, is_assistant)
  if said.text then
    return said.text
  end
  local out = {}
  for _, raw in ipairs(said.blocks or {}) do
    out[#out + 1] = block_of(raw, counts, is_assistant)
  end
  return #out > 0 and "[" .. table.concat(out, ",") .. "]" or nil
end

local function call_of(call)
  local _, fields = span.object(call.raw)
  local _, own = span.object(fields.openai or "null")
  own = type(own) == "table" and own or {}
  local is_custom = own.custom or own.call and own.call:find '"type":"custom"'
  local kind, text = is_custom and "custom" or "function", is_custom and "input" or "arguments"
  local inner = own[kind] and own[kind]:match "^{(.*)}$" or ""
  local outer = own.call and own.call:match "^{(.*)}$" or ""
  local has_type = own.no_type or outer:find '"type":'
  return ('{"id":%s%s%s,"%s":{"name":%s,"%s":%s%s}}'):format(call.id,
    has_type and "" or ',"type":"' .. kind .. '"', outer ~= "" and "," .. outer or "", kind,
    call.name, text, span.quote(call.arguments), inner ~= "" and "," .. inner or "")
end

local function result_of(result, counts)
  local content = result.content
  local list = content and span.array(content)
  if list then
    local out = {}
    for _, raw in ipairs(list) do
      local _, fields = span.object(raw)
      local is_text = type(fields) == "table" and span.string(fields.type) == "text"
      out[#out + 1] = is_text and block_of(raw, counts) or nil
      counts.left_out = counts.left_out + (is_text and 0 or 1)
    end
    content = #out > 0 and "[" .. table.concat(out, ",") .. "]" or '""'
  elseif not span.string(content or nil) then
    content = '""'
  end
  return ('{"role":"tool","tool_call_id":%s,"content":%s}'):format(result.id, content)
end

-- Writes a message with put(text).
local function write_said(said, put, counts)
  if said.role == "tool" and #said.results > 0 then
    for _, result in ipairs(said.results) do
      put(result_of(result, counts))
    end
    return
  end
  local role = span.string(said.fields.role)
  role = role == "model" and "assistant" or role
  local content = content_of(said, counts, role == "assistant")
  local calls = {}
  for i, call in ipairs(said.calls) do
    calls[i] = call_of(call)
  end
  if not content then
    if role ~= "assistant" or #calls == 0 and not said.fields.function_call then
      counts.empty = counts.empty + 1
      return
    end
    content = "null"
  end
  local rest = parts.rest(said.members, OURS)
  put(('{"role":"%s","content":%s%s%s}'):format(role, content,
    #calls > 0 and ',"tool_calls":[' .. table.concat(calls, ",") .. "]" or "",
    rest ~= "" and "," .. rest or ""))
end

---@param source table  of sessile.export.source
---@param write fun(chunk: string)
---@return {notes: string[]}
return function(source, write)
  local rest, imported = conversation.rest(source, "openai")
  local is_list = imported and #rest == 0
  local counts, first = { left_out = 0, empty = 0 }, true
  write(is_list and "[" or '{"messages":[')
  local mended = conversation.each(source, function(said)
    write_said(said, function(text)
      write((first and "\n" or ",\n") .. text)
      first = false
    end, counts)
  end)
  conversation.finish(write, rest, is_list, { messages = true })
  local notes = {}
  conversation.tell(mended, notes)
  conversation.tell_left_out(counts, notes)
  return { notes = notes }
end
