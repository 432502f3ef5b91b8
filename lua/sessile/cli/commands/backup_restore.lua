--- backup restore: a backup put back as a store.
--
-- Owns: where it goes. Must never write over a session that is there.

local moving = require "sessile.cli.moving"
local migrate = require "sessile.migrate"
local paths = require "sessile.paths"
local sessile = require "sessile"
local sessions = require "sessile.cli.sessions"
local terminal = require "sessile.cli.terminal"

-- What was typed as a file, as a store.
local function opened(app, file)
  return sessions.as_place(app, migrate.backup_url(file))
end

return {
  name = "backup restore",
  summary = "restore a backup into an empty store",
  usage = "backup restore FILE [--keys FILE] [--into]",
  examples = {
    { "sessile backup restore sessions.backup", "into your store, which must be empty" },
    { "sessile backup restore b.db --store ./elsewhere --keys b.keys",
      "with users' secrets from their file" },
    { "sessile backup restore sessions.backup --into", "only the sessions that are missing" },
  },
  arguments = { { "file", "the backup", is = "file" } },
  options = {
    { "--keys FILE", "the file of users' secrets that backup --keys wrote" },
    { "--into", "add missing sessions to a store that is not empty" },
  },
  about = "The sessions are restored with the same ids, and the same secret opens them. If the\n"
    .. "command is interrupted, run it again with --into to continue.",
  run = function(app, args)
    local from, message, code, step = opened(app, args.file)
    if not from then
      return nil, message, code, step
    end
    local url = sessions.place(app.globals) or paths.default_store()
    if not url then
      return nil, "there is no place for sessions: neither HOME nor XDG_DATA_HOME is set",
        "EUSAGE", "Name a folder with --store FOLDER, or set one of them."
    end
    local fine
    fine, message, code, step = moving.check(url)
    if not fine then
      return nil, message, code, step
    end
    local to = { url = url, timeout_ms = app.globals.timeout, network = app.globals.network }
    local done
    done, message, code, step = moving.run(app, function(report)
      return sessile.migrate(from, to, {
        into = args.into, fresh = not args.into, progress = report,
      })
    end)
    if done and args.keys then
      local keys = opened(app, args.keys)
      local secrets
      secrets, message, code = sessile.migrate(keys, to, { into = true, parts = { "users" } })
      done = secrets and done
      if done then
        done.users = secrets.users
      end
    end
    if not done then
      if code == "ENOTFOUND" then
        return nil, ("there is no backup at %s"):format(terminal.line(args.file)), code,
          "Make one: sessile backup FILE"
      end
      return nil, message, code, step or code == "EEXISTS"
        and "Name an empty one with --store, or add what is missing with --into." or nil
    end
    if app.json then
      moving.json(app, done, { file = args.file, store = moving.shown(url) })
    else
      moving.tell(app, done, moving.shown(url))
    end
    return moving.verdict(done)
  end,
}
