--- import: makes a session of a recorded conversation.
--
-- Owns: the file and what is said about the result. Must never run a policy: what was
-- recorded comes in as it was.

local hints = require "sessile.cli.hints"
local import = require "sessile.import"
local recordings = require "sessile.cli.recordings"
local terminal = require "sessile.cli.terminal"

-- "1 message", "2 messages".
local function counted(n, word)
  return ("%s %s%s"):format(terminal.number(n), word, n == 1 and "" or "s")
end

-- What became of the lines that are no messages.
local function others(counts)
  local plain = counts.customs - counts.unread
  local text = plain > 0
    and ("; %s kept as custom"):format(counted(plain, "other line")) or ""
  if counts.unread == 0 then
    return text
  end
  return text .. ("\n%s could not be read as %s, kept as custom; first: line %d: %s"):format(
    counted(counts.unread, "line"), counts.unread == 1 and "a message" or "messages",
    counts.first.at or 0, terminal.line(counts.first.why))
end

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
    if args.id == "last" then
      return nil, "the id 'last' is taken: it always means the newest session", "EUSAGE"
    end
    local records, from, code, step = recordings.open(args.file, args.from)
    if not records then
      return nil, from, code, step
    end
    local store, message
    store, message, code, step = app:store(true)
    if not store then
      return nil, message, code, step
    end
    local session, counts
    session, counts, code = import.into(store, records, {
      from = from, id = args.id, title = args.title, agent = app.globals.agent,
    })
    if not session then
      return nil, ("%s: %s"):format(hints.shown(args.file), counts), code,
        code == "EEXISTS" and "Give it another name: --id ID" or nil
    end
    local id = session.id
    session:close()
    if app.json then
      app:print_json {
        id = id, from = from, messages = counts.messages, turns = counts.turns,
        customs = counts.customs, refused = counts.refused, unread = counts.unread,
        first_unread = counts.first,
      }
      return
    end
    app:out(id .. "\n")
    app:note(("%s in %s%s"):format(counted(counts.messages, "message"),
      counted(counts.turns, "turn"), others(counts)))
  end,
}
