--- properties: what must hold for every context that a policy leaves.
--
-- The engine has already checked each proposal against the laws. Here the contexts that it accepted
-- are checked again by independent code. Each check returns an error message, or nil.

local facts = require "sessile.facts"

local properties = {}

--- The laws, by number: how a test names them.
properties.laws = {
  { 1, "keeps calls and their results together" },
  { 2, "leaves open work alone" },
  { 3, "changes no message that it keeps" },
  { 4, "keeps the order of the log" },
  { 5, "keeps what is pinned and what the user said last" },
  { 6, "makes progress when it takes anything out" },
  { 7, "leaves the newest messages" },
  { 8, "accounts for all that left" },
  { 9, "fits the window, or says that it cannot" },
  { 10, "stays within its bounds" },
}

-- What a user said: not a message that only carries results, nor one that a policy wrote.
local function is_said(message)
  if message.role ~= "user" or (message.metadata and message.metadata.kind) then
    return false
  end
  if type(message.content) ~= "table" then
    return true
  end
  for _, block in ipairs(message.content) do
    if block.type ~= "tool_result" then
      return true
    end
  end
  return #message.content == 0
end
properties.is_said = is_said

-- The engine's name of a message; nil: the engine added it.
local function key_of(message)
  return facts.within(message).key
end

local function entry_number(key)
  return tonumber(key and key:match("^(%x+)"), 16)
end

--- Every call is followed by its results, and nothing else is between.
function properties.pairs(list)
  local waiting, count = {}, 0
  for i, message in ipairs(list) do
    if message.role == "tool" or message.role == "function" then
      local id = message.tool_call_id
      if id and not waiting[id] then
        return ("message %d answers '%s', which nobody called"):format(i, id)
      elseif id then
        waiting[id], count = nil, count - 1
      end
    elseif count > 0 then
      return ("message %d stands between a call and its result"):format(i)
    end
    for _, call in ipairs(message.tool_calls or {}) do
      if not waiting[call.id] then
        waiting[call.id], count = true, count + 1
      end
    end
  end
  return nil
end

--- What is kept is its entry, byte for byte.
function properties.truth(result)
  local json_of = {}
  for _, message in ipairs(result.messages) do
    json_of[key_of(message)] = facts.within(message).json
  end
  for _, message in ipairs(result.context) do
    local own = facts.within(message)
    local was = own.key and json_of[own.key]
    if was and was ~= own.json then
      return ("message %s is not what its entry says"):format(own.key)
    end
  end
  return nil
end

--- Kept entries ascend, except late answers, which follow their calls.
function properties.order(result)
  local last = -1
  for _, message in ipairs(result.context) do
    local key = key_of(message)
    local number = key and not key:find(".", 1, true)
      and message.role ~= "tool" and message.role ~= "function" and entry_number(key)
    if number then
      if number < last then
        return ("message %s stands after %08x"):format(key, last)
      end
      last = number
    end
  end
  return nil
end

-- The keys of those messages that have one, as a set.
local function keys_of(messages)
  local keys = {}
  for _, message in ipairs(messages) do
    local key = key_of(message)
    if key then
      keys[key] = true
    end
  end
  return keys
end

--- The system messages that open, and the user's last one.
function properties.pinned(result)
  local there = keys_of(result.context)
  for _, message in ipairs(result.messages) do
    if message.role ~= "system" and message.role ~= "developer" then
      break
    elseif not there[key_of(message)] then
      return ("the opening %s message %s is gone"):format(message.role, key_of(message))
    end
  end
  for i = #result.messages, 1, -1 do
    local message = result.messages[i]
    if is_said(message) then
      if not there[key_of(message)] then
        return ("the user's last message %s is gone"):format(key_of(message))
      end
      break
    end
  end
  return nil
end

--- Every message of the path is in the context or in the account of a compaction, and what is
--- in neither is what the engine leaves out of any context.
function properties.account(result)
  local known = keys_of(result.context)
  for _, outcome in ipairs(result.outcomes) do
    for _, removal in ipairs(outcome.removals or {}) do
      known[removal.key] = true
    end
  end
  local missing, first = 0, nil
  for _, message in ipairs(result.messages) do
    if not known[key_of(message)] then
      missing, first = missing + 1, first or key_of(message)
    end
  end
  if missing > (result.info.orphans or 0) then
    return ("%d messages, %s the first, are neither in the context nor in the account")
      :format(missing, first)
  end
  return nil
end

--- After each turn the context fits, or the outcome says by how much it does not.
function properties.budget(result)
  if not result.window then
    return nil
  end
  local room = result.window - result.reserve
  for i, outcome in ipairs(result.outcomes) do
    local after = outcome.tokens and outcome.tokens.after or 0
    if after > room and not outcome.cannot_fit and not (outcome.policy and outcome.policy.refused)
    then
      return ("turn %d leaves %d tokens where %d fit, and does not say so"):format(i, after, room)
    end
  end
  return nil
end

-- The laws that can be seen from outside, by number.
local seen = {
  [1] = function(result)
    for i, outcome in ipairs(result.outcomes) do
      local wrong = properties.pairs(outcome.context)
      if wrong then
        return ("after turn %d: %s"):format(i, wrong)
      end
    end
    return properties.pairs(result.context)
  end,
  [3] = properties.truth,
  [4] = properties.order,
  [5] = properties.pinned,
  [8] = properties.account,
  [9] = properties.budget,
}

--- How a result breaks a law: a sentence and the turn, or nil. law 0: an error of the policy.
---@param result sessile.testing.result
---@param law integer
function properties.broken(result, law)
  for _, refusal in ipairs(result.refusals) do
    if (refusal.law or 0) == law then
      return refusal.message, refusal.turn
    end
  end
  local look = seen[law]
  return look and look(result) or nil
end

return properties
