--- program: version, completions, man: texts about the program itself.

local man = require "sessile.cli.man"
local sessile = require "sessile"
local shells = require "sessile.cli.shells"

local commands = {}

commands.version = {
  summary = "print the version",
  usage = "version",
  examples = [[sessile version  also: sessile --version]],
  run = function(app)
    app:result({ sessile = sessile.version, lua = _VERSION },
      ("sessile %s (%s)\n"):format(sessile.version, _VERSION))
  end,
}

commands.completions = {
  summary = "print a shell script that completes commands, options and ids",
  usage = "completions SHELL",
  examples = [[
    eval "$(sessile completions bash)"  in ~/.bashrc; zsh likewise, in ~/.zshrc
    sessile completions fish > ~/.config/fish/completions/sessile.fish
      for fish]],
  arguments = { { "shell", "bash, zsh or fish", choices = shells.names } },
  about = [[
    `make install` installs the scripts where the three shells look for them. Sessions,
    labels and checkpoints are looked up while you type, in the store that the command
    line names.]],
  run = function(app, args)
    local script = shells.scripts[args.shell]
    app:result({ shell = args.shell, script = script }, script)
  end,
}

commands.man = {
  summary = "print the manual page as roff",
  usage = "man",
  examples = [[
    sessile man | man -l -   read it
    sessile man > sessile.1  as `make install` does]],
  run = function(app)
    local page = man.page(sessile.version)
    app:result({ page = page }, page)
  end,
}

return commands
