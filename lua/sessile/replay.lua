--- replay: runs a recorded conversation, turn by turn, under a policy.
--
-- The result shows what a policy would have done to a real conversation. No real model is asked: a
-- scripted one answers from the request alone, so two replays of a recording differ only in their
-- times.
--
-- Usage that providers reported is left out, because it describes the recorded context, which is
-- different under another policy. Tokens are the engine's estimate.

local facts = require "sessile.facts"
local sessile = require "sessile"
local members = require "sessile.import.parts"

local replay = {}

local function content_text(message)
  local content = message.content
  if type(content) == "string" then
    return content
  end
  local parts = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and type(block.text) == "string" then
      parts[#parts + 1] = block.text
    end
  end
  return table.concat(parts, " ")
end

local function first_words(text, count)
  local words = {}
  for word in text:gmatch("%S+") do
    words[#words + 1] = #word <= 24 and word or nil
    if #words == count then break end
  end
  return table.concat(words, " ")
end

--- A model that answers any request with a few sentences taken from it, always the same.
---@param request {messages: table[], purpose: string?, max_tokens: integer?}
---@return string
function replay.model(request)
  local list = type(request.messages) == "table" and request.messages or {}
  local roles, order, bytes = {}, {}, 0
  local quoted
  for _, message in ipairs(list) do
    local role = tostring(message.role)
    if not roles[role] then
      roles[role], order[#order + 1] = 0, role
    end
    roles[role] = roles[role] + 1
    local text = content_text(message)
    bytes = bytes + #text
    if not quoted and message.role == "user" and text ~= "" then
      quoted = first_words(text, 8)
    end
  end
  local parts = {}
  for i, role in ipairs(order) do
    parts[i] = ("%d %s"):format(roles[role], role)
  end
  local last = list[#list] and first_words(content_text(list[#list]), 8) or ""
  return ("Scripted summary of %d messages (%s; %d bytes). It begins: “%s”. It ends: “%s”.")
    :format(#list, table.concat(parts, ", "), bytes, quoted or "", last)
end

---@class sessile.replay.compaction
---@field turn integer
---@field before integer   tokens
---@field after integer
---@field policy string?
---@field reason string?   "turn", or what made it compact: "threshold", "timer", …
---@field dropped integer  messages that left: lost, covered or replaced

---@class sessile.replay.ledger
---@field turns integer
---@field messages integer
---@field compactions sessile.replay.compaction[]
---@field refusals {turn: integer, policy: string?, law: integer?, message: string?}[]
---@field too_little integer   compactions left out because they saved under 5 %
---@field cannot_fit {turn: integer, by: integer}[]
---@field model_calls integer
---@field peak integer         the largest context after a turn, in tokens
---@field tokens integer       the context at the end
---@field all integer          what the whole conversation would take, in tokens
---@field context integer      messages in the context at the end
---@field bytes integer?       of the log
---@field engine_us integer    policies aside
---@field policy_us integer

local function new_ledger()
  return {
    turns = 0, messages = 0, compactions = {}, refusals = {}, too_little = 0, cannot_fit = {},
    model_calls = 0, peak = 0, tokens = 0, all = 0, context = 0, engine_us = 0, policy_us = 0,
  }
end

local function enter(ledger, outcome)
  ledger.engine_us = ledger.engine_us + (outcome.engine_us or 0) - (outcome.policy_us or 0)
  ledger.policy_us = ledger.policy_us + (outcome.policy_us or 0)
  ledger.peak = math.max(ledger.peak, outcome.tokens.after)
  local policy = outcome.policy
  local reason = policy and policy.reason
  if policy and policy.refused then
    ledger.refusals[#ledger.refusals + 1] = {
      turn = ledger.turns, policy = policy.name, law = policy.law, message = policy.message,
    }
    policy = policy.fallback
  end
  if policy and policy.applied then
    ledger.compactions[#ledger.compactions + 1] = {
      turn = ledger.turns, before = outcome.tokens.before, after = outcome.tokens.after,
      policy = policy.name, reason = reason, dropped = #(policy.removals or {}),
    }
  end
  if policy and (policy.too_little == true or policy.verdict == "too_little") then
    ledger.too_little = ledger.too_little + 1
  end
  if outcome.cannot_fit then
    ledger.cannot_fit[#ledger.cannot_fit + 1] = { turn = ledger.turns, by = outcome.cannot_fit }
  end
end

local function finish(ledger, store, session)
  local list, info = session:context()
  if list then
    ledger.tokens, ledger.context = info.tokens, #list
  end
  for _, message in ipairs(session:messages() or {}) do
    ledger.all = ledger.all + (facts.of(message).tokens or 0)
  end
  for _, row in ipairs(store:list { agent = session.agent, prefix = session.id } or {}) do
    if row.id == session.id and row.agent == session.agent then
      ledger.bytes = row.bytes
    end
  end
end

---@class sessile.replay.options
---@field policy any            as for sessile.open
---@field fallback any?         likewise
---@field triggers any?          likewise
---@field window integer?
---@field reserve integer?
---@field store table?          else a fresh one in memory
---@field id string?            the session's id in that store
---@field title string?
---@field model (fun(request: table): string)?
---@field on_turn (fun(ledger: sessile.replay.ledger, outcome: table, session: table))?

--- Replays the turns of `records` (from sessile.import). Returns the ledger, and the session
--- when a store was given.
---@param records fun(): sessile.import.record?
---@param options sessile.replay.options
---@return sessile.replay.ledger? ledger
---@return table|string|nil session_or_message
---@return string? code
function replay.run(records, options)
  local store = options.store or assert(sessile.open("ram:", { key = false }))
  local ledger = new_ledger()
  local model = options.model or replay.model
  local session, message, code, retry_ms, rule = store:create {
    id = options.id, title = options.title, policy = options.policy,
    window = options.window, reserve = options.reserve, fallback = options.fallback,
    triggers = options.triggers,
    model = function(request)
      ledger.model_calls = ledger.model_calls + 1
      return model(request)
    end,
  }
  if not session then
    return nil, message, code, retry_ms, rule
  end
  for record in records do
    if record.kind == "turn" then
      local list = {}
      for i, json in ipairs(record.messages) do
        list[i] = sessile.json(members.without(json, "usage"))
      end
      local outcome
      outcome, message, code, retry_ms, rule = session:turn(list, { model_name = record.model })
      if not outcome then
        session:close()
        return nil, message, code, retry_ms, rule
      end
      ledger.turns = ledger.turns + 1
      ledger.messages = ledger.messages + #list
      enter(ledger, outcome)
      if options.on_turn then
        options.on_turn(ledger, outcome, session)
      end
    end
  end
  finish(ledger, store, session)
  if options.store then
    return ledger, session
  end
  session:close()
  store:close()
  return ledger
end

return replay
