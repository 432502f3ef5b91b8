-- init.lua: sessile.model: makes a function that asks a model.
--
-- The model may be given as a function, a command, an endpoint, a file or a name. The result is a
-- value for `model=` of a store, a session, a turn, a send or an agent.
--
-- It blocks while it waits, also in a coroutine, unless the endpoint has wait=.

local command = require "sessile.model.command"
local endpoint = require "sessile.model.endpoint"
local options = require "sessile.options"
local specs = require "sessile.model.spec"

local model = {}

-- The second argument of a model: a function that gets text as it arrives, or the context of a
-- loop.
local function about_of(second, wait)
  if options.callable(second) then
    return { on_text = second, wait = wait }
  end
  local given = type(second) == "table" and second or {}
  return { on_text = given.on_text, on_reasoning = given.on_reasoning,
    stopped = given.cancelled, slice_ms = given.slice_ms, wait = wait }
end

local file_options = options.shape("sessile.model: lua",
  { lua = "string", name = "string", window = "count", dims = "positive" })
local make_options = options.shape("sessile.model", { models = "table" })

local function check_models(who, given)
  return options.check(who, given, make_options).models
end

--- A function that asks a model: function(request, on_text or ctx) -> answer, or nil, message,
--- code. spec: a function, {command=}, {endpoint=, name=}, {lua=}, or a name in given.models.
--- nil, message, code if it cannot be asked here; raises if it is not a model.
function model.make(spec, given)
  local who = "sessile.model"
  local known, message, code = specs.behind(spec, check_models(who, given))
  if known == nil and message then
    return nil, message, code
  end
  local ask, kind
  ask, kind, code = specs.kind(who, known, file_options)
  if ask or ask == nil then
    return ask, kind, code
  end
  kind = kind == "command" and command or endpoint
  local self
  self, message, code = kind.make(who, known)
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
    spec = specs.behind(spec, check_models("sessile.model", given))
  end
  local known = type(spec) == "table" and spec or {}
  return { name = known.name or name, window = known.window }
end

return model
