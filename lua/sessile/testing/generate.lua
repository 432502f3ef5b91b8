--- generate: generates conversations with the features of real ones.
--
-- Several calls at once, calls that are never answered, late results and errors, long outputs,
-- texts in several languages, turns of one message and of fifty. The engine accepts every generated
-- message: these are conversations, not attacks.

local random = require "sessile.testing.random"

local generate = {}

local texts = {
  "why is it slow?", "please look at the second file again", "that did not work",
  "warum ist das so langsam?", "pourquoi est-ce si lent ?", "なぜ遅いのですか", "为什么这么慢？",
  "почему так медленно?", "لماذا هو بطيء؟", "🙂 👩‍👩‍👧‍👦 fine",
  "```lua\nlocal x = 1\nreturn x + 1\n```", "a \"quoted\" \\ backslash\tand a tab",
  "line one\nline two\r\nline three", "", " ",
}

local tools = { "read_file", "run", "search", "write_file", "fetch" }

-- A text of about `tokens` tokens; sometimes without any words.
local function text_of(rnd, tokens)
  local parts, left = { rnd:pick(texts) }, tokens
  while left > 0 do
    local n = math.min(left, 40)
    parts[#parts + 1] = rnd:one_in(6) and ("x"):rep(n * 4) or (" word"):rep(n)
    left = left - n
  end
  return table.concat(parts)
end

-- Sizes as in life: mostly small, now and then one that outweighs all the others.
local function size_of(rnd, scale)
  if rnd:one_in(12) then
    return rnd:int(scale * 10, scale * 40)
  end
  return rnd:int(1, scale)
end

local function content_of(rnd, scale)
  local text = text_of(rnd, size_of(rnd, scale))
  if rnd:one_in(8) then
    return { { type = "text", text = text }, { type = "text", text = "and more" } }
  end
  return text
end

-- An assistant's message with calls, and their results: all, some, in any order, some later.
-- pauses: some of the results are the first thing that is said in the next turn.
local function work(rnd, turn, scale, number, late, pauses)
  local calls = {}
  for i = 1, rnd:one_in(4) and rnd:int(2, 6) or 1 do
    calls[i] = { id = ("c%d-%d"):format(number, i), name = rnd:pick(tools),
      arguments = ('{"path":"file%d"}'):format(rnd:int(1, 9)) }
  end
  turn[#turn + 1] = { role = "assistant", content = rnd:one_in(2) and "" or content_of(rnd, scale),
    tool_calls = calls }
  for i = #calls, 2, -1 do
    local j = rnd:int(1, i)
    calls[i], calls[j] = calls[j], calls[i]
  end
  for _, call in ipairs({ table.unpack(calls) }) do
    local result = { role = "tool", tool_call_id = call.id,
      content = text_of(rnd, size_of(rnd, scale * 4)) }
    if rnd:one_in(8) then
      result.is_error, result.content = true, "error: no such file"
    end
    if pauses and rnd:one_in(2) then
      pauses[#pauses + 1] = result
    elseif rnd:one_in(20) then
      late[#late + 1] = result -- comes in a later turn, or never
    else
      turn[#turn + 1] = result
    end
  end
  table.sort(calls, function(a, b) return a.id < b.id end)
end

---@class sessile.testing.shape
---@field turns integer?  at most this number (default 12)
---@field scale integer?  tokens of a usual message, at most (default 30)

--- A conversation: a list of turns, each a list of messages.
---@param seed integer
---@param shape sessile.testing.shape?
---@return sessile.Message[][]
function generate.turns(seed, shape)
  shape = shape or {}
  local rnd = random.new(seed)
  local scale = shape.scale or 30
  local turns, late, pauses, number = {}, {}, {}, 0
  for i = 1, rnd:int(1, shape.turns or 12) do
    local turn = {}
    if i == 1 and not rnd:one_in(4) then
      turn[1] = { role = rnd:one_in(5) and "developer" or "system",
        content = "You are a test. " .. text_of(rnd, rnd:int(0, scale)) }
    end
    table.move(pauses, 1, #pauses, #turn + 1, turn)
    pauses = {}
    if late[1] and rnd:one_in(2) then
      turn[#turn + 1] = table.remove(late, 1)
    end
    if not rnd:one_in(15) then -- now and then an agent continues by itself
      turn[#turn + 1] = { role = "user", content = content_of(rnd, scale) }
    end
    for _ = 1, rnd:one_in(10) and rnd:int(5, 12) or rnd:int(0, 3) do
      number = number + 1
      work(rnd, turn, scale, number, late)
    end
    if #turn == 0 or not rnd:one_in(6) then
      turn[#turn + 1] = { role = "assistant", content = content_of(rnd, scale) }
    end
    if rnd:one_in(5) then -- the host hands in a turn while tools are still at work
      number = number + 1
      work(rnd, turn, scale, number, late, pauses)
    end
    turns[i] = turn
  end
  return turns
end

return generate
