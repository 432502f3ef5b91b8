--- keys: keys init, keys status, keys rotate, keys reseal: the keyring of a store.
--
-- Must never print a key.

local common = require "sessile.cli.common"
local progress = require "sessile.cli.progress"
local sessile = require "sessile"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local commands = {}

local function suite(about)
  return { "--suite S", about, choices = { "aes-256-gcm", "xchacha20-poly1305" } }
end

commands["keys init"] = {
  summary = "create the keyring of a store, and your key file if you have none",
  usage = "keys init [--suite S]",
  examples = [[
    sessile keys init --store ./sessions      with $SESSILE_KEY, or a key file made for you
    sessile keys init --key-file ./store.key  with an existing key]],
  options = { suite "the cipher (default: the fastest on this CPU)" },
  about = [[
    A store creates its keyring when it is first used. Run this command before that to
    choose the suite, or to copy the key before anything is written.]],
  run = function(app, args)
    local known = app.try(app:config())
    app:telling_of_key(function()
      return app.try(stores.init(app.globals, args.suite))
    end)
    local source = stores.key_source(app.globals)
    if app.json then
      app:print_json { made = true, key = source }
    elseif app.globals.plain or known.key == false and not app.globals.key_file then
      app:out "The store exists. It is plain: nothing in it is sealed.\n"
    else
      app:out("The store exists and is sealed. Its key is in " .. source .. ".\n")
      if not app.told_of_key then
        app:note "Keep a copy of the key elsewhere: without it nobody can read the sessions."
      end
    end
  end,
}

local function kdf(keys)
  if keys.kdf == "none" then
    return "a key of 32 bytes"
  end
  return ("a passphrase (%s, %d passes, %s)"):format(keys.kdf, keys.kdf_ops,
    terminal.bytes(keys.kdf_mem))
end

local function print_status(app, keys)
  local rows = {
    { "sealed with", keys.suite },
    { "secret", kdf(keys) .. ", from " .. terminal.line(stores.key_source(app.globals)) },
    { "logs", ("%d, of sessions and memories"):format(keys.logs) },
    { "of users", ("%d, sealed with a secret of the user's own"):format(keys.user_logs) },
    { "users", ("%d have a secret"):format(keys.users) },
  }
  for _, row in ipairs(keys.epochs) do
    rows[#rows + 1] = { "epoch " .. row.epoch, ("seals %d"):format(row.logs) }
  end
  for _, row in ipairs(rows) do
    app:out(("%-12s %s\n"):format(row[1], row[2]))
  end
  if keys.old_logs > 0 then
    app:note(("To be sealed again with `sessile keys reseal`: %d"):format(keys.old_logs))
  end
  if keys.odd_logs > 0 then
    app:note(("Logs whose first line could not be read: %d. See: sessile list"):format(
      keys.odd_logs))
  end
end

commands["keys status"] = {
  summary = "show how a store is sealed, and how many logs use each master key",
  usage = "keys status",
  examples = [[sessile keys status  prints no key]],
  run = function(app)
    local keys = app.try(app:need_store():keys())
    if app.json then
      keys.key = keys.sealed and stores.key_source(app.globals) or nil
      keys.epochs = keys.epochs and app.array(keys.epochs)
      app:print_json(keys)
    elseif keys.sealed then
      print_status(app, keys)
    else
      app:out(("This store is plain: nothing in it is sealed. Sessions: %d\n"):format(keys.logs))
    end
  end,
}

local function after_rotate(args)
  if args.new_key_file then
    return ("From now on: --key-file %s. If it is to be your key file, move it there; other "
      .. "stores may depend on the key file that is there now."):format(
      terminal.line(args.new_key_file))
  end
  return "The store now opens with the new secret: set SESSILE_KEY to it."
end

commands["keys rotate"] = {
  summary = "create a new master key, or change the secret of the store",
  usage = "keys rotate [--new-key-file FILE | --new-key-env NAME]",
  examples = [[
    sessile keys rotate                           seal new sessions with a new master key
    sessile keys rotate --new-key-file ./new.key  change the secret; FILE is created if missing
    SESSILE_NEW_KEY=… sessile keys rotate --new-key-env SESSILE_NEW_KEY
      with the secret in a variable]],
  options = {
    { "--new-key-file FILE", "wrap the keyring with the key in FILE" },
    { "--new-key-env NAME", "wrap the keyring with the secret in the variable NAME" },
  },
  about = [[
    Only the keyring changes; sessions stay as they are. A new secret wraps the same
    master keys: with an old copy of the keyring, the old secret still opens every
    session. If somebody else has seen the secret, change it, then run
    `sessile keys rotate`, then `sessile keys reseal`.]],
  run = function(app, args)
    common.at_most_one(app, args, { "--new-key-file", "--new-key-env" })
    local store = app:need_store()
    local key = args.new_key_file and sessile.key.file(args.new_key_file)
      or args.new_key_env and sessile.key.env(args.new_key_env) or nil
    local unchanged = "Nothing was changed."
    local epoch, new = app.try_or({ ESEALED = unchanged, EINVALID = unchanged },
      store:rotate { key = key, make = args.new_key_file and true or nil })
    if app.json then
      app:print_json { epoch = epoch, new_epoch = new, secret_changed = key ~= nil }
    elseif key then
      app:out "The secret was changed; the old one no longer opens this store.\n"
      app:note(after_rotate(args))
      app:note(("No master key was made: new sessions are still sealed with epoch %d. If somebody"
        .. " has seen the old secret: sessile keys rotate, then sessile keys reseal"):format(epoch))
    else
      app:out(("Epoch %d seals new sessions.\n"):format(epoch))
      app:note "Older sessions keep their key: `sessile keys reseal` seals them again."
    end
  end,
}

local function tell_resealed(app, done)
  app:out(("Sessions sealed again: %d of %d.\n"):format(done.resealed, done.logs))
  if done.dropped > 0 then
    app:out(("Older master keys removed: %d. No log used them.\n"):format(done.dropped))
  end
  if done.forgotten > 0 then
    app:note(("Sessions of forgotten users, unreadable: %d."):format(done.forgotten))
  end
  for _, failure in ipairs(done.failures) do
    app:note(("%s was left as it was: %s"):format(terminal.line(failure.log), failure.message))
  end
end

commands["keys reseal"] = {
  summary = "encrypt old sessions again, under the newest master key",
  usage = "keys reseal [--suite S] [--dry-run]",
  examples = [[
    sessile keys rotate && sessile keys reseal      after somebody else has seen a key
    sessile keys reseal --suite xchacha20-poly1305  for machines without AES]],
  options = {
    suite "the cipher from now on",
    { "--dry-run", "print how many use older keys, change nothing" },
  },
  about = [[
    Each session is encrypted again in one step, and others can continue writing. If the
    command is interrupted, run it again to continue. Copies elsewhere do not change.]],
  run = function(app, args)
    local store = app:need_store()
    if args.dry_run then
      local keys = app.try(store:keys())
      local old = keys.old_logs or 0
      app:result({ old_logs = old, logs = keys.logs, dry_run = true },
        ("To be sealed again: %d of %d.\n"):format(old, keys.logs))
      return
    end
    local show, finish = progress.bar(app, "sealing again")
    local done, message, code = store:reseal {
      suite = args.suite,
      progress = function(state) show(state.seen, state.logs) end,
    }
    finish()
    if not done then
      app.fail(message, code,
        store.sealed and "Finished sessions are kept. To continue: sessile keys reseal" or nil)
    end
    if app.json then
      done.failures = app.array(done.failures)
      app:print_json(done)
    else
      tell_resealed(app, done)
    end
    return done.failed > 0 and 5 or 0
  end,
}

return commands
