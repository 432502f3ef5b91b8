--- agent_folders: where agents keep their sessions, and which of the files there are recordings.
--
-- Owns: the folders of Claude Code, Codex and pi, their files beside recordings,
-- and the titles in those. Must never read a recording.

local has_system, system = pcall(require, "sessile.system")
local decode = require("sessile").decode

local agent_folders = {}

-- env: the variable that names the agent's folder; else it is ~/home.
local AGENTS = {
  { name = "Claude Code", env = "CLAUDE_CONFIG_DIR", home = ".claude", folders = { "projects" } },
  { name = "Codex", env = "CODEX_HOME", home = ".codex",
    folders = { "sessions", "archived_sessions" } },
  { name = "pi", env = "PI_CODING_AGENT_DIR", home = ".pi/agent", folders = { "sessions" } },
}

local function is_folder(path)
  return has_system and system.kind(path) == "folder"
end

--- The folders of this user's agents that exist, and those that were looked for.
---@return string[] found
---@return string[] looked
function agent_folders.all()
  local found, looked = {}, {}
  for _, agent in ipairs(AGENTS) do
    local home = os.getenv(agent.env)
    home = home and home ~= "" and home or (os.getenv "HOME" or "") .. "/" .. agent.home
    for _, name in ipairs(agent.folders) do
      local path = home .. "/" .. name
      looked[#looked + 1] = path
      found[#found + 1] = is_folder(path) and path or nil
    end
  end
  return found, looked
end

--- The folders of agents in a home or in an agent's own folder (`~`, `~/.claude`); the folder
--- itself if it is neither. kept_by_agents: whether they are folders of agents.
---@param folder string
---@return string[] folders
---@return boolean kept_by_agents
function agent_folders.within(folder)
  local found = {}
  local real = system.real(folder) or folder
  for _, agent in ipairs(AGENTS) do
    for _, name in ipairs(agent.folders) do
      local path = "/" .. agent.home .. "/" .. name
      -- The end of the typed folder may be the beginning of that path.
      for at in ("/" .. agent.home .. "/"):gmatch "()/" do
        local before, after = path:sub(1, at - 1), path:sub(at)
        if real:sub(-#before) == before or before == "" then
          found[#found + 1] = is_folder(folder .. after) and folder .. after or nil
        end
      end
      if real:find(path .. "/", 1, true) or real:sub(-#path) == path then
        return { folder }, true
      end
    end
  end
  return #found > 0 and found or { folder }, #found > 0
end

-- Files beside recordings that are not recordings.
local BESIDE = { ["sessions-index.json"] = true, ["session_index.jsonl"] = true }

---@class sessile.cli.recorded
---@field path string
---@field name string  below the folder, without its extension
---@field size integer

--- The recordings in a folder and the folders in it. Those of sub-agents come last, after those of
--- the sessions that began them.
---@param folder string
---@return sessile.cli.recorded[]
function agent_folders.files(folder)
  local list, of_agents, seen = {}, {}, {}
  local function walk(path, below)
    local real = system.real(path)
    if not real or seen[real] then
      return -- a link to a folder around it
    end
    seen[real] = true
    for _, name in ipairs(system.files(path) or {}) do
      local one = path .. "/" .. name
      local kind, size = system.kind(one)
      local stem = name:match "^(.+)%.jsonl?$"
      if kind == "folder" then
        walk(one, below .. name .. "/")
      elseif kind == "file" and stem and not BESIDE[name] and not name:find "%.meta%.json$" then
        local into = name:find "^agent%-" and of_agents or list
        into[#into + 1] = { path = one, name = below .. stem, size = size }
      end
    end
  end
  walk((folder:gsub("(.)/+$", "%1")), "")
  return table.move(of_agents, 1, #of_agents, #list + 1, list)
end

-- ---------------------------------------------------------------- titles

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

-- Each adds titles by the recorded id; the newest is the last.
local INDEXES = {
  claude = function(titles, raw)
    local index = decode(raw)
    for _, one in ipairs(type(index) == "table" and type(index.entries) == "table"
      and index.entries or {}) do
      if type(one) == "table" and text(one.sessionId) then
        titles[one.sessionId] = text(one.customTitle) or text(one.summary)
      end
    end
  end,
  codex = function(titles, raw)
    for line in raw:gmatch "[^\n]+" do
      local one = decode(line)
      if type(one) == "table" and text(one.id) then
        titles[one.id] = text(one.thread_name)
      end
    end
  end,
}

--- A function that returns the title which an agent keeps beside a recording.
---@return fun(path: string, id: string?): string?
function agent_folders.titles()
  local known = {}
  local function of_index(kind, path)
    if not known[path] then
      known[path] = {}
      local raw = read(path)
      if raw then
        INDEXES[kind](known[path], raw)
      end
    end
    return known[path]
  end
  return function(path, id)
    local about = path:find "/agent%-[^/]+$" and decode(read((path:gsub("%.jsonl$", ".meta.json")))
      or "")
    local beside = path:match "^(.*)/" or "."
    local codex = path:match "^(.*)/sessions/.*/rollout%-" or path:match "^(.*)/archived_sessions/"
    return type(about) == "table" and text(about.description)
      or id and (of_index("claude", beside .. "/sessions-index.json")[id]
        or codex and of_index("codex", codex .. "/session_index.jsonl")[id])
      or nil
  end
end

return agent_folders
