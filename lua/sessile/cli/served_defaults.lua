-- served_defaults.lua: what the sessions of a server have where a call has no other: the policies,
-- triggers and windows that are configured for the store and for its agents; and which agents are
-- disabled, or write no memories.
--
-- Other hosts give these with each run (runs.lua). The calls of a server do not pass through Lua,
-- so the service is given them once, before it serves.

local agents = require "sessile.agents"
local inherited = require "sessile.inherited"
local life = require "sessile.life"
local memory_settings = require "sessile.memory_settings"

local served_defaults = {}

-- A row as service.run() takes it. own: the settings of the agent of that name; nil: all others.
local function row(store, own, name)
  local from = inherited.merge({}, own, store)
  local policy, fallback = from.policy or {}, from.fallback or {}
  local checkpoint = from.checkpoint or {}
  local out = { agent = name, policy = policy.handle, fallback = fallback.handle,
    triggers = from.triggers or nil, checkpoint = checkpoint.on, checkpoint_keep = checkpoint.keep,
    ttl_ms = life.ttl(own.ttl, store._ttl, name),
    disabled = name ~= nil and not agents.check_enabled(store, name),
    no_memory = memory_settings.of(store, name).enabled == false }
  inherited.fill(out, own)
  return out
end

--- A list for service.run: the agents that have settings, and last the row of all others. nil,
--- message, code if a policy cannot be loaded.
function served_defaults.of(store)
  local rows, names = {}, {}
  for _, named in ipairs { store._agents, type(store._ttl) == "table" and store._ttl or {} } do
    for name in pairs(named) do
      names[name] = true
    end
  end
  for name in pairs(names) do
    local own, message, code, retry_ms, rule = agents.settings(store, "sessile serve", name)
    if not own then
      return nil, message, code, retry_ms, rule
    end
    rows[#rows + 1] = row(store, own, name)
    if name == store._agent then -- the agent of a call that names none
      rows[#rows + 1] = row(store, own, name)
      rows[#rows].agent = ""
    end
  end
  rows[#rows + 1] = row(store, {})
  return rows
end

return served_defaults
