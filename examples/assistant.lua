-- assistant.lua: a coding assistant that is closed and resumed. The conversation, the results of
-- tools, the title and the settings are in the store.
--
--     build/bin/sessile run examples/assistant.lua            # both sittings, and cleans up
--     build/bin/sessile run examples/assistant.lua FOLDER     # one sitting each time
--
-- The model is a script unless an endpoint is configured: see model.lua.
local sessile = require "sessile"
local model = dofile((arg[0]:match "^.*/" or "./") .. "model.lua")

local given = arg[1]
local folder = given or io.popen("mktemp -d"):read "l"
local project = folder .. "/project"
assert(os.execute(("mkdir -p -m 700 '%s' '%s'"):format(folder, project)))

-- ------------------------------------------------------------------ the tools

local name = { type = "string", description = "a plain file name, without folders" }

-- Opens a file of the project; nil and a reason. The path comes from a model and is not trusted.
local function open(file, mode)
  if type(file) ~= "string" or not file:find "^[%w_][%w_.-]*$" then
    return nil, "not a plain file name: " .. tostring(file)
  end
  local handle = io.open(project .. "/" .. file, mode)
  return handle, handle == nil and "cannot open " .. file or nil
end

local tools = {
  list = {
    description = "the names of the project's files", repeatable = true,
    run = function()
      local pipe <close> = assert(io.popen(("ls '%s'"):format(project)))
      local names = pipe:read "a"
      return names ~= "" and names or "(no files yet)"
    end,
  },
  read_file = {
    description = "what is in a file", repeatable = true,
    parameters = { type = "object", properties = { name = name }, required = { "name" } },
    run = function(args)
      local file <close>, why = open(args.name, "rb")
      return file and file:read "a", why
    end,
  },
  write_file = {
    description = "write a whole file", repeatable = true,
    parameters = { type = "object", required = { "name", "text" },
      properties = { name = name, text = { type = "string" } } },
    run = function(args)
      local file <close>, why = open(args.name, "wb")
      return file and file:write(args.text) and "written", why
    end,
  },
}

-- ------------------------------------------------------------------ the model

local function call(id, tool, arguments)
  return { content = "", tool_calls = { { id = id, name = tool, arguments = arguments } } }
end

local function script(request)
  local last = request.messages[#request.messages]
  if last.content == "Help me build a REST API: start with the routes." then
    return call("c1", "write_file", { name = "routes.txt", text = "GET /tides\n" })
  elseif last.content == "Go on." then
    return call("c3", "read_file", { name = "routes.txt" })
  elseif last.tool_call_id == "c1" then
    return call("c2", "list", {})
  elseif last.tool_call_id == "c2" then
    return "routes.txt has the first route. Next come the handlers."
  end
  local first = request.messages[1].content:match "build (.-):" -- it has what came before
  return ("You wanted %s. We have %s: now its handler."):format(first, last.content:match "[^\n]+")
end

-- ------------------------------------------------------------------ one sitting

local function sit_down()
  local store <close> = assert(sessile.open(folder .. "/sessions", { key = false }))
  local session = assert(store:session "rest-api")
  local messages = #assert(session:messages())
  local question = "Help me build a REST API: start with the routes."
  if messages == 0 then
    session.title = "A REST API for tides"
    assert(session:settings { model = os.getenv "OPENAI_MODEL" or "script", thinking = "low" })
  else
    question = "Go on."
    local settings = assert(session:settings())
    local restored = assert(session:restore(session:checkpoints()[1].id))
    print(("resumed '%s': %d messages, model %s, thinking %s, next: %s"):format(session.title,
      messages, settings.model, settings.thinking, restored.state.next))
  end
  local agent <close> = sessile.agent { session = session, tools = tools,
    model = model.choose(script), max_steps = 20,
    on_event = function(event)
      if event.type == "tool_start" then
        print("  tool  " .. event.call.name)
      end
    end }
  print("user    " .. question)
  local outcome = assert(agent:run(question))
  assert(outcome.status == "completed", outcome.error)
  print("agent   " .. outcome.text)
  assert(session:checkpoint { state = { next = messages == 0 and "handlers" or "tests" } })
end

sit_down()
if not given then
  print "(closed)"
  sit_down()
  assert(os.execute(("rm -r '%s'"):format(folder)))
end
