--- served_model: the model that a server asks for its clients: the configured one.
--
-- The server runs this in Lua states of their own (engine/service/module_model.c). Which model is
-- asked follows from the configuration: the session's setting `model` may name one of `models`,
-- else it is the agent's. No request brings an address.

local config = require "sessile.config"
local host = require "sessile.host"
local json = require "sessile.cli.json"
local model = require "sessile.model"
local sessile = require "sessile"

local served = {}

local NONE = "serve.model is on, and no model is configured: set `model`"

-- What is asked for an agent and the settings of a session (JSON); nil: nothing is configured.
local function chosen(cfg, agent, settings)
  local known = settings ~= "" and sessile.decode(settings) or {}
  if type(known.model) == "string" and cfg.models[known.model] then
    return known.model
  end
  return cfg:for_agent(agent ~= "" and agent or nil).model
end

-- The models of the agents. One of `models` that only a session names is made when it is asked.
local function all_of(cfg)
  local specs = { cfg:for_agent(nil).model }
  for _, name in ipairs(json.keys(cfg.agents or {})) do
    specs[#specs + 1] = cfg:for_agent(name).model
  end
  return specs
end

--- Reads the configuration (path: the file of --config, or nil). Returns a function(request, about,
--- over) -> text; nil, reason. request: JSON, as a policy asks it; about: agent, user, id, settings
--- of the session; over(): whether nobody waits any more. nil, message, code: there is no model
--- that can be asked.
function served.make(path)
  local cfg, message, code = config.load(path)
  if not cfg then
    return nil, message, code
  end
  local made = {} -- the functions that ask, by what they were made of
  local function of(spec)
    if not made[spec] then
      local ask, why, kind = model.make(spec, { models = cfg.models })
      if not ask then
        return nil, why, kind
      end
      made[spec] = ask
    end
    return made[spec]
  end
  local specs = all_of(cfg)
  if #specs == 0 then
    return nil, NONE, "EINVALID"
  end
  for _, spec in ipairs(specs) do
    local ask
    ask, message, code = of(spec)
    if not ask then
      return nil, message, code
    end
  end
  return function(request, about, over)
    local spec = chosen(cfg, about.agent, about.settings)
    if not spec then
      return nil, ("no model is configured for the agent '%s'"):format(about.agent)
    end
    local ask, why = of(spec)
    if not ask then
      return nil, why
    end
    return host.ask(function(asked, ctx)
      return ask(asked, setmetatable({ cancelled = over }, { __index = ctx }))
    end, sessile.decode(request), about)
  end
end

return served
