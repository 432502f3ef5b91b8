-- settings.lua: the settings of a send: their names, their checks, and which of several values is
-- used (store, session, agent, call).
--
-- It does not require sessions, so that stores and sessions can hold these settings without the
-- loop.

local options = require "sessile.options"

local settings = {}

--- Option kinds, in addition to `model` and `policy`.
settings.kinds = {
  tools = "table", before = "table|callable", after = "table|callable", reducer = "callable",
  max_steps = "positive", on_event = "callable", parallel = "boolean|callable",
  commit = { "step", "turn" },
}

local tool_kinds = options.shape("sessile.open: tool", {
  run = "callable", parameters = "table", description = "string", repeatable = "boolean",
})

-- Tools as the loop needs them: {name = {run=, …}}. A function is short for { run = … }.
local function check_tools(who, tools)
  local checked = {}
  for name, tool in pairs(tools) do
    if type(name) ~= "string" or name == "" then
      options.misuse(who .. ": tools: names expected, as in tools = { read_file = {…} }")
    end
    local label = ("%s: tool '%s'"):format(who, name)
    if type(tool) == "function" then
      tool = { run = tool }
    end
    checked[name] = options.check(label, tool, tool_kinds)
    if not checked[name].run then
      options.misuse(label .. ": run is missing: a function(args, ctx) expected")
    end
  end
  return checked
end

-- One function, or a list of them, as a list.
local function check_hooks(who, name, hooks)
  if options.callable(hooks) then
    return { hooks }
  end
  local list = {}
  for i, hook in ipairs(hooks) do
    if not options.callable(hook) then
      options.misuse(("%s: option '%s': number %d is no function"):format(who, name, i))
    end
    list[i] = hook
  end
  if next(hooks) ~= nil and #list == 0 then
    options.misuse(("%s: option '%s': a list of functions expected"):format(who, name))
  end
  return list
end

--- The settings among checked options. Raises if a tool or a hook is wrong.
function settings.take(who, given)
  local taken = {}
  for name in pairs(settings.kinds) do
    taken[name] = given[name]
  end
  if taken.tools then
    taken.tools = check_tools(who, taken.tools)
  end
  for _, name in ipairs { "before", "after" } do
    if taken[name] then
      taken[name] = check_hooks(who, name, taken[name])
    end
  end
  return taken
end

--- Merges settings; `over` overrides `under`.
function settings.over(under, over)
  local merged = {}
  for name in pairs(settings.kinds) do
    local value = over[name]
    if value == nil then
      value = under[name]
    end
    merged[name] = value
  end
  return merged
end

return settings
