--- cli: the command line, from the typed words to an exit code.
--
-- Owns: dispatch, error messages, exit codes. Must never show a traceback for an expected failure,
-- nor print messages on stdout or data on stderr.

local app = require "sessile.cli.app"
local help = require "sessile.cli.help"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local options = require "sessile.cli.options"
local refusals = require "sessile.cli.refusals"
local registry = require "sessile.cli.registry"
local show = require "sessile.config.show"
local stores = require "sessile.cli.stores"
local terminal = require "sessile.cli.terminal"

local cli = {}

local EXIT = {
  EUSAGE = 2, ENOTFOUND = 3, EBUSY = 4, EDAMAGED = 5, ETRUNCATED = 5, ECONFLICT = 6,
  EDENIED = 7, ESEALED = 7,
}

-- The next step by error code, if the command gives none.
local NEXT = {
  ENOTFOUND = "See the sessions: sessile list",
  EBUSY = "Try again, wait longer with --timeout 1m, or end the other writer first.",
  EDAMAGED = "See what is wrong, and where: sessile check",
  ETRUNCATED = "See what is wrong, and where: sessile check",
  ECONFLICT = "Check with `sessile show last`, then repeat it.",
  EDENIED = "Look at the owner and the mode of what is named here.",
  ESEALED = "Give the right key: set SESSILE_KEY, or --key-file FILE.",
  EEXISTS = "Choose another name; see those that are taken: sessile list",
  EFULL = "Free space on the device, then repeat it. Acknowledged writes are safe.",
  EPOLICY = "The conversation is unchanged. See the policies: sessile policy list",
}

-- A message of the engine, and the repair command at its end.
local function split_command(message)
  local what, command = message:match "^(.*): (sessile check [^:]*%-%-salvage)$"
  return what or message, command
end

-- The longest message: an id of thousands of bytes must not push the rest off the screen.
local LONGEST = 1000

-- Whether the store is a PostgreSQL server: it has no file mode, and its message says what to do.
local function of_a_server(view)
  local url = view.globals and stores.place(view.globals)
  return url and url:find "^postgres" ~= nil
end

-- Prints a failure; returns the exit code. view: whether to print JSON, and the global options if
-- they are known. rule: of a guard, that refused.
local function fail(view, message, code, step, rule)
  message = terminal.safe(tostring(message)):gsub("[%s.]+$", "")
  local command
  message, command = split_command(message)
  message = terminal.cut(hints.fill(message, view.globals), LONGEST)
  if type(step) == "number" then -- the time when there is room, which the sentence may have
    step = not message:find("try again in", 1, true)
      and ("Try again in %s."):format(show.time(step)) or nil
  end
  rule = type(rule) == "string" and rule ~= "" and rule or nil
  if step == nil and command then
    step = "To rewrite it with everything that can be read: " .. command
  elseif step == nil then
    step = refusals.step(message, code, rule, view.globals)
  end
  local has_step = code == "EDENIED" and (message:find("chmod", 1, true)
    or message:find("enable it", 1, true) or of_a_server(view))
  if code == "ENOTFOUND" and message:find("No such file or directory", 1, true) then
    step = step or "Check how the path is written." -- it is in the message
  end
  if step == nil and not has_step then
    step = NEXT[code]
  end
  step = step and terminal.safe(hints.fill(step, view.globals))
  if view.json then
    io.stderr:write(json.line {
      error = { code = code or "EFAILED", message = message, next = step or nil, rule = rule },
    }, "\n")
    return EXIT[code] or 1
  end
  local paint = terminal.painter(2)
  io.stdout:flush()
  local by_rule = rule and not message:find(rule, 1, true) and (" [%s]"):format(rule) or ""
  io.stderr:write(paint("sessile:", "red"), " ", terminal.sentence(message .. by_rule), "\n")
  if step then
    io.stderr:write(step, "\n")
  end
  return EXIT[code] or 1
end

-- The command that the words name, and the index of the word after its name.
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

-- Whether one of the first `last` words is `wanted`. It stops at `--`.
local function has_word(words, last, wanted)
  for i = 1, last do
    if words[i] == "--" then
      return false
    elseif wanted[words[i]] then
      return true
    end
  end
  return false
end

local ASKS = { ["--help"] = true, ["-h"] = true }

-- After `sessions`: no command, or one that is not about sessions.
local function unknown_of_sessions(view, word, words)
  if not word then
    local list = help.of_sessions()
    if has_word(words, #words, ASKS) then
      io.stdout:write(list)
      return 0
    end
    return fail(view, "'sessions' is not a whole command", "EUSAGE", "There are:\n" .. list)
  end
  local nearest = registry.nearest(word, registry.of_sessions())
  return fail(view, ("there is no command 'sessions %s'"):format(hints.shown(word)), "EUSAGE",
    nearest and ("Did you mean `sessile sessions %s`?"):format(nearest)
      or "See the commands: sessile sessions --help")
end

local function unknown(view, word, words)
  local names = registry.typed()
  local typed = words[2] and words[2]:sub(1, 1) ~= "-" and word .. " " .. words[2]
  local group = help.group(word)
  if group and not typed then
    if has_word(words, #words, ASKS) then
      io.stdout:write(group)
      return 0
    end
    return fail(view, ("'%s' is not a whole command"):format(word), "EUSAGE",
      "There are:\n" .. group)
  end
  word = group and typed or word
  if registry.absent(word) then
    return fail(view, ("there is no command '%s'"):format(word), "EUSAGE", registry.absent(word))
  end
  local nearest
  if group then -- compared with the second words: the first one is right
    local seconds = {}
    for _, name in ipairs(names) do
      seconds[#seconds + 1] = name:match("^" .. words[1] .. " (.+)$")
    end
    nearest = registry.nearest(words[2], seconds)
    nearest = nearest and words[1] .. " " .. nearest
  else
    for i = 1, #names do
      names[#names + 1] = names[i]:match "^(%S+) " -- a group, such as `memory`
    end
    nearest = registry.nearest(word, names)
  end
  return fail(view, ("there is no command '%s'"):format(hints.shown(word)), "EUSAGE",
    nearest and ("Did you mean `sessile %s`?"):format(nearest)
      or group and "There are:\n" .. group or "See: sessile help")
end

local function usage_step(command)
  return ("Usage: sessile %s\nExamples: sessile help %s"):format(command.usage, command.name)
end

local function dispatch(words)
  local at = options.first_word(words, 1)
  local head = table.move(words, 1, math.min(at - 1, #words), 1, {})
  local name = words[at]
  local command, after, message, code
  local view = { json = has_word(words, #words, { ["--json"] = true }) }
  local of_sessions = name == "sessions"
  if of_sessions then
    words = table.move(words, 1, #words, 1, {})
    table.remove(words, at)
    at = options.first_word(words, 1)
    head = table.move(words, 1, math.min(at - 1, #words), 1, {})
    name = words[at]
  end
  if name or of_sessions then
    if name then
      command, after, message, code = find(words, at)
    end
    if of_sessions and not (command and registry.is_of_sessions(command.name)) then
      return unknown_of_sessions(view, name, words)
    elseif not command and code == "ENOTFOUND" then
      return unknown(view, name, table.move(words, at, #words, 1, {}))
    elseif not command then
      return fail(view, message, code)
    end
  else
    command, after = require "sessile.cli.commands.start", at
  end
  table.move(words, after, #words, #head + 1, head)

  -- With --help the other words need not be valid.
  local asks_until = command.raw and options.first_word(head, 1) - 1 or #head
  view.json = has_word(head, asks_until, { ["--json"] = true })
  if has_word(head, asks_until, ASKS) then
    local paint = terminal.painter(1)
    io.stdout:write(name and help.command(command, paint) or help.all(paint))
    return 0
  end
  for i = 1, name and 0 or #head do
    if head[i] == "--version" then
      command = registry.load "version"
      table.remove(head, i)
      break
    end
  end

  local args, meant
  args, message, meant = options.parse(command, head)
  if not args then
    return fail(view, message, "EUSAGE", meant or not name and "See: sessile help"
      or usage_step(command))
  end
  local self = app.new(args)
  local result, step, rule
  result, message, code, step, rule = self:run(command, args)
  if self.opened then
    self.opened:close()
  end
  if message then
    if code == "ESUSPENDED" and self.last_id then
      step = step or "To see what it waits for: sessile info " .. hints.id(self.last_id)
    elseif code == "EUSAGE" and step == nil and name then
      step = usage_step(command)
    end
    return fail(self, message, code, step, rule)
  elseif self.damage then
    io.stdout:flush()
    self:note(self.damage)
  end
  return math.tointeger(result) or EXIT[self.damaged] or 0
end

--- Runs a command line; returns the exit code.
---@param words string[]
---@return integer
function cli.main(words)
  hints.called(words[0])
  local code = dispatch(words)
  io.stdout:flush() -- whether that went well is seen by the executable
  return code
end

return cli
