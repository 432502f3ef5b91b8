--- keys init: makes the keyring of a store, before anything is in it.

local sessions = require "sessile.cli.sessions"

return {
  name = "keys init",
  summary = "create the keyring of a store, and your key file if you have none",
  usage = "keys init [--suite S]",
  examples = {
    { "sessile keys init --store ./sessions", "with $SESSILE_KEY, or a key file made for you" },
    { "sessile keys init --key-file ./store.key", "with an existing key" },
  },
  options = {
    { "--suite S", "the cipher (default: the fastest on this CPU)",
      choices = { "aes-256-gcm", "xchacha20-poly1305" } },
  },
  about = "A store creates its keyring when it is first used. Run this command before that to\n"
    .. "choose the suite, or to copy the key before anything is written.",
  run = function(app, args)
    local known, wrong, kind, hint = app:config()
    if not known then
      return nil, wrong, kind, hint
    end
    local ok, message, code, step = sessions.init(app.globals, args.suite)
    if not ok then
      return nil, message, code, step
    end
    if app.json then
      app:print_json { made = true, key = sessions.key_source(app.globals) }
    elseif app.globals.plain or known.key == false and not app.globals.key_file then
      app:out "The store exists. It is plain: nothing in it is sealed.\n"
    else
      app:out("The store exists and is sealed. Its key is in "
        .. sessions.key_source(app.globals) .. ".\n")
      app:note "Keep a copy of the key elsewhere: without it nobody can read the sessions."
    end
  end,
}
