-- terminal.lua: a terminal that a spec types at and looks at, through tmux. Without tmux, or where
-- no pseudo-terminal can be had, `terminal.missing()` says why.

local terminal = {}

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

local function run(command)
  local pipe <close> = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "a"
  return text, (pipe:close())
end

--- Why there is no terminal to be had; nil when there is one.
function terminal.missing()
  local _, found = run "tmux -V"
  if not found then
    return "the package tmux is not installed"
  end
  local _, works = run "script -qec true /dev/null"
  return not works and "there is no pseudo-terminal here" or nil
end

local Terminal = {}
Terminal.__index = Terminal

--- Opens one that runs a command line, in a folder. size: "80x24".
function terminal.open(folder, command, size)
  local self = setmetatable({ folder = folder }, Terminal)
  self.tmux = ("env -u TMUX TMUX_TMPDIR=%s LC_ALL=C.UTF-8 TERM=xterm tmux -f /dev/null -L spec")
    :format(quote(folder))
  local columns, rows = (size or "80x24"):match "(%d+)x(%d+)"
  local text, ok = run(("%s new-session -d -x %s -y %s %s"):format(self.tmux, columns, rows,
    quote(command)))
  assert(ok, text)
  return self
end

--- What is on it now.
function Terminal:screen()
  return (run(self.tmux .. " capture-pane -p"))
end

--- Presses keys, by tmux's names.
function Terminal:keys(...)
  for _, key in ipairs { ... } do
    run(("%s send-keys %s"):format(self.tmux, quote(key)))
  end
end

--- Types a text, and Enter.
function Terminal:type(text)
  run(("%s send-keys -l %s"):format(self.tmux, quote(text)))
  self:keys "Enter"
end

--- Pastes a text, as a terminal that says so does.
function Terminal:paste(text)
  run(("%s set-buffer %s"):format(self.tmux, quote(text)))
  run(self.tmux .. " paste-buffer -p")
end

--- Waits until a text is on it; returns the screen. Raises, with what is there, after 20 seconds.
function Terminal:wait(part)
  local screen
  for _ = 1, 200 do
    screen = self:screen()
    if screen:find(part, 1, true) then
      return screen
    end
    os.execute "sleep 0.1"
  end
  error(("%q never came. There is:\n%s"):format(part, screen), 2)
end

function Terminal:close()
  run(self.tmux .. " kill-server")
end

return terminal
