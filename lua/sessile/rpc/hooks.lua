--- hooks: the hooks of a client's policy: what the client is shown, and the edits that it answers.
--
-- A hook gets columns, and the texts it wants by run/message. Its edits are the methods of a state,
-- ["keep_last", 4, "turns"]; positions count from 1, as in policies.

local check = require "sessile.rpc.check"
local core = require "sessile.core"
local results = require "sessile.rpc.results"

local hooks = {}

local EDITS = { drop = true, replace = true, insert = true, keep_last = true }
local FLAGS = { "pinned", "open", "dead" }

-- The columns of a list of messages.
local function columns(list)
  local made = { key = {}, role = {}, turn = {}, tokens = {}, flags = {} }
  for i = 1, list and #list or 0 do
    local message = list[i]
    local flags = {}
    for _, flag in ipairs(FLAGS) do
      flags[#flags + 1] = message[flag] and flag or nil
    end
    made.key[i] = message.key or ""
    made.role[i] = message.role or ""
    made.turn[i] = message.turn or 0
    made.tokens[i] = message.tokens or 0
    made.flags[i] = table.concat(flags, " ")
  end
  for name, column in pairs(made) do
    made[name] = core.array(column)
  end
  return made
end

local function finite(number)
  return number ~= math.huge and number or nil
end

-- Applies the edits to a state; raises at a wrong one.
local function apply(state, edits)
  for i, edit in ipairs(edits) do
    local name = type(edit) == "table" and edit[1]
    if not EDITS[name] then
      error(("edit %d of the client is none of drop, replace, insert, keep_last"):format(i), 0)
    end
    local ok, why = pcall(state[name], state, table.unpack(edit, 2, 4))
    if not ok then
      error(("edit %d of the client, %s: %s"):format(i, name,
        (tostring(why):gsub("^[^\n]-%.lua:%d+: ", ""))), 0)
    end
  end
end

-- The answer to ask/hook, as a table; raises if it is none.
local function answer_of(text, why)
  if not text then
    error(why, 0)
  end
  local taken, wrong
  if core.span.kind(text) == "object" then
    taken, wrong = check.fields(check.types.HookAnswer.fields,
      core.decode(text, nil, check.DEPTH), "ask/hook: the answer")
  end
  if not taken then
    error(wrong or "ask/hook: the answer is no object", 0)
  elseif taken.failed then
    error(taken.failed, 0)
  end
  return taken
end

-- Asks the client for what a hook does. state: nil for branch_summary.
local function ask(server, policy, hook, state, previous, ctx)
  local request = server:current()
  if not request or not server.offers.hook then
    error("the client did not offer to answer ask/hook (rpc/hello: asks)", 0)
  end
  request.messages = { state = state and state.messages, previous = previous }
  local vars = state and core.plain(state.vars)
  local text, why = request:ask("ask/hook", {
    session = results.bytes(ctx.session.id), policy = policy, hook = hook, reason = ctx.reason,
    instructions = ctx.instructions, options = ctx.options, now = ctx.now,
    tokens = state and state.tokens, window = state and finite(state.window),
    reserve = state and state.reserve, keep_min = state and state.keep_min,
    columns = state and columns(state.messages), previous = previous and columns(previous),
    vars = type(vars) == "table" and next(vars) and vars or nil,
  })
  request.messages = nil
  local answer = answer_of(text, why)
  if answer.log then
    ctx.log(answer.log)
  end
  if state then
    apply(state, answer.edits or {})
    if type(answer.vars) == "table" then
      state.vars = answer.vars
    end
  end
  local value = answer.value
  return value ~= core.null and value or nil
end

-- Hooks of memories are asked with their arguments as they are.
local function ask_memory(server, policy, hook, ctx, ...)
  local request = server:current()
  if not request or not server.offers.hook then
    error("the client did not offer to answer ask/hook (rpc/hello: asks)", 0)
  end
  local text, why = request:ask("ask/hook", {
    session = results.bytes(ctx.session.id), policy = policy, hook = hook, reason = ctx.reason,
    options = ctx.options, now = ctx.now, arguments = core.array { ... },
  })
  local value = answer_of(text, why).value
  return value ~= core.null and value or nil
end

local makers = {
  merge = function(server, name)
    return function(previous, state, ctx)
      return ask(server, name, "merge", state, previous, ctx)
    end
  end,
  branch_summary = function(server, name)
    return function(abandoned, ctx)
      return ask(server, name, "branch_summary", nil, abandoned, ctx)
    end
  end,
}
for _, hook in ipairs { "summarize", "truncate", "should_compact", "flush", "compact" } do
  makers[hook] = function(server, name)
    return function(state, ctx)
      local value = ask(server, name, hook, state, nil, ctx)
      if hook ~= "should_compact" then
        return nil -- the state as edited
      end
      return value == true
    end
  end
end
for hook, count in pairs { remember = 1, tidy = 2, recall = 2, admit = 1 } do
  makers[hook] = function(server, name)
    return function(...)
      local arguments = table.pack(...)
      return ask_memory(server, name, hook, arguments[count + 1],
        table.unpack(arguments, 1, count))
    end
  end
end

hooks.makers = makers

--- The message of the state of a hook that waits, as it is stored; nil, message, code.
---@param request table  that waits
---@param index integer  from 1
---@param of_previous boolean?
function hooks.message(request, index, of_previous)
  local messages = request.messages
  local list = messages and (of_previous and messages.previous or messages.state
    or messages.previous)
  if not list then
    return nil, "no hook of this run waits: run/message is asked between ask/hook and its answer",
      "ENOTFOUND"
  end
  local message = list[index]
  if not message then
    return nil, ("there is no message %d: the hook has %d"):format(index, #list), "ENOTFOUND"
  end
  return setmetatable({}, { __name = "sessile.Message", __index = { key = message.key,
    id = message.id, tokens = message.tokens, json = core.stored(message) } })
end

return hooks
