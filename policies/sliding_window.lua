-- sliding_window: keep the newest part of the conversation, let go of what lies before it.
--
-- Use it   when old messages are of no use once they are old (support chats, monitoring), and
--          as the last resort behind another policy.
-- Cost     a turn that fits reads one number. A cut is one pass over the messages' sizes; no
--          text is read and no model is asked.
-- Limit    one of `messages`, `turns` or `tokens`; with none of them the model's window less
--          the reserve. An unlimited window has no limit: then nothing is cut.
-- Cuts     to `keep` of the limit, not to the limit: cutting a little on every turn would
--          break the provider's prompt cache on every turn.
-- Never    drops system messages at the front, the user's last message, unfinished calls or
--          pinned messages; never splits a call from its result. A summary at the front is
--          carried over a cut, because it stands for all that went before it.
--
-- When a person asks to compact, it cuts without waiting for the limit: to `keep` of it, or
-- to half of the present tokens when there is none.

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

-- The messages at the front that no law lets go do not count as part of the window.
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
  -- Turns are numbered: only when the newest number is past the limit are they counted.
  if #messages == 0 or messages[#messages].turn <= limit then
    return false
  end
  local count = 0
  for _, turn in ipairs(state:turns()) do
    count = count + (turn.turn > 0 and 1 or 0)
  end
  return count > limit
end

local function carry_summary(state)
  local messages = state.messages
  local i = 1
  while messages[i] and messages[i].pinned do
    i = i + 1
  end
  local first = messages[i]
  if not first or first.id or type(first.metadata) ~= "table" then
    return
  end
  if first.metadata.kind == "summary" then
    state:insert(i, { role = first.role, content = first.content, metadata = first.metadata },
      { covers = { i, i } })
  end
end

-- How many of the newest turns make up at most `amount`, and how much they are.
local function whole_turns(state, amount, unit)
  local turns, count, size = state:turns(), 0, 0
  for i = #turns, 1, -1 do
    local turn = turns[i]
    local more = unit == "tokens" and turn.tokens or turn.last - turn.first + 1
    if turn.turn == 0 or size + more > amount then
      break
    end
    count, size = count + 1, size + more
  end
  return count, size
end

-- What is left begins with a user's message where that costs at most half of it: a context
-- that begins in the middle of an answer is refused by some providers.
local function cut(state, amount, unit)
  carry_summary(state)
  if unit ~= "turns" then
    local count, size = whole_turns(state, amount, unit)
    if count > 0 and size * 2 >= amount then
      state:keep_last(count, "turns")
      return
    end
  end
  if unit == "messages" then
    amount = amount + count_opening(state)
  end
  state:keep_last(amount, unit)
end

local function kept_of(limit, options)
  return math.max(1, math.floor(limit * options.keep))
end

return {
  name = "sliding_window",
  version = 1,
  about = "Keep the newest messages, turns or tokens; drop what lies before them.",
  options = {
    messages = { type = "integer", min = 2, about = "at most so many, system messages aside" },
    turns = { type = "integer", min = 1, about = "at most so many turns" },
    tokens = { type = "integer", min = 1, about = "at most so many tokens" },
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

  -- No should_compact: this runs only when somebody asks.
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
