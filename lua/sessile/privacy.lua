-- privacy.lua: consents, holds, retention, export and erasure of users: methods of stores.
--
-- What is exported is written by the caller, file by file: nothing here opens one.

local audit = require "sessile.audit"
local core = require "sessile.core"
local options = require "sessile.options"
local pool = require "sessile.memory_pool"
local times = require "sessile.times"

local privacy = { methods = {} }
local methods = privacy.methods

-- ---------------------------------------------------------------- consent

local consent_options = options.shape("store:consent", {
  agent = "string", user = "string", given = "boolean", keep = "boolean", by = "string",
  text = "string", scope = "string",
})

--- Writes that a user consents to be remembered by an agent, in the words of `text`, or with
--- given = false: does no longer. Then what is remembered is erased; with keep = true it stays.
--- Returns how many entries were erased.
function methods:consent(given)
  local opts = options.check("store:consent", given, consent_options)
  if opts.given == nil then
    opts.given = true
  end
  opts.user = opts.user or self._user or nil
  return self._core:consent(opts)
end

--- The consent to each memory of a user, by agent; without a user: of all.
function methods:consents(user)
  options.expect("string?", user, "store:consents: the name of a user")
  return self._core:consents(user)
end

-- ---------------------------------------------------------------- holds

local hold_options = options.shape("store:hold", {
  agent = "string", user = "string", session = "string", reason = "string", by = "string",
  ["until"] = "string|count",
})

-- When a hold ends, in ms since 1970: a moment, or a time from now.
local function end_of(value)
  if type(value) ~= "string" then
    return value
  end
  local span = times.ms(value)
  return span and core.now() + span or times.moment(value, core.now())
    or options.misuse(("store:hold: option 'until': a date as \"2027-02-01\", a time as \"90d\" or "
      .. "milliseconds since 1970 expected, got %q"):format(value:sub(1, 60)))
end

--- Keeps all of a user, of an agent, or one session from being removed for good, until it is
--- released or `until`: ms since 1970, a date, or a time from now, as "90d". Returns its id.
function methods:hold(given)
  local opts = options.check("store:hold", given, hold_options)
  opts["until"] = end_of(opts["until"])
  return self._core:hold(opts)
end

--- The holds in force, oldest first.
function methods:holds()
  return self._core:holds()
end

local release_options = options.shape("store:release", { by = "string" })

--- Ends a hold.
function methods:release(id, given)
  options.expect("string", id, "store:release: the id of a hold")
  if not id:find("^" .. ("[0-9a-f]"):rep(8) .. "$") then
    return nil, ("no hold has the id %q"):format(id:sub(1, 40)), "ENOTFOUND"
  end
  return self._core:release(id, options.check("store:release", given, release_options).by)
end

-- ---------------------------------------------------------------- retention

local TIMES = { "sessions", "deleted", "memory" }
local NINETY_DAYS = 90 * 24 * 60 * 60 * 1000

local spans = options.shape("store:purge_retention: retention",
  { sessions = "span|no", deleted = "span|no", memory = "span|no" })
local retention_options = options.shape("store:purge_retention", spans,
  { agents = "table", users = "table", audit = "span|no", dry_run = "boolean" })

local function rule_of(opts, agent, user)
  local rule = { agent = agent, user = user }
  for _, name in ipairs(TIMES) do
    rule[name] = opts[name] == false and 0 or opts[name]
  end
  return rule
end

--- Removes what is kept longer than it says: {sessions =, deleted =, memory =, agents = { NAME =
--- {…} }, users = { NAME = {…} }}, each a time, or false: for ever. Sessions that were deleted
--- softly go after 90 days unless `deleted` says otherwise. audit = a time: whole logs of the audit
--- go when all of their events are older, unless a hold is in force. Returns {sessions, bytes,
--- entries, held, closed, audit_logs, audit_held}; with dry_run = true nothing is removed.
function methods:purge_retention(given)
  local opts = options.check("store:purge_retention", given, retention_options)
  if opts.deleted == nil then
    opts.deleted = NINETY_DAYS
  end
  local rules = { rule_of(opts) }
  for kind, member in pairs { agents = "agent", users = "user" } do
    for name, own in pairs(opts[kind] or {}) do
      local who = ("store:purge_retention: %s: %s"):format(kind, tostring(name))
      options.expect("string", name, who)
      local rule = rule_of(options.check(who, own, spans))
      rule[member] = name
      rules[#rules + 1] = rule
    end
  end
  return self._core:purge_retention(rules, opts.dry_run, opts.audit or 0)
end

-- ---------------------------------------------------------------- export

local STATES = { "live", "replaced", "deleted", "rejected", "pending", "expired" }
local EVERY = { "active", "suspended", "archived", "expired", "deleted" }

-- A part of a file's name: what any file system takes.
local function part(name)
  return (name:gsub("[^%w_-]", "_"):sub(1, 60))
end

-- All of a session in one format; nil, message, code.
local function document(session, format)
  local chunks = {}
  local done, message, code, retry_ms, rule =
    session:export { format = format, write = function(chunk)
    chunks[#chunks + 1] = chunk
    return true
  end }
  return done and table.concat(chunks), message, code, retry_ms, rule
end

-- Writes the sessions; each has a row in the manifest, with `error` where it could not be read.
local function write_sessions(self, user, put)
  local rows, message, code, retry_ms, rule = self:list { user = user, status = EVERY }
  local listed = {}
  for i, row in ipairs(rows or {}) do
    local one = { id = row.id, agent = row.agent, title = row.title, status = row.status }
    local session
    if row.status == "deleted" then
      one.error = "deleted softly: undelete it, and export again"
    elseif row.entries then
      session, one.error = self:resume { id = row.id, agent = row.agent, user = user }
    else
      one.error = row.message or "it cannot be read"
    end
    for _, format in ipairs(session and { "json", "md" } or {}) do
      local all, why = document(session, format)
      one.error = one.error or why
      if all then
        local ok
        ok, message, code, retry_ms, rule =
          put(("sessions/%04d-%s.%s"):format(i, part(row.id), format), all)
        if not ok then
          session:close()
          return nil, message, code, retry_ms, rule
        end
      end
    end
    if session then
      session:close()
    end
    listed[i] = one
  end
  return rows and listed, message, code, retry_ms, rule
end

-- Writes every memory of the user: all of its entries as JSON, and what is live as Markdown.
local function write_memories(self, user, consents, put)
  for i, row in ipairs(consents) do
    local memory, message, code, retry_ms, rule = self:memory { agent = row.agent, user = user,
      must_exist = true }
    local entries, shown
    if memory then
      entries, message, code, retry_ms, rule = memory._core:list { states = STATES }
      if entries then
        shown, message, code, retry_ms, rule = memory:markdown()
      end
      memory:close()
    end
    local name = ("memory/%04d-%s"):format(i, part(row.agent))
    local ok = shown
    if ok then
      ok, message, code, retry_ms, rule =
        put(name .. ".json", assert(core.text(core.array(entries))) .. "\n")
    end
    if ok then
      ok, message, code, retry_ms, rule = put(name .. ".md", shown)
    end
    if not ok then
      return nil, message, code, retry_ms, rule
    end
  end
  return true
end

-- Writes the grants of the user, and the events about them, where the store has a guard. What
-- whoever exports may not see is named in `left_out`.
local function write_guarded(self, user, put, left_out)
  if not self:who() then
    return true
  end
  local grants, message, code, retry_ms, rule = self:grants()
  local own = {}
  for _, grant in ipairs(grants or {}) do
    own[#own + 1] = grant.user == user and grant or nil
  end
  local ok = true
  if #own > 0 then
    ok, message, code, retry_ms, rule =
      put("grants.json", assert(core.text(core.array(own))) .. "\n")
  elseif not grants then
    left_out[#left_out + 1] = "grants: " .. message
  end
  local reader, why = self:audit { user = user }
  local lines = {}
  for event in reader or function() end do
    lines[#lines + 1] = audit.export(event, "jsonl")
  end
  if not reader then
    left_out[#left_out + 1] = "events: " .. why
  elseif ok and #lines > 0 then
    ok, message, code, retry_ms, rule = put("events.jsonl", table.concat(lines, "\n") .. "\n")
  end
  return ok, message, code, retry_ms, rule
end

--- Hands out all that the store keeps of a user: write(name, text) is called for each file, and
--- returns true, or nil, message, code. The last one is manifest.json, with the SHA-256 of the
--- others. Returns {sessions, memories, files, failed}; failed: sessions that could not be read.
--- ENOTFOUND: there is nothing.
function methods:export_user(user, write)
  options.expect("string", user, "store:export_user: the name of a user")
  options.expect("function", write, "store:export_user: a function that writes a file")
  local may, why, denied, retry_ms, rule = self:may("user_export",
    { permission = "view_session", limit = "exports", user = user })
  if not may then
    return nil, why, denied, retry_ms, rule
  end
  local files = {}
  local function put(name, all)
    files[#files + 1] = { name = name, bytes = #all, sha256 = (core.sha256(all)) }
    return write(name, all)
  end
  local consents, message, code
  consents, message, code, retry_ms, rule = self._core:consents(user)
  if not consents then
    return nil, message, code, retry_ms, rule
  end
  local sessions
  sessions, message, code, retry_ms, rule = write_sessions(self, user, put)
  if not sessions then
    return nil, message, code, retry_ms, rule
  elseif #sessions == 0 and #consents == 0 then
    return nil, "the store keeps nothing of this user", "ENOTFOUND"
  end
  local ok
  ok, message, code, retry_ms, rule = write_memories(self, user, consents, put)
  if ok then
    ok, message, code, retry_ms, rule =
      put("consents.json", assert(core.text(core.array(consents))) .. "\n")
  end
  local left_out = {}
  if ok then
    ok, message, code, retry_ms, rule = write_guarded(self, user, put, left_out)
  end
  if not ok then
    return nil, message, code, retry_ms, rule
  end
  local failed = 0
  for _, one in ipairs(sessions) do
    failed = failed + (one.error and 1 or 0)
  end
  local done = { sessions = #sessions, memories = #consents, files = #files, failed = failed }
  ok, message, code, retry_ms, rule = write("manifest.json", assert(core.text {
    sessile_user_export = 1, user = user, time = core.now(), sessions = core.array(sessions),
    files = core.array(files), left_out = core.array(left_out),
  }) .. "\n")
  return ok and done, message, code, retry_ms, rule
end

-- ---------------------------------------------------------------- erasure

local erase_options = options.shape("store:erase_user", { dry_run = "boolean" })

--- Erases a user: destroys the user's secret, removes every session and memory of the user, and
--- what agents keep for all from these sessions, and ends what the user was given. Returns the
--- receipt, which says also what was not reached; with dry_run = true it says what would be
--- removed. After an error, call it again. ENOTFOUND: nothing is known of the user.
function methods:erase_user(user, given)
  options.expect("string", user, "store:erase_user: the name of a user")
  local opts = options.check("store:erase_user", given, erase_options)
  pool.close(self, user)
  return self._core:erase_user(user, opts.dry_run)
end

return privacy
