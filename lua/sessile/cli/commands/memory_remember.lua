--- memory remember, tidy and recall: what a policy does with a memory, by hand.
--
-- Owns: how a proposal is printed. Must never write anything with --dry-run.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local memories = require "sessile.cli.memories"
local models = require "sessile.cli.models"
local terminal = require "sessile.cli.terminal"

local commands = {}

-- Entries of one run.
local PART = 64

local dry = { "--dry-run", "show what would be written, write nothing" }
local policy = { "--policy P", "a policy: its name, or a path (default: memory.policy)" }

-- One proposed change as a line: what, its state if that is not the usual one, and why.
local function line_of(change)
  local state = change.state ~= "live" and change.state or nil
  local words = { change["do"] == "write" and (state or "new") or change["do"] }
  if change["do"] ~= "write" and state then
    words[#words + 1] = state
  end
  local text = change.value and terminal.line(change.value)
    or table.concat(change.ids or {}, ", ", 1, #(change.ids or {}))
  return { change.id and memories.short(change.id) or "-", table.concat(words, ", "),
    change.source or "", terminal.line(change.key or ""),
    text .. (change.why and ("  (%s)"):format(terminal.line(change.why)) or "") }
end

-- Prints what came of a run. told: whether a model was missing.
local function print_outcome(app, outcome, told, what)
  if app.json then
    app:print_json(outcome)
  else
    for text in (outcome.log or ""):gmatch "[^\n]+" do
      app:note(terminal.line(text))
    end
    local lines = {}
    for i, change in ipairs(outcome.changes or {}) do
      lines[i] = line_of(change)
    end
    if #lines > 0 then
      app:print_table({ "id", "what", "source", "key", "value" }, lines, true)
    end
  end
  if outcome.verdict == "refused" then
    return nil, ("%s: %s"):format(outcome.policy or what, outcome.message), "EPOLICY",
      told.missing and "Configure a model: sessile help chat" or "Nothing was written."
  elseif outcome.verdict == "stale" then
    return nil, outcome.message, "ECONFLICT", "Repeat it"
  end
  return outcome
end

commands["memory remember"] = {
  summary = "let a policy remember what was said in a session",
  usage = "memory remember ID [--policy P] [--model NAME] [--dry-run]",
  examples = [[
    sessile memory remember last --dry-run             what would be remembered
    sessile memory remember bug-42                     remember it
    sessile memory remember bug-42 --policy remember_said   without a model]],
  arguments = { common.session },
  options = { policy, models.option, dry },
  about = [[
    A session is heard once: the next time, what was said since. Entries go to the memory
    of the session's user, who has to have consented (`sessile memory consent`), or, of a
    session without a user, to what the agent keeps for all.]],
  run = function(app, args)
    local session = app:open(args.id)
    local ask, told = app.try(models.for_command(app, session, args.model))
    local outcome, message, code, step = print_outcome(app, app.try_or({
      EINVALID = "Name a policy with --policy; see them: sessile policy list",
      EDENIED = session.user and ("Record the consent: sessile memory consent %s --user %s")
        :format(hints.shown(session.agent), hints.shown(session.user)) or nil,
      ENOTFOUND = common.policy_steps(args.policy).ENOTFOUND,
    }, session:remember { policy = args.policy, model = ask, dry = args.dry_run }), told,
      "remember")
    if not outcome then
      return nil, message, code, step
    elseif not app.json and outcome.heard == 0 then
      app:note "Nothing was said since it was last heard."
    elseif not app.json then
      app:note(("%s heard; %d written"):format(terminal.plural(outcome.heard, "message"),
        outcome.written))
      if outcome.pending > 0 then
        app:note(("%d to be approved: sessile memory review %s%s"):format(outcome.pending,
          hints.shown(session.agent), session.user and session.user ~= ""
          and " --user " .. hints.shown(session.user) or ""))
      end
    end
    if args.dry_run and not app.json then
      app:note "Nothing was written (--dry-run)."
    end
  end,
}

commands["memory tidy"] = {
  summary = "let a policy merge and confirm entries of a memory",
  usage = "memory tidy AGENT [--user USER] [--policy P] [--model NAME] [--dry-run]",
  examples = [[
    sessile memory tidy coder --user ann --dry-run   what would be merged
    sessile memory tidy coder --user ann             merge it; `restore` undoes each]],
  arguments = { memories.agent },
  options = { memories.user, policy, models.option, dry },
  about = [[
    The policy sees one entry and its neighbours at a time. A run ends at most five
    entries, or a tenth of the live ones, none that is pinned; what it replaces stays and
    can be restored.]],
  run = function(app, args)
    local memory = memories.open(app, args)
    local ask, told = app.try(models.for_command(app, nil, args.model, args.agent))
    local ids = {}
    for i, row in ipairs(app.try(memory:list())) do
      ids[i] = row.id
    end
    local changed = false
    for at = 1, #ids, PART do
      local outcome, message, code, step = print_outcome(app, app.try_or({
        EINVALID = "Name a policy with --policy; see them: sessile policy list",
        ENOTFOUND = common.policy_steps(args.policy).ENOTFOUND,
      }, memory:tidy { policy = args.policy, model = ask, dry = args.dry_run,
        ids = table.move(ids, at, math.min(at + PART - 1, #ids), 1, {}) }), told, "tidy")
      if not outcome then
        return nil, message, code, step
      end
      changed = changed or #(outcome.changes or {}) > 0
    end
    if not app.json and not changed then
      app:note "There was nothing to merge or to confirm."
    elseif args.dry_run and not app.json then
      app:note "Nothing was written (--dry-run)."
    end
  end,
}

commands["memory recall"] = {
  summary = "quote what an agent remembers in a session",
  usage = "memory recall ID [QUESTION] [--limit N] [--dry-run]",
  examples = [[
    sessile memory recall last --dry-run            what its newest question finds
    sessile memory recall bug-42 "which editor?"    quote it behind the newest message]],
  arguments = { common.session,
    { "question", "a question (default: the newest of the user)", "?" } },
  options = { { "--limit N", "quote at most N", integer = true }, dry },
  run = function(app, args)
    local session = app:open(args.id)
    if args.limit and args.limit < 1 then
      app.fail("--limit is at least 1", "EUSAGE")
    end
    local done = app.try(session:recall { question = args.question, limit = args.limit,
      dry_run = args.dry_run })
    if args.dry_run then
      return memories.print_rows(app, done.entries, "score",
        function(row) return row.score and ("%.2f"):format(row.score) or "" end)
    end
    app:result({ session = session.id, id = done.id, recalled = done.recalled,
      found = done.found, tokens = done.tokens, message = done.message },
      done.id and done.id .. "\n" or "")
    if not app.json then
      app:note(done.id and ("%s quoted, %d tokens"):format(terminal.plural(done.recalled,
        "entry", "entries"), done.tokens) or "Nothing was found: nothing was written.")
    end
  end,
}

return commands
