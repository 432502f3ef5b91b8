-- named.lua: which session a program means: by its id, by {session_id =, user_id =}, or by a row
-- that names it: of a list, a search or subsessions, or the `origin` or `parent` of a session.

local options = require "sessile.options"

local named = {}

--- The fields that name a session, for options.shape.
named.fields = {
  id = "string|table", session_id = "string", user_id = "string", agent = "string",
  user = "string",
}

local id_options = options.shape("store:resume: id", { session_id = "string", user_id = "string" })

-- Each kind of row has one of these, which is no option.
local MARKS = { "status", "state", "entry", "kind" }

-- The names in a row; nil: it is none. A session without a user is nobody's.
local function of_row(given)
  local id = given.session or given.id
  for _, mark in ipairs(MARKS) do
    if type(given[mark]) == "string" and type(id) == "string" and type(given.agent) == "string" then
      return { id = id, agent = given.agent, user = given.user or "" }
    end
  end
end

--- Checked options with the names of the session in id, agent and user. given: an id, a row, or a
--- table of options.
function named.check(who, given, shape)
  if type(given) == "string" then
    return { id = given }
  elseif type(given) ~= "table" and given ~= nil then
    options.misuse(("%s: the id of a session expected, got %s"):format(who, type(given)))
  end
  local opts = given and of_row(given) or options.check(who, given, shape)
  local id, outer = opts.id, opts
  if type(id) == "table" then
    local row = of_row(id)
    opts.id = nil
    if row then
      options.add(opts, row)
      return opts
    end
    outer = options.check(who .. ": id", id, id_options)
    if not outer.session_id then
      options.misuse(who .. ": id: session_id is missing")
    end
  end
  opts.id = outer.session_id or opts.id
  opts.user = opts.user or outer.user_id
  opts.session_id, opts.user_id = nil, nil
  return opts
end

--- The same; raises if no session is named.
function named.one(who, given, shape)
  local opts = named.check(who, given, shape)
  if not opts.id then
    options.misuse(who .. ": the id of a session expected, got "
      .. (given == nil and "nil" or "none"))
  end
  return opts
end

-- The agents that have a session of this id and user, but for the default agent.
local function agents_with(store, id, user, lives)
  local found = {}
  for _, row in ipairs(store._core:list { prefix = id, lives = lives } or {}) do
    if row.id == id and row.agent ~= store._agent and (row.user or "") == user then
      found[#found + 1] = row.agent
    end
  end
  return found
end

--- Calls act(opts). If the default agent has no such session, and opts names no agent, again with
--- the only agent that has one; EINVALID: there are several. In a store that was opened for an
--- agent, only that agent's. lives: the statuses that are looked at; nil: all but deleted.
function named.of_any_agent(store, opts, act, lives)
  local result, message, code, retry_ms, rule = act(opts)
  if code ~= "ENOTFOUND" or opts.agent or store._is_of_one_agent then
    return result, message, code, retry_ms, rule
  end
  local found = agents_with(store, opts.id, opts.user or store._user or "", lives)
  if #found > 1 then
    table.sort(found)
    return nil, ('there are %d sessions "%s": name the agent, one of %s'):format(#found,
      opts.id, table.concat(found, ", ")), "EINVALID"
  elseif #found == 0 then
    return result, message, code, retry_ms, rule
  end
  opts.agent = found[1]
  return act(opts)
end

return named
