--- registry: the list of commands.
--
-- Owns: the shipped commands, their aliases, the folder of the user's commands, and the nearest
-- name to a wrong one. Must never run a command, nor load one that was not asked for: a broken file
-- in the user's folder must not break other commands.

local nearest = require "sessile.nearest"
local paths = require "sessile.paths"

local has_system, system = pcall(require, "sessile.system")

local registry = {}

-- The commands by heading, in the order of the help. `policy list` is in policy_list.lua; commands
-- of a family are in the file of the family.
local GROUPS = {
  { "Sessions", "new", "append", "turn", "show", "list", "search", "info", "chat", "resume",
    "suspend", "answer", "cancel", "settings", "rename", "archive", "delete", "undelete", "purge",
    "import", "export", "copy", "children", "usage", "stats" },
  { "The tree", "tree", "branch", "pop", "fork", "label", "label list", "label rm",
    "checkpoint", "checkpoints", "restore" },
  { "What the model sees", "context", "tokens", "compact", "uncompact", "why", "log", "pin",
    "unpin", "policy list", "policy show", "policy new", "policy test", "policy try",
    "policy replay", "policy bench", "fixture" },
  { "Who may do what", "whoami", "guard status", "guard init", "access grant", "access revoke",
    "access list", "access roles", "access explain", "access key", "access lock",
    "access unlock" },
  { "What may be written", "screen try", "screen test" },
  { "Long-term memory", "memory show", "memory search", "memory add", "memory rm",
    "memory edit", "memory restore", "memory history", "memory why", "memory pin", "memory unpin",
    "memory review", "memory consent", "memory audit", "memory clear", "memory erase",
    "memory remember", "memory recall", "memory tidy", "memory embed",
    "memory export", "memory import", "memory stats" },
  { "The audit", "audit tail", "audit show", "audit verify", "audit root", "audit head",
    "audit seal", "audit prove" },
  { "Privacy", "consent give", "consent withdraw", "consent list", "hold add", "hold list",
    "hold release", "user export", "user erase" },
  { "The server", "serve", "nodes" },
  { "Other programs", "mcp", "rpc" },
  { "Stores and keys", "check", "backup", "backup restore", "migrate", "forget", "keys init",
    "keys status", "keys rotate", "keys reseal" },
  { "Configuration", "config", "config show", "config init", "config path", "config trust",
    "doctor" },
  { "Other", "url check", "demo", "run", "version", "help", "completions", "man" },
}

-- The headings whose commands are about sessions: `sessile sessions list` is `sessile list`.
local OF_SESSIONS = { ["Sessions"] = true, ["The tree"] = true, ["What the model sees"] = true }

-- Aliases.
local ALIASES = {
  ["label remove"] = "label rm", ["memory list"] = "memory show", ["memory view"] = "memory show",
  ["memory delete"] = "memory rm", ["memory remove"] = "memory rm", ["memory write"] = "memory add",
}

-- Commands for shells, not for people: in no list.
local HIDDEN = { ["__complete"] = "complete" }

-- The files that return several commands, by name. Every other file returns one command.
local FAMILIES = {
  label = { "label", "label list", "label rm", "pin", "unpin" },
  state = { "archive", "cancel", "rename", "suspend" },
  keys = { "keys init", "keys status", "keys rotate", "keys reseal" },
  config = { "config", "config show", "config path" },
  program = { "version", "completions", "man" },
  screen = { "screen try", "screen test" },
  guard = { "guard status", "whoami" },
  access = { "access grant", "access revoke", "access list", "access lock", "access unlock" },
  audit = { "audit tail", "audit show" },
  audit_verify = { "audit verify", "audit root", "audit head", "audit seal", "audit prove" },
  consent = { "consent give", "consent withdraw", "consent list" },
  hold = { "hold add", "hold list", "hold release" },
  user = { "user export", "user erase" },
  memory = { "memory show", "memory search", "memory add", "memory rm", "memory restore",
    "memory history" },
  memory_erase = { "memory erase" },
  memory_remember = { "memory recall", "memory remember", "memory tidy" },
  memory_vectors = { "memory embed", "memory stats" },
  memory_files = { "memory export", "memory import" },
  memory_pending = { "memory review" },
  memory_decide = { "memory why", "memory pin", "memory unpin", "memory consent", "memory audit",
    "memory clear" },
}
local FAMILY_OF = {}
for family, names in pairs(FAMILIES) do
  for _, name in ipairs(names) do
    FAMILY_OF[name] = family
  end
end

-- Names that somebody may look for and that do not exist, with what to do instead.
local ABSENT = {
  cat = "Did you mean `sessile show`?",
  ls = "Did you mean `sessile list`?",
  rm = "Did you mean `sessile delete`?",
  undo = "`sessile uncompact` undoes a compaction; `sessile branch` continues from an older entry; "
    .. "`sessile pop` takes the newest messages off.",
}

-- Commands that open no store: hints show them without --store.
local NO_STORE = {
  "demo", "run", "version", "help", "completions", "man", "policy", "config", "tokens",
  "migrate", "screen", "url",
}

local SHIPPED, IS_SHIPPED = {}, {}
for _, group in ipairs(GROUPS) do
  table.move(group, 2, #group, #SHIPPED + 1, SHIPPED)
end
for _, name in ipairs(SHIPPED) do
  IS_SHIPPED[name] = true
end

--- Whether `sessions` may stand before the name of a command.
---@param name string
---@return boolean
function registry.is_of_sessions(name)
  for _, group in ipairs(GROUPS) do
    for i = 2, OF_SESSIONS[group[1]] and #group or 0 do
      if group[i] == name then
        return not name:find "^policy " and true
      end
    end
  end
  return false
end

---@class sessile.cli.option
---@field [1] string      "--last N", "--dry-run", "-o --output FILE"
---@field [2] string      what it does, for the help
---@field integer boolean?  its value is a whole number, 0 or more
---@field time boolean?     its value is a time, as "30", "500ms" or "5m"; read as ms
---@field many boolean?     may be given again: its value is a list
---@field choices string[]?
---@field default string?
---@field is string?        what a shell completes it with, when its value's name does not say

---@class sessile.cli.argument
---@field [1] string      its name, as args has it
---@field [2] string      what it is, for the help
---@field [3] string?     "?" may be absent, "*" any number, "+" at least one
---@field field string?   the field of args, when it is not its name
---@field choices string[]?
---@field is string?      what a shell completes it with, when its name does not say

---@class sessile.cli.command
---@field name string       one or two words; set when it is loaded
---@field summary string    one line, lower case, no full stop
---@field usage string      what is typed after "sessile"
---@field examples string[][]|string  {what is typed, what it is for}, or a text with two spaces
--- between them
---@field arguments sessile.cli.argument[]?
---@field options sessile.cli.option[]?
---@field about string?     more, for its help
---@field raw boolean?      options after the first argument are the script's own
---@field run fun(app: sessile.cli.app, args: table): any, string?, string?, string?
---@field path string?      where a user's command comes from

--- The folder of the user's commands; nil if HOME is not set.
---@return string?
function registry.user_folder()
  return paths.config "commands"
end

local function file_of(name)
  return (name:gsub(" ", "_"))
end

local function is_name(name)
  return name:find("^%l[%l%d_ -]*$") ~= nil
end

--- The names of all commands: the shipped ones, then the user's.
---@return string[]
function registry.names()
  local names, seen = {}, {}
  for i, name in ipairs(SHIPPED) do
    names[i], seen[name] = name, true
  end
  local folder = has_system and registry.user_folder()
  for _, file in ipairs(folder and system.files(folder) or {}) do
    local name = file:match("^(.*)%.lua$")
    name = name and name:gsub("_", " ")
    if name and is_name(name) and not seen[name] then
      names[#names + 1] = name
    end
  end
  return names
end

--- Whether a command's name begins with this word.
---@param word string
---@return boolean
function registry.begins(word)
  if word == "sessions" then
    return true
  end
  for _, name in ipairs(registry.names()) do
    if name:match "^%S+" == word then
      return true
    end
  end
  return false
end

--- The same by heading: {{title, names…}, …}, the user's last.
---@return string[][]
function registry.groups()
  local names, groups = registry.names(), {}
  for i, group in ipairs(GROUPS) do
    groups[i] = table.move(group, 1, #group, 1, {})
  end
  if #names > #SHIPPED then
    groups[#groups + 1] = { "Your own", table.unpack(names, #SHIPPED + 1) }
  end
  return groups
end

-- The lines of a text without the indentation of the first.
local function unindented(text)
  local indent = text:match "^ *"
  return (("\n" .. text):gsub("\n" .. indent, "\n"):sub(2))
end

-- Examples that are written as a text. A line has the command, two or more spaces, and what it
-- does; the latter may also be on the next line, with more indentation.
local function examples_of(text)
  local list = {}
  for line in (unindented(text) .. "\n"):gmatch "(.-)\n" do
    local about = line:match "^ +(.*)$"
    if about then
      list[#list][2] = about
    else
      list[#list + 1] = { line:match "^(.-)  +(.*)$" }
    end
    list[#list][1] = list[#list][1] or line
  end
  return list
end

-- A command with its name, and with its texts in the form that the help uses.
local function prepared(command, name)
  command.name = name
  if type(command.examples) == "string" then
    command.examples = examples_of(command.examples)
  end
  command.about = command.about and unindented(command.about)
  return command
end

-- A shipped command.
local function shipped(name)
  local family = FAMILY_OF[name]
  local found = require("sessile.cli.commands." .. (family or HIDDEN[name] or file_of(name)))
  return prepared(family and found[name] or found, name)
end

local function checked(command, name, path)
  if type(command) ~= "table" or type(command.run) ~= "function" then
    return nil, ("%s does not return a table with a function `run`"):format(path), "EINVALID"
  end
  prepared(command, name)
  command.summary = command.summary or "a command of yours"
  command.usage = command.usage or name
  command.examples = command.examples or {}
  command.path = path
  return command
end

--- The names of the shipped commands about sessions.
---@return string[]
function registry.of_sessions()
  local names = {}
  for _, name in ipairs(SHIPPED) do
    names[#names + 1] = registry.is_of_sessions(name) and name or nil
  end
  return names
end

--- The shipped commands by heading.
---@return string[][]
function registry.shipped()
  return GROUPS
end

--- The aliases of a command, as they are typed.
---@param name string
---@return string[]
function registry.aliases(name)
  local words = {}
  for typed, meant in pairs(ALIASES) do
    words[#words + 1] = meant == name and typed or nil
  end
  table.sort(words)
  for _, typed in ipairs(registry.is_of_sessions(name) and { name, table.unpack(words) } or {}) do
    words[#words + 1] = "sessions " .. typed
  end
  return words
end

--- All names and aliases.
---@return string[]
function registry.typed()
  local names = registry.names()
  for typed in pairs(ALIASES) do
    names[#names + 1] = typed
  end
  table.sort(names)
  return names
end

--- The name of the command for an alias: "sessions label remove" is "label rm". Other words are
--- returned unchanged.
---@param words string
---@return string
function registry.meant(words)
  local rest = words:match "^sessions (.+)$"
  local name = rest or words
  name = ALIASES[name] or name
  if rest and not registry.is_of_sessions(name) then
    return words
  end
  return name
end

--- What to do instead of a command that somebody may look for and that does not exist.
---@param word string
---@return string?
function registry.absent(word)
  return ABSENT[word]
end

--- Whether a word is the first of the name of a command that opens a store.
---@param word string
---@return boolean
function registry.opens_store(word)
  for _, name in ipairs(NO_STORE) do
    if name == word then
      return false
    end
  end
  for _, name in ipairs(SHIPPED) do
    if name:match "^%S+" == word then
      return true
    end
  end
  return word == "sessions"
end

--- Whether two words are the name of a command.
---@param words string
---@return boolean
function registry.is_pair(words)
  return IS_SHIPPED[words] and words:find " " ~= nil or ALIASES[words] ~= nil
end

--- Loads a command by its name or an alias. A user's file does not replace a shipped command.
---@param name string
---@return sessile.cli.command?
---@return string? message
---@return string? code  "ENOTFOUND": there is none of this name
function registry.load(name)
  name = registry.meant(name)
  if IS_SHIPPED[name] or HIDDEN[name] then
    return shipped(name)
  end
  local folder = is_name(name) and registry.user_folder()
  local path = folder and ("%s/%s.lua"):format(folder, file_of(name))
  if not path or not has_system or system.kind(path) ~= "file" then
    return nil, ("there is no command '%s'"):format(name), "ENOTFOUND"
  end
  local chunk, message = loadfile(path, "t")
  if not chunk then
    return nil, message, "EINVALID"
  end
  local ok, command = pcall(chunk)
  if not ok then
    return nil, tostring(command), "EINVALID"
  end
  return checked(command, name, path)
end

--- The nearest name, if it is near enough to have been meant.
---@param word string
---@param names string[]
---@return string?
function registry.nearest(word, names)
  local set = {}
  for _, name in ipairs(names) do
    set[name] = true
  end
  return nearest(word, set)
end

return registry
