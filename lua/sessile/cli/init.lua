--- cli: the command line: from the words that were typed to an exit code.
--
-- Owns: dispatch, the `app` that commands get, how failures are told. Must never show a
-- traceback for an expected failure, nor mix data (stdout) and talk (stderr).
--
-- A command's run(app, args) returns nothing, or an exit code; or nil, a sentence, an error
-- code and perhaps a next step. Everything it raises is a defect.

local help = require "sessile.cli.help"
local json = require "sessile.cli.json"
local options = require "sessile.cli.options"
local registry = require "sessile.cli.registry"
local sessions = require "sessile.cli.sessions"
local terminal = require "sessile.cli.terminal"

local cli = {}

local EXIT = {
  EUSAGE = 2, ENOTFOUND = 3, EBUSY = 4, EDAMAGED = 5, ETRUNCATED = 5, ECONFLICT = 6,
  EDENIED = 7, ESEALED = 7,
}

-- What to do next, when the command knows nothing better.
local NEXT = {
  ENOTFOUND = "See what there is: sessile list",
  EBUSY = "Try again, or end the other writer first.",
  EDAMAGED = "Nothing was changed. Copy the file away before you do anything else.",
  ETRUNCATED = "Nothing was changed. Look for a newer copy of the file.",
  ECONFLICT = "Look again with `sessile show ID --last 5`, then repeat it.",
  EDENIED = "Look at the owner and the mode of the folder and of the key file.",
  ESEALED = "Give the right key: set SESSILE_KEY, or --key-file FILE, or --plain.",
  EEXISTS = "Choose another name, or go on with that session: sessile show ID",
  EFULL = "Make room on the device, then repeat it; what was acknowledged is safe.",
  EPOLICY = "The conversation stands as it was. See the policies: sessile policy list",
}

---@class sessile.cli.app
---@field json boolean        print JSON
---@field globals table       store, key_file, plain, agent as typed
---@field paint fun(text: string, colour: string): string   for stdout
---@field paint_note fun(text: string, colour: string): string   for stderr
---@field now fun(): integer  ms since the epoch, to the second
local app = {}
app.__index = app

--- Writes data.
function app:out(text)
  io.stdout:write(text)
end

--- Says something to the person, on stderr.
function app:note(text)
  io.stderr:write(text, "\n")
end

--- Writes a value as JSON. app.raw(text) stands for JSON that is there already.
function app:print_json(value)
  io.stdout:write(json.write(value), "\n")
end

app.raw = json.raw
app.array = json.list

function app.now()
  return os.time() * 1000
end

--- Opens the store that was named. create: make it when it is not there.
---@param create boolean?
function app:store(create)
  if not self.opened then
    local store, message, code, step = sessions.open(self.globals, create)
    if not store then
      return nil, message, code, step
    end
    self.opened = store
  end
  return self.opened
end

-- Says that recovery set something aside.
local function note_torn(self, id, torn)
  if torn > 0 then
    self:note(("The last write to %s was cut off: %s were set aside in a file "
      .. "NAME.torn-… beside the log."):format(terminal.line(id), terminal.bytes(torn)))
  end
end

--- Resumes the session that somebody names by id, beginning of an id, title or "last".
---@param name string
function app:session(name)
  local store, message, code, step = self:store()
  if not store then
    return nil, message, code, step
  end
  local session
  session, message, code, step = sessions.resume(store, name, self.globals.agent)
  if not session then
    return nil, message, code, step
  end
  note_torn(self, session.id, message)
  return session
end

--- The rows of the store, newest first.
---@param store table
function app:list(store)
  local rows, message, code = store:list { agent = self.globals.agent }
  for _, row in ipairs(rows or {}) do
    note_torn(self, row.id, row.torn)
  end
  return rows, message, code
end

local function close(self)
  if self.opened then
    self.opened:close()
    self.opened = nil
  end
end

-- ---------------------------------------------------------------- dispatch

local function fail(message, code, step)
  local paint = terminal.painter(2)
  message = terminal.safe(tostring(message)):gsub("[%s.]+$", "")
  io.stderr:write(paint("sessile:", "red"), " ", message, message:find "?$" and "\n" or ".\n")
  step = step or NEXT[code]
  if step then
    io.stderr:write(terminal.safe(step), "\n")
  end
  return EXIT[code] or 1
end

-- The command that the words name, and the index of the first word after its name.
local function find(words, at)
  local first, second = words[at], words[at + 1]
  if second and second:sub(1, 1) ~= "-" then
    local command, message, code = registry.load(first .. " " .. second)
    if command or code ~= "ENOTFOUND" then
      return command, at + 2, message, code
    end
  end
  local command, message, code = registry.load(first)
  return command, at + 1, message, code
end

local function unknown(word, words)
  local names = registry.names()
  local typed = words[2] and word .. " " .. words[2]
  local group = help.group(word)
  if group and not typed then
    io.stderr:write(("sessile: '%s' what? There are:\n"):format(word), group)
    return 2
  end
  local nearest = registry.nearest(group and typed or word, names)
  word = group and typed or word
  return fail(("there is no command '%s'"):format(terminal.line(word)), "EUSAGE",
    nearest and ("Did you mean `sessile %s`?"):format(nearest) or "See: sessile help")
end

local function new_app(args)
  return setmetatable({
    json = args.json or false,
    globals = args,
    paint = terminal.painter(1),
    paint_note = terminal.painter(2),
  }, app)
end

local function dispatch(words)
  local at = options.first_word(words, 1)
  local head = table.move(words, 1, math.min(at - 1, #words), 1, {})
  local name = words[at]
  local command, after, message, code
  if name then
    command, after, message, code = find(words, at)
    if not command and code == "ENOTFOUND" then
      return unknown(name, table.move(words, at, #words, 1, {}))
    elseif not command then
      return fail(message, code)
    end
  else
    command, after = require "sessile.cli.commands.start", at
  end
  table.move(words, after, #words, #head + 1, head)

  -- Asked for help, nothing else has to be right.
  local asks_until = command.raw and options.first_word(head, 1) - 1 or #head
  for i = 1, asks_until do
    if head[i] == "--" then break end
    if head[i] == "--help" or head[i] == "-h" then
      local paint = terminal.painter(1)
      io.stdout:write(name and help.command(command, paint) or help.all(paint))
      return 0
    end
    if head[i] == "--version" and not name then
      command = require "sessile.cli.commands.version"
      table.remove(head, i)
      break
    end
  end

  local args
  args, message = options.parse(command, head)
  if not args then
    return fail(message, "EUSAGE", name and ("Usage: sessile %s\nExamples: sessile help %s")
      :format(command.usage, command.name) or "See: sessile help")
  end
  local self = new_app(args)
  local result, step
  result, message, code, step = command.run(self, args)
  close(self)
  if message then
    return fail(message, code, step)
  end
  return math.tointeger(result) or 0
end

--- Runs a command line; returns the exit code.
---@param words string[]
---@return integer
function cli.main(words)
  local code = dispatch(words)
  io.stdout:flush() -- whether that went well is seen by the executable
  return code
end

return cli
