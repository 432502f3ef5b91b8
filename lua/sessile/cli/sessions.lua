--- sessions: from what somebody typed to an open store and an open session.
--
-- Owns: which store is meant (--store, $SESSILE_STORE, the default), which key, and which
-- session a name means. Must never make a store for a command that only reads, nor choose
-- between two sessions that fit.

local paths = require "sessile.paths"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local sessions = {}

-- ---------------------------------------------------------------- stores

local function exists(path)
  local file = io.open(path)
  if file then
    file:close()
  end
  return file ~= nil
end

--- The store that is meant: its URL, and its folder when it lives in one.
---@param globals table
---@return string? url     nil: the default
---@return string? folder
function sessions.place(globals)
  local url = globals.store or os.getenv "SESSILE_STORE"
  if url == "" then url = nil end
  if not url then
    return nil, paths.default_store()
  end
  local scheme = url:match("^(%l[%l%d+.-]*):")
  if scheme and scheme ~= "file" then
    return url
  end
  local folder = paths.expand((url:gsub("^file:", "")))
  return folder, folder
end

--- Opens it. Without `create` a folder that holds no store is NOTFOUND and stays as it is.
---@param globals table
---@param create boolean?
---@return table? store
---@return string? message
---@return string? code
---@return string? step
function sessions.open(globals, create)
  local url, folder = sessions.place(globals)
  if globals.plain and globals.key_file then
    return nil, "--plain and --key-file exclude each other", "EUSAGE"
  end
  if not create and folder
     and not (exists(folder .. "/keyring") or exists(folder .. "/agents")) then
    return nil, ("there is no store at %s"):format(folder), "ENOTFOUND",
      "Make a session there with `sessile new`, or name another store with --store."
  end
  local options = { agent = globals.agent }
  if globals.plain then
    options.key = false
  elseif globals.key_file then
    options.key = sessile.key.file(globals.key_file)
  end
  return sessile.open(url, options)
end

-- ---------------------------------------------------------------- names

local function row_name(row)
  local title = row.title and row.title ~= "" and "  " .. terminal.line(row.title) or ""
  return ("  %s  (agent %s)%s"):format(terminal.line(row.id or "?"),
    terminal.line(row.agent or "?"), title)
end

local function matching(rows, fits)
  local found = {}
  for _, row in ipairs(rows) do
    if row.id and fits(row) then
      found[#found + 1] = row
    end
  end
  return found
end

--- The one session that a name means: its id, else its title, else a beginning of its id,
--- else `last`.
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
    function(row) return name ~= "last" and row.id:sub(1, #name) == name end,
  }
  for _, fits in ipairs(name ~= "" and tests or {}) do
    local found = matching(rows, fits)
    if #found == 1 then
      return found[1]
    elseif #found > 1 then
      local lines = {}
      for i = 1, math.min(#found, 8) do
        lines[i] = row_name(found[i])
      end
      return nil, ("'%s' fits %d sessions"):format(terminal.line(name), #found), "EUSAGE",
        table.concat(lines, "\n") .. "\nType more of the id, or add --agent."
    end
  end
  if name == "last" then
    for _, row in ipairs(rows) do
      if row.id and row.status == "ok" then
        return row
      end
    end
    return nil, "there is no session yet", "ENOTFOUND", "Make one: sessile new"
  end
  local unreadable = 0
  for _, row in ipairs(rows) do
    if not row.id then
      unreadable = unreadable + 1
    end
  end
  return nil, ("no session is called '%s'%s"):format(terminal.line(name), unreadable > 0
    and (" (%d could not be read: see sessile list)"):format(unreadable) or ""), "ENOTFOUND"
end

-- The session of exactly this id, opened before the list opens all of them.
local function resume_exact(store, name, agent)
  if name == "" then
    return nil
  end
  local session = store:resume { id = name, agent = agent }
  if not session or agent then
    return session
  end
  local rows = store:list() or {}
  local same = matching(rows, function(row) return row.id == name end)
  if #same > 1 then
    session:close() -- another agent has one of this id
    return nil, rows
  end
  return session
end

--- Resumes the session that a name means. Beside it: how many bytes of a torn tail were set
--- aside on the way, by whoever opened the log first.
---@param store table
---@param name string
---@param agent string?  only of this agent
function sessions.resume(store, name, agent)
  local session, rows = resume_exact(store, name, agent)
  if session then
    return session, session.torn
  end
  local row, message, code, step
  if not rows then
    rows, message, code = store:list { agent = agent }
    if not rows then
      return nil, message, code
    end
  end
  row, message, code, step = sessions.find(rows, name)
  if not row then
    return nil, message, code, step
  end
  local user = row.user ~= "" and row.user or nil
  session, message, code = store:resume { id = row.id, agent = row.agent, user = user }
  if not session then
    return nil, message, code
  end
  return session, row.torn + session.torn
end

--- A name as a shell takes it.
---@param text string
---@return string
function sessions.quoted(text)
  if text:find("^[%w_./:@+-]+$") then
    return text
  end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- For each row the shortest beginning of its id that no other has, 8 characters at least.
---@param rows table[]
---@return table<table, string>
function sessions.short_ids(rows)
  local sorted, short = {}, {}
  for _, row in ipairs(rows) do
    if row.id then
      sorted[#sorted + 1] = row
    end
  end
  table.sort(sorted, function(a, b) return a.id < b.id end)
  local function common(a, b)
    local n = 0
    while b and n < #a.id and a.id:byte(n + 1) == b.id:byte(n + 1) do
      n = n + 1
    end
    return n
  end
  for i, row in ipairs(sorted) do
    local need = 1 + math.max(common(row, sorted[i - 1]), common(row, sorted[i + 1]))
    local size = math.max(8, need)
    -- A few characters more say it all; never cut within a character.
    local id = row.id
    if size + 4 < #id and id:find("^[%w_-]+$") then
      id = id:sub(1, size)
    end
    short[row] = terminal.line(id)
  end
  return short
end

return sessions
