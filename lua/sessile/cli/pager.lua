--- pager: the output of a command in a program that shows it page by page.
--
-- Owns: which program that is. Must never lose output: what no program shows is printed.

local has_pager, pager_core = pcall(require, "sessile.pager")
local programs = require "sessile.cli.programs"
local terminal = require "sessile.cli.terminal"

local pager = {}

--- The option of commands whose output goes through a pager on a terminal.
pager.option = { "--no-pager", "on a terminal: print it at once, without $PAGER" }

-- What a shell runs: $PAGER, else less. less ends by itself if the text fits on the screen (F),
-- passes colours on (R) and leaves the text there (X), unless $LESS says otherwise.
local function command()
  local chosen = os.getenv "PAGER"
  if chosen == "" or chosen == "cat" or not chosen and not programs.find "less" then
    return nil
  end
  return 'LESS="${LESS-FRX}" ' .. (chosen or "less")
end

--- Whether the output of this command goes through a pager.
---@param app sessile.cli.app
---@param args table
---@return boolean
function pager.is_wanted(app, args)
  return not (args.no_pager or app.json) and has_pager and terminal.is_terminal(0)
    and terminal.is_terminal(1) and os.getenv "TERM" ~= "dumb" and command() ~= nil
end

--- Shows a text, and returns when the reader has left it.
---@param text string
function pager.show(text)
  if text ~= "" and not pager_core.show(command(), text) then
    io.stdout:write(text)
  end
end

return pager
