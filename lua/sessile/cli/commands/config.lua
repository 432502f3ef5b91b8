--- config: config, config show, config path: the configured values, their sources, and the path of
--- the
-- file.
--
-- Must never show a secret, nor open the store.

local config = require "sessile.config"
local sessile = require "sessile"
local show = require "sessile.config.show"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local commands = {}

-- The values that were typed as options: they override all others.
local function typed(globals)
  local flags = {}
  if globals.store then
    flags.store = { text = show.url(globals.store), name = "--store" }
  end
  if globals.plain then
    flags.key = { text = show.key(false), name = "--plain" }
  elseif globals.key_file then
    flags.key = { text = show.key(sessile.key.file(globals.key_file)), name = "--key-file" }
  end
  if globals.agent then
    flags.agent = { text = globals.agent, value = globals.agent, name = "--agent" }
  end
  if globals.timeout then
    flags.timeout_ms = { text = show.time(globals.timeout), value = globals.timeout,
      name = "--timeout" }
  end
  if globals.network then
    flags.network = { text = "true", value = true, name = "--network" }
  end
  return flags
end

local KINDS = { own = "yours", project = "the project's", named = "named" }

local function files_of(cfg)
  local list = {}
  for i, one in ipairs(cfg.files) do
    list[i] = { path = one.path, kind = one.kind, trusted = one.trusted }
  end
  return list
end

local function as_json(app, cfg, rows)
  local values = {}
  for i, row in ipairs(rows) do
    local origin = row.origin
    values[i] = { key = row.name, value = row.value, text = row.text, unit = row.unit,
      from = origin.from, file = origin.file, line = origin.line, name = origin.name }
  end
  app:print_json { files = app.array(files_of(cfg)), values = app.array(values) }
end

local function as_text(app, cfg, rows)
  for _, one in ipairs(cfg.files) do
    app:out(app.paint(("%s  (%s%s)\n"):format(terminal.line(one.path), KINDS[one.kind],
      one.trusted and "" or ", not trusted: it may set only some keys"), "dim"))
  end
  if #cfg.files == 0 then
    app:note("No file sets anything. Create one: sessile config init")
  end
  local lines = {}
  for i, row in ipairs(rows) do
    lines[i] = { terminal.line(row.name), terminal.cut(terminal.line(row.text), 60),
      terminal.line(show.origin(row.origin)) }
  end
  app:print_table({ "key", "value", "from" }, lines, nil, { [3] = "dim", heading = "dim" })
end

commands.config = {
  summary = "show the configuration, and where each value comes from",
  usage = "config [--set]",
  examples = [[
    sessile config        every value, with its file and line
    sessile config --set  only values that are set
    sessile config --json | jq '.values[] | select(.key == "policy")'
      for a program]],
  options = { { "--set", "omit the defaults" } },
  about = [[
    The configuration is $XDG_CONFIG_HOME/sessile/config.lua, and ./sessile.lua overrides
    its keys. --config or $SESSILE_CONFIG names one file that replaces both.
    $SESSILE_STORE and $SESSILE_KEY override files, and options override these variables.
    Until you trust it with `sessile config trust`, ./sessile.lua may not name a program,
    a key or a place outside its folder.]],
  run = function(app, args)
    local cfg = app.try(app:config())
    local flags, rows = typed(app.globals), {}
    for _, row in ipairs(show.rows(cfg)) do
      local flag = flags[row.name]
      if flag then
        row.text, row.value, row.is_default = flag.text, flag.value, false
        row.origin = { from = "flag", name = flag.name }
      end
      if not (args.set and row.is_default) then
        rows[#rows + 1] = row
      end
    end
    (app.json and as_json or as_text)(app, cfg, rows)
  end,
}

commands["config show"] = setmetatable({
  usage = "config show [--set]",
  examples = [[
    sessile config show        every value, and the file and line that say it
    sessile config show --set  only those that somebody set]],
}, { __index = commands.config })

commands["config path"] = {
  summary = "print the path of your configuration",
  usage = "config path",
  examples = [[
    sessile config path               your file, or the one named by --config
    $EDITOR "$(sessile config path)"  edit it]],
  about = [[
    --json also prints the path of the project's file, and which of the two exist.]],
  run = function(app)
    local named, said_by = config.named(app.globals.config)
    local path = named or config.own()
    if not path then
      app.fail("there is no place for a configuration: neither HOME nor XDG_CONFIG_HOME is set",
        "EUSAGE", "Name a file with --config FILE, or set one of them.")
    end
    local exists = system.kind(path) ~= nil
    app:result({
      path = path, exists = exists, named_by = said_by,
      project = not named and { path = config.project,
        exists = system.kind(config.project) ~= nil } or nil,
    }, terminal.line(path) .. "\n")
    if not app.json and not exists then
      app:note "There is no such file yet. Make it: sessile config init"
    end
  end,
}

return commands
