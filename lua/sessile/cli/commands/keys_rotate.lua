--- keys rotate: a new epoch, or another secret, for the store.

local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local function next_step(args)
  if args.new_key_file then
    return ("From now on: --key-file %s. If it is to be your key file, move it there; other "
      .. "stores may hang on the one that is there now."):format(terminal.line(args.new_key_file))
  end
  return "From now on the store opens with the new secret: set SESSILE_KEY to it."
end

return {
  name = "keys rotate",
  summary = "a new master key for new sessions, or another secret for the store",
  usage = "keys rotate [--new-key-file FILE | --new-key-env NAME]",
  examples = {
    { "sessile keys rotate", "new sessions are sealed with a new master key" },
    { "sessile keys rotate --new-key-file ./new.key", "another secret; FILE is made when missing" },
    { "SESSILE_NEW_KEY=… sessile keys rotate --new-key-env SESSILE_NEW_KEY", "the same" },
  },
  options = {
    { "--new-key-file FILE", "wrap the keyring with the key in FILE" },
    { "--new-key-env NAME", "wrap it with the secret in the variable NAME" },
  },
  about = "Only the keyring changes, no session is touched. After a key was seen by somebody\n"
    .. "else: change the secret, then `sessile keys rotate`, then `sessile keys reseal`.",
  run = function(app, args)
    if args.new_key_file and args.new_key_env then
      return nil, "--new-key-file and --new-key-env exclude each other", "EUSAGE"
    end
    local store, message, code, step = app:store()
    if not store then
      return nil, message, code, step
    end
    local key = args.new_key_file and sessile.key.file(args.new_key_file)
      or args.new_key_env and sessile.key.env(args.new_key_env) or nil
    local epoch
    epoch, message, code = store:rotate { key = key, make = args.new_key_file and true or nil }
    if not epoch then
      if code == "ESEALED" or code == "EINVALID" then
        step = "Nothing was changed."
      end
      return nil, message, code, step
    end
    if app.json then
      app:print_json { epoch = epoch, secret_changed = key ~= nil }
    elseif key then
      app:out "The secret was changed; the old one opens this store no more.\n"
      app:note(next_step(args))
    else
      app:out(("Epoch %d seals new sessions.\n"):format(epoch))
      app:note "Older ones stay as they are: `sessile keys reseal` seals them anew."
    end
  end,
}
