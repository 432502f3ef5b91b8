--- pin: puts the pin on a message.
--
-- Owns: nothing but the words. What a pin means is the engine's: a pinned message stays in
-- the context, unedited.

local entries = require "sessile.cli.entries"

return {
  name = "pin",
  summary = "keep a message in the context, whatever policies propose",
  usage = "pin ID ENTRY",
  examples = {
    { "sessile pin bug-42 2a", "no policy drops or edits it from now on" },
  },
  arguments = entries.arguments,
  run = function(app, args)
    local session, id, code, step = entries.open(app, args.id, args.entry)
    if not session then
      return nil, id, code, step
    end
    local ok, message
    ok, message, code = session:pin(id)
    local name = session.id
    session:close()
    if not ok then
      return nil, message, code, entries.step(code, name)
    elseif app.json then
      app:print_json { session = name, entry = id, pinned = true }
    else
      app:out(id .. "\n")
    end
  end,
}
