--- keys reseal: seals old sessions again, under the newest master key.

local progress = require "sessile.cli.progress"
local terminal = require "sessile.cli.terminal"

local function tell(app, done)
  app:out(("Sessions sealed again: %d of %d.\n"):format(done.resealed, done.logs))
  if done.dropped > 0 then
    app:out(("Older master keys removed: %d. No log used them.\n"):format(done.dropped))
  end
  if done.forgotten > 0 then
    app:note(("Sessions of forgotten users, unreadable: %d."):format(done.forgotten))
  end
  for _, failure in ipairs(done.failures) do
    app:note(("%s was left as it was: %s"):format(terminal.line(failure.log),
      failure.message))
  end
end

return {
  name = "keys reseal",
  summary = "encrypt old sessions again, under the newest master key",
  usage = "keys reseal [--suite S] [--dry-run]",
  examples = {
    { "sessile keys rotate && sessile keys reseal", "after somebody else has seen a key" },
    { "sessile keys reseal --suite xchacha20-poly1305", "for machines without AES" },
  },
  options = {
    { "--suite S", "the cipher from now on",
      choices = { "aes-256-gcm", "xchacha20-poly1305" } },
    { "--dry-run", "print how many use older keys, change nothing" },
  },
  about = "Each session is encrypted again in one step, and others can go on writing. If the\n"
    .. "command is interrupted, run it again to continue. Copies elsewhere do not change.",
  run = function(app, args)
    local store, message, code, step = app:store()
    if not store then
      return nil, message, code, step
    end
    if args.dry_run then
      local keys
      keys, message, code = store:keys()
      if not keys then
        return nil, message, code
      elseif app.json then
        app:print_json { old_logs = keys.old_logs or 0, logs = keys.logs, dry_run = true }
      else
        app:out(("To be sealed again: %d of %d.\n"):format(keys.old_logs or 0, keys.logs))
      end
      return
    end
    local show, finish = progress.bar(app, "sealing again")
    local done
    done, message, code = store:reseal {
      suite = args.suite,
      progress = function(state) show(state.seen, state.logs) end,
    }
    finish()
    if not done then
      return nil, message, code, store.sealed
        and "Finished sessions are kept. To continue: sessile keys reseal" or nil
    end
    if app.json then
      done.failures = app.array(done.failures)
      app:print_json(done)
    else
      tell(app, done)
    end
    return done.failed > 0 and 5 or 0
  end,
}
