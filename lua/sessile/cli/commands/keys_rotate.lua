--- keys rotate: a new epoch, or another secret, for the store.

local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local function next_step(args)
  if args.new_key_file then
    return ("From now on: --key-file %s. If it is to be your key file, move it there; other "
      .. "stores may depend on the key file that is there now."):format(
      terminal.line(args.new_key_file))
  end
  return "The store now opens with the new secret: set SESSILE_KEY to it."
end

return {
  name = "keys rotate",
  summary = "create a new master key, or change the secret of the store",
  usage = "keys rotate [--new-key-file FILE | --new-key-env NAME]",
  examples = {
    { "sessile keys rotate", "seal new sessions with a new master key" },
    { "sessile keys rotate --new-key-file ./new.key",
      "change the secret; FILE is created if missing" },
    { "SESSILE_NEW_KEY=… sessile keys rotate --new-key-env SESSILE_NEW_KEY",
      "with the secret in a variable" },
  },
  options = {
    { "--new-key-file FILE", "wrap the keyring with the key in FILE" },
    { "--new-key-env NAME", "wrap the keyring with the secret in the variable NAME" },
  },
  about = "Only the keyring changes; sessions stay as they are. If somebody else has seen the\n"
    .. "key, change the secret, then run `sessile keys rotate`, then `sessile keys reseal`.",
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
      app:out "The secret was changed; the old one no longer opens this store.\n"
      app:note(next_step(args))
    else
      app:out(("Epoch %d seals new sessions.\n"):format(epoch))
      app:note "Older sessions keep their key: `sessile keys reseal` seals them again."
    end
  end,
}
