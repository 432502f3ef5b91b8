-- memory_settings.lua: what a store and its agents set for long-term memories.
--
-- A setting is the agent's if the agent has it, else the store's. Of both, what a call says holds.
-- `open` is the store's alone.

local dialect = require "sessile.dialect"
local embedding = require "sessile.model.embedding"
local options = require "sessile.options"
local times = require "sessile.times"

local math = dialect.math

local settings = {}

local shape = options.shape("sessile.open: memory", {
  enabled = "boolean", language = "string", ttl = "span|no", weight = "any", share = "boolean",
  zone = "string", recall = "table|no", policy = "any", remember = "table|no", trust = "table",
  open = "positive", embed = "any", name = "string", dims = "positive", vectors = "table|no",
})

local vectors_shape = options.shape("sessile.open: memory: vectors",
  { put = "callable", search = "callable", remove = "callable" })

-- Makes of `embed`, `name` and `dims` who embeds.
local function take_embed(who, own)
  if own.embed then
    own.embed = embedding.make(who .. ": memory: embed", own.embed, own.name, own.dims)
  elseif own.embed == nil and (own.name or own.dims) then
    options.misuse(who .. ": memory: name and dims are those of `embed`: give both in one place")
  end
  own.name, own.dims = nil, nil
  if own.vectors then
    own.vectors = options.check(who .. ": memory: vectors", own.vectors, vectors_shape)
    if not own.vectors.put or not own.vectors.search then
      options.misuse(who .. ": memory: vectors: functions put and search expected")
    end
  end
end

--- When a session is heard, beside by hand: after a compaction, on closing, every so many turns.
settings.remember_fields = { compact = "boolean", close = "boolean", turns = "positive" }
local remember_shape =
  options.shape("sessile.open: memory: remember", settings.remember_fields)
settings.trust_fields = { tool = { "pending", "live" } }
local trust_shape = options.shape("sessile.open: memory: trust", settings.trust_fields)

-- {"compact", "close", turns = 10} as {compact = true, close = true, turns = 10}.
local function check_remember(who, given)
  local named = {}
  for key, value in pairs(given) do
    if math.type(key) == "integer" then
      key, value = value, true
    end
    named[key] = value
  end
  return options.check(who, named, remember_shape)
end

--- What can be said about recall: `memory.recall`, and the options of session:recall.
settings.recall_fields = {
  budget = "count", share = "any", min = "any", near = "any", limit = "positive",
  trust = { "system", "user", "agent", "tool" }, recency = "any", importance = "any",
  start = "boolean",
}
local recall_shape = options.shape("sessile.open: memory: recall", settings.recall_fields)

-- The largest value of those that are no counts; all begin with 0.
local numbers = { share = 1, min = 1, near = 1, recency = 1000, importance = 1000, weight = 1 }

--- Reports those among options of recall that are no numbers, or out of range: name, what was
--- expected.
function settings.read_recall(opts, report)
  for name, most in pairs(numbers) do
    local value = opts[name]
    if value ~= nil and not (type(value) == "number" and value >= 0 and value <= most) then
      report(name, ("a number from 0 to %d expected"):format(most))
    end
  end
end

--- Checks the option `memory` of a store, or of an agent (is_agents), and returns a checked copy,
--- with `zone` in ms, and `embed` as {name=, dims=, ask=} (model/embedding.lua); nil: it is not
--- given. Raises.
function settings.check(who, given, is_agents)
  if given == nil then
    return nil
  end
  local own = options.check(who .. ": memory", given, shape)
  if own.open and (is_agents or own.open < 2) then
    options.misuse(("%s: memory: option 'open': %s"):format(who, is_agents
      and "it is for all agents of a store" or "at least 2: a session has two memories"))
  end
  local weight = own.weight
  if weight ~= nil and not (type(weight) == "number" and weight >= 0 and weight <= 1) then
    options.misuse(who .. ": memory: option 'weight': a number from 0 to 1 expected")
  end
  if own.zone and not times.zone(own.zone) then
    options.misuse(("%s: memory: option 'zone': \"UTC\", or an offset as \"+02:00\", expected, "
      .. "got %q"):format(who, own.zone:sub(1, 40)))
  end
  own.zone = own.zone and times.zone(own.zone)
  if own.remember then
    own.remember = check_remember(who .. ": memory: remember", own.remember)
  end
  if own.trust then
    own.trust = options.check(who .. ": memory: trust", own.trust, trust_shape)
  end
  take_embed(who, own)
  if own.recall then
    own.recall = options.check(who .. ": memory: recall", own.recall, recall_shape)
    settings.read_recall(own.recall, function(name, what)
      options.misuse(("%s: memory: recall: option '%s': %s"):format(who, name, what))
    end)
  end
  return own
end

--- The settings of an agent's memories.
function settings.of(store, agent)
  local own = store._agents and store._agents[agent] or {}
  return options.add(options.add({}, store._memory or nil), own.memory)
end

--- Whether a send recalls by itself.
function settings.recalls(store, agent)
  local own = settings.of(store, agent)
  return own.enabled == true and own.recall ~= false
end

--- Whether a session is heard by itself: `when` is "compact" or "close"; or every so many turns.
function settings.remembers(store, agent, when)
  local own = settings.of(store, agent)
  local remember = own.remember
  if remember == nil then
    remember = { compact = true, close = true }
  end
  return own.enabled == true and own.policy and remember and remember[when] or false
end

--- true, or nil, message, code if memories are off.
function settings.check_enabled(own, agent)
  if own.enabled == false then
    return nil, ("long-term memory is off for agent '%s': set memory.enabled, or "
      .. "agents.%s.memory.enabled, to true"):format(agent, agent), "EDENIED"
  end
  return true
end

return settings
