--- append: adds one message to a session and prints its entry's id.
--
-- Owns: where the text comes from. Must never change it, but for the one newline that a
-- shell puts at the end.

local hints = require "sessile.cli.hints"

local ROLES = { "user", "assistant", "system", "developer", "model" }

return {
  name = "append",
  summary = "add one message to a session",
  usage = "append ID [TEXT | -] [--role ROLE]",
  examples = {
    { "echo 'why is it slow?' | sessile append bug-42 -", "from standard input" },
    { "sessile append last 'It reads the index twice.' --role assistant", "as the assistant" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`" },
    { "text", "the message; `-` or nothing: standard input, without its last newline", "?" },
  },
  options = {
    { "--role ROLE", "the role of the message", choices = ROLES, default = "user" },
  },
  run = function(app, args)
    local session, message, code, step = app:session(args.id)
    if not session then
      return nil, message, code, step
    end
    local text = args.text
    if not text or text == "-" then
      text = io.stdin:read "a"
      if not text then
        return nil, "standard input cannot be read", "EIO"
      end
      text = text:gsub("\n$", "")
      if text == "" then
        session:close()
        return nil, "standard input was empty: there is nothing to append", "EUSAGE",
          "Give the text: sessile append " .. hints.id(args.id) .. " TEXT"
      end
    end
    local entry
    entry, message, code = session:append { role = args.role, content = text }
    local id = session.id
    session:close()
    if not entry then
      return nil, message, code, code == "ECONFLICT"
        and ("Check, then repeat it: sessile show %s"):format(hints.id(id)) or nil
    end
    if app.json then
      app:print_json { session = id, entry = entry }
    else
      app:out(entry .. "\n")
    end
  end,
}
