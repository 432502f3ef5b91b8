--- check: checks one session or the whole store for damage, and repairs it.
--
-- Owns: the choice of the session, and the report. Must never change anything without --salvage.

local ask = require "sessile.cli.ask"
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local progress = require "sessile.cli.progress"
local sessions = require "sessile.cli.sessions"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local COLOURS = { damage = "red", warning = "yellow", note = "cyan" }

-- Prints a finding: the file, what it is, and the next command unless `done`.
local function tell(app, found, done)
  local _, folder = stores.place(app.globals)
  local file = (folder and folder .. "/" or "") .. (found.file or "?")
  local line = ("%s: %s: %s"):format(app.paint(found.severity, COLOURS[found.severity]),
    terminal.line(file), terminal.line(found.what))
  app:out(line .. "\n")
  if found.next and not done and not found.what:find(found.next, 1, true) then
    app:out("  " .. terminal.safe(hints.fill(found.next, app.globals)) .. "\n")
  end
end

local function totals(report)
  local text = ("%s, %s, %s: "):format(terminal.plural(report.sessions, "log"),
    terminal.plural(report.entries, "entry", "entries"),
    terminal.bytes(report.bytes))
  if report.damaged == 0 then
    return text .. "all lines were read and their chain was checked; nothing is damaged"
  end
  return text .. ("%s damaged, %s lost, %d salvaged"):format(
    terminal.plural(report.damaged, "log"),
    terminal.plural(report.lost, "entry", "entries"),
    report.salvaged)
end

local CONTROL = "guard.control/"

-- What a salvage of the control log lost is not in force any more, which nobody else would tell.
local function tell_lost_facts(app, store, report)
  for _, found in ipairs(report.findings) do
    if (found.file or ""):find(CONTROL, 1, true) and found.what:find("^salvaged:") then
      store:note("control_log_salvaged", { lost = report.lost }) -- without an audit: nowhere
      app:note("It was the control log. Whatever a lost entry granted, ended, revoked, locked or "
        .. "held is as it was before: compare `sessile access list` and `sessile hold list` with "
        .. "what was decided.")
      return
    end
  end
end

-- The files that were repaired.
local function salvaged(findings)
  local files = {}
  for _, found in ipairs(findings) do
    if found.severity == "note"
      and (found.what:find "^salvaged:" or found.what:find "^its index was emptied") then
      files[found.file] = true
    end
  end
  return files
end

-- 5; 7 if the only problem is that logs may not be read.
local function exit_code(report)
  local code = 5
  for _, found in ipairs(report.findings) do
    if found.severity == "damage" then
      if found.code ~= "EDENIED" then
        return 5
      end
      code = 7
    end
  end
  return code
end

-- The report of the session that `name` names; nil: of all sessions. given: the options.
local function check(app, store, name, given)
  given.id, given.user = name, name and app.globals.user
  local report, message, code = store:check(given)
  if report or not name or code ~= "ENOTFOUND" then
    return report, message, code
  end
  local row = app.try(sessions.find(
    app.try(store:list { agent = given.agent, user = given.user }), name))
  given.id, given.agent = row.id, row.agent
  given.user = row.user ~= "" and row.user or nil
  return store:check(given)
end

return {
  summary = "look for damage in one session or all, and repair damaged logs",
  usage = "check [ID] [--salvage] [--yes]",
  examples = [[
    sessile check                   reads every line of every log, changes nothing
    sessile check bug-42            one session
    sessile check bug-42 --salvage  make a damaged session writable again; asks first]],
  arguments = { common.session_as { count = "?" } },
  options = {
    { "--salvage", "rewrite damaged logs, and keep their old bytes" },
    ask.option,
  },
  about = [[
    A damaged session can be read but not written. --salvage replaces its log: each lost
    entry becomes a tombstone, every other entry keeps its id and place. The old bytes
    are kept beside it. The exit code is 5 if there is damage, and 7 if the only problem
    is that some logs may not be read.

    If the control log of a store with a guard is damaged, nobody is let in, and whoever
    has the store checks it as the host, also under the profile strict. A token or an
    access key does not.]],
  run = function(app, args)
    if app.globals.user and not args.id then
      return nil, "whose a damaged log is may not be known: leave out --user to check all "
        .. "sessions, or check a session: sessile check ID --user "
        .. hints.shown(app.globals.user), "EUSAGE"
    end
    local store, is_host = app:store_to_mend()
    if is_host then
      app:note "The control log is damaged: this is done as the host, whom no guard asks."
    end
    if args.salvage then
      ask.must(app, args, args.id
        and ("Rewrite %s with everything that can be read"):format(hints.shown(args.id))
        or "Rewrite every damaged log with everything that can be read")
    end
    local show, finish = progress.bar(app, args.salvage and "salvaging" or "checking")
    local given = {
      agent = app.globals.agent, salvage = args.salvage,
      on_step = function(at) show(at.index, at.total) end,
    }
    local report, message, code = check(app, store, args.id, given)
    finish()
    app.try(report, message, code)
    if app.json then
      report.findings = app.array(report.findings)
      app:print_json(report)
    else
      local done = salvaged(report.findings)
      for i, found in ipairs(report.findings) do
        -- the command is shown once for each log
        local after = report.findings[i + 1]
        local again = after and after.file == found.file and after.next == found.next
        tell(app, found, again or done[found.file])
      end
      app:out(totals(report) .. "\n")
    end
    tell_lost_facts(app, store, report)
    return report.ok and 0 or exit_code(report)
  end,
}
