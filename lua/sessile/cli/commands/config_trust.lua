--- config trust: a project's file may say what one's own may.
--
-- Owns: the question, and the record of its answer. Must never trust what others may write.

local ask = require "sessile.cli.ask"
local config = require "sessile.config"
local file = require "sessile.config.file"
local hints = require "sessile.cli.hints"
local own_files = require "sessile.cli.own_files"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local function told(app, one, trusted)
  if app.json then
    app:print_json { path = one.path, trusted = trusted }
  else
    app:out(("%s is %strusted%s.\n"):format(terminal.line(one.path), trusted and "" or "not ",
      trusted and ", as it stands now" or " any more"))
  end
end

return {
  name = "config trust",
  summary = "let a project's sessile.lua set everything that yours can",
  usage = "config trust [FILE] [--remove] [--yes]",
  examples = {
    { "sessile config trust", "trust ./sessile.lua, after you have read it" },
    { "sessile config trust --remove", "withdraw the trust" },
  },
  arguments = { { "file", "the file (default ./sessile.lua)", "?" } },
  options = { { "--remove", "withdraw the trust" }, ask.option },
  about = "Without trust, ./sessile.lua may set a policy by its name, triggers, checkpoints, a\n"
    .. "window, one of your models by its name, and a store below its own folder. It may not\n"
    .. "set anything that runs a program, reads a key, sends data or weakens durability. You\n"
    .. "trust this text in this place: if one byte of it changes, you are asked again. The\n"
    .. "programs and files that it names are not checked, so look at them first.",
  run = function(app, args)
    local one, message, code = file.read(args.file or config.project)
    if not one then
      return nil, message, code, code == "ENOTFOUND" and "Go to the project's folder, or name "
        .. "the file: sessile config trust FILE" or nil
    end
    local record, text = file.trust_record(one)
    if not record then
      return nil, "there is no place to keep it: neither HOME nor XDG_CONFIG_HOME is set", "EUSAGE"
    end
    local ok
    if args.remove then
      ok, message = os.remove(record)
      if not ok and system.kind(record) then
        return nil, message, "EDENIED"
      end
      return told(app, one, false)
    end
    local sure, step
    sure, message, code, step = ask.sure(app, args, ("Have you read %s, and may it run programs "
      .. "and name keys"):format(hints.shown(one.path)))
    if sure == nil then
      return nil, message, code, step
    elseif not sure then
      app:note "Nothing was changed."
      return 1
    end
    ok, message, code = own_files.write(record, text, true)
    if not ok then
      return nil, message, code
    end
    return told(app, one, true)
  end,
}
