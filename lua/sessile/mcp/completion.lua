-- completion.lua: what an argument of a prompt or of a resource template may be.

local clean = require "sessile.mcp.clean"
local core = require "sessile.core"
local place = require "sessile.mcp.place"

local completion = {}

local MOST = 100 -- the protocol allows no more values

local function begins(text, with)
  return text:sub(1, #with):lower() == with:lower()
end

-- The values that pick(row) gives and that are not there yet, of all rows; and how many there are.
local function collect(server, pick)
  local values, seen, total = core.array {}, {}, 0
  local store = server:store()
  local rows, message, code = core.array {}, nil, nil
  if store then
    rows, message, code = store:list { agent = server.scope.agent, user = server.scope.user }
  end
  if not rows then
    return nil, message, code
  end
  for _, row in ipairs(rows) do
    local value = row.id and pick(row)
    if value and not seen[value] then
      seen[value], total = true, total + 1
      if total <= MOST then
        values[total] = value
      end
    end
  end
  return { values = values, total = total, hasMore = total > MOST }
end

local sources = {}

-- Names of sessions, by their beginning or that of the id.
function sources.session(typed)
  return function(row)
    local name = place.name(row)
    return (begins(name, typed) or begins(name:match "/(.*)$", typed)) and name or nil
  end
end

function sources.agent(typed)
  return function(row)
    return begins(row.agent, typed) and clean.is_plain(row.agent) and row.agent or nil
  end
end

-- The part of the name behind the agent: what stands for {id}.
function sources.id(typed, agent)
  return function(row)
    local id = (not agent or row.agent == agent) and place.id(row)
    return id and begins(id, typed) and id or nil
  end
end

--- The values of an argument that begin with what was typed: {values, total, hasMore}. nil,
--- message, code.
---@param server table
---@param ref table       what has the argument
---@param argument table  {name, value}
---@param others table?   arguments that are known
---@return table?
---@return string? message
---@return string? code
function completion.of(server, ref, argument, others)
  local is_prompt = ref.type == "ref/prompt" and ref.name == "continue"
    and argument.name == "session"
  local is_template = ref.type == "ref/resource" and type(ref.uri) == "string"
    and ref.uri == place.SCHEME .. "{agent}/{id}"
    and (argument.name == "agent" or argument.name == "id")
  if not is_prompt and not is_template then
    return nil, "there is no such prompt, template or argument", "EINVALID"
  end
  local agent = type(others) == "table" and type(others.agent) == "string" and others.agent or nil
  return collect(server, sources[argument.name](argument.value, agent))
end

return completion
