--- label: puts a label on an entry.
--
-- Owns: nothing but the words. A label is a name for an entry wherever one is typed.

local entries = require "sessile.cli.entries"

return {
  name = "label",
  summary = "give an entry a name",
  usage = "label ID ENTRY NAME",
  examples = {
    { "sessile label bug-42 2a before-deploy", "then: sessile show bug-42@before-deploy" },
    { "sessile label last head done", "the newest entry" },
  },
  arguments = {
    entries.arguments[1], entries.arguments[2],
    { "name", "the label: 1 to 200 bytes" },
  },
  about = "An entry can have several labels. `sessile label list ID` lists them, and `sessile\n"
    .. "label rm ID ENTRY` removes them.",
  run = function(app, args)
    local session, id, code, step = entries.open(app, args.id, args.entry)
    if not session then
      return nil, id, code, step
    end
    local _ <close> = app.closing(session)
    local ok, message
    ok, message, code = session:label(id, args.name)
    local name = session.id
    if not ok then
      return nil, message, code, entries.step(code, name)
    elseif app.json then
      app:print_json { session = name, entry = id, label = args.name }
    else
      app:out(id .. "\n")
    end
  end,
}
