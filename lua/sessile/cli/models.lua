--- models: finds the model to ask: the one that was typed, else the session's, else the agent's.
--
-- Owns: the line that is shown while a model is asked, and Ctrl-C meanwhile in a chat. Must never
-- ask a model by itself.

local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local model = require "sessile.model"
local progress = require "sessile.cli.progress"
local registry = require "sessile.cli.registry"
local specs = require "sessile.model.spec"

local models = {}

local NONE = "no model is configured here"
local SET_UP = "Set one in the configuration: model = { endpoint = \"…\", name = \"…\" }, or a "
  .. "command; see: sessile help chat"

---@class sessile.cli.model
---@field ask fun(request: table, ctx: any): any, string?, string?
---@field name string       recorded with its answers
---@field window integer?

-- A model function that shows for how long it waits, until the first piece of an answer.
-- app.stopped, if there is one, tells whether to stop.
local function awaited(app, ask)
  return function(request, given)
    local ctx = type(given) == "table" and given or { on_text = given }
    local show, finish = progress.wait(app)
    local _ <close> = setmetatable({}, { __close = finish })
    local arrived
    local about = setmetatable({
      cancelled = function()
        if not arrived then
          show "waiting for the model,"
        end
        return app.stopped and app.stopped() or ctx.cancelled and ctx.cancelled() or false
      end,
    }, { __index = ctx })
    for _, name in ipairs { "on_text", "on_reasoning" } do
      local report = ctx[name]
      about[name] = report and function(text)
        arrived = true
        finish()
        report(text)
      end
    end
    return ask(request, about)
  end
end

-- The failure of a name that is none of the configured models.
local function unknown(config, name)
  local names = json.keys(config.models)
  local near = registry.nearest(name, names)
  return nil, ("there is no model '%s'"):format(hints.shown(name)), "EUSAGE",
    near and ("Did you mean `%s`?"):format(near)
      or #names > 0 and "There are: " .. table.concat(names, ", ") or SET_UP
end

--- What is configured as the model of this name, whatever it is for; on failure as models.of.
---@param app sessile.cli.app
---@param name string
function models.spec(app, name)
  local config, message, code, step = app:config()
  if not config then
    return nil, message, code, step
  elseif not config.models[name] then
    return unknown(config, name)
  end
  return specs.behind(name, config.models)
end

--- The model `name` of the configuration, or the model of the agent if `name` is nil. On failure
--- nil, a sentence, a code and a step; the code is "ENOTFOUND" if no model is configured.
---@param app sessile.cli.app
---@param name string?
---@param agent string?
---@return sessile.cli.model?
---@return string? message
---@return string? code
---@return string? step
function models.of(app, name, agent)
  local config, message, code, step = app:config()
  if not config then
    return nil, message, code, step
  end
  if name and not config.models[name] then
    return unknown(config, name)
  end
  local configured = config:for_agent(agent)
  local spec = name or configured.model
  if not spec then
    return nil, NONE, "ENOTFOUND", SET_UP
  end
  local ask
  ask, message, code = model.make(spec, { models = config.models })
  if not ask then
    return nil, message, code, false
  end
  local about = model.about(spec, { models = config.models })
  return { ask = awaited(app, ask), window = about.window,
    name = about.name or not name and configured.model_name or "model" }
end

--- The same for a session: the model that was typed, else the one in its settings if it is
--- configured, else the agent's.
---@param app sessile.cli.app
---@param session sessile.Session?  nil: it is not made yet
---@param name string?
---@param agent string?  of a session that is not made yet
function models.of_session(app, session, name, agent)
  if session and not name then
    local settings, message, code = session:settings()
    if not settings then
      return nil, message, code
    end
    local config = app:config()
    if config and type(settings.model) == "string" and config.models[settings.model] then
      name = settings.model
    end
  end
  return models.of(app, name, session and session.agent or agent)
end

--- A model function for a command. If no model is configured, the function fails when it is called,
--- and sets `missing` in the returned table to a sentence about it.
---@param app sessile.cli.app
---@param session sessile.Session?
---@param name string?
---@param agent string? without a session
---@return function?
---@return table|string told
---@return string? code
---@return string? step
function models.for_command(app, session, name, agent)
  local found, message, code, step = models.of_session(app, session, name, agent)
  if not found and (name or code ~= "ENOTFOUND") then
    return nil, message, code, step
  end
  local told = { name = found and found.name }
  return function(request, ctx)
    if found then
      return found.ask(request, ctx)
    end
    told.missing = NONE
    return nil, told.missing
  end, told
end

--- The option of commands that ask a model.
models.option = { "--model NAME", "ask this configured model" }

return models
