--- import: makes a session of a recorded conversation.
--
-- Owns: the file and what is said about the result. Must never run a policy: what was
-- recorded comes in as it was.

local import = require "sessile.import"
local terminal = require "sessile.cli.terminal"

return {
  name = "import",
  summary = "make a session of a recorded conversation",
  usage = "import FILE [--from FORMAT] [--id ID] [--title TEXT]",
  examples = {
    { "sessile import recorded.jsonl --from pi", "a session of the pi coding agent" },
    { "sessile import talk.jsonl --id bug-42", "one message a line, under a name of yours" },
    { "zcat old.jsonl.gz | sessile import - --from jsonl", "from standard input" },
  },
  arguments = { { "file", "the recording, or `-`: standard input" } },
  options = {
    { "--from FORMAT", "what wrote it (else told by its first line)", choices = import.names() },
    { "--id ID", "the session's id (else the recorded one, else a new one)" },
    { "--title TEXT", "what it is about" },
  },
  about = "Nothing is lost: lines that are no message become custom entries of the session.",
  run = function(app, args)
    local file = args.file
    local records, from, code = import.open(file == "-" and io.stdin or file, args.from)
    if not records then
      return nil, ("%s: %s"):format(file, from), code,
        code == "ENOTFOUND" and "Give the path of a recording."
        or "Say what wrote it: --from " .. table.concat(import.names(), " or --from ")
    end
    local store, message, step
    store, message, code, step = app:store(true)
    if not store then
      return nil, message, code, step
    end
    local session, counts
    session, counts, code = import.into(store, records, {
      from = from, id = args.id, title = args.title, agent = app.globals.agent,
    })
    if not session then
      return nil, counts, code, code == "EEXISTS" and "Give it another name: --id ID" or nil
    end
    local id = session.id
    session:close()
    if app.json then
      app:print_json {
        id = id, from = from, messages = counts.messages, turns = counts.turns,
        customs = counts.customs, refused = counts.refused,
      }
      return
    end
    app:out(id .. "\n")
    app:note(("%s messages in %s turns; %s other lines kept as custom entries%s"):format(
      terminal.number(counts.messages), terminal.number(counts.turns),
      terminal.number(counts.customs - counts.refused), counts.refused > 0
      and (", and %d messages that are not well formed"):format(counts.refused) or ""))
  end,
}
