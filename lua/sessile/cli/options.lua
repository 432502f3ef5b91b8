--- options: what was typed, by a command's table.
--
-- Owns: the global options, and the translation of a command's `arguments` and `options`
-- into a parser (lua-argparse). Must never print or exit: a wrong command line is returned
-- as a sentence.

local options = {}

--- Options that every command takes, before or after its name.
---@type sessile.cli.option[]
options.global = {
  { "--json", "print JSON" },
  { "--store URL", "where sessions live: a folder, file:FOLDER or ram: (else $SESSILE_STORE)" },
  { "--key-file FILE", "read the store's key from FILE (else $SESSILE_KEY, else your key file)" },
  { "--plain", "the store is not sealed" },
  { "--agent NAME", "only sessions of this agent (when making one: main)" },
  { "-h --help", "what a command does, with examples" },
}

--- Takes "-o --output FILE" apart.
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

local function whole_number(text)
  local n = math.tointeger(tonumber(text))
  if not n or n < 0 then
    return nil, ("'%s' is not a whole number"):format(text)
  end
  return n
end

local function add_option(parser, row)
  local read = options.read(row[1])
  if not read.value then
    parser:flag(read.flags):target(read.field)
    return
  end
  local option = parser:option(read.flags):target(read.field):argname(read.value)
  if row.integer then option:convert(whole_number) end
  if row.choices then option:choices(row.choices) end
  if row.default then option:default(row.default) end
end

--- Finds where the words of the command begin: the first word that is neither a global
--- option nor its value. Words after the first argument of a raw command are left alone.
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

--- Parses the words of a command. Nil and a sentence when they are wrong.
---@param command sessile.cli.command
---@param words string[]
---@return table? args
---@return string? message
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
    parser:argument(row[1]):args(row[3] or 1)
  end

  local rest = {}
  if command.raw then
    local at = options.first_word(words, 1)
    local before = table.move(words, 1, math.min(at, #words), 1, {})
    rest = table.move(words, at + 1, #words, 1, {})
    words = before
  end
  local ok, result = parser:pparse(words)
  if not ok then
    -- Of what the parser says the sentence is ours to print; --help and -h are flags here.
    return nil, (tostring(result):gsub("\n+", ": "):gsub(": Did", ". Did"))
  end
  result.rest = rest
  return result
end

return options
