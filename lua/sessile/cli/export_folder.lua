--- export_folder: all sessions, or all of a user's, as JSON and Markdown in a folder.
--
-- Owns: the names of the files, and index.json, which lists every session, also those that could
-- not be read.

local files_module = "sessile.files"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local progress = require "sessile.cli.progress"
local redact = require "sessile.redact"
local redaction = require "sessile.cli.redaction"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

local folder = {}

local FORMATS = { "json", "md" }

-- A file name for an id, which may be any bytes, that is valid on every file system.
local function file_name(id, taken)
  local name = id:gsub("[^%w._@-]", function(byte)
    return ("=%02x"):format(byte:byte())
  end):gsub("^[.-]", "_%0"):sub(1, 120)
  if name == "" then
    name = "_"
  end
  local free, n = name, 1
  while taken[free:lower()] do
    n = n + 1
    free = ("%s-%d"):format(name, n)
  end
  taken[free:lower()] = true
  return free
end

-- Writes a file that appears only when it is complete; nil, message, code.
local function write_file(path, replace, body)
  local file <close>, message, code = require(files_module).create(path)
  if not file then
    return nil, message, code
  end
  local ok
  ok, message, code = body(function(text) return file:write(text) end)
  if not ok then
    return nil, message, code
  end
  return file:finish(replace)
end

-- Writes a session in both formats. Its row of the index, with an error if it failed.
local function write_session(store, row, place, name, replace, redactor)
  local listed = { id = row.id, agent = row.agent, user = row.user, title = row.title,
    status = row.status, entries = row.entries }
  local user = row.user ~= "" and row.user or nil
  local session, message, code
  if row.entries then
    session, message, code = store:resume { id = row.id, agent = row.agent, user = user }
  else
    message, code = row.message or "it cannot be read", row.status
  end
  if not session then
    listed.error = { code = code, message = message }
    return listed
  end
  listed.files = json.list {}
  for _, format in ipairs(FORMATS) do
    local file = name .. "." .. format
    local ok
    ok, message, code = write_file(place .. "/" .. file, replace, function(write)
      return session:export { format = format, write = write, redact = redactor }
    end)
    if not ok then
      listed.error = { code = code, message = message }
      break
    end
    table.insert(listed.files, file)
  end
  if session.damage and not listed.error then
    listed.error = { code = session.damage.code, message = session.damage.message }
  end
  session:close()
  return listed
end

-- Every session that was asked for, including softly deleted ones: they are still stored.
local function rows_of(app, store, args)
  local rows = app.try(app:list(store, { user = args.user }))
  local deleted = app.try(app:list(store, { user = args.user, status = "deleted" }))
  return table.move(deleted, 1, #deleted, #rows + 1, rows)
end

-- The folder, created if it is missing. It must be empty, unless --yes was given.
local function prepared(app, args)
  local place = args.id
  if not place or args.file then
    app.fail("name one folder for the sessions", "EUSAGE", "As: sessile export --all FOLDER")
  end
  if #(system.files(place) or {}) > 0 and not args.yes then
    app.fail(("%s is there, and not empty"):format(hints.shown(place)), "EEXISTS",
      "Files in it are replaced with --yes; or name another folder.")
  end
  app.try_or({ ENOTFOUND = "Create its parent folder first." },
    require(files_module).folder(place))
  return (place:gsub("(.)/+$", "%1"))
end

--- Runs `export --all FOLDER` and `export --user USER FOLDER`.
---@param app sessile.cli.app
---@param args table
---@param rules boolean|table|nil
function folder.run(app, args, rules)
  if args.format or args.to then
    return nil, "a folder gets JSON and Markdown: --format and --to are for one session",
      "EUSAGE", false
  elseif args.user and args.all then
    return nil, "--user and --all exclude each other", "EUSAGE", false
  end
  local store = app:need_store()
  local rows = rows_of(app, store, args)
  if #rows == 0 then
    return nil, args.user and ("user '%s' has no session"):format(hints.shown(args.user))
      or "there is no session yet", "ENOTFOUND"
  end
  local place = prepared(app, args)
  local redactor = rules and redact.new(type(rules) == "table" and rules or nil)
  local index, taken, failed = {}, { index = true }, 0
  local show, finish = progress.bar(app, "export")
  for i, row in ipairs(rows) do
    show(i - 1, #rows)
    local own = (row.agent ~= "main" and row.agent and row.agent .. "." or "")
      .. (row.id or "unreadable")
    local name = file_name(redactor and redactor:text(own) or own, taken)
    index[i] = write_session(store, row, place, name, args.yes, redactor)
    failed = failed + (index[i].error and 1 or 0)
  end
  finish()
  local text = json.write { sessile_export_index = 1,
    user = redactor and args.user and redactor:text(args.user) or args.user,
    sessions = json.list(redactor and redactor:value(index) or index) }
  app.try(write_file(place .. "/index.json", args.yes, function(write)
    return write(text .. "\n")
  end))
  if app.json then
    app:print_json { folder = place, sessions = #rows, failed = failed }
  else
    app:note(("%d of %d sessions were exported to %s: not encrypted, listed in index.json"):format(
      #rows - failed, #rows, terminal.line(place)))
  end
  if redactor then
    app:note(redaction.sentence(redactor:report()))
  end
  if failed > 0 then
    return nil, ("%d of %d sessions could not be written completely"):format(failed,
      #rows), "EDAMAGED",
      "index.json says which, and why."
  end
end

return folder
