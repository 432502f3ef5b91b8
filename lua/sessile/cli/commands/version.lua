--- version: which sessile this is.

local sessile = require "sessile"

return {
  name = "version",
  summary = "print the version",
  usage = "version",
  examples = { { "sessile version", "also: sessile --version" } },
  run = function(app)
    if app.json then
      app:print_json { sessile = sessile.version, lua = _VERSION }
    else
      app:out(("sessile %s (%s)\n"):format(sessile.version, _VERSION))
    end
  end,
}
