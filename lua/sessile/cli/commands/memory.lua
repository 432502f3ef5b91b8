--- memory: what an agent keeps across sessions: show, search, add, rm, restore, history.
--
-- Owns: how entries are printed. Values are shown on one line, without control characters. Must
-- never create a memory except to add to it.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local memories = require "sessile.cli.memories"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local commands = {}

local CONSENT, STATES = memories.CONSENT, memories.STATES
local agent, entry, user, kind = memories.agent, memories.entry, memories.user, memories.kind
local by, reason = memories.by, memories.reason
local open, which, short = memories.open, memories.which, memories.short
local entry_steps, print_rows, state_of = memories.entry_steps, memories.print_rows,
  memories.state_of

-- Prints a hit, and below it how its score came about.
local function explain(app, row)
  local terms, why = {}, row.explain
  app:out(("%s  %.2f  %s\n"):format(short(row.id), row.score, terminal.line(row.value)))
  for i, term in ipairs(why.terms) do
    terms[i] = ("%s %.2f%s"):format(terminal.line(term.term), term.gave,
      term.field == "also" and " (also)" or "")
  end
  app:out(("    words: %s; together %.2f, %.0f%% of what could be met\n"):format(
    #terms > 0 and table.concat(terms, ", ") or "none", why.lex, row.cover * 100))
  if (row.cos or 0) ~= 0 then
    app:out(("    vectors: nearness %.3f, which gave %.2f of %.2f\n"):format(row.cos, why.vectors,
      row.score))
  end
end

commands["memory show"] = {
  summary = "list what an agent remembers",
  usage = "memory show AGENT [--user USER] [--kind KIND] [--state STATE] [--day DAY] "
    .. "[--limit N] [--format md]",
  examples = [[
    sessile memory show coder                  what it keeps for all, newest first
    sessile memory show coder --user ann       what it keeps for ann
    sessile memory show coder --state deleted  what was deleted
    sessile memory show coder --day today      what was written today
    sessile memory show coder --format md      all of it, as `sessile memory edit` shows it]],
  arguments = { agent },
  options = { user, kind, { "--state STATE", "in this state (default: live)", choices = STATES },
    { "--day DAY", "written on this day: 2026-02-01, or today; days begin as memory.zone says" },
    common.limit,
    { "--format FORMAT", "a table, or Markdown by kinds", choices = { "text", "md" } } },
  run = function(app, args)
    local memory = open(app, args)
    if args.format == "md" then
      if args.kind or args.state or args.limit then
        app.fail("--format md shows all live entries: --kind, --state and --limit cannot be given",
          "EUSAGE")
      end
      local markdown = app.try(memory:markdown { day = args.day })
      return app.json and app:print_json { markdown = markdown } or app:out(markdown)
    end
    print_rows(app, app.try(memory:list { kind = args.kind, state = args.state,
      day = args.day, limit = args.limit }), "state", state_of, "There are no such entries.")
  end,
}

commands["memory search"] = {
  summary = "find what an agent remembers about something",
  usage = "memory search AGENT TEXT [--user USER] [--kind KIND] [--limit N] [--explain]",
  examples = [[
    sessile memory search coder "which editor?"            best first; no word must occur
    sessile memory search coder "which editor?" --explain  and why]],
  arguments = { agent, { "text", "a question, or words" } },
  options = { user, kind, { "--limit N", "list at most N (default: 10)", integer = true },
    { "--explain", "say which words each met, and what they gave to its score" } },
  run = function(app, args)
    local memory = open(app, args)
    local limit = args.limit
    if limit and limit < 1 then
      app.fail("--limit is at least 1", "EUSAGE")
    end
    local rows, info = app.try(memory:search(args.text, { kind = args.kind, limit = limit,
      explain = args.explain }))
    if info.legs.why then
      app:note("By words alone: " .. terminal.line(info.legs.why))
    end
    if args.explain and not app.json and #rows > 0 then
      for _, row in ipairs(rows) do
        explain(app, row)
      end
      return
    end
    print_rows(app, rows, "score", function(row) return ("%.2f"):format(row.score) end,
      ("Nothing was found. See all entries: sessile memory show %s%s"):format(
        hints.quoted(args.agent), args.user and " --user " .. hints.quoted(args.user) or ""))
  end,
}

local UNWRITTEN = { EINVALID = "Nothing was written.", ELIMIT = "Nothing was written." }

-- Where no memory is yet, writes the entry to one in RAM first: what is refused makes none.
local function rehearse(app, args, given)
  local found, _, code = app:need_store(true):memory { agent = args.agent, user = args.user,
    must_exist = true }
  if found then
    found:close()
  elseif code == "ENOTFOUND" then
    local store <close> = app.try(sessile.open("ram:", { key = false, limits = {
      memory_value = app:limit "memory_value", memory_key = app:limit "memory_key" } }))
    app.try_or(UNWRITTEN, app.try(store:memory "rehearsal"):write(args.key, args.text, given))
  end
end

commands["memory add"] = {
  summary = "write an entry into an agent's memory",
  usage = "memory add AGENT TEXT [--key KEY] [--user USER] [--consent WORDS] [--kind KIND] "
    .. "[--also TEXT] [--ttl TIME]",
  examples = [[
    sessile memory add coder "tests run with make" --kind procedure  for all
    sessile memory add coder "prefers vim" --key editor              in the place of what was there
    sessile memory add coder "likes tea" --user ann --consent "yes"  for one user, who agreed]],
  arguments = { agent, { "text", "what to remember" } },
  options = { user, { "--key KEY", "replace the entry with this key" }, kind,
    { "--consent WORDS", "the user consents, in these words; needed once for each user" },
    { "--also TEXT", "text that it should be found by, and that is not shown" },
    { "--ttl TIME", "forget it after that time: 90d, 12h", time = true } },
  about = [[
    Nothing is written for a user who has not consented. `sessile memory rm` deletes an
    entry and `sessile memory restore` brings it back.]],
  run = function(app, args)
    local given = { kind = args.kind, also = args.also, source = "user",
      ttl = args.ttl and ("%dms"):format(args.ttl) or nil }
    rehearse(app, args, given)
    -- nothing can be added for a user who never consented, so that no memory is made either
    local memory = open(app, args, { consent = args.consent,
      must_exist = args.user ~= nil and not args.consent })
    local id, message, code, retry_ms, rule = memory:write(args.key, args.text, given)
    if not id then
      app.fail(message, code, message:find("consent", 1, true) and CONSENT or retry_ms
        or UNWRITTEN[code], rule)
    end
    app:result({ agent = args.agent, id = id }, short(id) .. "\n")
    local stats = app.try(memory:stats())
    if stats.nearly_full then
      app:note(("This memory has %d of %d entries [memory_entries], ended ones included. At the "
        .. "limit nothing more is written."):format(stats.entries, stats.entries_most))
    end
  end,
}

commands["memory rm"] = {
  summary = "delete an entry from an agent's memory",
  usage = "memory rm AGENT ENTRY [--user USER] [--reason TEXT] [--by NAME]",
  examples = [[
    sessile memory rm coder editor --user ann  the entry with this key
    sessile memory rm coder 2a                 by its number, which show prints]],
  arguments = { agent, entry },
  options = { user, reason, by },
  about = [[
    It is not found any more, and stays in the history. `sessile memory restore` brings
    it back.]],
  run = memories.verdict "delete",
}

commands["memory restore"] = {
  summary = "bring an entry of an agent's memory back",
  usage = "memory restore AGENT ENTRY [--user USER] [--reason TEXT] [--by NAME]",
  examples = [[
    sessile memory restore coder 2a  deleted, rejected, replaced or expired]],
  arguments = { agent, entry },
  options = { user, reason, by },
  run = memories.verdict "restore",
}

commands["memory history"] = {
  summary = "show what led to an entry of an agent's memory",
  usage = "memory history AGENT ENTRY [--user USER]",
  examples = [[
    sessile memory history coder editor --user ann  newest first]],
  arguments = { agent, entry },
  options = { user },
  run = function(app, args)
    local memory = open(app, args)
    local rows, _, code = memory:history(args.entry)
    if code == "ENOTFOUND" then
      local row = app.try_or(entry_steps(args), which(memory, args.entry))
      rows = app.try(memory:history(row))
    end
    print_rows(app, rows, "state", state_of)
  end,
}

return commands
