--- ask: a question before what cannot be taken back.
--
-- Owns: what counts as a yes. Must never take silence, or input that is no person's, for one.

local terminal = require "sessile.cli.terminal"

local ask = {}

--- Whether to go on: --yes, or "yes" typed on a terminal. nil, sentence, code, step when
--- nobody can be asked; false when the answer was another.
---@param app sessile.cli.app
---@param args table  yes: --yes was given
---@param question string  without its question mark
---@return boolean?, string?, string?, string?
function ask.sure(app, args, question)
  if args.yes then
    return true
  elseif app.json or not terminal.is_terminal(0) or not terminal.is_terminal(2) then
    return nil, question .. "? Nobody can be asked here", "EUSAGE",
      "Confirm with --yes. Nothing was changed."
  end
  io.stderr:write(terminal.line(question), "? [yes/no] ")
  local answer = io.stdin:read "l"
  return answer ~= nil and answer:lower():match "^%s*yes%s*$" ~= nil
end

--- Goes on only after a yes. Otherwise the command ends: with a failure if nobody can be asked,
--- with exit code 1 if the answer was another.
---@param app sessile.cli.app
---@param args table
---@param question string  without its question mark
function ask.must(app, args, question)
  local sure, message, code, step = ask.sure(app, args, question)
  if sure == nil then
    app.fail(message, code, step)
  elseif not sure then
    app:note "Nothing was changed."
    app.stop(1)
  end
end

--- The option that commands with a question have.
ask.option = { "--yes", "do not ask" }

return ask
