--- backup: copies the store into one file while others write to it.
--
-- Owns: the report of what the file contains. Must never overwrite a file, except with --update.

local hints = require "sessile.cli.hints"
local migrate = require "sessile.migrate"
local moving = require "sessile.cli.moving"
local show = require "sessile.config.show"
local terminal = require "sessile.cli.terminal"

local function tell(app, args, done, sealed)
  moving.tell(app, done, terminal.line(args.file))
  if not done.moment then
    app:out "Others wrote meanwhile: each session is complete up to the moment it was copied.\n"
  end
  if not sealed then
    app:out "It is not sealed: anyone who has the file can read it.\n"
  else
    app:out "It is sealed with the keyring of the store: keep the secret, which opens both.\n"
    if args.keys then
      app:out(("Users' secrets are only in %s: keep it apart from the backup, and not for long.\n")
        :format(terminal.line(args.keys)))
    elseif done.users > 0 then
      app:out(("It holds the secrets of %s: `forget` does not reach them there (--keys).\n")
        :format(terminal.plural(done.users, "user")))
    end
  end
  if done.users_removed > 0 then
    app:out(("Secrets of users who were forgotten, removed there: %d.\n"):format(
      done.users_removed))
  end
  -- The hint names the backup instead of the store that was typed.
  local key = app.globals.key_file and " --key-file " .. hints.quoted(app.globals.key_file) or ""
  app:note(("To look into it: %s --store %s%s list"):format(hints.program,
    hints.quoted(show.url(migrate.backup_url(args.file))), key))
end

return {
  summary = "copy the store into a file while others write to it",
  usage = "backup FILE [--update] [--keys FILE]",
  examples = [[
    sessile backup sessions.backup               a SQLite database; the same secret opens it
    sessile backup sessions.backup --update      add what is new since then
    sessile backup b.db --keys b.keys            keep users' secrets in a separate file
    sessile list --store sqlite:sessions.backup  a backup is a store]],
  arguments = { { "file", "the backup file", is = "file" } },
  options = {
    { "--update", "FILE is a backup of this store: add what is new" },
    { "--keys FILE", "write users' secrets to this file instead of the backup" },
  },
  about = [[
    The backup has each session up to a complete write, and the sessions that it refers
    to. FILE appears only after the whole copy was written and read back. If the command
    is interrupted, run it again to continue.
    To restore it: sessile backup restore FILE]],
  run = function(app, args)
    local store = app:need_store()
    if args.keys == args.file then
      return nil, "--keys names the backup itself: name another file", "EUSAGE"
    elseif not store.sealed and args.keys then
      return nil, "this store is not sealed: its users have no secrets", "EUSAGE"
    end
    local done, message, code, step = moving.run(app, function(report)
      return store:backup(args.file, { update = args.update, keys = args.keys, progress = report })
    end)
    if not done then
      app.fail(message, code, step
        or code == "EEXISTS" and ("To add what is new: sessile backup %s --update"):format(
          hints.quoted(args.file))
        or code == "EFULL" and "Free space on the device, then run the command again."
        or message:find("lead to the same store", 1, true)
          and "Name a file that is none of this store's."
        or nil)
    end
    if app.json then
      moving.json(app, done, { file = args.file, keys = args.keys, sealed = store.sealed })
    else
      tell(app, args, done, store.sealed)
    end
    return moving.verdict(done)
  end,
}
