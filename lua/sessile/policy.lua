-- policy.lua: converts the policy that a host gives to what the engine loads, and runs the host's
-- own hooks when the engine asks for them.
--
--   "name"                          a shipped or installed policy, or a path
--   {"name", option = …}            the same with options
--   {merge = function…, …}          the host's own hooks
--   a list of two or more of these, or one whose first element is a table: a chain
--   false                           no policy, even if the session or store has one
--
-- A host's hooks get the same arguments as a policy file (state, ctx), but run in the host's Lua
-- state without limits: they may yield and use everything the host has. An error in a hook refuses
-- the compaction; the turn does not fail.

local core = require "sessile.core"
local dialect = require "sessile.dialect"
local options = require "sessile.options"
local paths = require "sessile.paths"

local table = dialect.table

local policy = {}

-- In the order in which they run; the numbers are the engine's bits.
local hooks = {
  merge = 1, summarize = 2, truncate = 4, should_compact = 8, flush = 16, compact = 32,
  branch_summary = 64, remember = 128, tidy = 256, recall = 512, admit = 1024,
}
local host_fields = {
  name = "string", options = "table", about = "string", version = "any",
}
for name in pairs(hooks) do
  host_fields[name] = "callable"
end
options.shape("sessile.open: policy", host_fields)

--- The names of hooks.
policy.hooks, policy.host_fields = hooks, host_fields

-- Hooks, or nothing but what a policy says of itself: like a file, it may have no hook.
local function is_host(spec)
  local other = false
  for name in pairs(spec) do
    if hooks[name] then
      return true
    end
    other = other or not host_fields[name]
  end
  return not other
end

-- What a policy without hooks runs.
local function idle() end

local function is_chain(spec)
  return type(spec[1]) == "table" or #spec >= 2
end

local function host_step(who, spec, position, resolved)
  options.check(who .. ": policy", spec, host_fields)
  local bits = 0
  for name, bit in pairs(hooks) do
    if spec[name] then
      bits = bits + bit
    end
  end
  if bits == 0 then
    spec, bits = { options = spec.options, name = spec.name, truncate = idle }, hooks.truncate
  end
  local name = spec.name or ("host" .. position)
  if resolved.hosts[name] then
    return nil, ("two policies of the chain are called '%s': give one of them another name")
      :format(name), "EINVALID"
  end
  resolved.hosts[name] = spec
  return { name = name, hooks = bits, options = spec.options }
end

local function file_step(who, name, given)
  local step = { name = paths.expand(name) }
  if given then
    local rest
    for key, value in pairs(given) do
      if key ~= 1 then
        if type(key) ~= "string" then
          options.misuse(("%s: policy '%s': options have names, got %s"):format(who, name,
            tostring(key)))
        end
        rest = rest or {}
        rest[key] = value
      end
    end
    step.options = rest
  end
  return step
end

local function step_of(who, spec, position, resolved)
  if type(spec) == "string" then
    return file_step(who, spec)
  end
  if type(spec) ~= "table" then
    options.misuse(("%s: a policy is a name, a table of hooks, or a chain of these, not a %s")
      :format(who, type(spec)))
  end
  if is_host(spec) then
    return host_step(who, spec, position, resolved)
  end
  if type(spec[1]) ~= "string" then
    for key in pairs(spec) do
      local near = options.nearest(key, hooks)
      if near then
        options.misuse(("%s: policy: '%s' is no hook: did you mean '%s'?"):format(who, key, near))
      end
    end
    options.misuse(who .. ": a policy table starts with a name, or has a hook: merge, summarize, "
      .. "truncate, should_compact, flush, compact, branch_summary, remember, tidy, recall, admit")
  end
  return file_step(who, spec[1], spec)
end

--- Loads a policy into the store (a core userdata). who: the public function. Returns {handle=,
--- hosts=}, or {none = true} for false; nil, message, code. Raises if the spec has the wrong form.
function policy.resolve(who, store, spec)
  if spec == false then
    return { none = true }
  end
  local resolved = { hosts = {} }
  local list = { spec }
  if type(spec) == "table" and not is_host(spec) and is_chain(spec) then
    list = spec
  end
  local steps = {}
  for position, one in ipairs(list) do
    local step, message, code, retry_ms, rule = step_of(who, one, position, resolved)
    if not step then
      return nil, message, code, retry_ms, rule
    end
    steps[position] = step
  end
  local handle, message, code, retry_ms, rule = store:policy(steps)
  if not handle then
    return nil, message, code, retry_ms, rule
  end
  resolved.handle = handle
  return resolved
end

--- Loads the fields policy and fallback of `given`. Returns {policy=, fallback=}, each the result
--- of policy.resolve, or nil if the field is; nil, message, code. on_error(message, code,
--- name): is told of one that cannot be loaded, which is then {failed = message, code = code}.
function policy.load(who, store, given, on_error)
  local loaded = {}
  for _, name in ipairs { "policy", "fallback" } do
    if given[name] ~= nil then
      local found, message, code, retry_ms, rule = policy.resolve(who, store, given[name])
      if not found and not on_error then
        return nil, message, code, retry_ms, rule
      elseif not found then
        on_error(message, code, name)
      end
      loaded[name] = found or { failed = message, code = code }
    end
  end
  return loaded
end

-- ---------------------------------------------------------------- the hooks' ctx

-- Keys in one order on every machine: numbers, then strings by their bytes, then booleans.
local rank = { number = 1, string = 2, boolean = 3 }
local function before(a, b)
  local ta, tb = type(a), type(b)
  if ta ~= tb then
    return rank[ta] < rank[tb]
  end
  if ta == "boolean" then
    return not a and b
  end
  return a < b
end

local function sorted_pairs(t)
  local keys = {}
  for key in pairs(t) do
    if not rank[type(key)] then
      options.misuse("sorted_pairs: a key is a " .. type(key) .. ", which has no order")
    end
    keys[#keys + 1] = key
  end
  table.sort(keys, before)
  local i = 0
  return function()
    i = i + 1
    if keys[i] ~= nil then
      return keys[i], t[keys[i]]
    end
    return nil
  end
end

-- A message of a state in the form in which a model gets it.
local sent = { "role", "content", "author", "tool_calls", "tool_call_id" }

-- A request as the model function gets it from a policy file too: plain tables, whether the
-- hook wrote messages or took them from the state.
local function sendable(request)
  options.expect("table", request, "ctx.model: a request")
  local copy = {}
  for name, value in pairs(request) do
    copy[name] = value
  end
  local messages = {}
  for i, message in dialect.each(request.messages or {}) do
    if type(message) == "userdata" then
      local plain = {}
      for _, name in ipairs(sent) do
        plain[name] = core.plain(message[name])
      end
      message = plain
    end
    messages[i] = message
  end
  copy.messages = core.array(messages)
  return copy
end

--- The ctx of one host policy in one run. `about` gives session (what ctx.session shows),
--- model (function(request) -> text | nil, reason) and log (function(text)).
function policy.context(name, about, now)
  local random = core.random(("%s\0%s\0%s"):format(about.session.id, tostring(now), name))
  return {
    session = about.session,
    memory = about.memory,
    model = function(request) return about.model(sendable(request)) end,
    count = function(text)
      return (core.count(text))
    end,
    random = random,
    sorted_pairs = sorted_pairs,
    log = function(...)
      local words = table.pack(...)
      for i = 1, words.n do
        words[i] = tostring(words[i])
      end
      about.log(name .. ": " .. table.concat(words, " "))
    end,
  }
end

--- Runs the hook that a need asks for. Returns true and its results, or false and the error. May
--- yield. Of a hook of a memory, need.request is the list of its arguments.
function policy.call(spec, need, ctx)
  ctx.options = need.options
  ctx.reason = need.reason
  ctx.instructions = need.instructions
  ctx.now = need.now
  local hook = spec[need.hook]
  if need.hook == "merge" then
    return pcall(hook, need.previous, need.state, ctx)
  end
  if need.hook == "branch_summary" then
    return pcall(hook, need.abandoned, ctx)
  end
  if need.request then
    local arguments = table.move(need.request, 1, #need.request, 1, {})
    arguments[#arguments + 1] = ctx
    return pcall(hook, table.unpack(arguments))
  end
  return pcall(hook, need.state, ctx)
end

return policy
