--- config trust: lets a project's sessile.lua set everything that the user's file can.
--
-- Owns: the question, and the record of the answer. Must never trust a file that others can write.

local ask = require "sessile.cli.ask"
local config = require "sessile.config"
local file = require "sessile.config.file"
local hints = require "sessile.cli.hints"
local own_files = require "sessile.cli.own_files"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local function tell(app, one, trusted)
  app:result({ path = one.path, trusted = trusted }, ("%s is %strusted%s.\n"):format(
    terminal.line(one.path), trusted and "" or "not ",
    trusted and ", as it stands now" or " any more"))
end

return {
  summary = "let a project's sessile.lua set everything that yours can",
  usage = "config trust [FILE] [--remove] [--yes]",
  examples = [[
    sessile config trust           trust ./sessile.lua, after you have read it
    sessile config trust --remove  withdraw the trust]],
  arguments = { { "file", "the file (default ./sessile.lua)", "?" } },
  options = { { "--remove", "withdraw the trust" }, ask.option },
  about = [[
    Without trust, ./sessile.lua may set a policy by its name, triggers, checkpoints, a
    window, one of your models by its name, and a store below its own folder. It may not
    set anything that runs a program, reads a key, sends data or weakens durability. You
    trust this text in this place: if one byte of it changes, you are asked again. The
    programs and files that it names are not checked, so look at them first.]],
  run = function(app, args)
    local one = app.try_or({
      ENOTFOUND = "Go to the project's folder, or name the file: sessile config trust FILE",
    }, file.read(args.file or config.project))
    local record, text = file.trust_record(one)
    if not record then
      return nil, "there is no place to keep it: neither HOME nor XDG_CONFIG_HOME is set", "EUSAGE"
    end
    if args.remove then
      local ok, message = os.remove(record)
      if not ok and system.kind(record) then
        return nil, message, "EDENIED"
      end
      return tell(app, one, false)
    end
    ask.must(app, args, ("Have you read %s, and may it run programs and name keys"):format(
      hints.shown(one.path)))
    app.try(own_files.write(record, text, true))
    tell(app, one, true)
  end,
}
