-- sliding_window: keeps the newest messages and drops the older ones.
--
-- Use it   when old messages are no longer needed (support chats, monitoring), and as the last
--          resort after another policy.
-- Cost     a turn that fits reads one number. A cut reads the sizes of one turn; no
--          text is read and no model is asked.
-- Limit    one of `messages`, `turns` or `tokens`; with none of them the model's window less
--          the reserve. An unlimited window has no limit: then nothing is cut.
-- Cuts     to the limit that you gave, in every turn that passes it; to 80 % of the window. Each
--          cut breaks the provider's prompt cache: with `keep` = 0.8 you get fewer, larger cuts.
-- Never    drops system messages at the front, the user's last message, open calls or pinned
--          messages; never splits a call from its result. A summary at the front stays,
--          because it replaces everything before it.
--
-- If a person asks, it cuts to `keep` of the limit, or to half of the tokens if there is no limit.

local UNITS = { "messages", "turns", "tokens" }

-- The limit, its unit, and what a cut leaves: of the window a part stays free for the next turns.
local function limit_of(state, options)
  local unit
  for _, name in ipairs(UNITS) do
    if options[name] and unit then
      error(("give one of messages, turns, tokens, not both %s and %s"):format(unit, name), 0)
    end
    unit = options[name] and name or unit
  end
  local limit = unit and options[unit] or state.window - state.reserve
  return limit, unit or "tokens", limit < math.huge
    and math.max(1, math.floor(limit * (options.keep or unit and 1 or 0.8)))
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

-- The place of the summary at the front, which does not count either; nil: there is none.
local function find_summary(state)
  local messages, i = state.messages, 1
  while messages[i] and messages[i].pinned do
    i = i + 1
  end
  local metadata = messages[i] and not messages[i].id and messages[i].metadata
  return type(metadata) == "table" and metadata.kind == "summary" and i or nil
end

local function is_over(state, limit, unit)
  if unit == "tokens" then return state.tokens > limit end
  local messages, opening = state.messages, count_opening(state)
  -- The cheap question first; turns have numbers.
  local most = unit == "messages" and #messages - opening
    or messages[opening + 1] and messages[#messages].turn - messages[opening + 1].turn + 1 or 0
  local summary = most > limit and find_summary(state)
  if most <= limit or unit == "messages" then
    return most - (summary and 1 or 0) > limit
  end
  local count = 0
  for _, turn in ipairs(state:turns()) do
    local is_summary = turn.first == summary and turn.last == summary
    count = count + (turn.turn > 0 and not is_summary and 1 or 0)
  end
  return count > limit
end

-- Whether a cut can drop more than the summary: if not, it would save nothing (law 6).
local function has_more(state, summary)
  local messages = state.messages
  for i = summary + 1, state:find_cut(0) - 1 do
    local is_question = messages[i].turn == messages[#messages].turn
      and messages[i - 1].turn ~= messages[i].turn
    if not messages[i].pinned and not is_question then return true end
  end
end

-- Returns the tokens and the number of messages. Law 3 allows a new summary no role but user's.
local function carry_summary(state, i)
  if not i then return 0, 0 end
  local first = state.messages[i]
  state:insert(i, { role = "user", content = first.content, metadata = first.metadata },
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
  local messages, opening, summary = state.messages, count_opening(state), find_summary(state)
  if summary and not has_more(state, summary) then return end
  local tokens, count = carry_summary(state, summary)
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

return {
  name = "sliding_window", version = 1,
  about = "Keep the newest messages, turns or tokens; drop what lies before them.",
  options = {
    messages = { type = "integer", min = 2, about = "most messages kept, system ones aside" },
    turns = { type = "integer", min = 1, about = "most turns kept" },
    tokens = { type = "integer", min = 1, about = "most tokens kept" },
    keep = { type = "number", min = 0.05, max = 1,
      about = "share of the limit that a cut leaves: 1, or 0.8 of the window" },
    by_hand = { type = "boolean", default = true, about = "also cut when a person asks to" },
  },

  truncate = function(state, ctx)
    local limit, unit, kept = limit_of(state, ctx.options)
    if is_over(state, limit, unit) then
      cut(state, kept, unit)
    end
  end,

  -- There is no should_compact: this runs only if somebody asks.
  compact = function(state, ctx)
    local _, unit, kept = limit_of(state, ctx.options)
    if ctx.options.by_hand and not kept then
      cut(state, state.tokens // 2, "tokens")
    elseif ctx.options.by_hand and is_over(state, kept, unit) then
      cut(state, kept, unit)
    end
  end,
}
