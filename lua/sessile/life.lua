-- life.lua: ttl, archive, delete, undelete and purge: methods of stores and of sessions.
--
-- Only the sessions named are deleted, and with purge those that are due.

local options = require "sessile.options"
local times = require "sessile.times"

local life = { store = {}, session = {} }

-- The bit of each status in the option of a list.
local STATUS = { active = 1, suspended = 2, archived = 4, expired = 8, deleted = 16 }

local function check_span(who, given)
  local ms = times.ms(given)
  if not ms then
    options.misuse(('%s: a time expected, as 90 (seconds), "5m" or "30d"'):format(who))
  end
  return ms
end

--- The ttl of a new session in ms: its own, else the store's, which may depend on the agent. own =
--- false: the session never expires. nil: none.
function life.ttl(who, own, default, agent)
  if own == nil and type(default) == "table" then
    own = default[agent]
  elseif own == nil then
    own = default
  end
  if own == nil then
    return nil
  end
  return own == false and -1 or check_span(who, own)
end

--- Checks the option `ttl` of sessile.open.
function life.check_default(who, given)
  for _, one in pairs(type(given) == "table" and given or { given }) do
    check_span(who, one)
  end
  return given
end

--- A status, or a list of them, as bits.
function life.statuses(who, given)
  local bits = 0
  for _, name in ipairs(type(given) == "table" and given or { given }) do
    if not STATUS[name] then
      options.misuse(("%s: option 'status': \"active\", \"suspended\", \"archived\", "
        .. "\"expired\" or \"deleted\" expected, got %q"):format(who, tostring(name)))
    end
    bits = bits | STATUS[name]
  end
  return bits
end

-- ---------------------------------------------------------------- stores

local which_options = {
  id = "string|table", session_id = "string", user_id = "string", agent = "string",
  user = "string", soft = "boolean", reason = "string", actor = "string",
}

-- Which session, and the options: delete("id", {soft = true}), delete{ id = "id", soft = true }.
local function which(who, given, opts)
  local copy = {}
  if type(given) == "string" then
    copy.id = given
  elseif type(given) == "table" then
    copy = options.check(who, given, which_options)
  else
    options.misuse(who .. ": the id of a session expected")
  end
  options.add(copy, options.check(who, opts, which_options))
  local named = type(copy.id) == "table" and copy.id or copy
  return {
    id = named.session_id or (type(copy.id) == "string" and copy.id) or nil,
    agent = copy.agent, user = copy.user or named.user_id,
  }, copy
end

--- Deletes a session permanently; with soft = true it can be undeleted until it is purged. A soft
--- deletion records reason and actor. Returns {id_hash, time, bytes}.
function life.store:delete(given, opts)
  local target, copy = which("store:delete", given, opts)
  return self._core:delete(target, copy.soft or false, copy.reason, copy.actor)
end

--- Restores a session that was deleted softly.
function life.store:undelete(given, opts)
  local target, copy = which("store:undelete", given, opts)
  return self._core:undelete(target, copy.actor)
end

local purge_options = { agent = "string", retention = "any", dry_run = "boolean" }

--- Deletes expired sessions, and those deleted softly longer ago than `retention` (90 days).
--- Returns their rows; with dry_run = true nothing is deleted.
function life.store:purge(given)
  local opts = options.check("store:purge", given, purge_options)
  return self._core:purge {
    agent = opts.agent, dry_run = opts.dry_run,
    retention_ms = opts.retention ~= nil
      and check_span("store:purge: option 'retention'", opts.retention) or nil,
  }
end

-- ---------------------------------------------------------------- sessions

--- Sets how long after its newest entry the session expires: 90 (seconds), "30d"; nil: never.
function life.session:set_ttl(span)
  return self._core:set_ttl(span == nil and 0 or check_span("session:set_ttl", span))
end

--- Archives the session, or, with false, makes it active. An archived session can be used.
function life.session:archive(on)
  return self._core:set_archived(on ~= false)
end

return life
