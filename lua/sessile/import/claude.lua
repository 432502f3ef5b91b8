--- claude: reads the sessions of Claude Code (JSON Lines; ~/.claude/projects/…).
--
-- Owns: the tree of uuid and parentUuid, and the assistant's messages, which have one line for each
-- block. Must never change a block: the engine knows tool_use and tool_result as calls and results.
--
-- What maps:
--   user, assistant             the same role; lines of one message.id become one message
--   isMeta                      metadata.kind "meta": it starts no turn
--   compact_boundary and the isCompactSummary message after it    a compaction; the messages that
--                               its preservedMessages name stay
--   isSidechain                 a branch of its own; in a file of its own (agent-ID.jsonl) a child
--   summary, ai-title, custom-title    the title; a summary only of a message in this file
--   cwd, gitBranch              metadata of the session
-- Other fields of a line or its message are kept under "claude". Other lines (system, progress,
-- attachment, file-history-snapshot, …) become custom entries; the parent of a line that follows
-- one of them is the message before it.

local kept = require "sessile.import.kept"
local parts = require "sessile.import.parts"
local span = require("sessile.core").span
local turns = require "sessile.import.turns"

local claude = { has_name = true }

-- ---------------------------------------------------------------- messages of several lines

-- The parent of results and further blocks of a message. In the recording the parent of a result is
-- the line with its call, which would make a branch for each result.
local function chain_of(collector, lane)
  collector.chains = collector.chains or {}
  if not collector.chains[lane] then
    collector.chain_count = (collector.chain_count or 0) + 1
    if collector.chain_count > 1000 then
      collector.chains, collector.chain_count = {}, 1
    end
    collector.chains[lane] = { keys = {} }
  end
  return collector.chains[lane]
end

local function flush(collector)
  local open = collector.assistant
  collector.assistant = nil
  if not open then
    return
  end
  local own = #open.parts == 1 and open.parts[1]
    or '{"lines":[' .. table.concat(open.parts, ",") .. "]}"
  collector:message(parts.object {
    { "role", '"assistant"' },
    { "content", open.text or "[" .. table.concat(open.blocks, ",") .. "]" },
    { "model", open.model }, { "timestamp", open.timestamp and tostring(open.timestamp) },
    { "usage", open.usage and turns.usage_json(open.usage) }, { "claude", own },
  }, {
    key = open.keys, parent = open.parent, lines = #open.lines > 1 and open.lines or open.lines[1],
    offset = open.offset, usage = open.usage, side = open.side,
    model = open.model and span.string(open.model),
  })
  local chain = chain_of(collector, open.lane)
  if chain.group ~= open.group or not open.group then
    chain.group, chain.keys = open.group, {}
  end
  for _, key in ipairs(open.keys) do
    chain.keys[key] = true
  end
  chain.tip = open.keys[#open.keys]
end

local function add_assistant(collector, line, message)
  local open = collector.assistant
  local group = message.group
  local blocks = span.array(message.content)
  if open and not (group and open.group == group and open.lane == line.lane and open.blocks
    and blocks) then
    flush(collector)
    open = nil
  end
  if not open then
    local chain, parent = chain_of(collector, line.lane), line.parent
    if group and chain.group == group and parent and chain.keys[parent] then
      parent = chain.tip
    end
    open = {
      group = group, lane = line.lane, side = line.side, parent = parent, keys = {}, lines = {},
      parts = {}, blocks = blocks and {}, text = not blocks and message.content or nil,
      timestamp = line.timestamp,
    }
    collector.assistant = open
  end
  for _, block in ipairs(blocks or {}) do
    open.blocks[#open.blocks + 1] = block
  end
  open.keys[#open.keys + 1] = line.key
  open.lines[#open.lines + 1] = collector.at
  open.offset = collector.line_end
  open.usage, open.model = message.usage or open.usage, message.model or open.model
  open.parts[#open.parts + 1] = parts.object {
    { "line", line.rest }, { "message", message.rest },
    { "blocks", blocks and tostring(#blocks) or nil },
  }
end

-- ---------------------------------------------------------------- messages

local function only_results(content)
  local blocks = span.array(content)
  for _, block in ipairs(blocks or {}) do
    local _, fields = parts.members(block)
    if not fields or span.string(fields.type) ~= "tool_result" then
      return false
    end
  end
  return blocks ~= nil and #blocks > 0
end

local function text_of(content)
  local texts = { span.string(content) }
  for _, block in ipairs(span.array(content) or {}) do
    local _, fields = parts.members(block)
    texts[#texts + 1] = fields and span.string(fields.text)
  end
  return table.concat(texts, "\n\n")
end

local function user_message(line, message, kind)
  return parts.object {
    { "role", message.role }, { "content", message.content },
    { "timestamp", line.timestamp and tostring(line.timestamp) },
    { "metadata", kind and ('{"kind":"%s"}'):format(kind) or nil },
    { "claude", parts.object { { "line", line.rest }, { "message", message.rest } } },
  }
end

local function add_user(collector, line, message, fields, raw)
  flush(collector)
  local chain, parent = chain_of(collector, line.lane), line.parent
  local results = only_results(message.content)
  if results and parent and chain.keys[parent] then
    parent = chain.tip
  end
  if fields.isCompactSummary == "true" and text_of(message.content) ~= "" then
    collector:compaction { key = line.key, parent = parent, line = raw, side = line.side,
      summary = text_of(message.content), time = line.timestamp }
    chain.group, chain.keys = nil, {}
    return
  end
  local kind = fields.isMeta == "true" and "meta" or fields.isCompactSummary == "true" and "summary"
  collector:message(user_message(line, message, kind), {
    key = line.key, parent = parent, side = line.side, starts_turn = not results and not kind,
  })
  if results and line.key and chain.tip == parent then
    chain.keys[line.key], chain.tip = true, line.key
  else
    chain.group, chain.keys = nil, {}
  end
end

-- ---------------------------------------------------------------- compactions

-- The uuids that a boundary keeps, and what they follow: the boundary or the last new message.
local function kept_by(fields)
  local _, about = parts.members(fields.compactMetadata)
  local members, own = parts.members(about and about.preservedMessages)
  local uuids = {}
  for i, raw in ipairs(members and span.array(own.uuids or "null") or {}) do
    uuids[i] = span.string(raw)
  end
  return #uuids > 0 and uuids or nil, members and span.string(own.anchorUuid)
end

-- The compaction of a boundary whose new messages have been read.
local function end_boundary(collector)
  local open = collector.boundary
  collector.boundary = nil
  if not open then
    return
  end
  local history, keys, texts = {}, { open.key }, {}
  local function add(uuid)
    local one = open.new[uuid]
    history[#history + 1] = { key = uuid, json = one and one.json }
    keys[#keys + 1] = one and uuid or nil
    texts[#texts + 1] = one and one.text ~= "" and one.text or nil
  end
  for _, uuid in ipairs(open.leading) do
    add(uuid)
  end
  for _, uuid in ipairs(open.kept) do
    add(uuid)
  end
  keys[#keys + 1] = open.kept[#open.kept] -- what follows it follows the compaction
  collector:compaction { key = keys, parent = open.parent, line = open.raw, at = open.at,
    summary = table.concat(texts, "\n\n"), history = history, time = open.time }
  chain_of(collector, "main").keys = {}
end

-- Whether all messages of the open boundary's context are there.
local function is_complete(collector)
  local open = collector.boundary
  for _, uuid in ipairs(open.kept) do
    if not open.new[uuid] and collector.known[uuid] == nil then
      return false
    end
  end
  return open.anchor == open.key or open.new[open.anchor] ~= nil
end

-- Begins to collect the context of a boundary that keeps messages; false if it keeps none.
local function begin_boundary(collector, line, fields, raw)
  local kept_uuids, anchor = kept_by(fields)
  if not kept_uuids or not line.key or line.side then
    return false
  end
  flush(collector)
  collector.boundary = { key = line.key, kept = kept_uuids, anchor = anchor or line.key,
    parent = line.parent or span.string(fields.logicalParentUuid) or false, raw = raw,
    at = collector.at, time = line.timestamp, new = {}, leading = {} }
  if is_complete(collector) then
    end_boundary(collector)
  end
  return true
end

-- Takes a message that a compaction wrote.
local function take_new(collector, line, message)
  local open, json = collector.boundary, nil
  if message.is_user then
    json = user_message(line, message, not only_results(message.content) and "summary" or nil)
  else
    local reader = { at = collector.at, message = function(_, text) json = text end }
    add_assistant(reader, line, message)
    flush(reader)
  end
  local is_kept = false
  for _, uuid in ipairs(open.kept) do
    is_kept = is_kept or uuid == line.key
  end
  open.new[line.key] = { json = json, text = text_of(message.content) }
  open.leading[#open.leading + 1] = not is_kept and line.key or nil
  if is_complete(collector) then
    end_boundary(collector)
  end
end

-- The message of a line; nil and a sentence if it is none.
local function message_of(raw)
  local members, fields = parts.members(raw)
  if not members then
    return nil, "its message is no object, or has a key twice"
  end
  local role = span.string(fields.role)
  local kind = fields.content and span.kind(fields.content)
  if role ~= "user" and role ~= "assistant" then
    return nil, fields.role and "unknown role " .. fields.role:sub(1, 40) or "it has no role"
  elseif kind ~= "string" and kind ~= "array" then
    return nil, "its content is neither text nor blocks"
  end
  local model = span.string(fields.model) and fields.model or nil
  return {
    role = fields.role, content = fields.content, group = span.string(fields.id),
    usage = turns.usage(fields.usage), model = model, is_user = role == "user",
    rest = parts.braced(parts.rest(members, { role = 1, content = 1, model = model and 1 })),
  }
end

-- ---------------------------------------------------------------- lines

-- Titles: a later kind overrides an earlier one.
local TITLES = {
  summary = { 1, "summary" }, ["ai-title"] = { 2, "aiTitle" },
  ["custom-title"] = { 3, "customTitle" },
}

local function take_title(collector, kind, fields)
  local rank, name = TITLES[kind][1], TITLES[kind][2]
  local text, leaf = span.string(fields[name]), span.string(fields.leafUuid)
  if kind == "summary" and leaf then
    collector.summaries = collector.summaries or {}
    table.insert(collector.summaries, { leaf = leaf, text = text })
  elseif text and rank >= (collector.title_rank or 0) then
    collector.title, collector.title_rank = text, rank
  end
end

-- The file of a sub-agent has the id of the session that began it, and a side chain only.
local function set_name(collector, session, fields)
  if collector.named then
    return
  end
  local agent = fields.isSidechain == "true" and span.string(fields.agentId)
  collector.named, collector.is_agent = true, agent and true or false
  collector:session(agent and "agent-" .. agent or session, nil, agent and session or nil)
end

local function feed(collector, raw)
  local members, fields = parts.members(raw)
  if not members then
    return collector:keep(raw, not span.valid(raw) and kept.unreadable(raw)
      or "it is no JSON object, or has a key twice")
  end
  local kind, session = span.string(fields.type), span.string(fields.sessionId)
  if session then
    set_name(collector, session, fields)
    collector:ran(span.string(fields.cwd), span.string(fields.gitBranch))
  end
  local side = fields.isSidechain == "true" and not collector.is_agent
  local line = {
    key = span.string(fields.uuid), side = side,
    parent = span.string(fields.parentUuid),
    timestamp = parts.time(span.string(fields.timestamp)),
    lane = side and "side " .. (span.string(fields.agentId) or "") or "main",
  }
  if fields.parentUuid and not line.parent then
    line.parent = false
  end
  if (kind == "user" or kind == "assistant") and fields.message then
    local message, why = message_of(fields.message)
    if message then
      line.rest = parts.braced(parts.rest(members, { message = 1 }))
      if collector.boundary and line.key and not side then
        return take_new(collector, line, message)
      end
      if message.is_user then
        return add_user(collector, line, message, fields, raw)
      end
      local model = message.model and span.string(message.model)
      if model and model ~= "<synthetic>" and not side then
        collector.settings.model = model
      end
      return add_assistant(collector, line, message)
    end
    if line.key then
      collector:link(line.key, line.parent)
    end
    return collector:keep(raw, why)
  elseif TITLES[kind or ""] then
    take_title(collector, kind, fields)
  elseif kind == "system" and span.string(fields.subtype) == "compact_boundary"
    and begin_boundary(collector, line, fields, raw) then
    return
  end
  if line.key and fields.parentUuid then
    flush(collector)
    -- A boundary has no parent, since it ends the context; here the compaction does that.
    collector:link(line.key, line.parent or span.string(fields.logicalParentUuid) or false)
  end
  collector:keep(raw)
end

--- Whether a file with this beginning has the format.
---@param _ table<string, string>  the fields of its first line
---@param head string
---@return boolean
function claude.recognises(_, head)
  local seen = 0
  for line in head:gmatch "[^\n]+" do
    local members, fields = span.object(line)
    seen = seen + 1
    if not members or seen > 50 then
      return false
    end
    local kind = span.string(fields.type)
    if fields.uuid and fields.parentUuid and fields.sessionId then
      return true
    elseif not (kind == "summary" and fields.leafUuid or fields.sessionId and not fields.data
      or kind == "file-history-snapshot") then
      return false
    end
  end
  return seen > 0
end

--- The records of a session.
---@param lines fun(): string?, integer?, integer?
---@return sessile.import.records
function claude.records(lines)
  return turns.records(lines, "claude", feed, function(collector)
    flush(collector)
    end_boundary(collector) -- the recording ends before its context was complete
    for _, one in ipairs(not collector.title and collector.summaries or {}) do
      -- Claude Code also writes summaries of other sessions.
      collector.title = collector.known[one.leaf] ~= nil and one.text or collector.title
    end
  end)
end

return claude
