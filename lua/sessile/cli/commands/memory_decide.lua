--- memory why, pin, unpin, consent, clear, audit: what a person decides about a memory.
--
-- Owns: how provenance is printed, and the questions of clear. Must never clear without a yes.

local ask = require "sessile.cli.ask"
local memories = require "sessile.cli.memories"
local render = require "sessile.cli.render"
local terminal = require "sessile.cli.terminal"

local commands = {}

local agent, entry, user = memories.agent, memories.entry, memories.user
local by, reason = memories.by, memories.reason
local open, short = memories.open, memories.short

local function plain(text)
  return text
end

local function day(ms)
  return os.date("!%Y-%m-%d %H:%M", ms // 1000)
end

-- Prints one source of an entry.
local function print_source(app, from)
  app:out(("\nFrom session %s of %s, entries %s to %s:\n"):format(terminal.line(from.session),
    terminal.line(from.agent), short(from.first), short(from.last)))
  if from.failure then
    app:out(("  it cannot be read: %s\n"):format(terminal.line(from.failure)))
  elseif #from.messages == 0 then
    app:out "  no message is there\n"
  end
  for _, one in ipairs(from.messages or {}) do
    one.message.id = one.id
    app:out(render.message(one.message, plain, app.now()))
  end
  if from.more then
    app:out "  and more\n"
  end
end

commands["memory why"] = {
  summary = "show which messages an entry of a memory is from, and who ended it",
  usage = "memory why AGENT ENTRY [--user USER]",
  examples = [[
    sessile memory why coder editor --user ann  its session and messages, as they were]],
  arguments = { agent, entry },
  options = { user },
  run = function(app, args)
    local memory = open(app, args)
    local row = app.try_or(memories.entry_steps(args), memories.which(memory, args.entry))
    local found = app.try(memory:why(row))
    if app.json then
      for _, from in ipairs(found.from) do
        for _, one in ipairs(from.messages or {}) do
          one.message = nil
        end
        from.messages = from.messages and app.array(from.messages)
      end
      found.from = app.array(found.from)
      return app:print_json(found)
    end
    app:out(("%s  %s  %s  %s\n"):format(short(row.id), memories.state_of(row), row.kind,
      terminal.line(row.value)))
    app:out(("Written %s by %s, in the words of: %s.%s\n"):format(day(row.time),
      terminal.line(row.author or args.agent), row.source,
      row.approved and " A person approved it." or ""))
    for _, from in ipairs(found.from) do
      print_source(app, from)
    end
    if #found.from == 0 then
      app:out "It names no session.\n"
    end
    local ended = found.ended
    if ended then
      app:out(("\n%s%s%s%s%s, in %s at %s.\n"):format(ended.state:sub(1, 1):upper(),
        ended.state:sub(2), ended.by and " by " .. terminal.line(ended.by) or "",
        ended.reason and (", because: " .. terminal.line(ended.reason)) or "",
        ended.value and (", with: " .. terminal.line(ended.value)) or "", short(ended.id),
        ended.time:sub(1, 16):gsub("T", " ")))
    end
  end,
}

for _, name in ipairs { "pin", "unpin" } do
  commands["memory " .. name] = {
    summary = name == "pin" and "pin an entry of an agent's memory"
      or "take the pin off an entry of an agent's memory",
    usage = ("memory %s AGENT ENTRY [--user USER] [--reason TEXT] [--by NAME]"):format(name),
    examples = ("sessile memory %s coder editor --user ann  %s"):format(name, name == "pin"
      and "no policy may end it" or "policies may end it again"),
    arguments = { agent, entry },
    options = { user, reason, by },
    run = memories.verdict(name),
  }
end

commands["memory consent"] = {
  summary = "show, give or withdraw a user's consent to be remembered",
  usage = "memory consent AGENT --user USER [--give WORDS] [--withdraw] [--by NAME] [--scope TEXT]",
  examples = [[
    sessile memory consent coder --user ann               whether there is one, in which words
    sessile memory consent coder --user ann --give "yes"  the user agreed, in these words
    sessile memory consent coder --user ann --withdraw    nothing more is written]],
  arguments = { agent },
  options = { user, { "--give WORDS", "the user consents, in these words" },
    { "--withdraw", "the user does no longer" }, { "--by NAME", "who says so" },
    { "--scope TEXT", "to what" } },
  about = [[
    Without consent nothing is written for a user. What is there stays: it can be shown,
    deleted, and made unreadable for ever with `sessile forget USER`. `sessile consent
    withdraw` erases it as well.]],
  run = function(app, args)
    if not args.user then
      app.fail("a consent is a user's: --user is missing", "EUSAGE",
        "Name the user: sessile memory consent AGENT --user USER")
    elseif args.give and args.withdraw then
      app.fail("--give and --withdraw cannot both be given", "EUSAGE")
    end
    local memory = open(app, args, args.give and {} or nil)
    if args.give or args.withdraw then
      app.try(memory:consent(args.give ~= nil, { by = args.by, text = args.give,
        scope = args.scope }))
    end
    local stats = app.try(memory:stats())
    local newest = stats.consent and app.try(memory:consented()) or nil
    if app.json then
      return app:print_json { consented = stats.consented, newest = newest }
    elseif not newest then
      return app:out "The user was never asked.\n"
    end
    app:out(("%s%s%s%s, %s\n"):format(newest.given and "Given" or "Withdrawn",
      newest.by and " by " .. terminal.line(newest.by) or "",
      newest.text and ": " .. terminal.line(newest.text) or "",
      newest.scope and " (" .. terminal.line(newest.scope) .. ")" or "",
      newest.time:sub(1, 16):gsub("T", " ")))
  end,
}

commands["memory clear"] = {
  summary = "delete all that an agent remembers",
  usage = "memory clear AGENT [--user USER] [--yes] [--reason TEXT] [--by NAME]",
  examples = [[
    sessile memory clear coder             what it keeps for all; asks first
    sessile memory clear coder --user ann  what it keeps for ann]],
  arguments = { agent },
  options = { user, ask.option, { "--confirm", "the same as --yes" }, reason, by },
  about = [[
    Nothing of it is found any more. It stays in the log: `sessile memory restore` brings
    an entry back, and `sessile forget USER` makes all of a user's unreadable for ever.]],
  run = function(app, args)
    local memory = open(app, args)
    local stats = app.try(memory:stats())
    local count = stats.live + stats.pending
    if count > 0 then
      ask.must(app, { yes = args.yes or args.confirm },
        ("Delete %d %s that %s keeps%s"):format(count, count == 1 and "entry" or "entries",
          terminal.line(args.agent), args.user and " for " .. terminal.line(args.user)
            or " for all"))
    end
    count = app.try(memory:clear { reason = args.reason, by = args.by })
    app:result({ agent = args.agent, deleted = count }, ("%d deleted\n"):format(count))
  end,
}

commands["memory audit"] = {
  summary = "list entries of a memory that a person should look at",
  usage = "memory audit AGENT [--user USER]",
  examples = [[
    sessile memory audit coder --user ann  orders, addresses, secrets; sessions that wrote much]],
  arguments = { agent },
  options = { user },
  about = [[
    It looks at live and pending entries for what reads like an order to the model, an
    address or a secret, for what the screens that ship say of it today, and for what a
    policy remembered in other words than its source has, so that it is trusted less. It
    names sessions that wrote at least 10 entries and
    5 times as many as the median. A help, not a proof. `sessile memory rm` deletes.]],
  run = function(app, args)
    local memory = open(app, args)
    local findings = app.try(memory:audit())
    if app.json then
      for _, one in ipairs(findings) do
        one.row = one.row and { id = one.row.id, state = one.row.state, source = one.row.source }
        one.sessions = one.sessions and app.array(one.sessions)
      end
      return app:print_json(app.array(findings))
    end
    local rows = {}
    for i, one in ipairs(findings) do
      local row = one.row
      rows[i] = row and { short(row.id), memories.LOOKS[one.what],
        one.rule and one.screen .. ": " .. one.rule or "", row.state, row.source,
        terminal.line(table.concat(one.sessions or {}, ", ")),
        one.what == "secret" and "" or terminal.line(row.value) }
        or { "", ("%d entries are from session %s; usual: %d"):format(one.entries,
          terminal.line(one.session), one.usual), "", "", "", "", "" }
    end
    app:print_table({ "id", "why", "rule", "state", "source", "sessions", "value" }, rows, true)
  end,
}

return commands
