--- fixture: writes messages of a session as a fixture for specs of policies.
--
-- Must never overwrite a file.

local common = require "sessile.cli.common"
local json = require "sessile.cli.json"
local redact = require "sessile.redact"
local terminal = require "sessile.cli.terminal"
local render = require "sessile.cli.render"

return {
  summary = "cut a fixture for specs of policies from a session",
  usage = "fixture ID [FILE] [--redact] [--last N]",
  examples = [[
    sessile fixture bug-42 spec/fixtures/slow.jsonl --redact
      without secrets and names
    sessile fixture last --last 40  the newest 40 messages, to standard output]],
  arguments = {
    common.session,
    { "file", "a new file (default: standard output)", "?" },
  },
  options = {
    common.redact,
    { "--last N", "only the newest N messages", integer = true },
  },
  about = [[
    A fixture has one message on each line. --redact replaces what looks like a secret by
    [secret-1], [email-2], …, the same placeholder for the same text. It cannot find
    everything: read a fixture before you publish it.]],
  run = function(app, args)
    local session = app:open(args.id)
    local list = app.try(session:messages { last = args.last })
    local redactor = redact.new()
    local lines = {}
    for i, found in ipairs(list) do
      local raw = render.facts(found).json
      lines[i] = args.redact and redactor:json(raw) or raw
    end
    if app.json and not args.file then
      for i, line in ipairs(lines) do
        lines[i] = app.raw(line)
      end
      app:print_json { messages = app.array(lines), redacted = args.redact and redactor.total }
      return
    end
    local text = table.concat(lines, "\n") .. (#lines > 0 and "\n" or "")
    if args.file and args.file ~= "-" then
      local there = io.open(args.file)
      if there then
        there:close()
        return nil, ("%s is there already"):format(args.file), "EEXISTS", "Choose another name."
      end
      local file, why = io.open(args.file, "w")
      if not file then
        return nil, why, "EIO"
      end
      local ok, wrong = file:write(text)
      file:close()
      if not ok then
        return nil, wrong, "EIO"
      end
    else
      app:out(json.inert(text))
    end
    local said = ("%d messages"):format(#lines)
    if args.redact then
      said = said .. (", %d parts replaced; read it before you publish it"):format(redactor.total)
    end
    app:note(said .. (args.file and " in " .. terminal.line(args.file) or ""))
  end,
}
