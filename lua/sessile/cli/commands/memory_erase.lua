--- memory erase: takes entries out of a memory's log for good.
--
-- Owns: the question. Must never erase without a yes.

local ask = require "sessile.cli.ask"
local filters = require "sessile.cli.filters"
local memories = require "sessile.cli.memories"
local terminal = require "sessile.cli.terminal"

local commands = {}

-- What will be erased, for the question.
local function named(args)
  local parts = {}
  for _, name in ipairs(args.entries or {}) do
    parts[#parts + 1] = terminal.line(name)
  end
  if args.session then
    parts[#parts + 1] = "what is from session " .. terminal.line(args.session)
  end
  if args.ended_before then
    parts[#parts + 1] = "what ended before " .. terminal.line(args.ended_before)
  end
  return table.concat(parts, ", ")
end

commands["memory erase"] = {
  summary = "take entries out of an agent's memory for good",
  usage = "memory erase AGENT [ENTRY...] [--user USER] [--history] [--session ID] "
    .. "[--ended-before WHEN] [--yes]",
  examples = [[
    sessile memory erase coder editor --history --user ann  an entry, and all that led to it
    sessile memory erase coder --session bug-42             what is from a session
    sessile memory erase coder --ended-before 30d           what ended long ago]],
  arguments = { memories.agent, { "entries", "entries: their keys, or their numbers", "*" } },
  options = { memories.user, { "--history", "all that led to these entries, too" },
    { "--session ID", "what is from this session, alone or among others" },
    { "--ended-before WHEN", "what was replaced, deleted or expired before: 30d, 2026-02-01" },
    ask.option },
  about = [[
    The log is written again without their texts, under a new key. Nothing brings them
    back. Copies elsewhere, such as backups, still have them; to make all of a user's
    unreadable there too, use `sessile forget USER`. `sessile memory rm` only hides.]],
  run = function(app, args)
    if #(args.entries or {}) == 0 and not args.session and not args.ended_before then
      app.fail("nothing is named to be erased", "EUSAGE",
        "Name entries, --session or --ended-before; to delete all: sessile memory clear AGENT")
    end
    local before = filters.moment(app, "--ended-before", args.ended_before)
    local memory = memories.open(app, args)
    local rows = {}
    for i, name in ipairs(args.entries or {}) do
      rows[i] = app.try_or(memories.entry_steps(args), memories.which(memory, name))
    end
    ask.must(app, args, ("Erase %s for good"):format(named(args)))
    local count = 0
    for _, row in ipairs(rows) do
      count = count + app.try(memory:erase(row, { history = args.history }))
    end
    if args.session or args.ended_before then
      count = count + app.try(memory:erase { session = args.session,
        ended_before = before })
    end
    app:result({ agent = args.agent, erased = count }, ("%d erased\n"):format(count))
  end,
}

return commands
