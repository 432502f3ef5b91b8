--- options: parses a command line by a command's table.
--
-- Owns: the global options, and the translation of a command's `arguments` and `options` into a
-- parser (lua-argparse). Must never print or exit: for a wrong command line it returns a sentence.

local hints = require "sessile.cli.hints"
local paths = require "sessile.paths"
local registry = require "sessile.cli.registry"
local times = require "sessile.times"
local triggers = require "sessile.triggers"

local options = {}

--- Options that every command takes, before or after its name.
---@type sessile.cli.option[]
options.global = {
  { "--json", "print JSON" },
  { "--store URL", "a folder, " .. paths.store_forms() .. " (else $SESSILE_STORE)" },
  { "--key-file FILE", "the store's key (else $SESSILE_KEY, else your key file)" },
  { "--plain", "the store is not encrypted" },
  { "--token-file FILE", "who you are, if the store has a guard (else $SESSILE_TOKEN)" },
  { "--agent NAME", "only sessions of this agent (new sessions: default main)", is = "agent" },
  { "--user NAME", "only sessions of this user (new sessions: theirs; see forget)", is = "user" },
  { "--timeout TIME", "wait for another writer at most: 90, 500ms, 2m (default 5)",
    time = true },
  { "--config FILE", "the configuration (else $SESSILE_CONFIG, else yours and ./sessile.lua)" },
  { "--network", "write even if the store is on a network file system" },
  { "-h --help", "show help for a command, with examples" },
}

--- Parses an option such as "-o --output FILE".
---@param spec string
---@return {flags: string, value: string?, field: string, words: string[]}
function options.read(spec)
  local words, value, field = {}, nil, nil
  for word in spec:gmatch("%S+") do
    if word:sub(1, 1) == "-" then
      words[#words + 1] = word
      field = word:match("^%-%-(.+)") or field or word:sub(2)
    else
      value = word
    end
  end
  return {
    flags = table.concat(words, " "),
    value = value,
    field = (field:gsub("-", "_")),
    words = words,
  }
end

-- The kind of a value, by its name in the table.
local KINDS = {
  id = "session", session = "session", entry = "entry", file = "file", files = "file",
  script = "file", specs = "file", checkpoint = "checkpoint", FILE = "file", FOLDER = "folder",
  P = "policy",
}

--- The kind of values with which a shell completes a row: "session", "entry", "file", …; or nil.
---@param row sessile.cli.option|sessile.cli.argument
---@return string?
function options.kind(row)
  if row.is or row.choices then
    return row.is
  elseif row[1]:sub(1, 1) == "-" then
    return KINDS[options.read(row[1]).value]
  end
  return KINDS[row[1]]
end

-- The converter of an option's values. read(text) returns the value or nil; `what` describes valid
-- values.
local function converter(flag, read, what)
  return function(text)
    local value = read(text)
    if not value then
      return nil, ("option '%s': '%s' is not %s"):format(flag, hints.shown(text), what)
    end
    return value
  end
end

local function whole_number(text)
  return text:find "^%d+$" and math.tointeger(tonumber(text)) or nil
end

local function add_option(parser, row)
  local read = options.read(row[1])
  if not read.value then
    parser:flag(read.flags):target(read.field)
    return
  end
  local option = parser:option(read.flags):target(read.field):argname(read.value)
  local flag = read.words[#read.words]
  if row.integer then
    option:convert(converter(flag, whole_number, "a whole number, 0 or more"))
  elseif row.time then
    option:convert(converter(flag, times.ms, "a time: write seconds, or 500ms, 5m, 2h"))
  end
  if row.many then option:count("*") end
  if row.choices then option:choices(row.choices) end
  if row.default then option:default(row.default) end
end

--- The index of the first word that is neither a global option nor its value.
---@param words string[]
---@param from integer
---@return integer
function options.first_word(words, from)
  local with_value = {}
  for _, row in ipairs(options.global) do
    local read = options.read(row[1])
    for _, word in ipairs(read.words) do
      with_value[word] = read.value ~= nil
    end
  end
  local i = from
  while i <= #words do
    local word = words[i]
    if word == "--" then
      return i + 1
    elseif word:sub(1, 1) ~= "-" or word == "-" then
      return i
    end
    i = i + (with_value[word] and 2 or 1)
  end
  return i
end

-- Joins integer options and their values, so that a negative number is a wrong value and not an
-- unknown option.
local function join_numbers(command, words)
  local takes = {}
  for _, row in ipairs(command.options or {}) do
    local read = options.read(row[1])
    for _, word in ipairs(row.integer and read.words or {}) do
      takes[word] = word:sub(1, 2) == "--"
    end
  end
  local joined, i = {}, 1
  while i <= #words do
    local word, following = words[i], words[i + 1]
    if word == "--" then
      return table.move(words, i, #words, #joined + 1, joined)
    elseif takes[word] and following and following:find "^%-%d" then
      word, i = word .. "=" .. following, i + 1
    end
    joined[#joined + 1] = word
    i = i + 1
  end
  return joined
end

--- A policy with the values of --option: {"name", option = value, …}, or the name alone without
--- any. Nil and a sentence if a value is wrong. Numbers and booleans are converted; other values
--- are text.
---@param name string?
---@param given string[]
---@return any policy
---@return string? message
function options.policy(name, given)
  if #given == 0 then
    return name
  elseif not name then
    return nil, "--option is for a policy: name one with --policy"
  end
  local policy = { name }
  for _, text in ipairs(given) do
    local key, value = text:match "^([%a_][%w_]*)=(.*)$"
    if not key then
      return nil, ("option '--option': '%s' is not NAME=VALUE"):format(hints.shown(text))
    end
    if value == "true" or value == "false" then
      policy[key] = value == "true"
    else
      policy[key] = value:find "^-?%.?%d[%d.eE+-]*$" and tonumber(value) or value
    end
  end
  return policy
end

--- The value of --triggers ("messages=50,interval=10m,share=0.8,overflow") as the library takes it.
--- Nil and a sentence if it is wrong.
---@param text string?
---@return table? triggers
---@return string? message
function options.triggers(text)
  if not text then
    return nil
  end
  local given = {}
  for part in (text .. ","):gmatch "([^,]*)," do
    local name, value = part:match "^(%l+)=(.+)$"
    name = name or part
    if value == nil and name ~= "overflow" then
      return nil, ("option '--triggers': '%s' is not NAME=VALUE or overflow"):format(
        hints.shown(part))
    end
    given[name] = value == nil or (name ~= "interval" and tonumber(value)) or value
  end
  local fine, why = pcall(triggers.resolve, "option '--triggers'", given)
  if not fine then -- without the place in the library that raised it
    return nil, (tostring(why):gsub("^.-: (option '%-%-triggers'): triggers:", "%1:", 1))
  end
  return given
end

-- A suggestion for the word that is not one of the choices of its option or argument.
local function nearest_choice(command, words)
  for _, row in ipairs(command.options or {}) do
    for _, flag in ipairs(row.choices and options.read(row[1]).words or {}) do
      for i, word in ipairs(words) do
        local value = word == flag and words[i + 1]
          or word:sub(1, #flag + 1) == flag .. "=" and word:sub(#flag + 2)
        local nearest = value and registry.nearest(value, row.choices)
        if nearest and nearest ~= value then
          return ("Did you mean `%s %s`?"):format(flag, nearest)
        end
      end
    end
  end
  for i, row in ipairs(command.arguments or {}) do
    local nearest = row.choices and words[i] and registry.nearest(words[i], row.choices)
    if nearest and nearest ~= words[i] then
      return ("Did you mean `%s`?"):format(nearest)
    end
  end
end

--- Parses the words of a command. Nil and a sentence if they are wrong, and perhaps a suggestion.
---@param command sessile.cli.command
---@param words string[]
---@return table? args
---@return string? message
---@return string? step
function options.parse(command, words)
  local found, argparse = pcall(require, "argparse")
  if not found then
    return nil, "the Lua module argparse is missing: install the package lua-argparse"
  end
  local parser = argparse("sessile " .. command.name):add_help(false)
  for _, row in ipairs(options.global) do
    add_option(parser, row)
  end
  for _, row in ipairs(command.options or {}) do
    add_option(parser, row)
  end
  for _, row in ipairs(command.arguments or {}) do
    local argument = parser:argument(row[1]):args(row[3] or 1)
    if row.field then argument:target(row.field) end
    if row.choices then argument:choices(row.choices) end
  end

  local rest = {}
  if command.raw then
    local at = options.first_word(words, 1)
    local before = table.move(words, 1, math.min(at, #words), 1, {})
    rest = table.move(words, at + 1, #words, 1, {})
    words = before
  end
  words = join_numbers(command, words)
  local ok, result = parser:pparse(words)
  if not ok then
    -- The message of the parser on one line.
    local message = tostring(result):gsub("\n+", ": "):gsub(": Did", ". Did")
    return nil, message, message:find("must be one of", 1, true) and nearest_choice(command, words)
  end
  result.rest = rest
  return result
end

return options
