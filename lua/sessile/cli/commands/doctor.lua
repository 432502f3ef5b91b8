--- doctor: prints the findings of ../doctor.lua.

local doctor = require "sessile.cli.doctor"
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

local COLOURS = { ok = "green", warn = "yellow", bad = "red" }

local function count(findings)
  local of = { ok = 0, warn = 0, bad = 0 }
  for _, one in ipairs(findings) do
    of[one.state] = of[one.state] + 1
  end
  return of
end

local function as_text(app, findings, of)
  local group
  local columns = terminal.columns()
  local room = columns and math.max(columns - 21, 20)
  for _, one in ipairs(findings) do
    if one.group ~= group then
      group = one.group
      app:out(app.paint(group, "bold") .. "\n")
    end
    app:out(("  %s  %-11s  %s\n"):format(app.paint(("%-4s"):format(one.state),
      COLOURS[one.state]), one.name,
      terminal.wrap(one.text, room, (" "):rep(21))))
    if one.next then
      app:out(("        %s\n"):format(terminal.safe(hints.fill(one.next, app.globals))))
    end
  end
  app:out(of.bad == 0 and of.warn == 0 and "All is well.\n"
    or ("%d bad, %d to look at.\n"):format(of.bad, of.warn))
end

return {
  summary = "check the installation, and whether the store is safe to use here",
  usage = "doctor [--offline]",
  examples = [[
    sessile doctor                               findings marked ok, warn or bad, with advice
    sessile doctor --store /mnt/shared/sessions  check whether a store can be there
    sessile doctor --json | jq '.findings[] | select(.state != "ok")'
      for a program]],
  options = { { "--offline", "do not look whether the models' endpoints answer" } },
  about = [[
    Changes nothing, except that it creates, locks and removes a file in the store's
    folder to check that locks work, and that a guard records what was looked at. It shows
    no key. Of the endpoint of a model it asks
    which models there are, for at most 5 seconds; no model is asked anything. The exit
    code is 1 if something is bad.]],
  run = function(app, args)
    local findings = doctor.findings(app, args.offline)
    local of = count(findings)
    if app.json then
      for _, one in ipairs(findings) do
        one.next = one.next and hints.fill(one.next, app.globals)
      end
      app:print_json { ok = of.bad == 0, findings = app.array(findings) }
    else
      as_text(app, findings, of)
    end
    return of.bad > 0 and 1 or 0
  end,
}
