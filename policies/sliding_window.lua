-- sliding_window: keeps the newest messages and drops the older ones.
--
-- Use it   when old messages are no longer needed (support chats, monitoring), and as the last
--          resort after another policy.
-- Cost     a turn that fits reads one number. A cut reads the sizes of one turn; no
--          text is read and no model is asked.
-- Limit    one of `messages`, `turns` or `tokens`; with none of them the model's window less
--          the reserve. An unlimited window has no limit: then nothing is cut.
-- Cuts     to `keep` of the limit, not to the limit: a small cut in every turn would break the
--          provider's prompt cache in every turn.
-- Never    drops system messages at the front, the user's last message, open calls or pinned
--          messages; never splits a call from its result. A summary at the front stays,
--          because it replaces everything before it.
--
-- If a person asks to compact, it cuts below the limit too: to `keep` of the limit, or to half
-- of the tokens if there is no limit.

local UNITS = { "messages", "turns", "tokens" }

local function limit_of(state, options)
  local unit
  for _, name in ipairs(UNITS) do
    if options[name] and unit then
      error(("give one of messages, turns, tokens, not both %s and %s"):format(unit, name), 0)
    end
    unit = options[name] and name or unit
  end
  if unit then
    return options[unit], unit
  end
  return state.window - state.reserve, "tokens"
end

-- The messages at the front that the laws protect do not count.
local function count_opening(state)
  local count = 0
  local messages = state.messages
  while messages[count + 1] and messages[count + 1].role == "system" do
    count = count + 1
  end
  return count
end

local function is_over(state, limit, unit)
  if unit == "tokens" then
    return state.tokens > limit
  end
  local messages = state.messages
  if unit == "messages" then
    return #messages > limit and #messages - count_opening(state) > limit
  end
  -- Turns have numbers: they are counted only if the numbers exceed the limit.
  local first = messages[count_opening(state) + 1]
  if not first or messages[#messages].turn - first.turn < limit then
    return false
  end
  local count = 0
  for _, turn in ipairs(state:turns()) do
    count = count + (turn.turn > 0 and 1 or 0)
  end
  return count > limit
end

-- Returns the tokens and the number of messages.
local function carry_summary(state)
  local messages = state.messages
  local i = 1
  while messages[i] and messages[i].pinned do
    i = i + 1
  end
  local first = messages[i]
  local metadata = first and not first.id and first.metadata
  if type(metadata) ~= "table" or metadata.kind ~= "summary" then
    return 0, 0
  end
  state:insert(i, { role = first.role, content = first.content, metadata = metadata },
    { covers = { i, i } })
  return first.tokens, 1
end

-- The first message of the oldest whole turn that fits into `room`, and how much of the room
-- stays empty.
local function find_turn(state, room, unit)
  local messages = state.messages
  local n = #messages
  local first = unit == "tokens" and state:find_cut(math.max(0, room)) or math.max(1, n - room + 1)
  local empty = 0
  while first > 1 and first <= n and messages[first].turn == messages[first - 1].turn do
    empty = empty + (unit == "tokens" and messages[first].tokens or 1)
    first = first + 1
  end
  return first <= n and messages[first].turn > 0 and first or nil, empty
end

-- The rest begins with a user's message if that costs at most half of it: some providers
-- refuse a context that begins in the middle of an answer.
local function cut(state, amount, unit)
  local messages, opening = state.messages, count_opening(state)
  local tokens, count = carry_summary(state)
  for i = 1, opening do
    tokens, count = tokens + messages[i].tokens, count + 1
  end
  local room = unit == "tokens" and amount - tokens or amount
  local first, empty = find_turn(state, room, unit)
  if unit ~= "turns" and first and empty * 2 <= room then
    state:keep_last(messages[#messages].turn - messages[first].turn + 1, "turns")
  end
  state:keep_last(unit == "messages" and amount + count or amount, unit)
end

local function kept_of(limit, options)
  return math.max(1, math.floor(limit * options.keep))
end

return {
  name = "sliding_window",
  version = 1,
  about = "Keep the newest messages, turns or tokens; drop what lies before them.",
  options = {
    messages = { type = "integer", min = 2, about = "messages kept, without system messages" },
    turns = { type = "integer", min = 1, about = "turns kept" },
    tokens = { type = "integer", min = 1, about = "tokens kept" },
    keep = { type = "number", default = 0.8, min = 0.05, max = 1,
      about = "share of the limit that is left after a cut" },
    by_hand = { type = "boolean", default = true,
      about = "also cut when a person asks to compact" },
  },

  truncate = function(state, ctx)
    local limit, unit = limit_of(state, ctx.options)
    if is_over(state, limit, unit) then
      cut(state, kept_of(limit, ctx.options), unit)
    end
  end,

  -- There is no should_compact: this runs only if somebody asks.
  compact = function(state, ctx)
    if not ctx.options.by_hand then
      return
    end
    local limit, unit = limit_of(state, ctx.options)
    if limit == math.huge then
      cut(state, state.tokens // 2, "tokens")
    elseif is_over(state, kept_of(limit, ctx.options), unit) then
      cut(state, kept_of(limit, ctx.options), unit)
    end
  end,
}
