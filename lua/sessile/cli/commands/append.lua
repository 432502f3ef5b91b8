--- append: adds one message to a session and prints its entry's id.
--
-- Must never change the text, except that it removes the last newline of standard input.

local common = require "sessile.cli.common"
local hints = require "sessile.cli.hints"

local ROLES = { "user", "assistant", "system", "developer", "model" }

return {
  summary = "add one message to a session",
  usage = "append ID [TEXT | -] [--role ROLE]",
  examples = [[
    echo 'why is it slow?' | sessile append bug-42 -                  from standard input
    sessile append last 'It reads the index twice.' --role assistant  as the assistant]],
  arguments = {
    common.session,
    { "text", "the message; `-` or nothing: standard input, without its last newline", "?" },
  },
  options = {
    { "--role ROLE", "the role of the message", choices = ROLES, default = "user" },
  },
  run = function(app, args)
    local session = app:open(args.id)
    local text = args.text
    if not text or text == "-" then
      text = common.typed_text(app)
      if text == "" then
        return nil, "standard input was empty: there is nothing to append", "EUSAGE",
          "Give the text: sessile append " .. hints.id(args.id) .. " TEXT"
      end
    end
    local entry = app.try_or({
      ECONFLICT = "Check, then repeat it: sessile show " .. hints.id(session.id),
    }, session:append { role = args.role, content = text })
    app:result({ session = session.id, entry = entry }, entry .. "\n")
  end,
}
