-- guarded.lua: the same specs with a guard. With TEST_GUARD=standard or strict (tests/run --guard)
-- each store that a spec opens has a guard of that profile, and the spec gets what the command line
-- gets: a view of whoever has the store. So does the executable that it runs. Nothing is counted: a
-- spec does in a second what a person does in an hour.
--
-- Must never change what a spec expects: what holds without a guard alone says so, by
-- unguarded_only().

local guarded = { profile = os.getenv "TEST_GUARD" }
if guarded.profile == "" then
  guarded.profile = nil
end

--- The text of a configuration, with the guard if it sets none.
function guarded.configuration(text)
  if not guarded.profile or text:find("guard", 1, true) then
    return text
  end
  return (text:gsub("return%s*{", ("%%0 guard = { profile = %q, rate_limits = false },")
    :format(guarded.profile), 1))
end

--- In a test: it is about stores without a guard.
function guarded.unguarded_only(why)
  if guarded.profile then
    require "busted.core"().pending("without a guard: " .. (why or "it sets its own"))
  end
end

--- sessile.open, from here on, of this process.
function guarded.install()
  if not guarded.profile then
    return
  end
  local guard_open = require "sessile.guard_open"
  local sessile = require "sessile"
  local open = sessile.open
  sessile.open = function(where, options)
    -- what is called wrongly, sets a guard of its own, or is kept by the host, which has no views
    if options ~= nil and (type(options) ~= "table" or options.guard ~= nil)
      or type(where) == "table" then
      return open(where, options)
    end
    local given = { guard = { profile = guarded.profile, rate_limits = false } }
    for name, value in pairs(options or {}) do
      given[name] = value
    end
    local store, message, code = open(where, given)
    if not store then
      return nil, message, code
    end
    return guard_open.own(store, { os = true }, true)
  end
end

return guarded
