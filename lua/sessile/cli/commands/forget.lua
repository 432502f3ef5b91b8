--- forget: makes the sessions and memories of a user unreadable, for ever.
--
-- Owns: the confirmation. It cannot be undone.

local ask = require "sessile.cli.ask"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

-- Lists the sessions that would be unreadable.
local function dry_run(app, store, user)
  local rows = app.try(store:list { user = user })
  if app.json then
    app:print_json { user = user, sessions = #rows, dry_run = true }
    return
  end
  for _, row in ipairs(rows) do
    app:out(terminal.line(row.id or "?") .. "\n")
  end
  app:note(("Nothing was changed (--dry-run): %s would be unreadable, and what agents remember of "
    .. "the user."):format(terminal.plural(#rows, "session")))
end

return {
  summary = "make every session and memory of a user unreadable for ever",
  usage = "forget USER [--dry-run] [--yes]",
  examples = [[
    sessile forget ann@example.org        asks first
    sessile forget ann@example.org --yes  in a script]],
  arguments = { { "user", "the user that sessions were created for", is = "user",
    field = "whose" } },
  options = { { "--dry-run", "list the sessions, change nothing" }, ask.option },
  about = [[
    Overwrites and removes the user's secret. After that nothing opens those sessions
    or what agents remember of the user, not even in backups of the logs. Only a copy of
    the secret itself (the store's user-… files) would. The logs stay in the store,
    unreadable, until `sessile purge --forgotten` removes them. Do that before anything new
    is kept for the user: afterwards nothing tells these logs from damaged ones.]],
  run = function(app, args)
    local store = app:need_store()
    if not store.sealed then
      return nil, "this store is plain: users have no secrets here", "EUNSUPPORTED",
        "Remove the files of that user's sessions; see which they are: sessile list"
    end
    if args.dry_run then
      return dry_run(app, store, args.whose)
    end
    ask.must(app, args,
      ("Make every session and memory of %s unreadable, for ever"):format(hints.shown(args.whose)))
    local count = app.try_or({ EIO = "Run it again: it is harmless." }, store:forget(args.whose))
    app:result({ user = args.whose, sessions = count },
      ("Logs of sessions and memories made unreadable: %d\n"):format(count))
    if count > 0 then
      app:note "To remove what is left of them: sessile purge --forgotten"
    end
  end,
}
