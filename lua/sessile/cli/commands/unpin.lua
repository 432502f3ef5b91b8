--- unpin: takes the pin off a message.
--
-- Owns: nothing but the words.

local entries = require "sessile.cli.entries"

return {
  name = "unpin",
  summary = "let policies decide about a message again",
  usage = "unpin ID ENTRY",
  examples = {
    { "sessile unpin bug-42 2a", "policies may drop it again" },
  },
  arguments = entries.arguments,
  run = function(app, args)
    local session, id, code, step = entries.open(app, args.id, args.entry)
    if not session then
      return nil, id, code, step
    end
    local ok, message
    ok, message, code = session:unpin(id)
    local name = session.id
    session:close()
    if not ok then
      return nil, message, code, entries.step(code, name)
    elseif app.json then
      app:print_json { session = name, entry = id, pinned = false }
    else
      app:out(id .. "\n")
    end
  end,
}
