--- settings: shows or changes the settings or the metadata of a session.
--
-- Owns: how KEY=JSON is parsed. Must never change a setting that was not named.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local render = require "sessile.cli.render"
local sessile = require "sessile"
local span = require("sessile.core").span
local terminal = require "sessile.cli.terminal"

-- A value that is not JSON is a text, as in `model=gpt-4o`.
local function object_of(app, pairs_typed)
  local members = {}
  for i, text in ipairs(pairs_typed) do
    local key, value = text:match "^([^=]+)=(.*)$"
    if not key then
      app.fail(("'%s' is not KEY=JSON"):format(hints.shown(text)), "EUSAGE",
        "As: sessile settings last model=gpt-4o 'stop=[\"END\"]'; KEY=null removes one.")
    end
    members[i] = span.quote(key) .. ":" .. (span.valid(value) and value or span.quote(value))
  end
  return sessile.json("{" .. table.concat(members, ",") .. "}")
end

return {
  summary = "show or change the settings of a session, such as its model",
  usage = "settings ID [KEY=JSON…] [--metadata]",
  examples = [[
    sessile settings bug-42                             show the settings
    sessile settings bug-42 model=gpt-4o thinking=null  set one, remove another
    sessile settings bug-42 --metadata team=blue        change the metadata in the same way]],
  arguments = {
    common.session,
    { "values", "KEY=JSON sets a value, KEY=null removes it; text needs no quotes", "*" },
  },
  options = {
    { "--metadata", "work on the session's metadata instead" },
  },
  about = [[
    The log keeps every earlier value with its time; the newest value holds.]],
  run = function(app, args)
    local which = args.metadata and "metadata" or "settings"
    local object = #args.values > 0 and object_of(app, args.values)
    local session = app:open(args.id)
    if object then
      app.try(session[which](session, object))
    end
    local settings = app.try(session[which](session))
    local raw = render.facts(settings).json
    if app.json then
      app:print_json(app.raw(raw))
      return
    end
    for _, member in ipairs(span.object(raw) or {}) do
      app:out(("%s = %s\n"):format(terminal.line(member.key), terminal.line(member.raw)))
    end
    if next(settings) == nil then
      app:note("Nothing is set. Set something: sessile settings " .. hints.id(session.id)
        .. " model=NAME")
    end
  end,
}
