--- restore: goes back to a checkpoint, and prints its state.
--
-- Must never move the head without a confirmation.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

return {
  summary = "go back to a checkpoint, and print its state",
  usage = "restore ID CHECKPOINT [--force] [--yes]",
  examples = [[
    sessile restore bug-42 'before the rewrite'  by its name
    sessile restore last 2a --yes                by its number, without asking]],
  arguments = {
    common.session,
    { "checkpoint",
      "the newest of that name; `last`: the newest; else an entry: its number, or a label" },
  },
  options = {
    { "--force", "also restore it if another version of the agent made it" },
    ask.option,
  },
  about = [[
    Nothing is deleted: entries after the checkpoint become another branch.]],
  run = function(app, args)
    local session = app:open(args.id)
    local which = app.try(entries.checkpoint(session, args.checkpoint)) -- before the question
    ask.must(app, args, ("Move the head of %s back to '%s'"):format(hints.shown(session.id),
      hints.shown(args.checkpoint)))
    local restored = app.try_or({
      ENOTFOUND = "See them: sessile checkpoints " .. hints.id(session.id),
      ECONFLICT = "To go back anyway: --force",
    }, session:restore(which, { force = args.force }))
    for _, warning in ipairs(restored.warnings) do
      app:note("Note: " .. terminal.line(warning))
    end
    app:result({
      session = session.id, checkpoint = restored.checkpoint, head = restored.head,
      state = restored.json and app.raw(restored.json), warnings = app.array(restored.warnings),
    }, restored.json and terminal.safe(restored.json) .. "\n" or nil)
    if not app.json then
      app:note(("The head of %s is at %s again; later entries are still in the log: "
        .. "sessile tree %s"):format(hints.shown(session.id), restored.head, hints.id(session.id)))
    end
  end,
}
