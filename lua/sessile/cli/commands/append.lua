--- append: adds messages to a session and prints their entries' ids.
--
-- Must never change the text, except that it removes the last newline of standard input.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"
local messages = require "sessile.cli.messages"

return {
  summary = "add messages to a session; no policy runs",
  usage = "append ID [TEXT | -] [--role ROLE]",
  examples = [[
    echo 'why is it slow?' | sessile append bug-42 -                  from standard input
    sessile append last 'It reads the index twice.' --role assistant  as the assistant
    sessile append last '{"role":"user","content":"and now?"}'        a message as JSON]],
  arguments = { common.session, messages.argument },
  options = { messages.option },
  about = messages.about .. "\n" .. [[
    Several messages are added together, as a turn. To let the policy run: sessile turn]],
  run = function(app, args)
    local session = app:open(args.id)
    local list = messages.typed(app, args, "append")
    local steps = { ECONFLICT = "Check, then repeat it: sessile show " .. hints.id(session.id) }
    local ids
    if #list == 1 then
      ids = { (app.try_or(steps, session:append(list[1]))) }
    else
      ids = app.try_or(steps, session:turn(list, { policy = false })).ids
    end
    app:result({ session = session.id, entry = ids[#ids], entries = app.array(ids) },
      table.concat(ids, "\n") .. "\n")
  end,
}
