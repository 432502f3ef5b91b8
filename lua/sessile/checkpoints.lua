-- checkpoints.lua: methods of a session that make, list, restore and delete checkpoints.
--
-- All of it is stored in the log.

local options = require "sessile.options"

local checkpoints = {}

local make_options = options.shape("session:checkpoint",
  { state = "any", name = "string", metadata = "table", keep = "positive" })
local list_options = options.shape("session:checkpoints", {
  name = "string", named = "boolean", since = "moment", ["until"] = "moment",
  reason = { "manual", "periodic", "event", "threshold" },
})
local restore_options = options.shape("session:restore", { force = "boolean" })

-- The id of a checkpoint, given by its id, its name (the newest counts), or its row. A row names
-- its session, because the same ids exist in every session.
local function find(self, who, wanted)
  if type(wanted) == "table" and type(wanted.id) == "string" and wanted.session then
    if wanted.session ~= self.id or wanted.agent ~= self.agent or wanted.user ~= self.user then
      return nil, ('session "%s": checkpoint %s is of session "%s" of agent "%s": restore it there')
        :format(self.id, wanted.id, wanted.session, wanted.agent), "EINVALID"
    end
    return wanted.id
  elseif type(wanted) ~= "string" then
    options.misuse(("%s: a checkpoint's id, name or row expected, got %s"):format(who,
      type(wanted)))
  end
  local rows, message, code, retry_ms, rule = self._core:checkpoints { name = wanted }
  if not rows then
    return nil, message, code, retry_ms, rule
  elseif rows[1] then
    return rows[1].id
  elseif wanted:find "^%x%x%x%x%x%x%x%x$" then
    return wanted:lower()
  end
  return nil, ("session %s has no checkpoint '%s': list them with checkpoints()")
    :format(self.id, wanted), "ENOTFOUND"
end

local methods = {}
checkpoints.methods = methods

--- Records the head and a state of the host. Returns the entry's id.
function methods:checkpoint(given)
  local opts = options.check("session:checkpoint", given, make_options)
  opts.keep = opts.keep or (self._checkpoint and self._checkpoint.keep)
  return self._core:checkpoint(opts)
end

--- The checkpoints, newest first: {id, session, agent, user, head, time, reason, messages,
--- tokens, state_bytes, sound, name, event, agent_version, metadata}.
function methods:checkpoints(given)
  local rows, message, code, retry_ms, rule =
    self._core:checkpoints(options.check("session:checkpoints", given, list_options))
  for _, row in ipairs(rows or {}) do
    row.session, row.agent, row.user = self.id, self.agent, self.user
  end
  return rows, message, code, retry_ms, rule
end

--- Moves the head to the entry that a checkpoint recorded. Returns {checkpoint, head, state, json,
--- warnings}: json is the stored text of the state, warnings tell what has changed since.
function methods:restore(wanted, given)
  local opts = options.check("session:restore", given, restore_options)
  local id, message, code, retry_ms, rule = find(self, "session:restore", wanted)
  if not id then
    return nil, message, code, retry_ms, rule
  end
  local restored
  restored, message, code, retry_ms, rule = self._core:restore(id, opts.force or false)
  if not restored then
    return nil, message, code, retry_ms, rule
  end
  local warnings = {}
  for line in (restored.warnings or ""):gmatch "[^\n]+" do
    warnings[#warnings + 1] = line
  end
  restored.warnings = warnings
  return restored
end

--- Deletes a checkpoint, given as for restore.
function methods:delete_checkpoint(wanted)
  local id, message, code, retry_ms, rule = find(self, "session:delete_checkpoint", wanted)
  if not id then
    return nil, message, code, retry_ms, rule
  end
  return self._core:delete_checkpoint(id)
end

return checkpoints
