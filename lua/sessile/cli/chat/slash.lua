--- slash: lines that begin with "/" in a chat: commands of the chat, and commands of the command
--- line about its session.
--
-- Owns: which commands there are, and how words are split. Must never send a mistyped command to a
-- model, nor open the session a second time.

local hints = require "sessile.cli.hints"
local options = require "sessile.cli.options"
local registry = require "sessile.cli.registry"
local terminal = require "sessile.cli.terminal"

local slash = {}

-- Commands of the command line that make no sense in a chat.
local NOT_HERE = {
  answer = true, archive = true, cancel = true, chat = true, delete = true, import = true,
  resume = true, run = true, suspend = true, undelete = true, purge = true, completions = true,
  man = true, migrate = true, backup = true,
}

local NOTHING_SAID = "nothing was said yet, so there is no session"

-- Splits a line into words as a shell does, with quotes and backslashes. Nil and a sentence if a
-- quote is not closed.
function slash.words(text)
  local words, word, quote, at = {}, nil, nil, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == "\\" and quote ~= "'" and at < #text then
      at = at + 1
      word = (word or "") .. text:sub(at, at)
    elseif quote then
      if c == quote then quote = nil else word = word .. c end
    elseif c == "'" and not word or c == '"' then
      quote, word = c, word or ""
    elseif c:find "%s" then
      words[#words + 1] = word
      word = nil
    else
      word = (word or "") .. c
    end
    at = at + 1
  end
  if quote then
    return nil, ("the quote %s is not closed"):format(quote)
  end
  words[#words + 1] = word
  return words
end

-- The session for a command: closing it does nothing.
local function lent(session)
  return setmetatable({ close = function() return true end }, {
    __index = function(_, name)
      local value = session[name]
      if type(value) ~= "function" then
        return value
      end
      return function(_, ...) return value(session, ...) end
    end,
    __newindex = function(_, name, value) session[name] = value end,
    __close = function() end,
  })
end

-- The command that the words name, and the number of words in its name.
local function command_of(words)
  local first, second = words[1], words[2]
  if second and registry.is_pair(first .. " " .. second) then
    return registry.load(first .. " " .. second), 2
  end
  return registry.load(first), 1
end

local function takes_session(command)
  local first = command.arguments and command.arguments[1]
  return first and (first[1] == "id" or first[1] == "session")
end

-- Whether a command can be typed here.
local function is_here(command)
  return not NOT_HERE[command.name] and (takes_session(command)
    or command.name == "list" or command.name == "search")
end

--- Rewrites commands about the session in a sentence as they are typed in the chat. In the
--- chat, a message continues the session.
function slash.here(chat, text)
  if not chat.session then
    return text
  end
  local id = hints.id(chat.session.id):gsub("%p", "%%%0")
  return (text:gsub("%f[%w/]sessile (%l+) " .. id .. "%f[%s\0,.;)]", function(name)
    if name == "resume" or name == "chat" then
      return "type a message"
    end
    local command = registry.load(name)
    return command and is_here(command) and "/" .. name or nil
  end))
end

-- The app for a command. Every session that it opens is that of the chat.
local function app_for(chat)
  local app = chat.app
  return setmetatable({
    kept = {},
    session = function() return lent(chat.session) end,
    note = function(self, text) app.note(self, slash.here(chat, text)) end,
  }, { __index = app })
end

--- Runs a command of the command line on the session of the chat. Returns what its run returns.
---@param chat table
---@param command sessile.cli.command
---@param words string[]  after its name
function slash.run(chat, command, words)
  if takes_session(command) and not chat.session then
    return nil, NOTHING_SAID, "ENOTFOUND", "Type a message first."
  end
  local typed = table.move(words, 1, #words, 1, {})
  if takes_session(command) then
    table.insert(typed, 1, "last")
  end
  for _, row in ipairs(command.options or {}) do
    if row[1] == "--yes" then -- it was typed here, by the person who would be asked
      table.insert(typed, 1, "--yes")
    end
  end
  local args, message = options.parse(command, typed)
  if not args then
    return nil, message, "EUSAGE", ("Usage: /%s"):format(
      (command.usage:gsub(" %[?ID%]?", "", 1)))
  end
  return app_for(chat):run(command, args)
end

--- The names of all commands that can be typed, without the slash.
---@param own table<string, any>
---@return string[]
function slash.names(own)
  local names = {}
  for name in pairs(own) do
    names[#names + 1] = name
  end
  for _, name in ipairs(registry.names()) do
    if not own[name] and not name:find " " then
      local command = registry.load(name)
      names[#names + 1] = command and is_here(command) and name or nil
    end
  end
  table.sort(names)
  return names
end

--- Runs the command of a line. own: the chat's own commands, {name = {run = function(chat, rest)}}.
--- Returns what the command returns.
---@param chat table
---@param text string  behind the slash
---@param own table<string, table>
function slash.execute(chat, text, own)
  local name, rest = text:match "^(%S*)%s*(.-)%s*$"
  if name == "sessions" and rest ~= "" then -- as the command line has it
    name, rest = rest:match "^(%S*)%s*(.-)%s*$"
  end
  if own[name] and not own[name].alone and not chat.session then
    return nil, NOTHING_SAID, "ENOTFOUND", "Type a message first."
  elseif own[name] then
    return own[name].run(chat, rest)
  end
  local words, wrong = slash.words(name .. " " .. rest)
  if not words then
    return nil, wrong, "EUSAGE"
  end
  local command, count = command_of(words)
  if command and is_here(command) then
    return slash.run(chat, command, table.move(words, count + 1, #words, 1, {}))
  elseif command then
    return nil, ("/%s is not for a chat"):format(name), "EUSAGE",
      "Type it outside: sessile " .. terminal.line(text)
  end
  local nearest = name ~= "" and registry.nearest(name, slash.names(own))
  return nil, ("there is no /%s"):format(terminal.line(name)), "EUSAGE", nearest
    and ("Did you mean /%s?"):format(nearest) or "See them: /help"
end

return slash
