--- doctor_servers: what `sessile doctor` says of the servers that share a store.
--
-- Owns: the checks of the database's standbys and of the servers' versions. Must never ask a
-- server: the store knows which are alive.

local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local doctor_servers = {}

-- As many standbys as `serve.replicas` says wait for commits.
local function replicas(add, store, wanted)
  local standbys, message, code = store:standbys()
  if code == "EDENIED" then
    return -- whoever may not check the store
  elseif code == "EUNSUPPORTED" then
    add("replicas", "warn", ("serve.replicas is %d, and the store has no standbys: it is in no "
      .. "PostgreSQL database"):format(wanted), "Take serve.replicas out of the configuration")
  elseif standbys == nil then
    add("replicas", "warn", "the database does not say which standbys it has: " .. message)
  elseif not standbys then
    add("replicas", "warn", "the database role may not see the standbys",
      "As its superuser: GRANT pg_read_all_stats TO the role of the store's URL")
  elseif standbys < wanted then
    add("replicas", "bad", ("commits wait for %s, and serve.replicas is %d"):format(
      terminal.plural(standbys, "standby", "standbys"), wanted),
      "See pg_stat_replication, and synchronous_standby_names in the database's configuration")
  else
    add("replicas", "ok", "commits wait for " .. terminal.plural(standbys, "standby", "standbys"))
  end
end

-- true if version a is before b, by their numbers.
local function is_older(a, b)
  local of_b = b:gmatch "%d+"
  for number in a:gmatch "%d+" do
    local other = tonumber(of_b() or -1)
    if tonumber(number) ~= other then
      return tonumber(number) < other
    end
  end
  return of_b() ~= nil
end

--- Checks the standbys, and names the oldest version among the servers that are alive.
---@param add fun(name: string, state: string, text: string, step: string?)
---@param cfg table
---@param store sessile.Store
function doctor_servers.check(add, cfg, store)
  local oldest, living = nil, 0
  local wanted = cfg.serve and cfg.serve.replicas
  if wanted and wanted > 0 then
    replicas(add, store, wanted)
  end
  for _, node in ipairs(store:nodes() or {}) do
    if node.living then
      living = living + 1
      oldest = (not oldest or is_older(node.version, oldest.version)) and node or oldest
    end
  end
  if oldest then
    local differs = oldest.version ~= sessile.version
    add("nodes", differs and "warn" or "ok", ("%s; the oldest is %s with version %s"):format(
      terminal.plural(living, "node"), oldest.name, oldest.version),
      differs and ("This program is %s: give all nodes one version. See them: sessile nodes")
        :format(sessile.version) or nil)
  end
end

return doctor_servers
