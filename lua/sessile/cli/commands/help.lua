--- help: what a command does.

local help = require "sessile.cli.help"
local registry = require "sessile.cli.registry"

return {
  name = "help",
  summary = "what a command does, with examples",
  usage = "help [COMMAND]",
  examples = {
    { "sessile help", "all commands" },
    { "sessile help compact", "one of them; also: sessile compact --help" },
  },
  arguments = { { "command", "its name: one or two words", "*" } },
  run = function(app, args)
    local name = table.concat(args.command, " ")
    if app.json then
      local list = {}
      for i, known in ipairs(registry.names()) do
        local command = registry.load(known)
        list[i] = {
          name = known, summary = command and command.summary, usage = command and command.usage,
        }
      end
      app:print_json(app.array(list))
      return
    end
    if name == "" then
      app:out(help.all(app.paint))
      return
    end
    local command, message, code = registry.load(name)
    if command then
      app:out(help.command(command, app.paint))
      return
    end
    local group = help.group(name)
    if group then
      app:out(group)
      return
    end
    local nearest = code == "ENOTFOUND" and registry.nearest(name, registry.names())
    return nil, message, "EUSAGE", nearest and ("Did you mean `sessile help %s`?"):format(nearest)
      or "See: sessile help"
  end,
}
