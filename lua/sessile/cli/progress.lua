--- progress: a line on stderr for work that takes longer than a second.
--
-- Owns: the line that it draws, and removes at the end: a bar (how much is done, how fast, and how
-- long the rest takes), or how long it has waited. Must never write to anything but a terminal.

local has_system, system = pcall(require, "sessile.system")
local terminal = require "sessile.cli.terminal"

local progress = {}

local AFTER = 1 -- seconds before it is drawn
local EVERY = 0.1 -- seconds between two drawings

local function span(seconds)
  if seconds < 90 then
    return ("%d s"):format(math.ceil(seconds))
  elseif seconds < 5400 then
    return ("%d min"):format(math.ceil(seconds / 60))
  end
  return ("%.1f h"):format(seconds / 3600)
end

--- The text of a bar: "importing [####    ]  45 %  1.2 MB of 2.7 MB  812 kB/s  2 s left".
---@param label string
---@param done integer
---@param all integer
---@param seconds number   since it began
---@param columns integer
---@param bytes boolean?   what is counted are bytes
---@return string
function progress.text(label, done, all, seconds, columns, bytes)
  local share = math.max(0, math.min(1, done / all))
  local rate = seconds > 0 and done / seconds or 0
  local count = bytes and terminal.bytes or function(n) return terminal.number(n // 1) end
  local words = ("%3d %%  %s of %s"):format(share * 100 // 1, count(done), count(all))
  if rate > 0 and done < all then
    words = words .. ("  %s/s  %s left"):format(count(rate >= 1 and rate // 1 or 1),
      span((all - done) / rate))
  end
  local room = columns - terminal.width(label) - terminal.width(words) - 5
  if room < 4 then
    return terminal.cut(("%s %s"):format(label, words), columns - 1)
  end
  local width = math.min(room, 30)
  local full = (width * share) // 1
  return ("%s [%s%s] %s"):format(label, ("#"):rep(full), (" "):rep(width - full), words)
end

-- A line that is drawn at most every tenth of a second, after a second: show(text_of), where
-- text_of(seconds since it began) returns its text; and finish(), which removes it.
local function line_of(app)
  local quiet = app.json or not terminal.is_terminal(2) or os.getenv "TERM" == "dumb"
  local seconds = has_system and system.seconds or os.time
  local began, last, drawn = seconds(), nil, 0
  local function show(text_of)
    local now = seconds()
    if quiet or now - began < AFTER or last and now - last < EVERY then
      return
    end
    local text = text_of(now - began)
    local width = terminal.width(text)
    io.stderr:write("\r", text, (" "):rep(drawn - width))
    io.stderr:flush()
    last, drawn = now, math.max(drawn, width)
  end
  local function finish()
    if drawn > 0 then
      io.stderr:write("\r", (" "):rep(drawn), "\r")
      io.stderr:flush()
      drawn = 0
    end
  end
  return show, finish
end

--- Returns show(done, all), which may be called often, and finish(), which removes the bar and may
--- be called again.
---@param app sessile.cli.app
---@param label string
---@param bytes boolean?  the numbers are bytes
---@return fun(done: integer, all: integer) show
---@return fun() finish
function progress.bar(app, label, bytes)
  local show, finish = line_of(app)
  return function(done, all)
    if all > 0 then
      show(function(seconds)
        return progress.text(label, done, all, seconds, terminal.columns() or 80, bytes)
      end)
    end
  end, finish
end

--- The same for work whose end is not known: show(words) shows for how long it has been waited.
---@param app sessile.cli.app
---@return fun(words: string) show
---@return fun() finish
function progress.wait(app)
  local show, finish = line_of(app)
  return function(words)
    show(function(seconds)
      return ("%s %d s"):format(words, seconds // 1)
    end)
  end, finish
end

return progress
