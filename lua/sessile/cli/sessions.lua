--- sessions: the session that a name means.
--
-- Must never choose between two sessions that match.

local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local sessions = {}

local function row_name(row)
  local title = row.title and row.title ~= "" and "  " .. terminal.line(row.title) or ""
  local user = row.user and row.user ~= "" and ", user " .. terminal.line(row.user) or ""
  return ("  %s  (agent %s%s)%s"):format(terminal.line(row.id or "?"),
    terminal.line(row.agent or "?"), user, title)
end

-- Whether its messages can be read. Those of a damaged session can.
local function opens(row)
  return row.entries ~= nil
end

-- The rows that match and can be opened; and the first that matches and cannot.
local function matching(rows, fits)
  local found, closed = {}, nil
  for _, row in ipairs(rows) do
    if row.id and fits(row) then
      if opens(row) then
        found[#found + 1] = row
      else
        closed = closed or row
      end
    end
  end
  return found, closed
end

-- What tells the sessions of these rows apart.
local function more_of(rows)
  local ways = {}
  for _, way in ipairs { { "id", "type more of the id" }, { "agent", "add --agent" },
      { "user", "add --user" } } do
    for _, row in ipairs(rows) do
      if (row[way[1]] or "") ~= (rows[1][way[1]] or "") then
        ways[#ways + 1] = way[2]
        break
      end
    end
  end
  local text = table.concat(ways, ", or ")
  return text:sub(1, 1):upper() .. text:sub(2) .. "."
end

--- Whether a row of the list or a node of a tree has a label.
---@param row {labels: string[]?}
---@param name string
---@return boolean
function sessions.has_label(row, name)
  for _, label in ipairs(row.labels or {}) do
    if label == name then
      return true
    end
  end
  return false
end

--- The session that a name means: `last` is the newest; otherwise the name is an id, a title, a
--- prefix of an id, or a label, in this order. A session that cannot be opened is used only if no
--- other matches.
---@param rows table[]  from store:list
---@param name string
---@return table? row
---@return string? message
---@return string? code
---@return string? step
function sessions.find(rows, name)
  local tests = {
    function(row) return row.id == name end,
    function(row) return row.title == name end,
    function(row) return row.id:sub(1, #name) == name end,
    function(row) return sessions.has_label(row, name) end,
  }
  for _, fits in ipairs(name ~= "" and name ~= "last" and tests or {}) do
    local found, closed = matching(rows, fits)
    if #found == 1 then
      return found[1]
    elseif #found == 0 and closed then
      return nil, closed.message or ("session %s cannot be opened"):format(
        hints.shown(closed.id)), closed.status
    elseif #found > 1 then
      local lines = {}
      for i = 1, math.min(#found, 8) do
        lines[i] = row_name(found[i])
      end
      return nil, ("'%s' fits %d sessions"):format(hints.shown(name), #found), "EUSAGE",
        table.concat(lines, "\n") .. "\n" .. more_of(found)
    end
  end
  if name == "last" then
    for _, row in ipairs(rows) do
      if row.id and opens(row) then
        return row
      end
    end
    return nil, "there is no session yet", "ENOTFOUND", "Make one: sessile new"
  end
  local unreadable, first = 0, nil
  for _, row in ipairs(rows) do
    if not row.id then
      unreadable, first = unreadable + 1, first or row
    end
  end
  if first then
    -- The session may be one of these.
    return nil, ("no readable session is '%s'; %d cannot be read: %s"):format(
      hints.shown(name), unreadable, first.message or "?"),
      first.status == "EDENIED" and "EDENIED" or "ENOTFOUND"
  end
  return nil, ("there is no session '%s'"):format(hints.shown(name)), "ENOTFOUND"
end

-- Errors of an existing session: no other session is looked for.
local FINAL = {
  EDENIED = true, EIO = true, EBUSY = true, EDAMAGED = true, ETRUNCATED = true, ESEALED = true,
}

-- The session with exactly this id, which saves listing all sessions; else the rows if they were
-- read; else perhaps why it cannot be opened.
local function resume_exact(store, name, agent, user)
  if name == "" or name == "last" then
    return nil
  end
  local session, message, code = store:resume { id = name, agent = agent, user = user }
  if not session and FINAL[code] then
    return nil, nil, message, code
  elseif not session or agent then
    return session
  end
  local rows = store:list { prefix = name, user = user } or {}
  local same = matching(rows, function(row) return row.id == name end)
  if #same > 1 then
    session:close() -- another agent has one of this id
    return nil, rows
  end
  return session
end

local FEW = 8

local function key(row)
  return ("%s\0%s\0%s"):format(row.id, row.agent, row.user or "")
end

-- The rows that can match a name: by a prefix of the id, the title, or a label; for `last`, the
-- newest few. And whether these are all rows of the store.
local function candidates(store, name, agent, user)
  if name == "" or name == "last" then
    local rows, message, code = store:list { agent = agent, user = user, limit = FEW }
    return rows, rows and #rows < FEW or message, code
  end
  local rows, message, code = store:list { agent = agent, user = user, prefix = name }
  if not rows then
    return nil, message, code
  end
  local known = {}
  for _, row in ipairs(rows) do
    known[key(row)] = true
  end
  for _, field in ipairs { "title", "label" } do
    local more
    more, message, code = store:list { agent = agent, user = user, [field] = name }
    if not more then
      return nil, message, code
    end
    for _, row in ipairs(more) do
      if not known[key(row)] then
        known[key(row)] = true
        rows[#rows + 1] = row
      end
    end
  end
  return rows, false
end

-- As sessions.find. All rows are read only if no candidate matches, because the error names logs
-- that cannot be read.
local function find(store, name, agent, user)
  local rows, whole, code = candidates(store, name, agent, user)
  if not rows then
    return nil, whole, code
  end
  local row, message, step
  row, message, code, step = sessions.find(rows, name)
  if not row and code == "ENOTFOUND" and whole ~= true then
    rows, message, code = store:list { agent = agent, user = user }
    if not rows then
      return nil, message, code
    end
    return sessions.find(rows, name)
  end
  return row, message, code, step
end

--- Resumes the session that a name means. Second result: how many bytes of a cut-off write were set
--- aside, by the list or by the session.
---@param store table
---@param name string
---@param agent string?  only of this agent
---@param user string?   only of this user
function sessions.resume(store, name, agent, user)
  local session, rows, message, code = resume_exact(store, name, agent, user)
  if session then
    return session, session.torn
  elseif code then
    return nil, message, code
  end
  local row, step
  if rows then
    row, message, code, step = sessions.find(rows, name)
  else
    row, message, code, step = find(store, name, agent, user)
  end
  if not row then
    local deleted = code == "ENOTFOUND" and store:list {
      agent = agent, user = user, status = "deleted",
    }
    local gone = deleted and name ~= "last" and sessions.find(deleted, name)
    if gone then
      return nil, ("session %s was deleted"):format(hints.shown(gone.id)), code,
        "Bring it back: sessile undelete " .. hints.id(gone.id)
    end
    return nil, message, code, step
  end
  session, message, code = store:resume { id = row.id, agent = row.agent, user = row.user or "" }
  if not session then
    return nil, message, code
  end
  return session, row.torn + session.torn
end

--- For each row the shortest prefix of its id that no other id has; at least 8 characters.
---@param rows table[]
---@param among table[]?  all rows, if `rows` are only some
---@return table<table, string>
function sessions.short_ids(rows, among)
  local ids, short, seen = {}, {}, {}
  for _, list in ipairs { rows, among } do
    for _, row in ipairs(list) do
      if row.id and not seen[row.id] then
        seen[row.id] = true
        ids[#ids + 1] = row.id
      end
    end
  end
  table.sort(ids)
  local function common(a, b)
    local n = 0
    while b and n < #a and a:byte(n + 1) == b:byte(n + 1) do
      n = n + 1
    end
    return n
  end
  local need = {}
  for i, id in ipairs(ids) do
    need[id] = math.max(8, 1 + math.max(common(id, ids[i - 1]), common(id, ids[i + 1])))
  end
  for _, row in ipairs(rows) do
    local id = row.id
    -- An id that is only a little longer is shown whole. A character is never cut.
    if id and need[id] + 4 < #id and id:find("^[%w_-]+$") then
      id = id:sub(1, need[id])
    end
    short[row] = id and terminal.line(id)
  end
  return short
end

return sessions
