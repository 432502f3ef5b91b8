-- init.lua: sessile.model: makes a function that asks a model.
--
-- The model may be given as a function, a command, an endpoint, a file or a name. The result is a
-- value for `model=` of a store, a session, a turn, a send or an agent.
--
-- It blocks while it waits, also in a coroutine, unless the endpoint has wait=.

local command = require "sessile.model.command"
local endpoint = require "sessile.model.endpoint"
local options = require "sessile.options"
local paths = require "sessile.paths"

local model = {}

local DEEPEST = 8 -- names that mean names

-- The second argument of a model: a function that gets text as it arrives, or the context of a
-- loop.
local function about_of(second, wait)
  if options.callable(second) then
    return { on_text = second, wait = wait }
  end
  local given = type(second) == "table" and second or {}
  return { on_text = given.on_text, on_reasoning = given.on_reasoning,
    stopped = given.cancelled, wait = wait }
end

-- ---------------------------------------------------------------- the kinds

local file_options = options.shape("sessile.model: lua",
  { lua = "string", name = "string", window = "count" })

local function from_file(who, given)
  local opts = options.check(who, given, file_options)
  local path = paths.expand(opts.lua)
  local chunk, why = loadfile(path, "t")
  if not chunk then
    return nil, "the model's file: " .. why, why:find "^cannot open" and "ENOTFOUND" or "EINVALID"
  end
  local ok, made = pcall(chunk)
  if not ok then
    return nil, ("the model's file %s raised: %s"):format(path, tostring(made)), "EINVALID"
  elseif not options.callable(made) then
    return nil, ("the model's file %s returns no function"):format(path), "EINVALID"
  end
  return made
end

-- The spec behind a name, which may name another one; nil, message, code.
local function named(name, models, depth)
  local spec = models and models[name]
  if spec == nil then
    local near = options.nearest(name, models or {})
    return nil, ("there is no model '%s'%s"):format(name, near and (", did you mean '%s'?")
      :format(near) or ""), "ENOTFOUND"
  elseif type(spec) ~= "string" then
    return spec
  elseif depth >= DEEPEST then
    return nil, ("the model '%s' is a name for itself"):format(name), "EINVALID"
  end
  return named(spec, models, depth + 1)
end

local make_options = options.shape("sessile.model", { models = "table" })

local function check_models(who, given)
  return options.check(who, given, make_options).models
end

--- A function that asks a model: function(request, on_text or ctx) -> answer, or nil, message,
--- code. spec: a function, {command=}, {endpoint=, name=}, {lua=}, or a name in given.models.
--- nil, message, code if it cannot be asked here; raises if it is not a model.
function model.make(spec, given)
  local who = "sessile.model"
  local models = check_models(who, given)
  if type(spec) == "string" then
    local found, message, code = named(spec, models, 1)
    if found == nil then
      return nil, message, code
    end
    spec = found
  end
  if options.callable(spec) then
    return spec
  elseif type(spec) ~= "table" then
    options.misuse(who .. ": a function, a table with command=, endpoint= or lua=, or a name "
      .. "expected, got " .. type(spec))
  end
  local count = (spec.command and 1 or 0) + (spec.endpoint and 1 or 0) + (spec.lua and 1 or 0)
  if count ~= 1 then
    options.misuse(who .. ": one of command=, endpoint= and lua= expected")
  elseif spec.lua then
    return from_file(who, spec)
  end
  local kind = spec.command and command or endpoint
  local self, message, code = kind.make(who, spec)
  if not self then
    return nil, message, code
  end
  return function(request, second)
    if type(request) ~= "table" or type(request.messages) ~= "table" then
      return nil, "a request is a table with messages", "EINVALID"
    end
    return kind.ask(self, request, about_of(second, self.wait))
  end
end

--- The name and window of a model, {name=, window=}, without asking it. Without a name of its own
--- it is the name in the spec.
function model.about(spec, given)
  local name = type(spec) == "string" and spec or nil
  if name then
    spec = named(spec, check_models("sessile.model", given), 1)
  end
  local known = type(spec) == "table" and spec or {}
  return { name = known.name or name, window = known.window }
end

return model
