--- memory review: entries that wait for a person, one after the other on a terminal.
--
-- Owns: what a person is shown of such an entry, and the questions. Must never approve or reject
-- without an answer: silence and the end of the input leave the rest as it is.

local audit = require "sessile.memory_audit"
local memories = require "sessile.cli.memories"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local commands = {}

local line, short = terminal.line, memories.short

local MESSAGES = 6 -- that are shown of each source

-- ---------------------------------------------------------------- what is shown

-- Why it waits, as who wrote it says; "" if nobody does.
local function because(row)
  local why = type(row.metadata) == "table" and row.metadata.pending_because
  return type(why) == "string" and line(why) or ""
end

-- What becomes of which entries: {{id, words}, …}, each id once.
local function others_of(memory, row)
  local list, seen = {}, { [row.id] = true }
  local function add(id, words)
    id = type(id) == "string" and #id <= 8 and id:find "^%x+$"
      and ("%08x"):format(tonumber(id, 16)) or nil
    if id and not seen[id] then
      seen[id] = true
      list[#list + 1] = { id, words }
    end
  end
  local holder = row.key and memory:read(row.key)
  add(holder and holder.id, "It would replace")
  for _, id in ipairs(row.replaces or {}) do
    add(id, "It would replace")
  end
  local against = type(row.metadata) == "table" and row.metadata.contradicts
  for _, id in ipairs(type(against) == "table" and against or {}) do
    add(id, "It contradicts")
  end
  return list
end

-- Text of several lines, indented and broken at the terminal's width.
local function indented(text, columns)
  text = terminal.fold(terminal.safe(text), columns and columns - 4)
  return "    " .. text:gsub("\n", "\n    ") .. "\n"
end

local function show_other(app, memory, words, id, columns)
  local other = memory:get(id)
  if not other then
    return app:out(("  %s %s, which is not there.\n"):format(words, short(id)))
  end
  app:out(("  %s %s (%s, in the words of: %s):\n%s"):format(words, app.paint(short(id), "cyan"),
    memories.state_of(other), other.source, indented(other.value, columns)))
end

local function show_source(app, from, columns)
  app:out(("  From session %s of %s, entries %s to %s:\n"):format(line(from.session),
    line(from.agent), short(from.first), short(from.last)))
  if from.failure then
    return app:out(indented("it cannot be read: " .. from.failure, columns))
  end
  for i, one in ipairs(from.messages) do
    if i > MESSAGES then
      return app:out(("    and %d more\n"):format(#from.messages - MESSAGES))
    end
    local role = render.role(one.message)
    app:out(("    %s: %s\n"):format(app.paint(role, render.colour(one.message)),
      render.brief(one.message, (columns or 100) - 6 - terminal.width(role))))
  end
end

-- Prints an entry, what would become of others, and where it comes from.
local function show(app, memory, row, heading)
  local columns = terminal.columns()
  app:out(("%s  %s  %s, in the words of: %s, %s by %s\n"):format(app.paint(heading, "bold"),
    app.paint(short(row.id), "cyan"), row.kind, row.source, terminal.day(row.time),
    line(row.author or "?")))
  app:out(indented((row.key and row.key .. ": " or "") .. row.value, columns))
  if because(row) ~= "" then
    app:out("  " .. terminal.wrap("It waits because " .. because(row) .. ".",
      columns and columns - 2, "  ") .. "\n")
  end
  for _, found in ipairs(audit.of { row }) do
    app:out(("  %s\n"):format(app.paint("It " .. memories.LOOKS[found.what] .. ".", "yellow")))
  end
  for _, one in ipairs(others_of(memory, row)) do
    show_other(app, memory, one[2], one[1], columns)
  end
  local found = memory:why(row)
  for _, from in ipairs(found and found.from or {}) do
    show_source(app, from, columns)
  end
  if not found or #found.from == 0 then
    app:out "  It names no session.\n"
  end
end

-- ---------------------------------------------------------------- decisions

local function ask(question)
  io.stderr:write(question)
  return io.stdin:read "l"
end

local ANSWERS = { a = "approve", approve = "approve", r = "reject", reject = "reject", s = "skip",
  skip = "skip", q = "quit", quit = "quit" }

-- What the person says about an entry: "approve", "reject", "skip" or "quit".
local function decision()
  while true do
    local answer = ask "Approve, reject, skip or quit? [a/r/s/q] "
    if not answer then
      io.stderr:write "\n"
      return "quit"
    end
    local meant = ANSWERS[answer:lower():match "^%s*(.-)%s*$"]
    if meant then
      return meant
    end
  end
end

-- Approves or rejects an entry; false: it does not wait any more, which is said.
local function judge(app, memory, method, row, reason, by)
  local now = app.try(memory:get(row.id))
  if now.state ~= "pending" then
    if not app.json then
      app:note(("%s does not wait any more: it is %s."):format(short(row.id), now.state))
    end
    return false
  end
  return app.try(memory[method](memory, row.id, { reason = reason, by = by }))
end

-- "1 approved, 2 rejected"
local function summary(done)
  return ("%d approved, %d rejected, %s left\n"):format(done.approved, done.rejected,
    terminal.plural(done.pending, "entry", "entries"))
end

local PAST = { approve = "approved", reject = "rejected" }

-- Goes through what waits with a person.
local function walk(app, args, memory)
  local rows = app.try(memory:pending())
  local done = { approved = 0, rejected = 0 }
  for i, row in ipairs(rows) do
    show(app, memory, row, ("%d of %d"):format(i, #rows))
    app:flush()
    local what = decision()
    if what == "quit" then
      break
    elseif PAST[what] then
      local reason = args.reason
      if what == "reject" and not reason then
        reason = ask "Why? [Enter: no reason] "
        reason = reason and reason:find "%S" and reason or nil
      end
      if judge(app, memory, what, row, reason, args.by) then
        done[PAST[what]] = done[PAST[what]] + 1
      end
    end
    app:out "\n"
  end
  done.pending = app.try(memory:stats()).pending
  app:out(summary(done))
end

-- Approves or rejects the entries that are named.
local function decide(app, args, memory)
  local rows = {}
  for i, name in ipairs(args.entries) do
    rows[i] = app.try_or(memories.entry_steps(args), memories.which(memory, name, "approved"))
  end
  local done = { agent = args.agent, approved = 0, rejected = 0 }
  for _, row in ipairs(rows) do
    if judge(app, memory, args.verdict, row, args.reason, args.by) then
      done[PAST[args.verdict]] = done[PAST[args.verdict]] + 1
    end
  end
  done.pending = app.try(memory:stats()).pending
  app:result(done, summary(done))
end

-- Prints what waits as a table.
local function list(app, memory)
  local rows = app.try(memory:pending())
  if app.json then
    return app:print_json(app.array(rows))
  elseif #rows == 0 then
    return app:note "Nothing waits for a decision."
  end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { short(row.id), row.source, row.kind, line(row.key or ""), because(row),
      line(row.value) }
  end
  app:print_table({ "id", "source", "kind", "key", "because", "value" }, lines, { "because",
    "kind" })
end

commands["memory review"] = {
  summary = "decide about entries that wait for a person",
  usage = "memory review AGENT [approve|reject ENTRY...] [--user USER] [--reason TEXT] "
    .. "[--by NAME]",
  examples = [[
    sessile memory review coder --user ann                 one after the other; in a pipe, a list
    sessile memory review coder approve 2a 2b              these are true
    sessile memory review coder reject 2c --reason "old"   this one is not]],
  arguments = { memories.agent,
    { "verdict", "approve: they become live; reject: they are undone", "?",
      choices = { "approve", "reject" } },
    { "entries", "entries: their keys, or their numbers", "*" } },
  options = { memories.user, memories.reason, memories.by },
  about = [[
    On a terminal, each entry is shown with what it would replace or contradicts, and with
    the messages that it is from. Whatever gets no answer goes on waiting.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    if args.verdict and #(args.entries or {}) == 0 then
      app.fail(("nothing is named to %s"):format(args.verdict), "EUSAGE",
        "Name entries by their numbers: sessile memory review AGENT lists them.")
    elseif args.verdict then
      decide(app, args, memory)
    elseif app.json or not terminal.is_terminal(0) or not terminal.is_terminal(1) then
      list(app, memory)
    else
      walk(app, args, memory)
    end
  end,
}

return commands
