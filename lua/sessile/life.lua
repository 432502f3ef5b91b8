-- life.lua: ttl, archive, delete, undelete and purge: methods of stores and of sessions.
--
-- Only the sessions named are deleted, and with purge those that are due.

local memory = require "sessile.memory"
local named = require "sessile.named"
local options = require "sessile.options"

local life = { store = {}, session = {} }

-- The bit of each status in the option of a list.
local STATUS = { active = 1, suspended = 2, archived = 4, expired = 8, deleted = 16 }

--- The ttl of a new session in ms: its own, else the store's, which may depend on the agent. own =
--- false: the session never expires. nil: none.
function life.ttl(own, default, agent)
  if own == nil and type(default) == "table" then
    own = default[agent]
  elseif own == nil then
    own = default
  end
  return own == false and -1 or own
end

--- The option `ttl` of sessile.open: ms, or a table of them by agents.
function life.check_default(who, given)
  if type(given) ~= "table" then
    return given
  end
  local spans = {}
  for agent, span in pairs(given) do
    spans[agent] = options.value(("%s: %s"):format(who, tostring(agent)), span, "span")
  end
  return spans
end

--- A status, or a list of them, as bits.
function life.statuses(who, given)
  local bits, seen = 0, {}
  for _, name in ipairs(type(given) == "table" and given or { given }) do
    if not STATUS[name] then
      options.misuse(("%s: option 'status': \"active\", \"suspended\", \"archived\", "
        .. "\"expired\" or \"deleted\" expected, got %q"):format(who, tostring(name)))
    end
    if not seen[name] then
      bits, seen[name] = bits + STATUS[name], true
    end
  end
  return bits
end

-- ---------------------------------------------------------------- stores

local EVERY = life.statuses("store:delete",
  { "active", "suspended", "archived", "expired", "deleted" })

local undelete_options = options.shape("store:undelete", named.fields, { actor = "string" })
local delete_options = options.shape("store:delete", undelete_options,
  { soft = "boolean", reason = "string", memory = "boolean" })

-- Which session, and the options: delete("id", {soft = true}), delete{ id = "id", soft = true },
-- delete(row).
local function which(who, given, opts, shape)
  local copy = options.add(named.one(who, given, shape), options.check(who, opts, shape))
  return { id = copy.id, agent = copy.agent, user = copy.user }, copy
end

-- Ends what the agent's memories have from a session: those of its user, and for all.
local function end_memories(self, target, actor)
  local user = target.user or self._user or ""
  for _, of in ipairs(user ~= "" and { user, "" } or { "" }) do
    local kept, message, code, retry_ms, rule = memory.open(self, { agent = target.agent, user = of,
      must_exist = true })
    local done = code == "ENOTFOUND"
    if kept then
      done, message, code, retry_ms, rule = kept:delete_from(target.id, { by = actor })
      kept:close()
    end
    if not done then
      return nil, message, code, retry_ms, rule
    end
  end
  return true
end

--- Deletes a session permanently; with soft = true it can be undeleted until it is purged. The
--- session is found as by store:resume. Reason and actor are recorded: in the log, or in
--- store:deletions(). memory = true: what long-term memories have from it ends, too. Returns
--- {id_hash, time, bytes}.
function life.store:delete(given, opts)
  local target, copy = which("store:delete", given, opts, delete_options)
  local gone, message, code, retry_ms, rule = named.of_any_agent(self, target, function(found)
    return self._core:delete(found, copy.soft or false, copy.reason, copy.actor)
  end, EVERY)
  if gone and copy.memory then -- target has the agent by now
    local ended, why, failed = end_memories(self, target, copy.actor)
    if not ended then
      return nil, ("session '%s' is deleted, but not what memories have from it: %s; repeat "
        .. "that with memory:delete_from"):format(target.id, why), failed
    end
  end
  return gone, message, code, retry_ms, rule
end

--- The records of sessions that were deleted permanently, newest first.
function life.store:deletions()
  return self._core:deletions()
end

--- The servers that share the store, by name; of a PostgreSQL store.
function life.store:nodes()
  return self._core:nodes()
end

--- How many standbys of a PostgreSQL store's database commits wait for; false: they cannot be seen.
function life.store:standbys()
  return self._core:standbys()
end

--- Restores a session that was deleted softly.
function life.store:undelete(given, opts)
  local target, copy = which("store:undelete", given, opts, undelete_options)
  return named.of_any_agent(self, target, function(found)
    return self._core:undelete(found, copy.actor)
  end, STATUS.deleted)
end

local purge_options = options.shape("store:purge",
  { agent = "string", user = "string", retention = "span", dry_run = "boolean" })

--- Deletes expired sessions, and those deleted softly longer ago than `retention` (90 days).
--- Returns their rows; with dry_run = true nothing is deleted.
function life.store:purge(given)
  local opts = options.check("store:purge", given, purge_options)
  return self._core:purge {
    agent = opts.agent, user = opts.user, dry_run = opts.dry_run, retention_ms = opts.retention,
  }
end

local forgotten_options = options.shape("store:purge_forgotten",
  { agent = "string", dry_run = "boolean" })

--- Removes what is left of the sessions of forgotten users. Returns {sessions, bytes}; with
--- dry_run = true nothing is removed.
function life.store:purge_forgotten(given)
  local opts = options.check("store:purge_forgotten", given, forgotten_options)
  return self._core:purge_forgotten(opts.agent, opts.dry_run)
end

-- ---------------------------------------------------------------- sessions

--- Sets how long after its newest entry the session expires: 90 (seconds), "30d"; nil: never.
function life.session:set_ttl(span)
  return self._core:set_ttl(
    span == nil and 0 or options.value("session:set_ttl", span, "span"))
end

--- Archives the session, or, with false, makes it active. An archived session can be used.
function life.session:archive(on)
  return self._core:set_archived(on ~= false)
end

return life
