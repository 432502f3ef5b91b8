--- uncompact: undoes a compaction.
--
-- Owns: the confirmation. Must never undo another compaction than the one that was shown.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local entries = require "sessile.cli.entries"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local number = terminal.number

local function as_json(app, id, done)
  app:print_json {
    session = id, compaction = done.compaction, undone = done.undone,
    restored = app.array(done.restored), removed = app.array(done.removed),
    before = done.tokens.before, after = done.tokens.after, cannot_fit = done.cannot_fit,
    dry_run = done.compaction == nil,
  }
end

-- The first keys of a list, and the last one.
local function some(list)
  local shown = table.concat(list, " ", 1, math.min(#list, 6))
  return #list > 6 and ("%s … %s"):format(shown, list[#list]) or shown
end

local function tell(app, done)
  app:out(("%s: %s put back, %s removed\n"):format(terminal.change(done.tokens),
    terminal.plural(#done.restored, "message"), terminal.number(#done.removed)))
  if #done.restored > 0 then
    app:out(app.paint("+ " .. some(done.restored), "green") .. "\n")
  end
  if #done.removed > 0 then
    app:out(app.paint("- " .. some(done.removed), "red") .. "\n")
  end
  io.stdout:flush()
  if done.cannot_fit then
    app:note(("It does not fit any more: %s tokens too many"):format(number(done.cannot_fit)))
  end
end

local function run(app, args, session)
  local which = args.entry and app.try(entries.find(session, args.entry)) or nil
  local see = "See the compactions: sessile log " .. hints.id(session.id)
  local done = app.try_or({ EINVALID = see, ENOTFOUND = see },
    session:uncompact(which, { dry_run = true }))
  if not args.dry_run then
    ask.must(app, args, ("Undo compaction %s (%s put back, %s removed)"):format(done.undone,
      terminal.plural(#done.restored, "message"), number(#done.removed)))
    done = app.try(session:uncompact(done.undone))
  end
  if app.json then
    return as_json(app, session.id, done)
  end
  tell(app, done)
  if args.dry_run then
    app:note "Nothing was written (--dry-run)."
  else
    app:note(("To redo compaction %s: sessile uncompact %s %s"):format(done.undone,
      hints.id(session.id), done.compaction))
  end
end

return {
  summary = "undo a compaction: the messages it removed return",
  usage = "uncompact ID [ENTRY] [--dry-run] [--yes]",
  examples = [[
    sessile uncompact last --dry-run   show what would return; write nothing
    sessile uncompact bug-42           undo the newest compaction in force; asks first
    sessile uncompact bug-42 16 --yes  undo this one; see `sessile log bug-42`]],
  arguments = {
    common.session,
    { "entry", "a compaction: its number, a label, or `head`", "?" },
  },
  options = {
    { "--dry-run", "show what would return, write nothing" },
    ask.option,
  },
  about = [[
    The messages that the compaction removed return, and the messages that it wrote are
    removed, unless a later compaction changed them. To redo the compaction, undo the
    entry that this command writes.]],
  run = function(app, args) return run(app, args, app:open(args.id)) end,
}
