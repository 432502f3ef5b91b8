-- usage.lua: the report of a provider, {input =, output =, cache_read =, cache_write =} by these or
-- its own names: whether its counts are counts.

local core = require "sessile.core"
local options = require "sessile.options"

local usage = {}

-- The names that the engine reads.
local counts = {}
for name in ("input input_tokens prompt_tokens output output_tokens completion_tokens "
  .. "cache_read cacheRead cache_read_input_tokens cache_write cacheWrite "
  .. "cache_creation_input_tokens"):gmatch "%S+" do
  counts[name] = true
end

--- Raises if a count in a report of the program's is none.
function usage.check(who, report)
  for name in pairs(counts) do
    if report[name] ~= nil and report[name] ~= core.null then
      options.value(("%s: option 'usage': %s"):format(who, name), report[name], "count")
    end
  end
end

--- A copy of a report of a model's, without counts that are none.
function usage.sound(report)
  local copy = {}
  for name, value in pairs(report) do
    if not counts[name] or options.is("count", value) then
      copy[name] = value
    end
  end
  return copy
end

return usage
