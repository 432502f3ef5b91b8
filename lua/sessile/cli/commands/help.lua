--- help: prints the help of a command.

local help = require "sessile.cli.help"
local hints = require "sessile.cli.hints"
local registry = require "sessile.cli.registry"

local function as_json(app, command)
  local function rows(list)
    local out = {}
    for i, row in ipairs(list or {}) do
      out[i] = {
        name = row[1], about = row[2], many = row[3] or row.many, integer = row.integer,
        choices = row.choices, default = row.default,
      }
    end
    return app.array(out)
  end
  local examples = {}
  for i, example in ipairs(command.examples) do
    examples[i] = { command = example[1], about = example[2] }
  end
  app:print_json {
    name = command.name, summary = command.summary, usage = command.usage,
    about = command.about, examples = app.array(examples),
    arguments = rows(command.arguments), options = rows(command.options),
  }
end

-- All commands, or those whose names begin with a word.
local function list_json(app, word)
  local list = {}
  for _, known in ipairs(registry.names()) do
    if word == "" or known:sub(1, #word + 1) == word .. " " then
      local command = registry.load(known)
      list[#list + 1] = {
        name = known, summary = command and command.summary, usage = command and command.usage,
      }
    end
  end
  app:print_json(app.array(list))
end

return {
  summary = "show help for a command, with examples",
  usage = "help [COMMAND]",
  examples = [[
    sessile help          all commands
    sessile help compact  one command; also: sessile compact --help]],
  arguments = { { "command", "the name of a command: one or two words", "*", is = "command" } },
  run = function(app, args)
    local name = table.concat(args.command, " ")
    if name == "" then
      if app.json then return list_json(app, "") end
      app:out(help.all(app.paint))
      return
    end
    local command, message, code = registry.load(name)
    if not command and code ~= "ENOTFOUND" then
      return nil, message, code
    elseif command then
      if app.json then return as_json(app, command) end
      app:out(help.command(command, app.paint))
      return
    end
    local group = help.group(name)
    if group then
      if app.json then return list_json(app, name) end
      app:out(group)
      return
    end
    message = ("there is no command '%s'"):format(hints.shown(name))
    local nearest = registry.nearest(name, registry.names())
    return nil, message, "EUSAGE", nearest and ("Did you mean `sessile help %s`?"):format(nearest)
      or "See: sessile help"
  end,
}
