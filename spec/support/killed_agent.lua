-- killed_agent.lua: the agent that spec/agent/killed_spec.lua kills. It takes a store's folder, a
-- file of side effects, the number of steps, and "one" (calls one after the other) or "several"
-- (in coroutines). Each side effect is a line of that file; each event a line on stdout.

local sessile = require "sessile"

local dir, effects, steps, how = arg[1], arg[2], tonumber(arg[3]), arg[4]

local function affect(text)
  local file = assert(io.open(effects, "ab"))
  assert(file:write(text, "\n"))
  file:close()
end

local function tool(name, repeatable)
  return { repeatable = repeatable, run = function(args)
    if how == "several" then
      coroutine.yield()
    end
    affect(name .. " " .. args.n)
    if how == "several" then
      coroutine.yield()
    end
    return name .. " " .. args.n
  end }
end

-- What it says follows from what was said before alone, as with a real model.
local function model(request)
  local n = 1
  for _, message in ipairs(request.messages) do
    n = n + (message.role == "assistant" and 1 or 0)
  end
  if n > steps then
    return "finished"
  end
  local calls = {}
  for i, name in ipairs { "charge", "look", "charge" } do
    calls[i] = { id = ("c%d-%d"):format(n, i), name = name,
      arguments = ('{"n":"%d-%d"}'):format(n, i) }
  end
  return { content = "", tool_calls = calls }
end

local function go()
  local store <close> = assert(sessile.open(dir, { key = false }))
  local session = assert(store:session "s")
  local agent = sessile.agent {
    session = session, model = model, max_steps = steps + 1,
    tools = { charge = tool("charge", false), look = tool("look", true) },
    on_event = function(event)
      io.write(event.type, "\n")
      io.flush()
    end,
  }
  local fresh = #assert(session:messages()) == 0
  local outcome = assert(agent:run(fresh and "go" or nil))
  assert(outcome.status == "completed", outcome.error)
  assert(outcome.text == "finished")
end

if how == "several" then
  local thread = coroutine.create(go)
  repeat
    local ok, why = coroutine.resume(thread)
    assert(ok, why)
  until coroutine.status(thread) == "dead"
else
  go()
end
