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
  return { id = name, agent = app.globals.agent, user = app.globals.user }, message, code, step
end

-- Asks. --yes answers only for a session that was named by its whole id: a prefix, a title or
-- `last` may be another session than the one that was meant.
local function confirm(app, args, which)
  local is_whole = which.id == args.id
  local sure, message, code, step = ask.sure(app, { yes = is_whole and (args.yes or args.force) },
    ("Delete session %s permanently"):format(hints.shown(which.id)))
  if sure == nil and not is_whole then
    step = ("Nothing was changed. Without a question only a whole id is deleted: "
      .. "sessile delete %s --yes"):format(hints.id(which.id))
  end
  ask.conclude(app, sure, message, code, step)
end

return {
  summary = "delete a session, permanently or softly",
  usage = "delete ID [--user NAME] [--soft] [--memory] [--dry-run] [--yes]",
  examples = [[
    sessile delete bug-42 --soft  hide it; `sessile undelete bug-42` restores it
    sessile delete bug-42         delete it permanently; asks first]],
  arguments = { common.session },
  options = {
    { "--soft", "only mark it; it can be undeleted until it is purged" },
    { "--memory", "end what the agent remembers from it, too" },
    { "--reason TEXT", "the reason, kept in the record of the deletion" },
    { "--actor NAME", "who deleted it, kept there too" },
    { "--dry-run", "print the session that would be deleted, delete nothing" },
    { "--yes", "do not ask, if ID is the whole id" },
    { "--force", "the same as --yes" },
  },
  about = [[
    Without --soft, the log and the files beside it are removed, and its header is
    overwritten first. A record stays: `sessile list --removed`. The store's key still
    opens copies elsewhere, such as backups. To make those unreadable too, use
    `sessile forget USER`.]],
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
      confirm(app, args, which)
    end
    local store = app:store()
    local gone, failed, failed_code, _, rule
    if store then
      gone, failed, failed_code, _, rule = store:delete(which, {
        soft = args.soft, memory = args.memory, reason = args.reason, actor = args.actor,
      })
    end
    if not store or not gone and failed_code == "ENOTFOUND" and code then
      return nil, message, code, step -- as it was found, with what to do next
    end
    app.try(gone, failed, failed_code, nil, rule)
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
