--- memory_replay: runs recorded conversations, turn by turn, under a policy of memories.
--
-- The result shows what would have been remembered and recalled. Everything happens in a store in
-- memory. The recordings are sessions of one user, so that what one of them taught is recalled in
-- the next. No real model is asked: a scripted one answers from the request alone.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local members = require "sessile.import.parts"
local sessile = require "sessile"

local utf8 = dialect.utf8

local memory_replay = {}

local AGENT, USER = "replay", "user"

--- A model that answers in the form that the shipped policies ask for: of each message of a user,
--- the beginning is a fact; no entry makes another one wrong.
function memory_replay.model(request)
  if request.purpose ~= "remember" then
    return "none"
  end
  local lines = {}
  local list = request.messages or {}
  for number, text in (list[#list] and list[#list].content or "")
    :gmatch "%f[^\n%z]%[(%d+)%] %S+ user[^\n:]*: ([^\n]*)" do
    text = text:gsub("|", "/")
    local cut = #text > 200 and utf8.offset(text, 0, 200) or #text + 1
    lines[#lines + 1] = ("%s | fact | - | %s | -"):format(number, text:sub(1, cut - 1))
  end
  return #lines > 0 and table.concat(lines, "\n") or "none"
end

---@class sessile.memory_replay.event
---@field turn integer
---@field recalled table[]   rows that would have been quoted
---@field changes table[]    what would have been written: as in the outcome of session:remember
---@field refused string?    why a run was refused
---@field law integer?
---@field policy string?

---@class sessile.memory_replay.ledger
---@field turns integer
---@field messages integer
---@field model_calls integer
---@field events sessile.memory_replay.event[]  of the turns in which there was something
---@field recalled integer
---@field written integer
---@field pending integer
---@field ended integer
---@field confirmed integer
---@field refused integer

local SUMS = { "written", "pending", "ended", "confirmed" }

-- A turn as what comes before the first answer, and the rest; and whether a user asks.
local function split(list)
  local head, rest, asks = {}, {}, false
  for _, message in ipairs(list) do
    local role = core.plain(message).role
    local into = (#rest > 0 or role == "assistant") and rest or head
    into[#into + 1] = message
    asks = asks or into == head and role == "user"
  end
  return head, rest, asks
end

-- What is quoted to the newest question.
local function recall(self, session)
  local outcome, message, code, retry_ms, rule = session:recall { policy = self.policy }
  if not outcome then
    return nil, message, code, retry_ms, rule
  end
  local rows = {}
  local list = outcome.id and assert(session:messages()) or {}
  for i, of in ipairs(list[#list] and list[#list].metadata.of or {}) do
    rows[i] = assert(self.memory:get(of.id))
  end
  return rows, outcome.message
end

local function play_turn(self, session, list, event)
  local head, rest, asks = split(list)
  if #head > 0 then
    assert(session:turn(head, { policy = false, triggers = false }))
  end
  if asks then
    local rows, message, code, retry_ms, rule = recall(self, session)
    if not rows then
      return nil, message, code, retry_ms, rule
    end
    event.recalled, event.refused = rows, message
  end
  if #rest > 0 then
    assert(session:turn(rest, { policy = false, triggers = false }))
  end
  if self.hooks.remember then
    local outcome, message, code, retry_ms, rule =
      session:remember { policy = self.policy, model = self.ask }
    if not outcome then
      return nil, message, code, retry_ms, rule
    end
    event.changes, event.outcome = outcome.changes or {}, outcome
    if outcome.verdict == "refused" then
      event.refused, event.law, event.policy = outcome.message, outcome.law, outcome.policy
    end
  end
  return event
end

local methods = {}
local meta = { __index = methods }

-- Plays it in a session and fills in the ledger.
local function play(session, self, records, ledger)
  for record in records do
    if record.kind == "turn" then
      local list = {}
      for i, json in ipairs(record.messages) do
        list[i] = sessile.json(members.without(json, "usage"))
      end
      ledger.turns, ledger.messages = ledger.turns + 1, ledger.messages + #list
      local event, message, code, retry_ms, rule = play_turn(self, session, list,
        { turn = ledger.turns, recalled = {}, changes = {} })
      if not event then
        return nil, message, code, retry_ms, rule
      end
      for _, name in ipairs(SUMS) do
        ledger[name] = ledger[name] + (event.outcome and event.outcome[name] or 0)
      end
      event.outcome = nil
      ledger.recalled = ledger.recalled + #event.recalled
      ledger.refused = ledger.refused + (event.refused and 1 or 0)
      if #event.recalled > 0 or #event.changes > 0 or event.refused then
        ledger.events[#ledger.events + 1] = event
      end
    end
  end
  return ledger
end

--- Plays a recording (from sessile.import). Returns its ledger; nil, message, code.
---@param records fun(): sessile.import.record?
---@return sessile.memory_replay.ledger?
---@return string? message
---@return string? code
function methods:run(records)
  local ledger = { turns = 0, messages = 0, model_calls = 0, events = {}, recalled = 0, written = 0,
    pending = 0, ended = 0, confirmed = 0, refused = 0 }
  self.ledger = ledger
  local session = assert(self.store:create { agent = AGENT, user = USER })
  return dialect.closing(session, play, self, records, ledger)
end

--- Closes the store.
function methods:close()
  return self.store:close()
end

--- A replay: a memory that recordings teach, one after the other.
---@param options {policy: any, hooks: table, model: (fun(request: table): string)?}
function memory_replay.new(options)
  local store = assert(sessile.open("ram:", { key = false,
    memory = { enabled = true, remember = false, recall = false } }))
  local self = setmetatable({ store = store, policy = options.policy, hooks = options.hooks }, meta)
  self.memory = assert(store:memory { agent = AGENT, user = USER, consent = "for a replay" })
  local model = options.model or memory_replay.model
  self.ask = function(request)
    self.ledger.model_calls = self.ledger.model_calls + 1
    return model(request)
  end
  return self
end

return memory_replay
