--- keys status: what may be said of the keys of a store.

local sessions = require "sessile.cli.sessions"
local terminal = require "sessile.cli.terminal"

local function kdf(keys)
  if keys.kdf == "none" then
    return "a key of 32 bytes"
  end
  return ("a passphrase (%s, %d passes, %s)"):format(keys.kdf, keys.kdf_ops,
    terminal.bytes(keys.kdf_mem))
end

return {
  name = "keys status",
  summary = "show how a store is sealed, and how many logs use each master key",
  usage = "keys status",
  examples = { { "sessile keys status", "prints no key" } },
  run = function(app)
    local store, message, code, step = app:store()
    if not store then
      return nil, message, code, step
    end
    local keys
    keys, message, code = store:keys()
    if not keys then
      return nil, message, code
    end
    if app.json then
      keys.key = keys.sealed and sessions.key_source(app.globals) or nil
      keys.epochs = keys.epochs and app.array(keys.epochs)
      app:print_json(keys)
      return
    end
    if not keys.sealed then
      app:out(("This store is plain: nothing in it is sealed. Sessions: %d\n"):format(
        keys.logs))
      return
    end
    local rows = {
      { "sealed with", keys.suite },
      { "secret", kdf(keys) .. ", from " .. terminal.line(sessions.key_source(app.globals)) },
      { "sessions", ("%d"):format(keys.logs) },
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
  end,
}
