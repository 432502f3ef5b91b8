--- config show: what `config` alone does.

local config = require "sessile.cli.commands.config"

local show = {}
for name, value in pairs(config) do
  show[name] = value
end
show.name = "config show"
show.usage = "config show [--set]"
show.examples = {
  { "sessile config show", "every value, and the file and line that say it" },
  { "sessile config show --set", "only those that somebody set" },
}

return show
