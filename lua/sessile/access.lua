-- access.lua: who was given what: grants, access keys and locks: methods of stores.

local options = require "sessile.options"

local access = { methods = {} }

local grant_options = options.shape("store:grant", {
  user = "string", holders = "string", role = "string", agents = "string|strings",
  session = "string", agent = "string", owner = "string", ["until"] = "count",
})
local key_options = options.shape("store:access_key", {
  user = "string", roles = "string|strings", agents = "string|strings", device = "string",
  label = "string", expires = "count",
})
local lock_options = options.shape("store:lock",
  { user = "string", key = "string", reason = "string" })
local unlock_options = options.shape("store:unlock", { user = "string", key = "string" })

local function list(given)
  return type(given) == "string" and { given } or given
end

--- Gives a role to a user, or to all holders of a role: everywhere, with some agents, or on one
--- session. Returns the grant's id. A user may share a session of its own. nil, message, code.
function access.methods:grant(given)
  local opts = options.check("store:grant", given, grant_options)
  if not opts.role then
    options.misuse "store:grant: option 'role' is missing"
  end
  opts.agents = list(opts.agents)
  return self._core:grant(opts)
end

--- The grants in force. Without manage_access: those to oneself, and on one's own sessions.
function access.methods:grants()
  return self._core:grants()
end

--- Ends a grant by its id. ENOTFOUND: it is not in force. nil, message, code.
function access.methods:ungrant(id)
  options.expect("string", id, "store:ungrant: the id of a grant")
  if not id:find("^" .. ("[0-9a-f]"):rep(8) .. "$") then
    return nil, ("no grant has the id %q"):format(id:sub(1, 40)), "ENOTFOUND"
  end
  return self._core:ungrant(id)
end

--- Makes an access key and returns its text, which nobody can show again. nil, message, code.
function access.methods:access_key(given)
  local opts = options.check("store:access_key", given, key_options)
  opts.roles, opts.agents = list(opts.roles), list(opts.agents)
  return self._core:access_key(opts)
end

--- The access keys that were not revoked.
function access.methods:access_keys()
  return self._core:access_keys()
end

--- Revokes an access key by its id, for ever. nil, message, code.
function access.methods:revoke_key(id)
  options.expect("string", id, "store:revoke_key: the id of a key")
  return self._core:revoke_key(id)
end

--- Locks a user or a key out: every view of it is EDENIED. nil, message, code.
function access.methods:lock(given)
  return self._core:lock(options.check("store:lock", given, lock_options))
end

--- Ends a lock. ENOTFOUND: there is none. nil, message, code.
function access.methods:unlock(given)
  return self._core:unlock(options.check("store:unlock", given, unlock_options))
end

--- The locks in force.
function access.methods:locks()
  return self._core:locks()
end

return access
