--- demo: runs lua/sessile/demo.lua.

local has_system, system = pcall(require, "sessile.system")
local hints = require "sessile.cli.hints"
local terminal = require "sessile.cli.terminal"

return {
  summary = "show the engine at work, in a few seconds",
  usage = "demo",
  examples = [[sessile demo  seal, replay, kill and recover; leaves no files]],
  about = [[
    The demo works in a temporary folder. It needs no network, and does not touch your
    store or key.]],
  run = function(app)
    if not has_system then
      return nil, "the demo starts this program a second time: run it as `sessile demo`",
        "EUNSUPPORTED"
    end
    local demo = require "sessile.demo"
    local transcript = demo.transcript() or "FILE"
    local parts = {}
    local kept, message, code = demo.run {
      paint = app.json and function(text) return text end or app.paint,
      columns = terminal.columns(),
      executable = system.executable,
      out = function(text)
        if app.json then
          parts[#parts + 1] = text
        else
          app:out(text)
          io.stdout:flush()
        end
      end,
    }
    app.try(not message, message, code)
    if app.json then
      app:print_json { kept = kept, text = table.concat(parts) }
    else
      app:note("\nThe demonstration's folder was removed. To do the same in your own store:\n"
        .. ("  sessile import %s --id slow-start\n"):format(hints.quoted(transcript))
        .. "  sessile tree slow-start\n"
        .. "or a session of your own:\n  sessile new --title 'My first session'\n  sessile help")
    end
    return kept and 0 or 1
  end,
}
