--- app: what a command gets: output, the configuration, the store, sessions, failures.
--
-- A command's run(app, args) returns nothing or an exit code; or nil, a sentence, an error code
-- and optionally a next step. app.try and app.fail end it with such a failure from any depth.
-- Everything else that it raises is a defect.

local config = require "sessile.config"
local core = require "sessile.core"
local hints = require "sessile.cli.hints"
local json = require "sessile.cli.json"
local pager = require "sessile.cli.pager"
local paths = require "sessile.paths"
local sessions = require "sessile.cli.sessions"
local show = require "sessile.config.show"
local stores = require "sessile.cli.stores"
local system = require "sessile.system"
local terminal = require "sessile.cli.terminal"

---@class sessile.cli.app
---@field json boolean        print JSON
---@field globals table       store, key_file, plain, agent as typed
---@field paint fun(text: string, colour: string): string   for stdout
---@field now fun(): integer  ms since the epoch, to the second
---@field last_id string?     of the session that was resumed last
local app = {}
app.__index = app

--- Writes data.
function app:out(text)
  if self.page then
    self.page[#self.page + 1] = text
  else
    io.stdout:write(text)
  end
end

--- Collects the output of this command, and what it has to say, for a pager that is shown when the
--- command ends; if a person reads it, and does not ask for no pager.
---@param args table
function app:paged(args)
  self.page = pager.is_wanted(self, args) and {} or nil
end

--- Shows what was collected, or is on its way to stdout.
function app:flush()
  if self.page then
    local text, notes = table.concat(self.page), self.page.notes or {}
    self.page = nil
    pager.show(text)
    for _, note in ipairs(notes) do
      io.stderr:write(note, "\n")
    end
  end
  io.stdout:flush()
end

--- The id of a session as a line of its own: unchanged for a script, made safe for a terminal.
---@param id string
---@return string
function app.id_line(id)
  return (terminal.is_terminal(1) and terminal.line(id) or id) .. "\n"
end

--- Prints a message on stderr; with --json as a line of JSON.
function app:note(text)
  text = terminal.safe(hints.fill(text, self.globals))
  if self.page and #self.page > 0 then
    self.page.notes = self.page.notes or {}
    table.insert(self.page.notes, text) -- below the text that it is about
    return
  end
  io.stderr:write(self.json and json.line { note = text } or text, "\n")
end

--- Prints a value as JSON. app.raw(text) is a value that is JSON already.
function app:print_json(value)
  io.stdout:write(json.write(value), "\n")
end

--- Prints the result of a command: with --json the value, else the text.
---@param value any
---@param text string?
function app:result(value, text)
  if self.json then
    self:print_json(value)
  elseif text then
    self:out(text)
  end
end

--- Prints a table with bold headings. The first column is cyan.
---@param headings string[]
---@param rows string[][]  safe text
---@param fit (string[]|true)?  cut rows at the width of the terminal; a list: first leave out the
--- columns with these headings, in this order; nil: print rows at any length
---@param colours table<integer|"heading", string>?  the colours of columns and of the headings
function app:print_table(headings, rows, fit, colours)
  colours = colours or { "cyan" }
  self:out(terminal.table(headings, rows, function(cell, column, heading)
    local colour = heading and (colours.heading or "bold") or not heading and colours[column]
    return colour and self.paint(cell, colour) or cell
  end, fit and terminal.columns(), fit ~= true and fit or nil))
end

app.raw = json.raw
app.array = json.list

function app.now()
  return os.time() * 1000
end

--- The configuration, as sessile.config returns it. It is read once.
---@return sessile.Config?
---@return string? message
---@return string? code
---@return string? step
function app:config()
  local found = self.globals.configured
  if not found then
    local message, code, step
    found, message, code, step = config.load(self.globals.config)
    if not found then
      return nil, message, code, step
    end
    self.globals.configured = found
  end
  return found
end

--- Runs make() and tells of the key file that it made, if it made one. Returns what make() does.
function app:telling_of_key(make)
  local path = paths.default_key()
  local was = path and system.kind(path)
  local result = table.pack(make())
  if path and not was and system.kind(path) then
    self.told_of_key = true
    self:note(("A key for your sessions was made: %s. Keep a copy of it elsewhere, for example in "
      .. "a password manager: without it nobody can read the sessions."):format(path))
  end
  return table.unpack(result, 1, result.n)
end

-- Warns once of a configured policy that cannot be loaded, and names the line that sets it.
local function warn_of_policy(self, message, _, key)
  if self.warned_of_policy then
    return
  end
  self.warned_of_policy = true
  local cfg = self:config()
  local origin = cfg:origin(key)
  if origin.from == "default" then
    origin = cfg:origin(key:match "[^.]*$") -- an agent without a policy of its own has the store's
  end
  self:note(("%s: %s You can read sessions; a command that runs the policy fails.")
    :format(show.origin(origin), terminal.sentence(message)))
end

--- Opens the store that was named on the command line or in the configuration. create: create it if
--- it is missing. A policy that cannot be loaded is a warning: reading needs none.
---@param create boolean?
---@param more table?  further options of sessile.open
---@return table? store
---@return string? message
---@return string? code
---@return string|false|nil step
---@return boolean? absent  there is no store
---@return string? rule  of a guard, that refused
function app:store(create, more)
  if not self.opened then
    local known, wrong, kind, hint = self:config()
    if not known then
      return nil, wrong, kind, hint
    end
    -- A policy of the command line was asked for: without it nothing is opened.
    local given = { on_policy_error = not (more and more.policy) and function(...)
      warn_of_policy(self, ...)
    end or nil }
    for name, value in pairs(more or {}) do
      given[name] = value
    end
    local store, message, code, step, absent, rule = self:telling_of_key(function()
      return stores.open(self.globals, create, given)
    end)
    if not store then
      return nil, message, code, step, absent, rule
    end
    self.opened = store
  end
  return self.opened
end

--- The store if there is one; else nil and the sentence that says so. Fails for any other reason.
---@return table? store
---@return string? message
function app:store_if_any()
  local store, message, code, step, absent, rule = self:store()
  if not store and not absent then
    self.fail(message, code, step, rule)
  end
  return store, message
end

--- The store; if its control log is damaged, so that no view of it can be had, its own handle, with
--- which whoever has the store mends it. Without a store the command fails.
---@return table store
---@return boolean is_host
function app:store_to_mend()
  local store, message, code, step, _, rule = self:store()
  if not store and rule == "control" and self.globals.method == "os" then
    self.globals.as_host = true
    store, message, code, step, _, rule = self:store()
  end
  if not store then
    self.fail(message, code, step, rule)
  end
  return store, self.globals.as_host or false
end

-- Reports a cut-off write that recovery set aside, and its file.
local function note_torn(self, id, torn)
  if torn > 0 then
    local place = stores.torn_file(self.globals, torn)
    self:note(("The last write to %s was cut off: %s were set aside%s."):format(
      hints.shown(id), terminal.bytes(torn), place and " in " .. terminal.line(place) or ""))
  end
end

--- Resumes the session that `name` names: an id, a prefix of one, a title, a label or "last".
---@param name string
function app:session(name)
  local store, message, code, step, _, rule = self:store()
  if not store then
    return nil, message, code, step, rule
  end
  local session
  session, message, code, step = sessions.resume(store, name, self.globals.agent,
    self.globals.user)
  if not session then
    if code == "ESEALED" and not step then -- the store's keyring did open
      step = message:find("forgotten", 1, true) and "See the others: sessile list"
        or "The key is the store's, and nothing was changed. Put a copy of that log back; "
        .. "see the others: sessile check"
    end
    return nil, message, code, step
  end
  self.last_id = session.id
  note_torn(self, session.id, message)
  self:tell_damage(session)
  return session
end

--- If a session or a memory is damaged: what can be read is printed, and the exit code and a last
--- line report the damage.
---@param opened table
function app:tell_damage(opened)
  local damage = opened.damage
  if damage then
    self.damaged, self.damage = damage.code, terminal.line(damage.message)
  end
end

-- Raised by app.fail and app.stop, caught by dispatch: {message, code, step, rule} or {exit = n}.
local End = {}

--- Ends the command with a failure.
---@param message string
---@param code string
---@param step string|false|nil  what to do next; false: nothing
---@param rule string?  the rule of a guard that refused
function app.fail(message, code, step, rule)
  error(setmetatable({ message = assert(message), code = code, step = step, rule = rule }, End), 0)
end

--- Ends the command with an exit code.
---@param exit integer
function app.stop(exit)
  error(setmetatable({ exit = exit }, End), 0)
end

--- The results of a call. If the first is nil or false, the command ends with the failure that the
--- others describe: a sentence, a code, a next step.
function app.try(value, ...)
  if not value then
    app.fail(...)
  end
  return value, ...
end

--- The same with the next step chosen by the error code: {ECODE = step, …}.
---@param steps table<string, string|false>
function app.try_or(steps, value, message, code, step, ...)
  if not value then
    app.fail(message, code, step or steps[code], ...)
  end
  return value, message, code, step, ...
end

--- Closes a session or a store when the command ends. A failing close does not fail the command.
---@generic T
---@param opened T
---@return T
function app:keep(opened)
  table.insert(self.kept, opened)
  return opened
end

--- The session that `name` names, open until the command ends. Without one the command fails.
---@param name string
---@return table session
function app:open(name)
  return self:keep(app.try(self:session(name)))
end

--- The store, open until the command ends. Without one the command fails.
---@param create boolean?
---@param more table?  further options of sessile.open
---@return table store
function app:need_store(create, more)
  local store, message, code, step, _, rule = self:store(create, more)
  if not store then
    self.fail(message, code, step, rule)
  end
  return store
end

--- A limit from the configuration, else the engine's default.
---@param name string
---@return integer
function app:limit(name)
  local cfg = self:config()
  local value = cfg and cfg:value("limits." .. name)
  for _, limit in ipairs(core.limits()) do
    value = value or limit.name == name and limit.default
  end
  return value
end

--- Whether `bytes` is at least 80 % of the limit of a session, and this limit.
---@param bytes integer?
---@return boolean, integer
function app:is_nearly_full(bytes)
  local limit = self:limit "session"
  return (bytes or 0) // 4 >= limit // 5, limit
end

--- The rows of the store, newest first.
---@param store table
---@param which sessile.ListOptions?  only these
function app:list(store, which)
  which = which or {}
  which.agent, which.user = self.globals.agent, which.user or self.globals.user
  local rows, message, code = store:list(which)
  for _, row in ipairs(rows or {}) do
    note_torn(self, row.id, row.torn)
  end
  return rows, message, code
end

-- A failure or an exit code stays as it is; a defect gets its traceback.
local function caught(raised)
  return getmetatable(raised) == End and raised or debug.traceback(tostring(raised), 2)
end

--- Runs a command and closes what it kept. Returns what its run returns, or what ended it.
---@param command sessile.cli.command
---@param args table
---@return any result
---@return string? message
---@return string? code
---@return string|false|nil step
---@return string? rule
function app:run(command, args)
  local returned = table.pack(xpcall(command.run, caught, self, args))
  self:flush()
  local ending = not returned[1] and returned[2]
  for i = #self.kept, 1, -1 do
    local _, remembered = self.kept[i]:close()
    local why = remembered and (remembered.failure or remembered.verdict == "refused"
      and remembered.message)
    if why then
      self:note("Nothing was remembered: " .. terminal.line(why))
    end
  end
  self.kept = {}
  if not ending then
    return table.unpack(returned, 2, returned.n)
  elseif getmetatable(ending) ~= End then
    error(ending, 0)
  end
  return ending.exit, ending.message, ending.code, ending.step, ending.rule
end

--- The app of one command.
---@param args table  the parsed command line
---@return sessile.cli.app
function app.new(args)
  return setmetatable({
    json = args.json or false,
    globals = args,
    paint = terminal.painter(1),
    kept = {},
  }, app)
end

return app
