-- token_budget: divides a budget of tokens among users, answers and tool calls.
--
-- Use it   when no kind of message may displace the others: in a sliding window one long log
--          displaces twenty questions; here it displaces only other tool output.
-- Cost     one pass over sizes when the context has reached `share` of the budget. No text
--          is read and no model is asked.
-- Does     keeps system and pinned messages, summaries, the newest `preserve_recent`, open calls
--          and the user's last message. The rest of `keep` of the budget is divided by `user`,
--          `assistant` and `tools`. Each kind keeps its newest messages that fit; what one
--          kind does not use goes to the newest messages of all kinds.
-- Never    splits a call from its results: together they are one piece of the kind tools.
--          Never writes a message of its own.

local KINDS = { "user", "assistant", "tools" }

local function is_summary(message)
  local metadata = not message.id and message.metadata
  local kind = type(metadata) == "table" and metadata.kind
  return kind == "summary" or kind == "branch_summary"
end

-- The limit, and how much of it is left after a compaction.
local function budget_of(state, options)
  local limit = options.tokens or state.window - state.reserve
  local left = limit < math.huge and limit * options.keep or state.tokens / 2
  return limit, math.floor(left)
end

-- The messages that always stay: index -> true. The first message of the last turn is the
-- user's last one.
local function find_fixed(state, recent)
  local messages, fixed = state.messages, {}
  local last, tail = messages[#messages], #messages - recent + 1
  local question
  for i = #messages, 1, -1 do
    local message = messages[i]
    if message.open and i < tail then
      tail = i
    end
    question = message.id and message.turn == last.turn and i or question
  end
  for i = 1, #messages do
    local message = messages[i]
    local role = message.role
    if i >= tail or i == question or message.pinned or role == "system"
      or role == "developer" or is_summary(message) then
      for _, k in ipairs(state:pairs_of(i)) do
        fixed[k] = true
      end
    end
  end
  return fixed
end

-- The pieces that may be removed, newest first, with their indexes, kind and tokens; and the
-- tokens of all other messages.
local function read(state, fixed)
  local messages, pieces, seen, held = state.messages, {}, {}, 0
  for i = #messages, 1, -1 do
    local message = messages[i]
    if fixed[i] then
      held = held + message.tokens
    elseif not seen[i] then
      local piece = { at = state:pairs_of(i), tokens = 0 }
      for _, k in ipairs(piece.at) do
        seen[k] = true
        piece.tokens = piece.tokens + messages[k].tokens
      end
      local role = message.role
      piece.kind = (#piece.at > 1 or role == "tool" or role == "function") and "tools"
        or role == "user" and "user" or "assistant"
      pieces[#pieces + 1] = piece
    end
  end
  return pieces, held
end

-- Marks the pieces that are kept.
local function choose(pieces, room, options)
  local sum, left, spare = 0, {}, room
  for _, kind in ipairs(KINDS) do
    sum = sum + options[kind]
  end
  for _, kind in ipairs(KINDS) do
    left[kind] = sum > 0 and room * options[kind] / sum or 0
  end
  for _, piece in ipairs(pieces) do
    if piece.tokens <= left[piece.kind] then
      left[piece.kind] = left[piece.kind] - piece.tokens
      spare, piece.kept = spare - piece.tokens, true
    end
  end
  for _, piece in ipairs(pieces) do
    if not piece.kept and piece.tokens <= spare then
      spare, piece.kept = spare - piece.tokens, true
    end
  end
end

return {
  name = "token_budget",
  version = 1,
  about = "Divide a budget of tokens among users, answers and tools; keep the newest of each.",
  options = {
    tokens = { type = "integer", min = 1, about = "the budget; the window less the reserve" },
    user = { type = "number", default = 0.3, min = 0, about = "part of what users said" },
    assistant = { type = "number", default = 0.3, min = 0, about = "part of answers" },
    tools = { type = "number", default = 0.4, min = 0, about = "part of calls and results" },
    keep = { type = "number", default = 0.6, min = 0.05, max = 1,
      about = "share of the budget that is left after a cut" },
    preserve_recent = { type = "integer", default = 10, min = 2,
      about = "newest messages left alone" },
    share = { type = "number", default = 0.8, min = 0.05, max = 1,
      about = "share of the budget that starts it" },
  },

  should_compact = function(state, ctx)
    return state.tokens > ctx.options.share * budget_of(state, ctx.options)
  end,

  compact = function(state, ctx)
    local _, budget = budget_of(state, ctx.options)
    if state.tokens <= budget then
      return
    end
    local pieces, held = read(state, find_fixed(state, ctx.options.preserve_recent))
    choose(pieces, math.max(0, budget - held), ctx.options)
    for _, piece in ipairs(pieces) do
      for _, i in ipairs(piece.kept and {} or piece.at) do
        state:drop(i)
      end
    end
  end,
}
