--- memory: a policy of memories under test, and what it does with a memory.
--
-- A fixture is a memory of its own in a store in memory, with the entries that a spec lists.
-- Sandbox, search and laws are those of the engine, as in use.

local fixtures = require "sessile.testing.fixtures"
local models = require "sessile.testing.models"
local sessile = require "sessile"

local memory = {}

local meta = { __name = "sessile.testing.memory" }

local AGENT = "agent" -- of all fixtures

---@class sessile.testing.memory_entry
---@field value string
---@field key string?
---@field also string?
---@field kind string?        fact, episode, reflection or procedure
---@field source string?      user (as usual), agent, tool or system
---@field importance number?
---@field ttl any?
---@field holds_from any?
---@field holds_until any?
---@field metadata table?
---@field pending boolean?
---@field pinned boolean?
---@field approved boolean?   it was pending, and a person approved it

---@class sessile.testing.memory_spec
---@field entries (sessile.testing.memory_entry|string)[]?  oldest first; a text is one of the user
---@field user string|false?  whose memory it is (as usual "ann"); false: that of the agent
---@field shared (sessile.testing.memory_entry|string)[]?  what the agent keeps for all

local written = { "also", "kind", "importance", "ttl", "holds_from", "holds_until", "metadata",
  "pending", "from" }

-- Writes an entry and returns its id.
local function add(handle, entry)
  if type(entry) == "string" then
    entry = { value = entry }
  end
  local options = { source = entry.source or "user" }
  for _, name in ipairs(written) do
    options[name] = entry[name]
  end
  options.pending = entry.pending or entry.approved
  local id = assert(handle:write(entry.key, entry.value, options))
  if entry.approved then
    assert(handle:approve(id))
  end
  if entry.pinned then
    assert(handle:pin(id))
  end
  return id
end

-- The store of a fixture, made when it is needed: the policy's limits and folders hold in it.
local function open(self, policy)
  if rawget(self, "store") then
    return self
  end
  local store = assert(sessile.open("ram:", {
    key = false, policy_path = policy and policy.policy_path, limits = policy and policy.limits,
    memory = { enabled = true, remember = false, recall = false },
  }))
  rawset(self, "store", store)
  rawset(self, "handle", assert(store:memory { agent = AGENT,
    user = self.user or nil, consent = self.user and "yes, for a test" or nil }))
  if self.user then
    rawset(self, "agent_handle", assert(store:memory { agent = AGENT }))
  end
  rawset(self, "ids", {})
  for i, entry in ipairs(self.spec.entries or {}) do
    self.ids[i] = add(self.handle, entry)
  end
  for _, entry in ipairs(self.spec.shared or {}) do
    add(self.agent_handle or self.handle, entry)
  end
  return self
end

local methods = {}

--- Writes one more entry; returns its id.
function methods:add(entry)
  return add(open(self).handle, entry)
end

--- A new session of the memory's user, in which this was said: messages, turns or a recording.
function methods:talk(said, policy)
  open(self, policy)
  local session = assert(self.store:create { agent = AGENT, user = self.user or nil })
  for i, turn in ipairs(fixtures.of(said or {}).turns) do
    local outcome, message = session:turn(turn, { policy = false, triggers = false })
    if not outcome then
      error(("turn %d: the engine does not take it: %s"):format(i, message), 0)
    end
  end
  return session
end

--- The values of the live entries, oldest first.
function methods:values()
  local values = {}
  for i, row in ipairs(self:list()) do
    values[i] = row.value
  end
  for i = 1, #values // 2 do
    values[i], values[#values + 1 - i] = values[#values + 1 - i], values[i]
  end
  return values
end

--- Closes its store.
function methods:close()
  local store = rawget(self, "store")
  return store == nil or store:close()
end

-- Everything else is a method of the memory: list, read, get, search, history, reject, …
function meta.__index(self, name)
  if methods[name] then
    return methods[name]
  elseif rawget(self, "spec") and (name == "handle" or name == "store" or name == "ids"
    or name == "agent_handle") then
    return rawget(open(self), name)
  end
  local handle = open(self).handle
  local method = handle[name]
  if type(method) ~= "function" then
    return method
  end
  return function(_, ...)
    return method(handle, ...)
  end
end

--- A memory for a spec. It is a sessile.Memory, and has add, talk, values, ids, store and close.
---@param spec sessile.testing.memory_spec?
function memory.fixture(spec)
  spec = spec or {}
  local user = spec.user
  if user == nil then
    user = "ann"
  end
  return setmetatable({ spec = spec, user = user or false }, meta)
end

-- A fixture, made of what a call gives: one, a spec, or entries; nil: an empty one.
local function fixture_of(given)
  if getmetatable(given) == meta then
    return given
  end
  return memory.fixture(given)
end

local function asking(model)
  model = model or models.scripted { "none" }
  return function(request)
    return model(request)
  end
end

---@class sessile.testing.memory_options
---@field memory any?      of T.memory, or what it takes; else an empty one
---@field model any?       a scripted model, a function; else one that answers "none"
---@field session any?     of an earlier result: what is said is said there
---@field dry boolean?

-- Adds to an outcome what a spec wants to look at.
local function finish(outcome, fixture, session)
  rawset(outcome, "memory", fixture)
  rawset(outcome, "session", session)
  rawset(outcome, "refused", outcome.verdict == "refused" and outcome.message or nil)
  return outcome
end

--- What a policy does with a memory, as methods of a policy under test.
memory.methods = {}

--- The policy hears what was said, and its proposal is written if the laws allow it. Returns the
--- outcome of session:remember with memory, session, and refused: why, or nil.
---@param said any   messages, turns, a recording; nil: nothing more
---@param options sessile.testing.memory_options?
function memory.methods:remember(said, options)
  options = options or {}
  local fixture = open(fixture_of(options.memory), self)
  local session = options.session
  if not session then
    session = fixture:talk(said, self)
  elseif said then
    for _, turn in ipairs(fixtures.of(said).turns) do
      assert(session:turn(turn, { policy = false, triggers = false }))
    end
  end
  return finish(assert(session:remember {
    policy = self.spec, model = asking(options.model), dry = options.dry,
  }), fixture, session)
end

--- The policy tidies up. entry: the one that it looks at, written after those in `near`; nil: it
--- looks at all that the memory has. Returns the outcome of memory:tidy with memory, id, refused.
---@param entry any?
---@param near any[]?
---@param options sessile.testing.memory_options?
function memory.methods:tidy(entry, near, options)
  options = options or {}
  local fixture = open(fixture_of(options.memory), self)
  for _, one in ipairs(near or {}) do
    fixture:add(one)
  end
  local id = entry and fixture:add(entry)
  local outcome = finish(assert(fixture:tidy {
    ids = id and { id }, policy = self.spec, model = asking(options.model), dry = options.dry,
  }), fixture)
  rawset(outcome, "id", id)
  return outcome
end

--- A session asks, and the policy chooses among what the search finds of the entries. Returns the
--- outcome of session:recall with rows: what was quoted, in its order; and block: the text.
---@param question string
---@param found any[]?  entries
---@param options table?  as sessile.testing.memory_options; also those of session:recall
function memory.methods:recall(question, found, options)
  local given = {}
  for name, value in pairs(options or {}) do
    given[name] = value
  end
  local fixture = open(fixture_of(given.memory), self)
  for _, one in ipairs(found or {}) do
    fixture:add(one)
  end
  local session = given.session or fixture:talk({}, self)
  given.memory, given.model, given.session, given.policy = nil, nil, nil, self.spec
  assert(session:turn({ { role = "user", content = question } }, { policy = false,
    triggers = false }))
  local outcome = assert(session:recall(given))
  local rows, block = {}, nil
  local all = outcome.id and session:messages() or {}
  local message = all[#all]
  if message then
    block = message.content
    for i, of in ipairs(message.metadata.of) do
      local handle = of.memory == "agent" and fixture.agent_handle or fixture.handle
      rows[i] = assert(handle:get(of.id))
    end
  end
  rawset(outcome, "rows", rows)
  rawset(outcome, "block", block)
  rawset(outcome, "memory", fixture)
  rawset(outcome, "session", session)
  return outcome
end

--- What becomes of an entry that somebody writes: "live", "pending" or "refused", and why; "failed"
--- if the policy did.
---@param entry any
---@return string state
---@return string? why
---@return sessile.MemoryRow? row
function memory.methods:admit(entry)
  if type(entry) == "string" then
    entry = { value = entry }
  end
  local store <close> = assert(sessile.open("ram:", {
    key = false, policy_path = self.policy_path, limits = self.limits,
    memory = { enabled = true, policy = self.spec },
  }))
  local handle <close> = assert(store:memory { agent = AGENT })
  local options = { source = entry.source or "user" }
  for _, name in ipairs(written) do
    options[name] = entry[name]
  end
  local id, message, code = handle:write(entry.key, entry.value, options)
  if id then
    local row = assert(handle:get(id))
    return row.state, row.metadata and row.metadata.pending_because, row
  end
  return code == "EDENIED" and "refused" or "failed", message
end

return memory
