--- progress: a bar on stderr for what takes longer than a second, on a terminal only.
--
-- Owns: the line it draws, which it takes away at the end. Must never write where no person
-- looks.

local terminal = require "sessile.cli.terminal"

local progress = {}

local WIDTH = 30

--- A function of (done, all) to be called as often as one likes; finish() takes the bar away.
---@param app sessile.cli.app
---@param label string
---@return fun(done: integer, all: integer) show
---@return fun() finish
function progress.bar(app, label)
  local started, drawn, last = os.time(), false, nil
  local quiet = app.json or not terminal.is_terminal(2)
  local function show(done, all)
    local now = os.time()
    if quiet or all <= 0 or now - started < 2 or last == now and done < all then
      return -- whole seconds: two of them are more than one
    end
    last, drawn = now, true
    local full = WIDTH * done // all
    io.stderr:write(("\r%s [%s%s] %s of %s"):format(label, ("#"):rep(full),
      (" "):rep(WIDTH - full), terminal.number(done), terminal.number(all)))
    io.stderr:flush()
  end
  local function finish()
    if drawn then
      io.stderr:write("\r", (" "):rep(#label + WIDTH + 40), "\r")
    end
  end
  return show, finish
end

return progress
