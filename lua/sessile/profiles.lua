-- profiles.lua: what a guard consists of by the name of a profile.
--
-- A key of the configuration or of sessile.open replaces that of the profile. A key that is not
-- here is the engine's default. guard_options.lua says what each may be.

local profiles = {}

-- The rates are the engine's (engine/limit/README.md).
local rates = {
  session_creation = "10/minute", checkpoint_writes = "100/minute", memory_reads = "1000/minute",
  memory_writes = "100/minute", branch_operations = "20/minute", searches = "60/minute",
  exports = "10/hour", grants = "60/minute", failures = "10/minute",
}

local closed = { deny = true }
for rule, rate in pairs(rates) do
  closed[rule] = rate
end

profiles.standard = {
  name = "standard",
  require_principal = false,
  plain = true,
  rate_limits = rates,
  audit = true,
  consent = true,
  screens = { "no_orders", "secrets" },
  urls = { memory = "refuse", state = "refuse" },
  retention = false,
}

profiles.strict = {
  name = "strict",
  require_principal = true,
  plain = false,
  rate_limits = closed,
  audit = { sync = true, closed = true },
  consent = true,
  screens = { "no_orders", "secrets", { "injection", on = { "message", "memory", "state" } } },
  urls = { memory = "refuse", state = "refuse", message = "flag" },
  retention = { sessions = "90d", memory = "90d" },
}

--- The rules of limits, as a set.
profiles.is_rule = {}
for rule in pairs(rates) do
  profiles.is_rule[rule] = true
end

--- Their names, for a message.
profiles.names = { "standard", "strict", "off" }

return profiles
