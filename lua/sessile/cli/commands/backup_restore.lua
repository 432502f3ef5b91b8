--- backup restore: copies a backup into a store.
--
-- Must never overwrite a session.

local moving = require "sessile.cli.moving"
local migrate = require "sessile.migrate"
local paths = require "sessile.paths"
local sessile = require "sessile"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

-- A backup file as a store.
local function place_of(app, file)
  return app.try(stores.as_place(app, migrate.backup_url(file)))
end

return {
  summary = "restore a backup into an empty store",
  usage = "backup restore FILE [--keys FILE] [--into]",
  examples = [[
    sessile backup restore sessions.backup         into your store, which must be empty
    sessile backup restore b.db --store ./elsewhere --keys b.keys
      with users' secrets from their file
    sessile backup restore sessions.backup --into  only the sessions that are missing]],
  arguments = { { "file", "the backup", is = "file" } },
  options = {
    { "--keys FILE", "the file of users' secrets that backup --keys wrote" },
    { "--into", "add missing sessions to a store that is not empty" },
  },
  about = [[
    The sessions are restored with the same ids, and the same secret opens them. If the
    command is interrupted, run it again with --into to continue.]],
  run = function(app, args)
    local from = place_of(app, args.file)
    local url = stores.place(app.globals) or paths.default_store()
    if not url then
      return nil, "there is no place for sessions: neither HOME nor XDG_DATA_HOME is set",
        "EUSAGE", "Name a folder with --store FOLDER, or set one of them."
    end
    app.try(moving.check(url))
    local there, why, refused, how = stores.guarded(app, url)
    if there == nil then
      return nil, why, refused, how
    elseif there then
      app.try(there:may("backup_restore", { permission = "move_store" }))
    end
    local to = { url = url, timeout_ms = app.globals.timeout, network = app.globals.network }
    local done, message, code, step = moving.run(app, function(report)
      return sessile.migrate(from, to, {
        into = args.into, fresh = not args.into, progress = report,
      })
    end)
    if done and args.keys then
      local secrets
      secrets, message, code = sessile.migrate(place_of(app, args.keys), to,
        { into = true, parts = { "users" } })
      done = secrets and done
      if done then
        done.users = secrets.users
      end
    end
    if not done and code == "ENOTFOUND" then
      return nil, ("there is no backup at %s"):format(terminal.line(args.file)), code,
        "Make one: sessile backup FILE"
    end
    app.try_or({
      EEXISTS = "Name an empty one with --store, or add what is missing with --into.",
    }, done, message, code, step)
    if app.json then
      moving.json(app, done, { file = args.file, store = moving.shown(url) })
    else
      moving.tell(app, done, moving.shown(url))
    end
    return moving.verdict(done)
  end,
}
