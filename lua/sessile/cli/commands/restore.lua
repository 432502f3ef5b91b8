--- restore: goes back to a checkpoint, and prints the state that was kept with it.
--
-- Owns: asking first, since the head of somebody's session moves. Must never ask when nobody
-- is there to answer.

local ask = require "sessile.cli.ask"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local function see_them(session)
  return "See them: sessile checkpoints " .. hints.id(session.id)
end

local function run(app, args, session, which)
  local restored, message, code = session:restore(which, { force = args.force })
  if not restored then
    local step
    if code == "ENOTFOUND" then
      step = see_them(session)
    elseif code == "ECONFLICT" then
      step = "To go back anyway: --force"
    end
    return nil, message, code, step
  end
  for _, warning in ipairs(restored.warnings) do
    app:note("Note: " .. terminal.line(warning))
  end
  if app.json then
    app:print_json {
      session = session.id, checkpoint = restored.checkpoint, head = restored.head,
      state = restored.json and app.raw(restored.json), warnings = app.array(restored.warnings),
    }
    return
  end
  if restored.json then
    app:out(terminal.safe(restored.json) .. "\n")
  end
  app:note(("The head of %s is at %s again; later entries are still in the log: sessile tree %s")
    :format(hints.shown(session.id), restored.head, hints.id(session.id)))
end

return {
  name = "restore",
  summary = "go back to a checkpoint, and print its state",
  usage = "restore ID CHECKPOINT [--force] [--yes]",
  examples = {
    { "sessile restore bug-42 'before the rewrite'", "by its name" },
    { "sessile restore last 2a --yes", "by its number, without asking" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "checkpoint",
      "the newest of that name; `last`: the newest; else an entry: its number, or a label" },
  },
  options = {
    { "--force", "also restore it if another version of the agent made it" },
    ask.option,
  },
  about = "Nothing is deleted: entries after the checkpoint become another branch.",
  run = function(app, args)
    local session, message, code, step = app:session(args.id)
    if not session then
      return nil, message, code, step
    end
    local go, which
    -- before a person is asked
    which, message, code, step = entries.checkpoint(session, args.checkpoint)
    if which then
      go, message, code, step = ask.sure(app, args,
        ("Move the head of %s back to '%s'"):format(hints.shown(session.id),
          hints.shown(args.checkpoint)))
    end
    local result
    if go then
      result, message, code, step = run(app, args, session, which)
    elseif go == false then
      result = ask.no(app)
    end
    session:close()
    return result, message, code, step
  end,
}
