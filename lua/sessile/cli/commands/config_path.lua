--- config path: where the configuration is written.

local config = require "sessile.config"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

return {
  name = "config path",
  summary = "print the path of your configuration",
  usage = "config path",
  examples = {
    { "sessile config path", "your file, or the one named by --config" },
    { "$EDITOR \"$(sessile config path)\"", "edit it" },
  },
  about = "--json also prints the path of the project's file, and which of the two exist.",
  run = function(app)
    local named, said_by = config.named(app.globals.config)
    local own = config.own()
    local path = named or own
    if not path then
      return nil, "there is no place for a configuration: neither HOME nor XDG_CONFIG_HOME is set",
        "EUSAGE", "Name a file with --config FILE, or set one of them."
    end
    local exists = system.kind(path) ~= nil
    if app.json then
      app:print_json {
        path = path, exists = exists, named_by = said_by,
        project = not named and { path = config.project,
          exists = system.kind(config.project) ~= nil } or nil,
      }
      return
    end
    app:out(terminal.line(path) .. "\n")
    if not exists then
      app:note "There is no such file yet. Make it: sessile config init"
    end
  end,
}
