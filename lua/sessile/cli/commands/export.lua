--- export: writes a session as a document: for people, for programs, for other agents.
--
-- Owns: the choice of the format, the destination, and the report. Must never leave half a file,
-- nor replace one without --yes, nor print unsafe text on a terminal.

local common = require "sessile.cli.common"
local browser = require "sessile.cli.browser"
local export = require "sessile.export"
local folder = require "sessile.cli.export_folder"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local progress = require "sessile.cli.progress"
local redact = require "sessile.redact"
local redaction = require "sessile.cli.redaction"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

-- ---------------------------------------------------------------- which format

-- A format by its name; of_agent: only formats of other agents.
local function named(app, name, of_agent)
  local found = export.find(name, of_agent)
  if found then
    return found
  end
  local other = export.find(name, not of_agent)
  local message = ("there is no format '%s'%s"):format(hints.shown(name),
    of_agent and " of an agent" or "")
  app.fail(message, "EUSAGE",
    other and ("Type it as: %s %s"):format(other.agent and "--to" or "--format", other.name)
      or "There are: " .. table.concat(export.names(of_agent), ", "))
end

-- The format of --to, of --format, or of the file's extension; else JSON.
local function format_of(app, args)
  if args.to and args.format then
    app.fail("--to and --format exclude each other", "EUSAGE", false)
  elseif args.to or args.format then
    return named(app, args.to or args.format, args.to ~= nil or nil)
  end
  if args.open and not args.file then
    return export.find "html"
  end
  local extension = args.file and args.file ~= "-" and args.file:match "%.(%w+)$"
  return export.find(extension and extension:lower() or "json")
    or app.fail(("the name '%s' does not tell the format"):format(hints.shown(args.file)), "EUSAGE",
      "Name one: --format " .. table.concat(export.names(), ", --format "))
end

-- ---------------------------------------------------------------- where it goes

-- A function that makes text safe for stdout if that is a terminal.
local function inert(format)
  if not terminal.is_terminal(1) then
    return function(text) return text end
  end
  return format.extension:find "^json" and json.inert or terminal.safe
end

local function to_stdout(app, session, format, given)
  local safe = inert(format)
  given.write = function(text) app:out(safe(text)) end
  return app.try(session:export(given))
end

-- The number of entries, for the progress bar; 0 if it is not known.
local function entries_of(app, session)
  for _, row in ipairs(terminal.is_terminal(2) and app:list(app:store(), { prefix = session.id })
    or {}) do
    if row.id == session.id and row.agent == session.agent then
      return row.entries or 0
    end
  end
  return 0
end

-- Writes to a device or a pipe.
local function to_pipe(app, session, path, given)
  local file <close>, why = io.open(path, "wb")
  if not file then
    app.fail(why, "EIO")
  end
  given.write = function(text)
    local ok, problem = file:write(text)
    return ok, problem, "EIO"
  end
  local done, message, code = session:export(given)
  if done and not file:close() then -- it writes the last block
    done, message, code = nil, "it could not be written to its end", "EIO"
  end
  return done or app.fail(("%s: %s"):format(hints.shown(path), message), code)
end

-- Where the agent looks for the session, if the file is a folder: its own one (`~/.claude`), the
-- one of all its sessions, or, of Claude Code, that of a project. Returns the file there, which no
-- link below that folder leads elsewhere, and the command that continues there.
local function placed(app, session, args, format, given)
  given.redact = given.redact and redact.new(type(given.redact) == "table" and given.redact or nil)
  local path, origin, code = export.place(format, session, given.cwd, given.redact)
  app.try(path, origin, code)
  local base = (args.file:gsub("(.)/+$", "%1"))
  local real = system.real(base) or base
  local all = path:match "^%w+/"
  if real:find "/projects/[^/]+$" and format.name == "claude" then
    path = path:match "[^/]+$"
  elseif real:find("/" .. all:sub(1, -2) .. "$") then
    path = path:sub(#all + 1)
  end
  args.file = base .. "/" .. path
  return app.try(require("sessile.files").below(base, path)),
    ("cd %s && %s %s"):format(hints.quoted(origin.cwd), format.resume, origin.id)
end

-- Writes the file, or `open`: it was opened already, at the place that args.file names.
local function to_file(app, session, args, given, open)
  local kind = system.kind(args.file)
  if kind and kind ~= "folder" and not args.yes and (open or kind == "file") then
    app.fail(("%s is there already"):format(hints.shown(args.file)), "EEXISTS",
      "Replace it with --yes, or choose another name.")
  elseif kind == "folder" then
    app.fail(("%s is a folder"):format(hints.shown(args.file)), "EUSAGE", "Name a file in it.")
  elseif kind == "other" and not open then
    return to_pipe(app, session, args.file, given)
  end
  local file <close> = open or app.try_or({ ENOTFOUND = "Create its folder first." },
    require("sessile.files").create(args.file))
  local show, finish = progress.bar(app, "export", true)
  local bytes, all = 0, entries_of(app, session) * (given.redact and 2 or 1)
  given.on_step = function(entries) show(math.min(entries, all), all) end
  given.write = function(text)
    bytes = bytes + #text
    return file:write(text)
  end
  local done, message, code = session:export(given)
  finish()
  app.try(done, message, code)
  app.try(file:finish(args.yes))
  done.bytes = bytes
  return done
end

-- ---------------------------------------------------------------- the command

local function one(app, args, rules)
  local format = format_of(app, args)
  local viewer = args.open and app.try(browser.find())
  local session = app:open(args.id)
  if viewer and not args.file then
    args.file, args.yes = app.try(browser.place(session.id, format.extension)), true
  end
  local given = { redact = rules, content = args.content }
  given[format.agent and "to" or "format"] = format.name
  given.cwd = format.resume and system.real "." or nil
  local open, resume
  if format.resume and args.file and system.kind(args.file) == "folder" then
    open, resume = placed(app, session, args, format, given)
  end
  local is_file = args.file and args.file ~= "-"
  local done = is_file and to_file(app, session, args, given, open)
    or to_stdout(app, session, format, given)
  if viewer then
    app.try(browser.show(viewer, args.file))
  end
  if app.json and is_file then
    app:print_json { session = session.id, file = args.file, format = format.name,
      bytes = done.bytes, resume = resume,
      redacted = done.redacted and app.array(done.redacted),
      notes = done.notes and app.array(done.notes) }
    return
  elseif is_file then
    app:note(("Session %s was exported to %s (%s%s). The file is not encrypted."):format(
      hints.shown(session.id), terminal.line(args.file), format.name,
      done.bytes and ", " .. terminal.bytes(done.bytes) or ""))
  end
  for _, note in ipairs(done.notes or {}) do
    app:note(note .. ".")
  end
  if resume then
    app:note("To continue there: " .. resume)
  end
  if done.redacted then
    app:note(redaction.sentence(done.redacted))
  end
end

return {
  summary = "write a session as JSON, Markdown or HTML",
  usage = "export ID [FILE] [--format FORMAT | --to AGENT] [--redact] [--open] [--yes]",
  examples = [[
    sessile export last talk.html                 one self-contained HTML page
    sessile export last --open                    the same page, in the browser
    sessile export bug-42 bug-42.md --redact      without secrets, addresses and names of homes
    sessile export last | jq '.entries | length'  for a program
    sessile export last ~/.claude --to claude     a session that Claude Code continues
    sessile export last --to otel                 a trace of what ran when, as OTLP in JSON
    sessile export --user ann@example.org ann/    all sessions of a user
    sessile export bug-42 - --user ann@example.org    one session of a user]],
  arguments = {
    common.session_as { more = "; with --all or --user: a folder", count = "?" },
    { "file", "the file; its extension sets the format (default: standard output)", "?" },
  },
  options = {
    { "--format FORMAT", table.concat(export.names(), ", ") .. "; else the file's extension" },
    { "--to AGENT", "in the format of another agent: " .. table.concat(export.names(true),
      ", ") },
    common.redact,
    { "--redact-rules FILE", "also replace what these rules find: a Lua file, see below" },
    { "--content", "with --to otel: also what was said, redacted" },
    { "--all", "all sessions, into a folder" },
    { "--open", "show it in the browser; without FILE as an HTML page in your state folder" },
    { "--yes", "replace existing files" },
  },
  about = [[
    claude and codex get what was said up to the head, with its compactions, so that the
    program continues with the context that the session has. If FILE is the program's own
    folder (~/.claude, ~/.codex), the file is written where the program looks for it. It
    continues in the folder in which the session ran, else in the current one.

    The file appears only when it is complete, and only you can read it. --redact
    replaces what looks like a secret by [secret-1], [email-2], …, the same placeholder
    for the same text. It cannot find everything: read the file before you publish it. A
    file of rules returns a list:
      return { { name = "project", pattern = "Project %u%w+" } }
    The patterns are Lua patterns. If a pattern has a capture, only the capture is
    replaced.]],
  run = function(app, args)
    local rules, message, code, step = redaction.read(args)
    if rules == nil and message then
      return nil, message, code, step
    end
    if args.content and args.to ~= "otel" then
      return nil, "--content is for --to otel: other formats have what was said", "EUSAGE"
    elseif args.open and (args.all or args.user and not args.file or args.file == "-") then
      return nil, "--open shows one file", "EUSAGE", "Name one session, and a file or none."
    elseif args.all or args.user and not args.file then
      -- with a file the user is the session's, as for every command
      return folder.run(app, args, rules)
    elseif not args.id then
      return nil, "which session?", "EUSAGE", "Name one, or `last`; or --user USER, or --all."
    end
    return one(app, args, rules)
  end,
}
