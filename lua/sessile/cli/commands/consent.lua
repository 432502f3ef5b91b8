--- consent give, consent withdraw, consent list: the consents of users to be remembered.
--
-- Owns: the question before what is remembered is erased.

local ask = require "sessile.cli.ask"
local hints = require "sessile.cli.hints"
local memories = require "sessile.cli.memories"
local terminal = require "sessile.cli.terminal"
local times = require "sessile.times"

local commands = {}

local BY = { "--by NAME", "who says so" }

local function user_of(app, command)
  return app.globals.user or app.fail("a consent is a user's: --user is missing", "EUSAGE",
    ("Name the user: sessile %s AGENT --user USER"):format(command))
end

commands["consent give"] = {
  summary = "record that a user consents to be remembered by an agent",
  usage = "consent give AGENT WORDS --user USER [--by NAME] [--scope TEXT]",
  examples = [[
    sessile consent give coder "yes, remember me" --user ann  in the user's words]],
  arguments = { memories.agent, { "words", "the words that the user was shown and agreed to" } },
  options = { BY, { "--scope TEXT", "to what" } },
  about = [[
    Nothing is written to a user's memory, or recalled from it, without a consent. The words
    are kept, sealed with the user's secret: they show to what the user agreed.]],
  run = function(app, args)
    local user = user_of(app, "consent give")
    app.try(app:need_store(true):consent { agent = args.agent, user = user, text = args.words,
      by = args.by, scope = args.scope })
    app:result({ agent = args.agent, user = user, given = true },
      ("%s consents to be remembered by %s\n"):format(hints.shown(user), hints.shown(args.agent)))
  end,
}

commands["consent withdraw"] = {
  summary = "withdraw a user's consent, and erase what the agent remembers of the user",
  usage = "consent withdraw AGENT --user USER [--keep] [--by NAME] [--yes]",
  examples = [[
    sessile consent withdraw coder --user ann         asks, and erases what is remembered
    sessile consent withdraw coder --user ann --keep  only stops it]],
  arguments = { memories.agent },
  options = { { "--keep", "what is remembered stays, and can be shown" }, BY, ask.option },
  about = [[
    The entries are taken out of the memory's log, which is written again under a new key.
    Copies elsewhere still have them. That the consent was given and withdrawn stays on
    record until the user is erased.]],
  run = function(app, args)
    local user = user_of(app, "consent withdraw")
    if not args.keep then
      ask.must(app, args, ("Erase all that %s remembers of %s"):format(hints.shown(args.agent),
        hints.shown(user)))
    end
    local erased = app.try_or({ ENOTFOUND = "See whose consents there are: sessile consent list",
      EDENIED = "See what is held: sessile hold list" },
      app:need_store():consent { agent = args.agent, user = user, given = false,
        keep = args.keep, by = args.by })
    app:result({ agent = args.agent, user = user, given = false, erased = erased },
      ("%s does not consent any more; %d erased\n"):format(hints.shown(user), erased))
  end,
}

commands["consent list"] = {
  summary = "list the memories of users, and whether they consent to them",
  usage = "consent list [--user USER]",
  examples = [[sessile consent list --user ann  one user's, by agent]],
  about = [[
    A consent is kept in the memory that it is about, so this lists memories of users.]],
  run = function(app)
    local rows = app.try(app:need_store():consents(app.globals.user))
    if app.json then
      return app:print_json { consents = app.array(rows) }
    elseif #rows == 0 then
      return app:note "No agent has a memory of a user."
    end
    local lines = {}
    for i, row in ipairs(rows) do
      lines[i] = { terminal.line(row.agent), terminal.line(row.user),
        not row.time and "never asked" or row.given and "given" or "withdrawn",
        row.time and times.day(row.time, 0) or "", terminal.number(row.entries),
        terminal.line(row.text or "") }
    end
    app:print_table({ "AGENT", "USER", "CONSENT", "SINCE", "ENTRIES>", "WORDS" }, lines, true)
  end,
}

return commands
