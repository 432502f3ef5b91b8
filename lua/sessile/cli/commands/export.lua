--- export: writes a session as a document: for people, for programs, for other agents.
--
-- Owns: which format, where it goes, and what is said of it. Must never leave half a file, nor
-- replace one that is there without --yes. What goes to a terminal is made inert like
-- everything else there.

local export = require "sessile.export"
local folder = require "sessile.cli.export_folder"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local progress = require "sessile.cli.progress"
local redaction = require "sessile.cli.redaction"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

-- ---------------------------------------------------------------- which format

local function unknown(name, agent)
  return nil, ("there is no format '%s'%s"):format(hints.shown(name),
    agent and " of an agent" or ""),
    "EUSAGE", "There are: " .. table.concat(export.names(agent), ", ")
end

-- The format: of --to, of --format, of the file's extension, else JSON.
local function format_of(args)
  if args.to and args.format then
    return nil, "--to and --format exclude each other", "EUSAGE", false
  elseif args.to then
    local format = export.find(args.to, true)
    if not format then
      return unknown(args.to, true)
    end
    return format
  elseif args.format then
    local format = export.find(args.format)
    if not format then
      return unknown(args.format)
    end
    return format
  end
  local extension = args.file and args.file ~= "-" and args.file:match "%.(%w+)$"
  if not extension then
    return export.find "json"
  end
  local format = export.find(extension:lower())
  if not format then
    return nil, ("the name '%s' does not tell the format"):format(hints.shown(args.file)), "EUSAGE",
      "Name one: --format " .. table.concat(export.names(), ", --format ")
  end
  return format
end

-- ---------------------------------------------------------------- where it goes

-- What a terminal is shown; elsewhere it is as it is.
local function inert(format)
  if not terminal.is_terminal(1) then
    return function(text) return text end
  end
  return format.extension:find "^json" and json.inert or terminal.safe
end

local function to_stdout(app, session, format, given)
  local safe = inert(format)
  given.write = function(text) app:out(safe(text)) end
  return session:export(given)
end

-- How many entries there are to be read, for the bar; 0: nobody can say.
local function entries_of(app, session)
  for _, row in ipairs(terminal.is_terminal(2) and app:list(app:store(), { prefix = session.id })
    or {}) do
    if row.id == session.id and row.agent == session.agent then
      return row.entries or 0
    end
  end
  return 0
end

local function to_file(app, session, args, given)
  local kind = system.kind(args.file)
  if kind == "file" and not args.yes then
    return nil, ("%s is there already"):format(hints.shown(args.file)), "EEXISTS",
      "Replace it with --yes, or choose another name."
  elseif kind == "folder" then
    return nil, ("%s is a folder"):format(hints.shown(args.file)), "EUSAGE",
      "Name a file in it."
  elseif kind == "other" then -- a device or a pipe: somebody reads as it is written
    local file <close>, why = io.open(args.file, "wb")
    if not file then
      return nil, why, "EIO"
    end
    given.write = function(text)
      local ok, problem = file:write(text)
      return ok, problem, "EIO"
    end
    local done, message, code = session:export(given)
    if done then
      done, message = file:close() and done, "it could not be written to its end" -- the last block
      code = not done and "EIO" or nil
    end
    if not done then
      return nil, ("%s: %s"):format(hints.shown(args.file), message), code
    end
    return done
  end
  local files = require "sessile.files"
  local file <close>, message, code = files.create(args.file)
  if not file then
    return nil, message, code, code == "ENOTFOUND" and "Create its folder first." or nil
  end
  local show, finish = progress.bar(app, "export", true)
  local bytes, all = 0, entries_of(app, session) * (given.redact and 2 or 1)
  given.on_step = function(entries) show(math.min(entries, all), all) end
  given.write = function(text)
    bytes = bytes + #text
    return file:write(text)
  end
  local done
  done, message, code = session:export(given)
  finish()
  if not done then
    return nil, message, code
  end
  local ok
  ok, message, code = file:finish(args.yes)
  if not ok then
    return nil, message, code
  end
  done.bytes = bytes
  return done
end

-- ---------------------------------------------------------------- the command

local function one(app, args, rules)
  local format, message, code, step = format_of(args)
  if not format then
    return nil, message, code, step
  end
  local session
  session, message, code, step = app:session(args.id)
  if not session then
    return nil, message, code, step
  end
  local _ <close> = app.closing(session)
  local given = { redact = rules }
  given[format.agent and "to" or "format"] = format.name
  local done
  local is_file = args.file and args.file ~= "-"
  if is_file then
    done, message, code, step = to_file(app, session, args, given)
  else
    done, message, code = to_stdout(app, session, format, given)
  end
  if not done then
    return nil, message, code, step
  end
  if app.json and is_file then
    app:print_json { session = session.id, file = args.file, format = format.name,
      bytes = done.bytes, redacted = done.redacted and app.array(done.redacted),
      notes = done.notes and app.array(done.notes) }
    return
  elseif is_file then
    app:note(("Session %s is in %s (%s%s): it is not sealed there."):format(
      hints.shown(session.id), terminal.line(args.file), format.name,
      done.bytes and ", " .. terminal.bytes(done.bytes) or ""))
  end
  for _, note in ipairs(done.notes or {}) do
    app:note(note .. ".")
  end
  if done.redacted then
    app:note(redaction.sentence(done.redacted))
  end
end

return {
  name = "export",
  summary = "write a session as JSON, Markdown or HTML",
  usage = "export ID [FILE] [--format FORMAT | --to AGENT] [--redact] [--yes]",
  examples = {
    { "sessile export last talk.html", "one self-contained HTML page" },
    { "sessile export bug-42 bug-42.md --redact", "without secrets, addresses and names of homes" },
    { "sessile export last | jq '.entries | length'", "for a program" },
    { "sessile export --user ann@example.org ann/", "all sessions of a user" },
  },
  arguments = {
    { "id", "a session: its id, a prefix of it, its title, a label, or `last`"
      .. "; with --all or --user: a folder", "?" },
    { "file", "the file; its extension sets the format (default: standard output)", "?" },
  },
  options = {
    { "--format FORMAT", table.concat(export.names(), ", ") .. "; else the file's extension" },
    { "--to AGENT", "in the format of another agent: " .. table.concat(export.names(true),
      ", ") },
    { "--redact", "replace keys, passwords, addresses and names of homes" },
    { "--redact-rules FILE", "also replace what these rules find: a Lua file, see below" },
    { "--user USER", "all sessions of a user, as JSON and Markdown, into a folder" },
    { "--all", "all sessions, into a folder" },
    { "--yes", "replace existing files" },
  },
  about = "The file appears only when it is complete, and only you can read it. --redact\n"
    .. "replaces what looks like a secret by [secret-1], [email-2], …, the same placeholder\n"
    .. "for the same text. It cannot find everything: read the file before you publish it. A\n"
    .. "file of rules returns a list:\n"
    .. "  return { { name = \"project\", pattern = \"Project %u%w+\" } }\n"
    .. "The patterns are Lua patterns. If a pattern has a capture, only the capture is\n"
    .. "replaced.",
  run = function(app, args)
    local rules, message, code, step = redaction.read(args)
    if rules == nil and message then
      return nil, message, code, step
    end
    if args.user or args.all then
      return folder.run(app, args, rules)
    elseif not args.id then
      return nil, "which session?", "EUSAGE", "Name one, or `last`; or --user USER, or --all."
    end
    return one(app, args, rules)
  end,
}
