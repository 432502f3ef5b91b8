--- screen: what a screen says of a text, and how often it is right.
--
-- Must never write anything, and never open a store.

local common = require "sessile.cli.common"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

local KINDS = { "message", "custom", "title", "metadata", "settings", "state", "memory", "answer" }
local SOURCES = { "host", "user", "agent", "tool", "system" }

local NAME = { "name", "a screen: its name, or a path with a `/` or ending in .lua", is = "screen" }
local OPTION = { "--option NAME=VALUE", "an option of the screen; may be repeated", many = true }

-- The screen with its options, for every kind of item.
local function load(app, args)
  local chosen = common.policy(app, args.name, args.option)
  local given = type(chosen) == "table" and chosen or { chosen }
  given.on = KINDS
  local steps = common.policy_steps(args.name)
  if steps.ENOTFOUND:find "policy list" then
    steps.ENOTFOUND = "Three screens ship: no_orders, secrets, injection"
  end
  return app.try_or(steps, sessile.screen { given, verbose = true }), given
end

local function try(app, args)
  local list = load(app, args)
  local text = args.text and args.text ~= "-" and args.text or common.typed_text(app)
  local outcome = app.try_or({}, list:run { kind = args.kind, source = args.source, text = text,
    json = args.as_json })
  if app.json then
    app:print_json { verdict = outcome.verdict, text = outcome.text,
      findings = app.array(outcome.findings) }
    return
  end
  app:out(outcome.verdict .. "\n")
  for _, found in ipairs(outcome.findings) do
    app:out(("%s: %s%s%s\n"):format(terminal.line(found.screen), terminal.line(found.rule),
      found.removed > 0 and (" (%d removed)"):format(found.removed) or "",
      found.message and ": " .. terminal.line(found.message) or ""))
  end
  if outcome.text then
    app:out(terminal.safe(outcome.text) .. "\n")
  end
end

local function test(app, args)
  local _, given = load(app, args)
  local screens = require "sessile.testing.screens"
  local options = { on = { "memory" } } -- which the texts are for
  for name, value in pairs(given) do
    if name ~= 1 and name ~= "on" then
      options[name] = value
    end
  end
  local rows, all, caught = screens.load(args.name, options):rates()
  if app.json then
    app:print_json { screen = args.name, attacks = app.array(rows), ordinary = all,
      caught = app.array(caught) }
    return
  end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { row.name, terminal.number(row.caught), terminal.number(row.count) }
  end
  lines[#lines + 1] = { "ordinary texts", terminal.number(all.caught),
    terminal.number(all.count) }
  app:print_table({ "TEXTS", "CAUGHT>", "OF>" }, lines, nil, {})
  for _, one in ipairs(caught) do
    app:note(("ordinary, but %s: %s"):format(terminal.line(one.rule), terminal.line(one.text)))
  end
end

return {
  ["screen try"] = {
    summary = "show what a screen says of a text; writes nothing",
    usage = "screen try NAME [TEXT] [--kind KIND] [--source SOURCE] [--option NAME=VALUE]",
    examples = [[
      sessile screen try no_orders 'Ignore all previous instructions.'  refuse, and the rule
      sessile screen try secrets --option action=redact < notes.txt     the text without its keys
      sessile screen try ./mine.lua - --source user                     a screen of yours]],
    arguments = { NAME, { "text", "a text; none or `-`: standard input", "?" } },
    options = {
      OPTION,
      { "--kind KIND", "what the text is for", choices = KINDS, default = "memory" },
      { "--source SOURCE", "whose words it has", choices = SOURCES, default = "tool" },
      { "--as-json", "the text is JSON: its strings are looked at" },
    },
    run = try,
  },
  ["screen test"] = {
    summary = "count how many attacks and ordinary texts a screen stops",
    usage = "screen test NAME [--option NAME=VALUE]",
    examples = [[
      sessile screen test no_orders   of each kind of attack, and of ordinary texts
      sessile screen test ./mine.lua  the same for a screen of yours]],
    arguments = { NAME },
    options = { OPTION },
    about = [[
      The texts ship with sessile: orders in plain words and in disguises, secrets, commands, and
      what people say all day. A screen that knows words does not find the disguises.]],
    run = test,
  },
}
