--- completions: the script that makes a shell complete what is typed after `sessile`.

local shells = require "sessile.cli.shells"

return {
  name = "completions",
  summary = "print a shell script that completes commands, options and ids",
  usage = "completions SHELL",
  examples = {
    { 'eval "$(sessile completions bash)"', "in ~/.bashrc; zsh likewise, in ~/.zshrc" },
    { "sessile completions fish > ~/.config/fish/completions/sessile.fish", "for fish" },
  },
  arguments = {
    { "shell", "bash, zsh or fish", choices = shells.names },
  },
  about = "`make install` installs the scripts where the three shells look for them. Sessions,\n"
    .. "labels and checkpoints are looked up while you type, in the store that the command\n"
    .. "line names.",
  run = function(app, args)
    local script = shells.scripts[args.shell]
    if app.json then
      app:print_json { shell = args.shell, script = script }
    else
      app:out(script)
    end
  end,
}
