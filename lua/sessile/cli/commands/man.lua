--- man: the manual page.

local man = require "sessile.cli.man"
local sessile = require "sessile"

return {
  name = "man",
  summary = "print the manual page as roff",
  usage = "man",
  examples = {
    { "sessile man | man -l -", "read it" },
    { "sessile man > sessile.1", "as `make install` does" },
  },
  run = function(app)
    local page = man.page(sessile.version)
    if app.json then
      app:print_json { page = page }
    else
      app:out(page)
    end
  end,
}
