-- terminal.lua: a terminal that nobody sits at: a shell in tmux, keys typed into it, its screen
-- read. Each has a server of its own, which ends with it.

local assert = require "luassert"
local busted = require "busted"
local cli = require "spec.support.cli"
local shell = require "spec.support.shell"

local terminal = {}
local methods = {}
local meta = { __index = methods }
local opened = {}

-- So often the screen is looked at, in all so long: a program that does not answer by then is
-- taken for one that never will.
local PAUSE, LOOKS = 0.04, 400

function methods:tmux(words)
  return (shell.output(("TMUX_TMPDIR=%s tmux -L t -f /dev/null %s 2>&1"):format(
    cli.quote(self.folder), words)))
end

--- Why there can be none; nil: there can.
function terminal.missing()
  if not os.execute "command -v tmux >/dev/null 2>&1" then
    return "needs tmux: install the package tmux"
  elseif not os.execute "script -qec true /dev/null </dev/null >/dev/null 2>&1" then
    return "needs a pseudo-terminal"
  end
end

--- A shell in a terminal of that size, with the environment of cli.sessile. env: more of it.
function terminal.open(columns, rows, env)
  local self = setmetatable({ folder = cli.home() }, meta)
  opened[#opened + 1] = self
  cli.write(self.folder .. "/shellrc", "PS1='$ '\nunset HISTFILE\n")
  self:tmux(("new-session -d -x %d -y %d %s"):format(columns, rows, cli.quote(
    ("env -u NO_COLOR %s %s bash --noprofile --rcfile %s/shellrc -i"):format(cli.env(), env or "",
      cli.home()))))
  self:tmux "set -g status off"
  self:wait "$"
  return self
end

--- In a describe, or a spec: as cli.each_test, and closes the terminals that a test opened.
function terminal.each_test(set_up)
  busted.before_each(function()
    local home = cli.begin()
    if set_up then
      set_up(home)
    end
  end)
  busted.after_each(function()
    for i = #opened, 1, -1 do
      opened[i]:close()
      opened[i] = nil
    end
    cli.finish()
  end)
end

--- A test, test(at), with a terminal of 80 by 24 or of another size. Pending if there can be none.
--- env: as for terminal.open, or a function that returns it.
function terminal.test(name, test, columns, rows, env)
  busted.it(name, function()
    local missing = terminal.missing()
    if missing then
      -- busted gives `pending`, as a test calls it, to the files of specs alone.
      require "busted.core"().pending(missing)
    end
    test(terminal.open(columns or 80, rows or 24, type(env) == "function" and env() or env))
  end)
end

--- Runs `sessile` with these words in it.
function methods:run(words)
  self:type("clear; " .. cli.binary .. " " .. words)
  self:keys "Enter"
end

--- Presses keys by tmux's names, one after the other.
function methods:keys(...)
  local words = {}
  for i, key in ipairs { ... } do
    words[i] = cli.quote(key)
  end
  self:tmux("send-keys " .. table.concat(words, " "))
end

--- Types a text as it stands.
function methods:type(text)
  self:tmux("send-keys -l " .. cli.quote(text))
end

--- Types a line, and Enter.
function methods:enter(text)
  self:type(text)
  self:keys "Enter"
end

--- Pastes a text, as a terminal does that says what is pasted.
function methods:paste(text)
  self:tmux("set-buffer " .. cli.quote(text))
  self:tmux "paste-buffer -p"
end

--- What is on the screen. styled: with the sequences that colour it.
function methods:screen(styled)
  return self:tmux("capture-pane -p" .. (styled and "e" or ""))
end

--- The line of the screen that holds some words.
function methods:line(words)
  for line in self:screen():gmatch "[^\n]+" do
    if line:find(words, 1, true) then
      return line
    end
  end
end

--- Waits until the screen holds some words (a plain text, or fits a function), and returns it.
function methods:wait(wanted)
  local seen
  for _ = 1, LOOKS do
    seen = self:screen()
    if type(wanted) == "function" and wanted(seen)
      or type(wanted) == "string" and seen:find(wanted, 1, true) then
      return seen
    end
    os.execute("sleep " .. PAUSE)
  end
  error(("never on the screen: %s\n%s"):format(tostring(wanted), seen), 2)
end

--- Waits until it is not there any more.
function methods:wait_gone(words)
  return self:wait(function(seen) return not seen:find(words, 1, true) end)
end

--- What tmux knows of it: "alternate_on", "cursor_flag", "pane_title".
function methods:is(name)
  return (self:tmux(("display-message -p '#{%s}'"):format(name)):gsub("\n$", ""))
end

function methods:resize(columns, rows)
  self:tmux(("resize-window -x %d -y %d"):format(columns, rows))
end

--- The modes of the line, as stty says them, asked by the shell in it.
function methods:modes()
  local file = self.folder .. "/modes"
  os.remove(file)
  self:type("stty -a >" .. file .. ".new; mv " .. file .. ".new " .. file)
  self:keys "Enter"
  for _ = 1, LOOKS do
    if io.open(file) then
      return cli.read(file)
    end
    os.execute("sleep " .. PAUSE)
  end
end

--- That a program left the terminal as it found it: the screen, the cursor, and the modes that
--- modes() returned before.
function methods:expect_restored(before)
  assert.equal("0", self:is "alternate_on")
  assert.equal("1", self:is "cursor_flag")
  assert.equal(before, self:modes())
end

function methods:close()
  self:tmux "kill-server"
  -- What ran in it may still be ending.
  for _ = 1, LOOKS do
    if self:tmux("list-sessions"):find "no server" then
      return
    end
    os.execute("sleep " .. PAUSE)
  end
end

return terminal
