--- endpoints: whether the endpoints of models answer, for `sessile doctor`.
--
-- Must never ask a model anything, or show a key.

local core = require "sessile.core"
local endpoint = require "sessile.model.endpoint"
local json = require "sessile.cli.json"
local show = require "sessile.config.show"
local terminal = require "sessile.cli.terminal"

local endpoints = {}

-- How long an endpoint may take to say which models it has, in ms.
local PATIENCE = 5000

-- Whether an endpoint answers, and has the model.
local function answers(add, spec)
  local url = show.url(spec.endpoint)
  local made, message = endpoint.make("doctor", spec)
  local status, names
  if made then
    status, names = endpoint.models(made, PATIENCE)
    message = names
  end
  if not status then
    add("endpoint", "bad", ("%s does not answer: %s"):format(url, message),
      "Start it, or correct `endpoint` in the configuration. Without a network: --offline")
  elseif status == 401 or status == 403 then
    add("endpoint", "bad", ("%s refuses the key (%d)"):format(url, status),
      "Correct `key` of the model in the configuration")
  elseif status >= 500 then
    add("endpoint", "warn", ("%s answers with an error (%d)"):format(url, status),
      "Try again later")
  elseif status ~= 200 or not names then
    add("endpoint", "ok", ("%s answers; it has no list of models (%d)"):format(url, status))
  elseif names[spec.name] then
    add("endpoint", "ok", ("%s answers, and has the model %s"):format(url, spec.name))
  else
    add("endpoint", "warn", ("%s answers, and does not list the model %s"):format(url, spec.name),
      "It has: " .. terminal.cut(terminal.line(table.concat(json.keys(names), ", ")), 200))
  end
end

--- Adds a finding for each endpoint of a model that an agent uses.
---@param add fun(name: string, state: string, text: string, step: string?)
---@param cfg sessile.Config
---@param offline boolean?  ask none
function endpoints.check(add, cfg, offline)
  local agents, asked = json.keys(cfg:value "agents" or {}), {}
  for i = 0, #agents do
    local spec = cfg:for_agent(agents[i]).model
    local url = type(spec) == "table" and spec.endpoint
    local key = url and ("%s\0%s"):format(url, spec.name)
    if url and not asked[key] and core.http_library() then
      asked[key] = true
      if offline then
        add("endpoint", "ok", show.url(url) .. ": not asked (--offline)")
      else
        answers(add, spec)
      end
    end
  end
end

return endpoints
