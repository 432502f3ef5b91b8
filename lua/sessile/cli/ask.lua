--- ask: confirmation before a command does something that cannot be undone.
--
-- Owns: what counts as a yes. Must never take silence, or input that no person typed, for a yes.

local terminal = require "sessile.cli.terminal"

local ask = {}

--- True after --yes, or after "yes" is typed on a terminal; false after any other answer; nil,
--- sentence, code, step if nobody can be asked.
---@param app sessile.cli.app
---@param args table  yes: --yes was given
---@param question string  without its question mark
---@return boolean?, string?, string?, string?
function ask.sure(app, args, question)
  if args.yes then
    return true
  elseif app.json or not terminal.is_terminal(0) or not terminal.is_terminal(2) then
    return nil, ("confirmation is needed and there is no terminal: %s?"):format(question), "EUSAGE",
      "Nothing was changed. To confirm, repeat the command with --yes."
  end
  io.stderr:write(terminal.line(question), "? [yes/no] ")
  local answer = io.stdin:read "l"
  return answer ~= nil and answer:lower():match "^%s*yes%s*$" ~= nil
end

--- Returns only after a yes. Otherwise the command ends: with a failure if nobody can be asked,
--- with exit code 1 after any other answer.
---@param app sessile.cli.app
---@param args table
---@param question string  without its question mark
function ask.must(app, args, question)
  ask.conclude(app, ask.sure(app, args, question))
end

--- Ends the command as ask.must does, on what ask.sure returned.
---@param app sessile.cli.app
---@param sure boolean?
---@param message string?
---@param code string?
---@param step string?
function ask.conclude(app, sure, message, code, step)
  if sure == nil then
    app.fail(message, code, step)
  elseif not sure then
    app:note "Nothing was changed."
    app.stop(1)
  end
end

--- The option of commands that ask for confirmation.
ask.option = { "--yes", "do not ask" }

return ask
