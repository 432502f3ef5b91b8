-- memory_runs.lua: the loop of a run of memories: step, answer what the engine asks for, step on.
--
-- As in host.lua, the loop is plain Lua: a model, an embedder or a hook that yields suspends it and
-- nothing else. A failed answer costs what it was for; it is said in the outcome.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local host = require "sessile.host"
local policy = require "sessile.policy"
local settings = require "sessile.memory_settings"

local table = dialect.table

local runs = {}

-- The policies of settings that were loaded, by store and by what the settings say.
local loaded = setmetatable({}, { __mode = "k" })

--- The policy chain of a call, or of the agent's settings: the result of policy.resolve, or {} if
--- there is none; nil, message, code.
function runs.policy(who, store, agent, given)
  if given then
    return policy.resolve(who, store._loader or store._core, given)
  end
  local spec = given == nil and settings.of(store, agent).policy
  if not spec then
    return {}
  end
  local owner = store._host or store -- a view has the policies of its store
  local known = loaded[owner] or {}
  loaded[owner] = known
  if not known[spec] then
    local found, message, code, retry_ms, rule = policy.resolve(who, owner._core, spec)
    if not found then
      return nil, message, code, retry_ms, rule
    end
    known[spec] = found
  end
  return known[spec]
end

--- Loads memory.policy, which is to be used later: an agent's, or the store's (agent nil). true, or
--- nil, message, code, unless there is an on_error, as for policy.load.
function runs.check(who, store, agent, on_error)
  local found, message, code, retry_ms, rule = runs.policy(who, store, agent)
  if not found and on_error then
    on_error(message, code, "memory.policy")
  elseif not found then
    return nil, "memory: " .. message, code, retry_ms, rule
  end
  return true
end

-- ---------------------------------------------------------------- a host's hooks

-- Of one run, as the engine has them (laws 6 and 3).
local WRITES, ENDS = 32, 5

-- ctx.memory.room of a host's hook: what is left beside what the host's hooks of this run, which
-- `about.asked` has, have asked for.
local function room_of(about, asks)
  local names = rawget(about.memory, "_names")
  local live, target = 0, names and names[1]
  for _, row in ipairs(about.memory:list() or {}) do
    live = live + ((row.memory == target or not target) and 1 or 0)
  end
  local room = { memory = target or rawget(about.memory, "_user") and "user" or "agent",
    writes = WRITES, ends = math.max(ENDS, math.floor(live / 10)) }
  for _, list in ipairs { about.asked, asks } do
    for _, ask in ipairs(list) do
      local first = ask.arguments[1]
      if ask.memory == "write" and type(first) == "table" then
        local ids = first.replaces
        room.writes = room.writes - 1
        room.ends = room.ends - (type(ids) == "table" and not ids.id and #ids or ids and 1 or 0)
          - (first.key and about.memory:read(first.key) and 1 or 0)
      elseif ask.memory == "delete" then
        room.ends = room.ends - (type(first) == "table" and not first.id and #first or 1)
      end
    end
  end
  room.writes, room.ends = math.max(0, room.writes), math.max(0, room.ends)
  return room
end

-- ctx.memory of a host's hook: it reads through the session's memories, and notes what it was
-- asked, so that the engine knows what the hook was shown and what it wants written.
local function memory_of(about, asks)
  local memory = {}
  for _, name in ipairs { "search", "read", "list", "write", "delete", "confirm" } do
    memory[name] = function(...)
      local arguments = table.pack(...)
      for i = 1, arguments.n do
        if arguments[i] == nil then
          arguments[i] = core.null
        end
      end
      arguments.n = nil
      asks[#asks + 1] = { memory = name, arguments = core.array(arguments) }
      if name == "search" or name == "read" or name == "list" then
        return about.memory[name](about.memory, ...)
      end
      return true
    end
  end
  memory.room = function() return room_of(about, asks) end
  return memory
end

local function run_hook(core_run, need, about)
  local spec = about.hosts and about.hosts[need.policy]
  if not spec then
    return core_run:fail(("this run has no policy '%s'"):format(need.policy))
  end
  local asks = {}
  if about.asked_by ~= need.hook and need.hook ~= "admit" then
    about.asked, about.asked_by = {}, need.hook -- what was asked for before is written by now
  end
  about.asked = about.asked or {}
  local ctx = policy.context(need.policy, {
    session = about.session_view, memory = memory_of(about, asks),
    model = function(request) return host.ask(about.model, request, about.session) end,
    log = function(text) about.log[#about.log + 1] = text end,
  }, need.now)
  local ok, result, why = policy.call(spec, need, ctx)
  if not ok then
    return core_run:fail(host.say(result))
  end
  table.move(asks, 1, #asks, #about.asked + 1, about.asked)
  return core_run:returned { result = result, why = why and tostring(why) or nil,
    asks = core.array(asks) }
end

-- ---------------------------------------------------------------- the loop

local function answer_embed(core_run, need, about)
  if not about.embed then
    return core_run:fail "no embedder is configured: set memory.embed"
  end
  local ok, vectors, reason = pcall(about.embed, need.request.texts,
    { model = need.request.model, dims = need.request.dims, purpose = need.request.purpose,
      ids = need.request.ids })
  if not ok then
    return core_run:fail("the embedder raised: " .. host.say(vectors))
  elseif type(vectors) ~= "table" then
    return core_run:fail(reason ~= nil and host.say(reason) or "the embedder gave no vectors")
  end
  return core_run:vectors(vectors)
end

local function answer(core_run, need, about)
  if need.kind == "embed" then
    return answer_embed(core_run, need, about)
  elseif need.kind == "hook" then
    return run_hook(core_run, need, about)
  end
  local text, reason = host.ask(about.model, need.request, about.session)
  if text == host.later then
    text, reason = nil, "a run of a memory does not wait for an answer that comes later"
  end
  if not text then
    return core_run:fail(host.say(reason))
  end
  return core_run:reply(text)
end

local function to_its_end(core_run, about)
  about.log = about.log or {}
  while true do
    local need, message, code, retry_ms, rule = core_run:step()
    if not need then
      return nil, message, code, retry_ms, rule
    elseif need == true then
      break
    end
    local ok
    ok, message, code, retry_ms, rule = answer(core_run, need, about)
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  local outcome, message, code, retry_ms, rule = core_run:outcome()
  if outcome and #about.log > 0 then
    outcome.log = (outcome.log or "") .. table.concat(about.log, "\n") .. "\n"
  end
  return outcome, message, code, retry_ms, rule
end

--- Steps a core run to its end and returns its outcome. about: model, embed, hosts (functions of
--- the host), session (or nil), memory (what ctx.memory of a host's hook reads).
function runs.drive(core_run, about)
  return dialect.closing(core_run, to_its_end, about)
end

--- What `about` of drive has of a session, or of an agent (session nil).
function runs.about(session, agent, model, chosen)
  return {
    session = session, session_view = session and host.about_session(session)
      or { id = "", agent = agent, title = "", metadata = {} },
    model = model, hosts = chosen.hosts,
  }
end

return runs
