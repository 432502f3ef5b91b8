--- delete: deletes a session, permanently or softly.
--
-- Owns: the confirmation. Must never delete a session that was not named unambiguously.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

-- The session to delete, and why it cannot be opened, if it cannot. A session that cannot be opened
-- or is deleted softly must be named by its whole id.
local function target(app, name)
  local session, message, code, step = app:session(name)
  if session then
    local which = { id = session.id, agent = session.agent, user = session.user }
    session:close()
    app.damaged, app.damage = nil, nil -- the damage does not matter any more
    return which
  elseif code == "EUSAGE" or name == "last" then
    return nil, message, code, step
  end
  return { id = name, agent = app.globals.agent }, message, code, step
end

return {
  summary = "delete a session, permanently or softly",
  usage = "delete ID [--soft] [--dry-run] [--yes]",
  examples = [[
    sessile delete bug-42 --soft  hide it; `sessile undelete bug-42` restores it
    sessile delete bug-42         delete it permanently; asks first]],
  arguments = { common.session },
  options = {
    { "--soft", "only mark it; it can be undeleted until it is purged" },
    { "--reason TEXT", "the reason, kept with a soft deletion" },
    { "--actor NAME", "who deleted it, kept with a soft deletion" },
    { "--dry-run", "print the session that would be deleted, delete nothing" },
    ask.option,
    { "--force", "the same as --yes" },
  },
  about = [[
    Without --soft, the log and the files beside it are removed, and its header is
    overwritten first. The store's key still opens copies elsewhere, such as backups. To
    make those unreadable too, use `sessile forget USER`.]],
  run = function(app, args)
    local which, message, code, step = target(app, args.id)
    if not which or args.dry_run then
      app.try(not message, message, code, step) -- it cannot be opened
      app:result({ id = which.id, agent = which.agent, dry_run = true },
        terminal.line(which.id) .. "\n")
      if not app.json then
        app:note "Nothing was changed (--dry-run)."
      end
      return
    end
    if not args.soft then
      args.yes = args.yes or args.force
      ask.must(app, args, ("Delete session %s permanently"):format(hints.shown(which.id)))
    end
    local store = app:store()
    local gone, failed, failed_code
    if store then
      gone, failed, failed_code = store:delete(which, {
        soft = args.soft, reason = args.reason, actor = args.actor,
      })
    end
    if not store or not gone and failed_code == "ENOTFOUND" and code then
      return nil, message, code, step -- as it was found, with what to do next
    end
    app.try(gone, failed, failed_code)
    if app.json then
      app:print_json { id = which.id, id_hash = gone.id_hash, time = gone.time,
        soft = args.soft or false }
    elseif args.soft then
      app:note(("Session %s is hidden. To restore it: sessile undelete %s"):format(
        hints.shown(which.id), hints.id(which.id)))
    else
      app:note(("Session %s is gone."):format(hints.shown(which.id)))
    end
  end,
}
