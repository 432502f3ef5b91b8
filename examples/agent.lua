-- agent.lua: an agent with two tools. It may read; before it writes, a person must approve.
-- Run it with: build/bin/sessile run examples/agent.lua
--
-- The model is a script unless an endpoint is configured: see model.lua.
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

local files = { ["VERSION"] = "1.9" }

-- ------------------------------------------------------------------ the model

local function call(id, name, arguments)
  return { content = "", tool_calls = { { id = id, name = name, arguments = arguments } } }
end

local function script(request)
  local last = request.messages[#request.messages]
  if last.role == "user" then
    return call("call_1", "read", '{"path":"VERSION"}')
  elseif last.tool_call_id == "call_1" then
    return call("call_2", "write", '{"path":"VERSION","text":"2.0"}')
  end
  return { content = "VERSION was " .. last.content .. ".", usage = { input = 120, output = 9 } }
end

-- ------------------------------------------------------------------ the tools

local path = { type = "string", description = "a file of the project" }

local tools = {
  read = {
    description = "read a file",
    parameters = { type = "object", properties = { path = path }, required = { "path" } },
    repeatable = true, -- after a crash it may simply run again
    run = function(args)
      if not files[args.path] then
        return nil, "there is no file " .. tostring(args.path) -- the model is told
      end
      return files[args.path]
    end,
  },
  write = {
    description = "write a file; a person is asked first",
    parameters = { type = "object", required = { "path", "text" },
      properties = { path = path, text = { type = "string" } } },
    run = function(args, ctx)
      return sessile.pause { reason = "may I write " .. args.path .. "?",
        state = { call = ctx.call, path = args.path, text = args.text } }
    end,
  },
}

-- ------------------------------------------------------------------ the program

local store <close> = assert(sessile.open "ram:") -- a folder: the pause outlives this program
local session = assert(store:session "release")
local agent <close> = sessile.agent {
  name = "release", session = session, model = model.choose(script), tools = tools, max_steps = 10,
  on_event = function(event)
    local call_name = event.call and event.call.name or ""
    print(("%d %-11s%s"):format(event.step, event.type, call_name))
  end,
}

local outcome = assert(agent:run "Make it version 2.0.")
while outcome.status == "paused" do
  print("? " .. outcome.reason)

  -- Minutes or days later, in this process or another: a person says yes.
  local asked = assert(session:suspended()).state
  files[asked.path] = asked.text
  assert(session:resume_with { role = "tool", tool_call_id = asked.call, content = "written" })
  outcome = assert(agent:run()) -- nothing new is said: it continues
end
assert(outcome.status == "completed", outcome.error)
print("= " .. outcome.text)
print(("%d messages, VERSION is %s"):format(#session:messages(), files["VERSION"]))
