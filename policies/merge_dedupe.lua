-- merge_dedupe: removes messages with the same text.
--
-- Use it   before another policy, if the host repeats messages: a reminder with every turn, a
--          file that is read again without changes, a status that is polled.
-- Cost     one pass over sizes in each turn. A text is read if a message that is new, or has
--          just become old, has the same size as another.
-- Does     removes one of two messages with the same role, author and content; a call is
--          removed with its results if name, arguments, text and results are all the same.
--          The newest stays; with `keep` the oldest, which preserves a provider's prompt
--          cache up to the removed one.
-- Never    removes system messages at the front, the newest `preserve_recent`, pinned messages,
--          the user's last one, open calls, or messages under `min_tokens`: each removal
--          breaks a provider's prompt cache, and a small message is not worth that.

-- A value as text; different values have different texts.
local function words(value)
  if type(value) ~= "table" then
    local text = tostring(value)
    return type(value):sub(1, 1) .. #text .. ":" .. text
  end
  local parts = {}
  for key, inner in pairs(value) do
    parts[#parts + 1] = words(key) .. words(inner)
  end
  return "{" .. table.concat(parts) .. "}"
end

-- A message with its calls and results as text, without ids.
local function words_of(state, piece)
  local parts = {}
  for k, i in ipairs(piece) do
    local message = state.messages[i]
    local calls = {}
    for c, call in ipairs(message.tool_calls or {}) do
      calls[c] = { call.name or false, call.arguments or false, call.output or false }
    end
    parts[k] = words { message.role, message.author or false, message.content or false, calls,
      message.is_error or message.isError or false }
  end
  return table.concat(parts)
end

-- The last message that may be removed: the newest messages stay, and so does everything
-- after an open call.
local function edge_of(state, recent)
  local messages = state.messages
  local edge = #messages - recent
  for i = #messages, 1, -1 do
    if messages[i].open then
      edge = math.min(edge, i - 1)
    elseif messages[i].role ~= "tool" then
      break
    end
  end
  return edge
end

-- Whether all of it may be removed. The last turn begins with the user's last message.
local function may_go(state, piece, edge)
  local messages = state.messages
  for _, i in ipairs(piece) do
    local message = messages[i]
    if i > edge or message.pinned or message.open
      or message.role == "user" and message.turn == messages[#messages].turn then
      return false
    end
  end
  return true
end

-- Messages of one size, oldest first: of those with the same text one stays.
local function thin(state, alike, edge, keep)
  local held = {}
  for _, i in ipairs(alike) do
    local piece = state:pairs_of(i)
    local text = words_of(state, piece)
    local other = held[text]
    local leaves = keep == "newest" and other or piece
    if other and other[1] ~= piece[1] and may_go(state, leaves, edge) then
      for _, k in ipairs(leaves) do
        state:drop(k)
      end
    end
    if not other or leaves == other then
      held[text] = piece
    end
  end
end

return {
  name = "merge_dedupe",
  version = 1,
  about = "Keep once what is there twice in the same words.",
  options = {
    keep = { type = "string", default = "newest", values = { "newest", "oldest" },
      about = "which of two stays" },
    min_tokens = { type = "integer", default = 100, min = 1,
      about = "leave alone what is smaller" },
    preserve_recent = { type = "integer", default = 10, min = 2,
      about = "newest messages left alone" },
  },

  merge = function(previous, next, ctx)
    local options, messages = ctx.options, next.messages
    local was = previous and #previous or 0
    local edge = edge_of(next, options.preserve_recent)
    if edge < 1 then
      return
    end
    -- Messages are compared when one of them is new or has just become old enough: collect
    -- the messages of the same sizes.
    local alike = {}
    for i = math.max(1, was - options.preserve_recent + 1), #messages do
      local tokens = messages[i].tokens
      if tokens >= options.min_tokens and (i <= edge or i > was) then
        alike[tokens] = {}
      end
    end
    for i = 1, #messages do
      local list = alike[messages[i].tokens]
      if list then
        list[#list + 1] = i
      end
    end
    for _, list in pairs(alike) do
      if #list > 1 then
        thin(next, list, edge, options.keep)
      end
    end
  end,
}
