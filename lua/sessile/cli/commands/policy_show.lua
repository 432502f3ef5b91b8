--- policy show: shows what a policy does, and its options.
--
-- Must never run a hook: the file is loaded in an empty environment, after the engine has loaded it
-- in a process of its own. A file that others can write is not loaded here at all.

local has_system, system = pcall(require, "sessile.system")
local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local policy_file = require "sessile.policy_file"
local sessile = require "sessile"
local terminal = require "sessile.cli.terminal"

-- The names of a list of policies; nil if it is none.
local function names_of(list)
  local names = {}
  for i, step in ipairs(type(list) == "table" and list or {}) do
    names[i] = type(step) == "table" and tostring(step[1] or step.name) or tostring(step)
  end
  return #names > 0 and names or nil
end

local function chain_of(value)
  return names_of(value.chain or type(value[1]) == "table" and value)
end

return {
  summary = "show what a policy does, and its options",
  usage = "policy show NAME [--source]",
  examples = [[
    sessile policy show summarize                           hooks, options and defaults
    sessile policy show sliding_window --source > mine.lua  copy it as a start for your own]],
  arguments = {
    common.policy_name,
  },
  options = { { "--source", "print the file" } },
  run = function(app, args)
    app.try_or(common.policy_steps(args.name),
      sessile.open("ram:", { key = false, policy = args.name })):close()
    local path = policy_file.find(args.name)
    local file = path and io.open(path)
    if not file then
      return nil, ("the file of '%s' cannot be read"):format(hints.shown(args.name)), "ENOTFOUND"
    end
    path = has_system and system.real(path) or path
    local source = file:read "a"
    file:close()
    if args.source then
      app:out(source)
      return
    end
    local own = not has_system or system.is_own(path)
    local value = own and policy_file.table_of(source, path) or {}
    local hooks = {}
    for _, list in ipairs { policy_file.context_hooks, policy_file.memory_hooks } do
      for _, hook in ipairs(list) do
        hooks[#hooks + 1] = value[hook] and hook or nil
      end
    end
    local rows, options = {}, {}
    for name in pairs(type(value.options) == "table" and value.options or {}) do
      rows[#rows + 1] = name
    end
    table.sort(rows)
    for i, name in ipairs(rows) do
      local about = value.options[name]
      options[i] = {
        name = name, type = about.type, default = about.default, about = about.about,
        min = about.min, max = about.max,
      }
      rows[i] = { terminal.line(name), terminal.line(tostring(about.type or "")),
        terminal.line(about.default == nil and "" or tostring(about.default)),
        terminal.line(about.about or "") }
    end
    local chain, fallback = chain_of(value), names_of(value.fallback)
    if app.json then
      app:print_json {
        name = value.name or args.name, version = value.version, about = value.about, path = path,
        hooks = app.array(hooks), chain = chain and app.array(chain),
        fallback = fallback and app.array(fallback), options = app.array(options),
      }
      return
    end
    local name = terminal.line(tostring(value.name or args.name))
    app:out(("%s%s  %s\n"):format(app.paint(name, "bold"),
      value.version and " " .. tostring(value.version) or "", terminal.line(value.about or "")))
    if #hooks > 0 then
      app:out("hooks:  " .. table.concat(hooks, ", ") .. "\n")
    end
    if chain then
      app:out("chain:  " .. terminal.line(table.concat(chain, ", then ")) .. "\n")
      app:out "options:  those of the policies in the chain; each goes to those that have it\n"
    end
    if fallback then
      app:out("fallback:  " .. terminal.line(table.concat(fallback, ", then ")) .. "\n")
    end
    app:out("file:   " .. terminal.line(path) .. "\n")
    if not own then
      app:note("The file is another user's, or others may write it: it runs in a process of its "
        .. "own,\nand is not run here. To read it: sessile policy show NAME --source")
    end
    if #rows > 0 then
      app:out "\n"
      app:print_table({ "OPTION", "TYPE", "DEFAULT", "ABOUT" }, rows)
    end
  end,
}
