--- access key: makes, lists and revokes access keys.
--
-- Owns: the one time that a key is shown. Must never show it in a message.

local access = require "sessile.cli.commands.access"
local terminal = require "sessile.cli.terminal"

local actions = {}

function actions.new(app, args)
  if #args.role == 0 then
    app.fail("a key gives a role: name one with --role", "EUSAGE")
  end
  local key = access.try_role(app, access.store(app, true):access_key {
    user = args.what, roles = args.role, agents = #args.only > 0 and args.only or nil,
    device = args.device, label = args.label, expires = access.ends(app, args["for"]),
  })
  app:result({ key = key, user = args.what, roles = app.array(args.role) }, key .. "\n")
  app:note "This key is shown once. Give it in $SESSILE_TOKEN, or in a file: --token-file FILE"
end

function actions.list(app, args)
  local rows, keys = {}, app.try(access.store(app):access_keys())
  local now, found = app.now(), {}
  for _, one in ipairs(keys) do
    if not args.what or one.user == args.what then
      found[#found + 1] = one
      local expires = one.expires and one.expires > 0 and one.expires
      rows[#rows + 1] = { terminal.line(one.id), one.user and terminal.line(one.user) or "nobody",
        terminal.line(table.concat(one.roles or {}, ", ")),
        not expires and "no end" or (expires <= now and "expired " or "") .. terminal.day(expires),
        one.device and terminal.line(one.device) or "",
        one.label and terminal.line(one.label) or "" }
    end
  end
  if app.json then
    app:print_json(app.array(found))
  elseif #rows == 0 then
    app:note "There are no access keys. Make one: sessile access key new USER --role ROLE"
  else
    app:print_table({ "ID", "USER", "ROLES", "UNTIL", "DEVICE", "LABEL" }, rows,
      { "DEVICE", "LABEL" })
  end
end

function actions.revoke(app, args)
  if not args.what then
    app.fail("which key? Its id is that of `sessile access key list`", "EUSAGE")
  end
  app.try_or({ ENOTFOUND = "See the keys: sessile access key list" },
    access.store(app):revoke_key(args.what))
  app:result({ id = args.what, revoked = true }, ("Key %s is revoked, for ever.\n"):format(
    terminal.line(args.what)))
end

return {
  summary = "make, list and revoke access keys",
  usage = "access key new|list|revoke [WHAT] [--role ROLE] [--for TIME] [--only AGENT]",
  examples = [[
    sessile access key new ann --role editor --for 90d  prints the key, once
    sessile access key list                             those that were not revoked
    sessile access key revoke du3nq7oafk2bx4me          its id is that of the list]],
  arguments = {
    { "action", "new, list or revoke", choices = { "new", "list", "revoke" } },
    { "what", "of `new` and `list`: a user; of `revoke`: the id of a key", "?", is = "user" },
  },
  options = {
    { "--role ROLE", "a role that the key gives; may be repeated", many = true },
    access.AGENTS,
    { "--device NAME", "accepted only with this name in $SESSILE_DEVICE, or given by a program" },
    { "--label TEXT", "what it is for, for people" },
    access.FOR,
  },
  about = [[
    A key says who its holder is, as a password would. The store has a hash of it. Keys of
    a store are facts in the store: a revoked one is denied within a second everywhere.]],
  run = function(app, args)
    if app.globals.agent or app.globals.user then
      return nil, "an access key is of the user who is named behind its command", "EUSAGE",
        "For some agents: --only coder."
    end
    return actions[args.action](app, args)
  end,
}
