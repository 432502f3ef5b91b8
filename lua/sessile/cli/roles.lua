--- roles: what the roles of a guard give: those that every store has, and the configuration's own.
--
-- Must never open a store of the user's: the engine is asked over an empty one in memory, where
-- asking leaves no event.

local core = require "sessile.core"
local guard_open = require "sessile.guard_open"
local sessile = require "sessile"

local roles = {}

--- The roles that every store has, the least first.
roles.BUILT_IN = { "viewer", "editor", "admin", "auditor" }

--- What each permission allows.
roles.ALLOWS = {
  view_session = "read, list and search sessions, and share one's own",
  modify_session = "write to sessions: turns, labels, compactions, branches",
  create_session = "make sessions, also by fork and import",
  delete_session = "delete sessions, bring deleted ones back, purge",
  create_checkpoint = "make checkpoints",
  read_memory = "read and search memories",
  write_memory = "write to memories, and say that one consents",
  read_audit = "read the audit",
  check_store = "check the store, verify the audit",
  move_store = "migrate, back up",
  manage_keys = "rotate the store's keys, seal again",
  manage_access = "give grants to anybody, make access keys, lock out",
  manage_privacy = "record consents of others, holds, retention",
  erase_user = "forget and erase users",
  impersonate = "make views of other users; only in a program",
}

--- The permissions that concern the whole store: a role that is given for some agents or one
--- session does not give them.
roles.WHOLE = {
  read_audit = true, check_store = true, move_store = true, manage_keys = true,
  manage_access = true, manage_privacy = true, erase_user = true,
}

--- A function that tells what a role gives, by its name: {name, all, may = set of permissions,
--- permissions = the same as a list}; nil: there is no such role.
---@param app sessile.cli.app
function roles.teller(app)
  local wanted = guard_open.wanted(app.try(app:config()).guard)
  local own = type(wanted) == "table" and wanted.roles or nil
  local store = app:keep(app.try(sessile.open("ram:", { key = false, guard = {
    profile = "standard", roles = own, rate_limits = false, audit = false, screens = false,
    urls = false } })))
  local known = {}
  return function(name)
    if known[name] == nil then
      local view, message, code = store:as { user = "anybody", roles = name }
      if not view and code ~= "EINVALID" then
        app.fail(message, code)
      end
      known[name] = false
      if view then
        local who, may = app.try(view:who()), {}
        for _, permission in ipairs(who.permissions) do
          may[permission] = true
        end
        known[name] = { name = name, all = who.all, may = may, permissions = who.permissions }
        view:close()
      end
    end
    return known[name] or nil
  end, own
end

--- The names of all roles: those that every store has, then the configuration's own.
function roles.names(own)
  local names, seen = table.move(roles.BUILT_IN, 1, #roles.BUILT_IN, 1, {}), {}
  for _, name in ipairs(names) do
    seen[name] = true
  end
  local more = {}
  for name in pairs(own or {}) do
    more[#more + 1] = not seen[name] and name or nil
  end
  table.sort(more)
  return table.move(more, 1, #more, #names + 1, names)
end

--- The permissions, in the engine's order.
roles.permissions = core.permissions

return roles
